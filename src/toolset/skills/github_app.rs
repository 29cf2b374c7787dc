//! The token of a GitHub App's installation, in place of a person's.
//!
//! A JSON web token signed with the app's key is exchanged for one that opens the repositories of one installation, for
//! an hour. It is asked for at the repository's own host: `api.github.com` for `github.com`, `/api/v3` of a GitHub
//! Enterprise server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::airflow::error_chain::error_chain;

/// The user name that GitHub wants with such a token.
pub(super) const USER: &str = "x-access-token";
const TIMEOUT: Duration = Duration::from_secs(30);
/// Seconds that the signed request is good for; GitHub takes ten minutes at most.
const LIFETIME: u64 = 300;
/// How far the clocks may be apart, in seconds.
const LEEWAY: u64 = 60;

/// An app as a connection names it.
pub(super) struct GithubApp {
    pub app_id: String,
    pub installation_id: String,
    /// PEM.
    pub private_key: SecretString,
}

impl GithubApp {
    /// A token for the installation, asked for where the repository is.
    ///
    /// # Errors
    /// A key that is none, or a server that gives no token. The text holds neither.
    pub async fn token(&self, host: &str, port: Option<u16>) -> Result<SecretString, String> {
        let url = format!(
            "{}/app/installations/{}/access_tokens",
            api(host, port),
            self.installation_id
        );
        let answer = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .user_agent("updraft")
            .build()
            .map_err(|error| failed(&error))?
            .post(url)
            .bearer_auth(self.request()?)
            .header("accept", "application/vnd.github+json")
            .send()
            .await
            .map_err(|error| failed(&error.without_url()))?;
        let status = answer.status();
        let body: Value = answer.json().await.unwrap_or_default();
        match body.get("token").and_then(Value::as_str) {
            Some(token) if status.is_success() && !token.is_empty() => {
                Ok(SecretString::from(token))
            }
            _ => {
                let reason = body.get("message").and_then(Value::as_str);
                Err(format!(
                    "GitHub gives the app {} no token for the installation {}: {status} {}",
                    self.app_id,
                    self.installation_id,
                    reason.unwrap_or_default()
                ))
            }
        }
    }

    /// What the app signs to be known by.
    fn request(&self) -> Result<String, String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map(|time| time.as_secs())
            .unwrap_or_default();
        let claims = json!({
            "iss": self.app_id,
            "iat": now.saturating_sub(LEEWAY),
            "exp": now + LIFETIME,
        });
        let key = EncodingKey::from_rsa_pem(self.private_key.expose_secret().as_bytes())
            .map_err(|_| "the key of the GitHub App is no RSA key in PEM form".to_owned())?;
        jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &key)
            .map_err(|error| format!("the request of the GitHub App can't be signed: {error}"))
    }
}

fn api(host: &str, port: Option<u16>) -> String {
    if host == "github.com" && port.is_none() {
        return "https://api.github.com".to_owned();
    }
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    match port {
        Some(port) => format!("https://{host}:{port}/api/v3"),
        None => format!("https://{host}/api/v3"),
    }
}

fn failed(error: &reqwest::Error) -> String {
    format!(
        "GitHub could not be asked for the app's token: {}",
        error_chain(error)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_asked_for_at_the_repositorys_own_host() {
        assert_eq!(api("github.com", None), "https://api.github.com");
        assert_eq!(
            api("git.example.com", None),
            "https://git.example.com/api/v3"
        );
        assert_eq!(
            api("git.example.com", Some(8443)),
            "https://git.example.com:8443/api/v3"
        );
    }

    #[tokio::test]
    async fn a_key_that_is_none_is_refused_without_being_shown() {
        let app = GithubApp {
            app_id: "1".to_owned(),
            installation_id: "2".to_owned(),
            private_key: SecretString::from("made-up-key"),
        };
        let error = app.token("localhost", Some(1)).await.unwrap_err();
        assert!(error.contains("RSA key"), "{error}");
        assert!(!error.contains("made-up-key"), "{error}");
    }
}
