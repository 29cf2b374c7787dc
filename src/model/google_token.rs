//! Access tokens of Google Cloud for a service account, from its key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::http::{Authorize, client, connection_error, secret_header};
use crate::agent::ModelError;
use crate::secrets::Masker;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const GRANT: &str = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer";
/// How long an assertion counts: the most that Google takes, in seconds.
const ASSERTION_SECONDS: i64 = 3_600;
/// A token is renewed so long before it ends.
const RENEWED_BEFORE: Duration = Duration::from_secs(120);
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a service account's key file holds, as far as it is needed.
#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    private_key: SecretString,
    #[serde(default)]
    private_key_id: Option<String>,
    #[serde(default)]
    token_uri: Option<String>,
    #[serde(default)]
    project_id: Option<String>,
}

/// A service account, and the token it has at present.
pub struct ServiceAccount {
    key_file: KeyFile,
    key: EncodingKey,
    client: reqwest::Client,
    masker: Masker,
    token: Mutex<Option<(Arc<SecretString>, Instant)>>,
}

#[derive(Deserialize)]
struct Granted {
    access_token: SecretString,
    expires_in: u64,
}

#[async_trait]
impl Authorize for ServiceAccount {
    async fn add_to(&self, headers: &mut HeaderMap, _: &str, _: &[u8]) -> Result<(), ModelError> {
        let token = self.token().await?;
        let token = secret_header(&format!("Bearer {}", token.expose_secret()))?;
        headers.insert(AUTHORIZATION, token);
        Ok(())
    }
}

impl ServiceAccount {
    /// Reads a key file. What is got for it becomes known to `masker`.
    ///
    /// # Errors
    /// It is no key file of a service account.
    pub fn new(key_file: &Value, masker: &Masker) -> Result<Self, ModelError> {
        let unusable = |why: &dyn std::fmt::Display| {
            ModelError::Configuration(format!(
                "service_account_info is no key of a service account: {why}. Put the whole JSON file there that Google \
                 Cloud gives out for the account's key."
            ))
        };
        let key_file: KeyFile =
            serde_json::from_value(key_file.clone()).map_err(|error| unusable(&error))?;
        let pem = key_file.private_key.expose_secret();
        masker.add_secret(pem);
        let key = EncodingKey::from_rsa_pem(pem.as_bytes())
            .map_err(|error| unusable(&format!("private_key can't be read: {error}")))?;
        Ok(Self {
            key,
            key_file,
            client: client()?,
            masker: masker.clone(),
            token: Mutex::new(None),
        })
    }

    /// The project that the account belongs to.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        self.key_file.project_id.as_deref()
    }

    /// A token that counts for a while yet.
    ///
    /// # Errors
    /// Google gives none.
    pub async fn token(&self) -> Result<Arc<SecretString>, ModelError> {
        let mut held = self.token.lock().await;
        if let Some((token, ends)) = held.as_ref()
            && *ends > Instant::now() + RENEWED_BEFORE
        {
            return Ok(Arc::clone(token));
        }
        let granted = self.fetch().await?;
        self.masker.add_secret(granted.access_token.expose_secret());
        let ends = Instant::now() + Duration::from_secs(granted.expires_in);
        let token = Arc::new(granted.access_token);
        *held = Some((Arc::clone(&token), ends));
        Ok(token)
    }

    async fn fetch(&self) -> Result<Granted, ModelError> {
        let uri = self.key_file.token_uri.as_deref().unwrap_or(TOKEN_URI);
        let now = chrono::Utc::now().timestamp();
        let claims = json!({
            "iss": self.key_file.client_email, "scope": SCOPE, "aud": uri, "iat": now, "exp": now + ASSERTION_SECONDS,
        });
        let header = Header {
            kid: self.key_file.private_key_id.clone(),
            ..Header::new(Algorithm::RS256)
        };
        let refused = |why: &str| {
            ModelError::Configuration(format!(
                "Google Cloud gives no access token to {}: {why}. Check that the key in service_account_info is still \
                 enabled, and this machine's clock.",
                self.key_file.client_email
            ))
        };
        let assertion =
            encode(&header, &claims, &self.key).map_err(|error| refused(&error.to_string()))?;
        let response = self
            .client
            .post(uri)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("grant_type={GRANT}&assertion={assertion}"))
            .timeout(TIMEOUT)
            .send()
            .await
            .map_err(|error| connection_error(&error, uri))?;
        let status = response.status();
        let text = response
            .text()
            .await
            .map_err(|error| connection_error(&error, uri))?;
        if !status.is_success() {
            return Err(refused(&format!(
                "status {}, {}",
                status.as_u16(),
                text.trim()
            )));
        }
        serde_json::from_str(&text).map_err(|error| refused(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use wiremock::matchers::{body_string_contains, method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    fn account(token_uri: &str) -> Value {
        use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
        use base64::Engine;

        let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let der = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
        json!({
            "type": "service_account", "project_id": "harbour", "client_email": "agent@harbour.invalid",
            "private_key": format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n"),
            "token_uri": token_uri,
        })
    }

    #[tokio::test]
    async fn a_token_is_got_for_a_signed_assertion_once_and_is_a_secret() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path("/token"))
            .and(body_string_contains("assertion=ey"))
            .respond_with(ResponseTemplate::new(200).set_body_json(json!({
                "access_token": "ya29.made-up-token", "expires_in": 3600, "token_type": "Bearer",
            })))
            .expect(1)
            .mount(&server)
            .await;
        let masker = Masker::new();
        let account = ServiceAccount::new(&account(&format!("{}/token", server.uri())), &masker);
        let account = account.unwrap();
        assert_eq!(account.project(), Some("harbour"));
        for _ in 0..2 {
            let token = account.token().await.unwrap();
            assert_eq!(token.expose_secret(), "ya29.made-up-token");
        }
        assert_eq!(masker.mask_str("ya29.made-up-token"), "***");
    }

    #[tokio::test]
    async fn a_refusal_names_the_account_and_what_to_check() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .respond_with(
                ResponseTemplate::new(400).set_body_string("{\"error\":\"invalid_grant\"}"),
            )
            .mount(&server)
            .await;
        let account = ServiceAccount::new(&account(&server.uri()), &Masker::new()).unwrap();
        let error = account.token().await.unwrap_err().to_string();
        assert!(
            error.contains("agent@harbour.invalid") && error.contains("invalid_grant"),
            "{error}"
        );
    }

    #[test]
    fn what_is_no_key_file_says_what_belongs_there() {
        let error = ServiceAccount::new(&json!({"client_email": "x"}), &Masker::new())
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("Put the whole JSON file"),
            "{error}"
        );
    }
}
