//! Requests to Vault: a token by login where need be, one more login when the token is refused, and a few repetitions
//! when the server is not well.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Identity, Method, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::super::BackendError;
use super::super::kwargs::Kwargs;
use super::auth::{Auth, read_token};
use crate::airflow::config::Environment;
use crate::airflow::error_chain::error_chain;
use crate::airflow::url_text::{self, without_userinfo};

/// Version of the key-value engine.
#[derive(Clone, Copy, Debug)]
pub(super) enum KvVersion {
    One,
    Two,
}

/// `hvac`'s default, in seconds: one request, connecting included.
const TIMEOUT: f64 = 30.0;
/// Repetitions of a request that found no server, or one that is not well, and the wait before the first of them.
const RETRIES: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Speaks to one Vault server. Logs in when it is first needed.
pub(super) struct VaultClient {
    http: Client,
    base: Url,
    namespace: Option<HeaderValue>,
    auth: Auth,
    version: KvVersion,
    token: Mutex<Option<SecretString>>,
}

impl fmt::Debug for VaultClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultClient")
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

impl VaultClient {
    /// Takes `url`, `namespace`, `timeout`, `verify` and `cert`, with `VAULT_ADDR`, `VAULT_CACERT`, `VAULT_CLIENT_CERT`
    /// and `VAULT_CLIENT_KEY` in their place as `hvac` has it.
    ///
    /// # Errors
    /// A malformed argument, or a certificate that can't be read.
    pub fn new(
        kwargs: &mut Kwargs,
        environment: &Environment,
        auth: Auth,
        version: KvVersion,
    ) -> Result<Self, BackendError> {
        let variable = |name: &str| {
            environment
                .get(name)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let address = kwargs
            .text("url")?
            .filter(|text| !text.is_empty())
            .or_else(|| variable("VAULT_ADDR"))
            .unwrap_or_else(|| "http://localhost:8200".to_owned());
        let base = Url::parse(&address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| kwargs.wrong("url", "is no http or https URL"))?;
        let namespace = match kwargs.text("namespace")? {
            None => None,
            Some(text) => Some(
                HeaderValue::from_str(&text)
                    .map_err(|_| kwargs.wrong("namespace", "can't stand in an HTTP header"))?,
            ),
        };
        let seconds = kwargs.number("timeout")?.unwrap_or(TIMEOUT);
        let timeout = Duration::try_from_secs_f64(seconds)
            .map_err(|_| kwargs.wrong("timeout", "must be a number of seconds"))?;
        let mut builder = Client::builder()
            .user_agent(concat!("updraft/", env!("CARGO_PKG_VERSION")))
            .timeout(timeout);
        builder = match verify(kwargs)? {
            Verify::No => builder.tls_danger_accept_invalid_certs(true),
            Verify::Yes => match variable("VAULT_CACERT") {
                Some(path) => builder.tls_certs_merge(bundle(kwargs, "VAULT_CACERT", &path)?),
                None => builder,
            },
            Verify::With(path) => builder.tls_certs_merge(bundle(kwargs, "verify", &path)?),
        };
        if let Some(identity) = identity(kwargs, &variable)? {
            builder = builder.identity(identity);
        }
        let http = builder.build().map_err(|error| BackendError::Vault {
            server: without_userinfo(base.as_str()).into_owned(),
            reason: format!("no HTTP client can be made: {}", error_chain(&error)),
        })?;
        Ok(Self {
            http,
            base,
            namespace,
            auth,
            version,
            token: Mutex::default(),
        })
    }

    /// The secret at this path; `None` when there is none or it is deleted.
    ///
    /// # Errors
    /// The server refuses, or can't be asked.
    pub async fn read(
        &self,
        mount: &str,
        path: &str,
    ) -> Result<Option<Map<String, Value>>, BackendError> {
        let api_path = match self.version {
            KvVersion::One => format!("{mount}/{path}"),
            KvVersion::Two => format!("{mount}/data/{path}"),
        };
        // Such segments would lead out of the folder that the configuration names.
        if api_path
            .split('/')
            .any(|segment| matches!(segment, "." | ".."))
        {
            return Err(self.error(format!("{path:?} is no path of a secret")));
        }
        let mut stale = None;
        for _ in 0..2 {
            let token = self.token(stale.take()).await?;
            let (status, mut body) = self
                .send(Method::GET, &api_path, Some(&token), None)
                .await?;
            match status {
                StatusCode::OK => {
                    let mut data = body.remove("data").unwrap_or_default();
                    if matches!(self.version, KvVersion::Two) {
                        data = data.get_mut("data").map(Value::take).unwrap_or_default();
                    }
                    return match data {
                        Value::Object(secret) => Ok(Some(secret)),
                        _ => Err(self.error(format!(
                            "the answer for {api_path} holds no secret: is kv_engine_version the mount's?"
                        ))),
                    };
                }
                StatusCode::NOT_FOUND => {
                    // With a reason when it is the mount that is not there.
                    if let Some(reason) = errors(&body) {
                        tracing::warn!("Vault at {} has no {api_path}: {reason}", self.server());
                    }
                    return Ok(None);
                }
                // For an expired token as well as for a path that the token may not read.
                StatusCode::FORBIDDEN => stale = Some(token),
                status => return Err(self.refused(&api_path, status, &body)),
            }
        }
        Err(self.error(format!(
            "it refuses to read {api_path} (403): the token has expired, or its policies do not allow it"
        )))
    }

    /// The token at hand; a new one when there is none or it is the `stale` one.
    async fn token(&self, stale: Option<SecretString>) -> Result<SecretString, BackendError> {
        let mut known = self.token.lock().await;
        if let Some(token) = &*known
            && stale.is_none_or(|stale| stale.expose_secret() != token.expose_secret())
        {
            return Ok(token.clone());
        }
        let token = match &self.auth {
            Auth::Token(token) => token.clone(),
            Auth::TokenFile(path) => read_token(path).map_err(|reason| self.error(reason))?,
            Auth::Login { mount, method } => {
                let path = format!("auth/{mount}/login");
                let body = method.body().map_err(|reason| self.error(reason))?;
                let (status, body) = self.send(Method::POST, &path, None, Some(body)).await?;
                let token = body
                    .get("auth")
                    .and_then(|auth| auth.get("client_token"))
                    .and_then(Value::as_str);
                match token {
                    Some(token) if status.is_success() && !token.is_empty() => token.into(),
                    _ => return Err(self.refused(&path, status, &body)),
                }
            }
        };
        *known = Some(token.clone());
        Ok(token)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        token: Option<&SecretString>,
        body: Option<Value>,
    ) -> Result<(StatusCode, Map<String, Value>), BackendError> {
        let mut headers = HeaderMap::new();
        headers.insert("x-vault-request", HeaderValue::from_static("true"));
        if let Some(namespace) = &self.namespace {
            headers.insert("x-vault-namespace", namespace.clone());
        }
        if let Some(token) = token {
            let mut value = HeaderValue::from_str(token.expose_secret())
                .map_err(|_| self.error("the token can't stand in an HTTP header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert("x-vault-token", value);
        }
        let mut url = self.base.clone();
        let folder = url.path().trim_end_matches('/').to_owned();
        let encoded = utf8_percent_encode(path, url_text::PATH).to_string();
        url.set_path(&collapsed(&format!("{folder}/v1/{encoded}")));
        let mut wait = FIRST_WAIT;
        let mut left = RETRIES;
        loop {
            let mut request = self
                .http
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                request = request.json(body);
            }
            let answer = request.send().await;
            let again = match &answer {
                Err(error) => error.is_connect(),
                // A login is not repeated when it was answered.
                Ok(answer) => {
                    method == Method::GET
                        && matches!(answer.status().as_u16(), 412 | 500 | 502 | 503)
                }
            };
            if again && left > 0 {
                left -= 1;
                tokio::time::sleep(wait).await;
                wait *= 2;
                continue;
            }
            let unreachable = |error: reqwest::Error| self.error(error_chain(&error.without_url()));
            let answer = answer.map_err(unreachable)?;
            let status = answer.status();
            let bytes = answer.bytes().await.map_err(unreachable)?;
            return match serde_json::from_slice(&bytes) {
                Ok(Value::Object(body)) => Ok((status, body)),
                _ if status.is_success() => {
                    Err(self.error(format!("the answer for {path} is no JSON object")))
                }
                _ => Ok((status, Map::new())),
            };
        }
    }

    fn refused(&self, path: &str, status: StatusCode, body: &Map<String, Value>) -> BackendError {
        let reason = errors(body).unwrap_or_else(|| "without a reason".to_owned());
        self.error(format!("it answered {path} with {status}: {reason}"))
    }

    fn error(&self, reason: String) -> BackendError {
        BackendError::Vault {
            server: self.server(),
            reason,
        }
    }

    fn server(&self) -> String {
        without_userinfo(self.base.as_str()).into_owned()
    }
}

/// `errors` of an answer. The rest of it is not shown.
fn errors(body: &Map<String, Value>) -> Option<String> {
    let texts: Vec<&str> = body
        .get("errors")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Vault takes two slashes for one.
fn collapsed(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for c in path.chars() {
        if c != '/' || !out.ends_with('/') {
            out.push(c);
        }
    }
    out
}

enum Verify {
    Yes,
    No,
    With(String),
}

fn verify(kwargs: &mut Kwargs) -> Result<Verify, BackendError> {
    match kwargs.take("verify") {
        None | Some(Value::Null | Value::Bool(true)) => Ok(Verify::Yes),
        Some(Value::Bool(false)) => Ok(Verify::No),
        Some(Value::String(text)) => Ok(match text.to_lowercase().as_str() {
            "true" => Verify::Yes,
            "false" => Verify::No,
            _ => Verify::With(text),
        }),
        Some(_) => Err(kwargs.wrong("verify", "must be true, false or the path of a CA bundle")),
    }
}

fn bundle(kwargs: &Kwargs, name: &str, path: &str) -> Result<Vec<Certificate>, BackendError> {
    let pem = file(kwargs, name, path)?;
    Certificate::from_pem_bundle(&pem)
        .map_err(|error| kwargs.wrong(name, format!("names {path}, which holds no PEM: {error}")))
}

/// `cert`: one file with certificate and key, or a list of the two.
fn identity(
    kwargs: &mut Kwargs,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Identity>, BackendError> {
    let paths: Vec<String> = match kwargs.take("cert") {
        None | Some(Value::Null) => ["VAULT_CLIENT_CERT", "VAULT_CLIENT_KEY"]
            .iter()
            .filter_map(|name| variable(name))
            .collect(),
        Some(Value::String(path)) => vec![path],
        Some(Value::Array(items)) => items
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        Some(_) => return Err(kwargs.wrong("cert", "must be a path or a list of two")),
    };
    if paths.is_empty() {
        return Ok(None);
    }
    let mut pem = Vec::new();
    for path in &paths {
        pem.extend(file(kwargs, "cert", path)?);
        pem.push(b'\n');
    }
    Identity::from_pem(&pem).map(Some).map_err(|error| {
        kwargs.wrong(
            "cert",
            format!("names no PEM certificate with its key: {error}"),
        )
    })
}

fn file(kwargs: &Kwargs, name: &str, path: &str) -> Result<Vec<u8>, BackendError> {
    let path = PathBuf::from(path);
    std::fs::read(&path).map_err(|error| {
        kwargs.wrong(
            name,
            format!("names {}, which can't be read: {error}", path.display()),
        )
    })
}
