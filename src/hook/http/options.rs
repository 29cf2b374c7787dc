//! How a request is sent: redirects, certificates, proxies and time-outs, as a call and its connection set them.

use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Identity, Proxy, Url, redirect};
use serde_json::{Map, Value};

use super::HttpError;
use crate::airflow::error_chain::error_chain;

/// How long a request may take where neither the connection nor the call says.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: usize = 30;

/// Keys of a connection's extra that are settings; all others are headers.
pub(super) const OPTIONS: [&str; 12] = [
    "timeout",
    "allow_redirects",
    "proxies",
    "proxy",
    "verify",
    "verify_ssl",
    "cert",
    "check_response",
    "max_redirects",
    "trust_env",
    "stream",
    "srv_lookup",
];

/// What a call and the connection's extra set; the call's goes first.
pub(super) struct Options<'a> {
    pub call: &'a Map<String, Value>,
    pub connection: &'a Map<String, Value>,
}

impl Options<'_> {
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.call
            .get(name)
            .or_else(|| self.connection.get(name))
            .filter(|value| !value.is_null())
    }

    pub fn client(&self, has_credentials: bool) -> Result<Client, HttpError> {
        let follow = self.get("allow_redirects") != Some(&Value::Bool(false));
        let limit = match self.get("max_redirects") {
            None => MAX_REDIRECTS,
            Some(value) => value
                .as_u64()
                .and_then(|limit| usize::try_from(limit).ok())
                .ok_or_else(|| {
                    HttpError::Settings(format!("max_redirects is {value}, and must be a number"))
                })?,
        };
        let mut builder = Client::builder()
            .redirect(policy(follow, has_credentials, limit))
            // It would tell another host the query.
            .referer(false);
        builder = self.timeouts(builder)?;
        match self.get("verify").or_else(|| self.get("verify_ssl")) {
            Some(Value::Bool(false)) => builder = builder.tls_danger_accept_invalid_certs(true),
            Some(Value::String(file)) => {
                let pem = read(file)?;
                let certificates = Certificate::from_pem_bundle(&pem)
                    .map_err(|error| HttpError::Settings(format!("{file}: {error}")))?;
                builder = builder.tls_certs_merge(certificates);
            }
            _ => {}
        }
        let identity = match self.get("cert") {
            None => None,
            Some(Value::String(file)) => Some((file, read(file)?)),
            Some(Value::Array(files)) => match files.as_slice() {
                [Value::String(certificate), Value::String(key)] => {
                    let mut pem = read(certificate)?;
                    pem.push(b'\n');
                    pem.extend(read(key)?);
                    Some((certificate, pem))
                }
                _ => return Err(wrong_certificate()),
            },
            Some(_) => return Err(wrong_certificate()),
        };
        if let Some((file, pem)) = identity {
            let identity = Identity::from_pem(&pem)
                .map_err(|error| HttpError::Settings(format!("{file}: {error}")))?;
            builder = builder.identity(identity);
        }
        if self.get("trust_env") == Some(&Value::Bool(false)) {
            builder = builder.no_proxy();
        }
        for proxy in self.proxies()? {
            builder = builder.proxy(proxy);
        }
        builder
            .build()
            .map_err(|error| HttpError::Settings(error_chain(&error)))
    }

    /// Seconds for the whole request, or, as requests takes them, for connecting and for each wait for an answer.
    fn timeouts(&self, builder: ClientBuilder) -> Result<ClientBuilder, HttpError> {
        match self.get("timeout") {
            None => Ok(builder.timeout(TIMEOUT)),
            Some(Value::Array(both)) if both.len() == 2 => {
                let mut builder = builder;
                for (index, value) in both.iter().enumerate() {
                    if !value.is_null() {
                        let time = seconds(value)?;
                        builder = if index == 0 {
                            builder.connect_timeout(time)
                        } else {
                            builder.read_timeout(time)
                        };
                    }
                }
                Ok(builder)
            }
            Some(value) => Ok(builder.timeout(seconds(value)?)),
        }
    }

    /// `{"http": address, "https": ..., "all": ..., "https://host": ...}`, as requests takes them.
    fn proxies(&self) -> Result<Vec<Proxy>, HttpError> {
        let entries = match self.get("proxies").or_else(|| self.get("proxy")) {
            None => return Ok(Vec::new()),
            Some(Value::Object(entries)) => entries,
            Some(_) => {
                return Err(HttpError::Settings(
                    "proxies must be an object: a proxy's address by \"http\", \"https\" or \"all\"".to_owned(),
                ));
            }
        };
        let mut found = Vec::new();
        // The first that fits is taken: those for one host go before those for all.
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_by_key(|(scope, _)| (!scope.contains("://"), scope.as_str() == "all"));
        for (scope, to) in entries {
            let Some(to) = to.as_str().filter(|to| !to.is_empty()) else {
                continue;
            };
            // An address may hold a password, which errors must not show.
            let wrong = |_| {
                HttpError::Settings(format!(
                    "the proxy for {scope:?} has an address that is none"
                ))
            };
            found.push(match scope.as_str() {
                "http" => Proxy::http(to).map_err(wrong)?,
                "https" => Proxy::https(to).map_err(wrong)?,
                "all" => Proxy::all(to).map_err(wrong)?,
                _ => {
                    let wanted = Url::parse(scope)
                        .ok()
                        .filter(Url::has_host)
                        .ok_or_else(|| {
                            HttpError::Settings(format!(
                                "proxies has {scope:?}, and takes http, https, all and scheme://host"
                            ))
                        })?;
                    let to = Url::parse(to).map_err(|_| {
                        HttpError::Settings(format!(
                            "the proxy for {scope:?} has an address that is none"
                        ))
                    })?;
                    Proxy::custom(move |url| {
                        let same = url.scheme() == wanted.scheme() && url.host() == wanted.host();
                        same.then(|| to.clone())
                    })
                }
            });
        }
        Ok(found)
    }
}

fn wrong_certificate() -> HttpError {
    HttpError::Settings(
        "cert must be a PEM file with certificate and key, or a list of the two files".to_owned(),
    )
}

/// As Airflow reads a switch.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(on) => *on,
        Value::String(text) => {
            matches!(
                text.trim().to_lowercase().as_str(),
                "true" | "t" | "yes" | "y" | "1" | "on"
            )
        }
        other => other.as_i64() == Some(1),
    }
}
fn seconds(value: &Value) -> Result<Duration, HttpError> {
    let seconds = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero())
        .ok_or_else(|| HttpError::Settings(format!("timeout is {value}, and must be seconds")))
}
fn read(file: &str) -> Result<Vec<u8>, HttpError> {
    std::fs::read(file).map_err(|error| HttpError::Settings(format!("{file}: {error}")))
}

/// Text in an error of the redirect policy, to be told apart from other failures.
#[derive(Debug, thiserror::Error)]
#[error("another host")]
struct OtherHost {
    from: String,
    to: String,
}

fn policy(follow: bool, has_credentials: bool, limit: usize) -> redirect::Policy {
    if !follow {
        return redirect::Policy::none();
    }
    redirect::Policy::custom(move |attempt| {
        if let Some(first) = attempt.previous().first()
            && has_credentials
            && first.origin() != attempt.url().origin()
        {
            let shown = |url: &Url| url.origin().ascii_serialization();
            let (from, to) = (shown(first), shown(attempt.url()));
            return attempt.error(OtherHost { from, to });
        }
        if attempt.previous().len() > limit {
            return attempt.error(format!("it redirects more than {limit} times"));
        }
        attempt.follow()
    })
}

/// The path is left out of what is shown: for some servers it is the secret.
pub(super) fn refused(error: reqwest::Error, from: &str) -> HttpError {
    let mut source: Option<&dyn std::error::Error> = Some(&error);
    while let Some(cause) = source {
        if let Some(OtherHost { from, to }) = cause.downcast_ref() {
            return HttpError::Redirect {
                from: from.clone(),
                to: to.clone(),
            };
        }
        source = cause.source();
    }
    HttpError::Transport(format!("{from}: {}", error_chain(&error.without_url())))
}
