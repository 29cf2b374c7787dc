//! The client of the Edge Worker API: signs each request for itself, and says what a refusal means.

use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use percent_encoding::utf8_percent_encode;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde_json::{Value, json};

use crate::airflow::edge::{
    EdgeJobFetched, JobKey, PushLogsBody, WorkerQueuesBody, WorkerSetStateReturn, WorkerStateBody,
};
use crate::airflow::error_chain::error_chain;
use crate::airflow::url_text::{SEGMENT, without_userinfo};
use crate::control_plane::retry::RetryPolicy;

/// How requests are signed: `[api_auth]`.
#[derive(Clone, Debug)]
pub struct Signing {
    /// `jwt_secret`, shared with the API server.
    pub secret: SecretString,
    /// `jwt_algorithm`.
    pub algorithm: Algorithm,
    /// `jwt_kid`.
    pub kid: String,
    /// First of `jwt_issuer`.
    pub issuer: Option<String>,
    /// `jwt_leeway`: how long a token lives.
    pub leeway: Duration,
}

/// The Edge Worker API.
#[derive(Clone, Debug)]
pub struct EdgeApi {
    http: Client,
    base: Url,
    signing: Signing,
    retry: RetryPolicy,
}

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(20);

/// Why a call to the Edge API did not succeed. The text says what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EdgeError {
    /// 400: versions.
    #[error(
        "the API server accepts no worker of these versions: {detail}. Report the server's own versions \
         (--airflow-version, --edge-provider-version), or set [edge] minimum_acceptable_core_version_for_workers and \
         minimum_acceptable_edge_version_for_workers on the server"
    )]
    Versions {
        /// The server's words.
        detail: String,
    },
    /// 403 with clocks apart.
    #[error(
        "the API server refuses this worker's tokens (403), and the two clocks are {apart} s apart ({direction}): \
         tokens are good for {leeway} s only. Set the clocks right (NTP), or raise [api_auth] jwt_leeway on both sides"
    )]
    Clock {
        /// Seconds.
        apart: i64,
        /// Which clock is ahead.
        direction: &'static str,
        /// Seconds.
        leeway: u64,
    },
    /// 403 with clocks together.
    #[error(
        "the API server refuses this worker's tokens (403) though the clocks agree: [api_auth] jwt_secret is not the \
         server's. Give the worker the same AIRFLOW__API_AUTH__JWT_SECRET (and jwt_algorithm and jwt_issuer, if set)"
    )]
    Secret,
    /// 404 or 405 without the API.
    #[error(
        "there is no Edge API at {url} ({status}): install apache-airflow-providers-edge3 on the API server, set \
         [edge] api_enabled = True there, and let [edge] api_url (--api-url) end in /edge_worker/v1/rpcapi"
    )]
    NotThere {
        /// What was asked for.
        url: String,
        /// HTTP status.
        status: u16,
        /// Is this Airflow's own answer, and not that of a proxy before it?
        airflows: bool,
    },
    /// 404 for a worker the server has forgotten.
    #[error("the API server does not know this worker (any more)")]
    UnknownWorker,
    /// 409 at registration.
    #[error(
        "another worker has the name {name:?}: start this one with another --worker-name. If that other worker is this \
         one's crashed predecessor, the name becomes free after five heartbeats ([edge] heartbeat_interval, 30 s)"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// Any other refusal.
    #[error("the API server answered {method} {path} with {status}: {detail}")]
    Refused {
        /// HTTP method.
        method: Method,
        /// The RPC's path.
        path: String,
        /// HTTP status.
        status: u16,
        /// The server's words.
        detail: String,
        /// `Retry-After`, when the server named one.
        retry_after: Option<Duration>,
    },
    /// No answer.
    #[error("the API server can't be reached at {url}: {reason}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// Why there was no answer.
        reason: String,
    },
    /// An answer that is not what the API's description says.
    #[error("the API server answered {path} with something else than expected: {reason}")]
    Unreadable {
        /// The RPC's path.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The token could not be signed.
    #[error("a token can't be signed: {0}")]
    Token(#[from] jsonwebtoken::errors::Error),
    /// An id that no URL path can carry.
    #[error("{0:?} can't be part of a URL path")]
    Unaddressable(String),
}

impl EdgeError {
    /// Is it worth asking again, later? (Server down, overloaded or restarting.)
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => matches!(status, 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// Does a proxy say that there is nothing? It may say so while the server behind it starts.
    #[must_use]
    pub fn is_a_proxys(&self) -> bool {
        matches!(
            self,
            Self::NotThere {
                airflows: false,
                ..
            }
        )
    }

    /// Is the server away?
    fn is_outage(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// A path of the API, as the URL carries it and as the token names it.
#[derive(Debug)]
struct Rpc {
    encoded: String,
    claim: String,
}

impl Rpc {
    fn new(segments: &[&str]) -> Result<Self, EdgeError> {
        let mut encoded = Vec::new();
        for segment in segments {
            // A slash would be decoded before the server routes, and dot segments never leave the client.
            if segment.contains('/') || matches!(*segment, "" | "." | "..") {
                return Err(EdgeError::Unaddressable((*segment).to_owned()));
            }
            encoded.push(utf8_percent_encode(segment, SEGMENT).to_string());
        }
        // The server compares with its own decoded path, in which these three stay encoded.
        let claim = segments
            .join("/")
            .replace('?', "%3F")
            .replace('#', "%23")
            .replace('\\', "%5C");
        Ok(Self {
            encoded: encoded.join("/"),
            claim,
        })
    }

    fn of_job(what: &str, key: &JobKey, state: Option<&str>) -> Result<Self, EdgeError> {
        let (try_number, map_index) = (key.try_number.to_string(), key.map_index.to_string());
        let mut segments: Vec<&str> = what.split('/').collect();
        segments.extend([
            key.dag_id.as_str(),
            &key.task_id,
            &key.run_id,
            &try_number,
            &map_index,
        ]);
        segments.extend(state);
        Self::new(&segments)
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    method: &'a str,
    aud: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
    iat: i64,
    nbf: i64,
    exp: i64,
    jti: String,
}

impl Signing {
    /// A token for one request, as the server demands it: bound to the RPC's decoded path.
    fn token(&self, method: &str, now: DateTime<Utc>) -> Result<String, EdgeError> {
        let header = Header {
            alg: self.algorithm,
            kid: Some(self.kid.clone()),
            ..Header::default()
        };
        let now = now.timestamp();
        let claims = Claims {
            method,
            aud: "api",
            iss: self.issuer.as_deref(),
            iat: now,
            nbf: now,
            exp: now.saturating_add_unsigned(self.leeway.as_secs()),
            jti: uuid::Uuid::new_v4().simple().to_string(),
        };
        let key = EncodingKey::from_secret(self.secret.expose_secret().as_bytes())?;
        Ok(jsonwebtoken::encode(&header, &claims, &key)?)
    }
}

impl EdgeApi {
    /// A client. `api_url` is `[edge] api_url`; the RPC paths replace its last segment.
    #[must_use]
    pub fn new(http: Client, api_url: Url, signing: Signing, retry: RetryPolicy) -> Self {
        Self {
            http,
            base: api_url,
            signing,
            retry,
        }
    }

    /// The same client with another policy for reports about jobs and pieces of logs.
    #[cfg(test)]
    pub(super) fn with_retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// Registers the worker. One attempt.
    ///
    /// # Errors
    /// [`EdgeError::Versions`], [`EdgeError::NameTaken`], [`EdgeError::Clock`], [`EdgeError::Secret`],
    /// [`EdgeError::NotThere`], and transient ones.
    pub async fn register(&self, name: &str, body: &WorkerStateBody) -> Result<(), EdgeError> {
        let answer = self
            .call(
                Method::POST,
                &Rpc::new(&["worker", name])?,
                Some(json!(body)),
            )
            .await;
        match answer {
            Ok(_) => Ok(()),
            Err(EdgeError::Refused { status: 409, .. }) => Err(EdgeError::NameTaken {
                name: name.to_owned(),
            }),
            Err(error) => Err(error),
        }
    }

    /// The release of Airflow that the server says it is, to anybody who asks (`/api/v2/version`). `None` when it does not
    /// say: that API may be served elsewhere.
    pub async fn airflow_release(&self) -> Option<String> {
        let url = self.base.join("../../api/v2/version").ok()?;
        let request = self.http.get(url).timeout(ATTEMPT);
        let answer: Value = request.send().await.ok()?.json().await.ok()?;
        Some(answer.get("version")?.as_str()?.to_owned())
    }

    /// Reports the worker's state and hears what the server wants. One attempt.
    ///
    /// # Errors
    /// [`EdgeError::Versions`], [`EdgeError::UnknownWorker`], and transient ones.
    pub async fn heartbeat(
        &self,
        name: &str,
        body: &WorkerStateBody,
    ) -> Result<WorkerSetStateReturn, EdgeError> {
        let rpc = Rpc::new(&["worker", name])?;
        let answer = self.call(Method::PATCH, &rpc, Some(json!(body))).await?;
        read(&rpc, answer)
    }

    /// Asks for one job. One attempt.
    ///
    /// # Errors
    /// [`EdgeError::UnknownWorker`], and transient ones.
    pub async fn fetch(
        &self,
        name: &str,
        body: &WorkerQueuesBody,
    ) -> Result<Option<EdgeJobFetched>, EdgeError> {
        let rpc = Rpc::new(&["jobs", "fetch", name])?;
        let answer = self.call(Method::POST, &rpc, Some(json!(body))).await?;
        read(&rpc, answer)
    }

    /// Reports the state of a job, as often as the retry policy says.
    ///
    /// # Errors
    /// See [`EdgeError`].
    pub async fn set_job_state(&self, key: &JobKey, state: &str) -> Result<(), EdgeError> {
        let rpc = Rpc::of_job("jobs/state", key, Some(state))?;
        let body = key
            .task_instance_id
            .as_ref()
            .map(|id| json!({ "task_instance_id": id }));
        self.persistently(Method::PATCH, &rpc, || body.clone())
            .await
            .map(|_| ())
    }

    /// Pushes a piece of a task log, as often as the retry policy says.
    ///
    /// `clock` gives each attempt a time of its own: the time is part of the server's primary key, and a piece whose
    /// answer was lost would be refused (500) for as long as it came with the same one.
    ///
    /// # Errors
    /// See [`EdgeError`].
    pub async fn push_log(
        &self,
        key: &JobKey,
        mut clock: impl FnMut() -> DateTime<Utc>,
        data: &str,
    ) -> Result<(), EdgeError> {
        let rpc = Rpc::of_job("logs/push", key, None)?;
        let body = || {
            Some(json!(PushLogsBody {
                log_chunk_time: clock().to_rfc3339_opts(SecondsFormat::Micros, false),
                log_chunk_data: data,
                task_instance_id: key.task_instance_id.as_deref(),
            }))
        };
        self.persistently(Method::POST, &rpc, body)
            .await
            .map(|_| ())
    }

    async fn persistently(
        &self,
        method: Method,
        rpc: &Rpc,
        mut body: impl FnMut() -> Option<Value>,
    ) -> Result<Value, EdgeError> {
        let begun = Instant::now();
        let mut failures = 0;
        loop {
            let error = match self.call(method.clone(), rpc, body()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            failures += 1;
            if !error.is_transient() {
                return Err(error);
            }
            let Some(wait) = self.retry.next_wait(failures, begun, error.is_outage()) else {
                return Err(error);
            };
            let wait = error.retry_after().unwrap_or(wait);
            tracing::warn!(%error, attempt = failures, "asking the API server again in {:.1} s", wait.as_secs_f64());
            tokio::time::sleep(wait).await;
        }
    }

    async fn call(
        &self,
        method: Method,
        rpc: &Rpc,
        body: Option<Value>,
    ) -> Result<Value, EdgeError> {
        let mut url = self.base.clone();
        let folder = url
            .path()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned();
        url.set_path(&format!("{folder}/{}", rpc.encoded));
        url.set_query(None);
        let unreachable = |reason: String| EdgeError::Unreachable {
            url: without_userinfo(self.base.as_str()).into_owned(),
            reason,
        };
        let token = self.signing.token(&rpc.claim, Utc::now())?;
        // Always of characters that a header may hold: a JSON web token.
        let mut token =
            HeaderValue::try_from(token).map_err(|error| unreachable(error.to_string()))?;
        token.set_sensitive(true);
        let mut request = self
            .http
            .request(method.clone(), url.clone())
            .header(ACCEPT, "application/json")
            // The bare token: with "Bearer" in front the server refuses it.
            .header(AUTHORIZATION, token);
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let response = request
            .timeout(ATTEMPT)
            .send()
            .await
            .map_err(|error| unreachable(error_chain(&error.without_url())))?;
        let status = response.status().as_u16();
        let header = |name| {
            response
                .headers()
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let (date, retry_after) = (header(DATE), header(RETRY_AFTER));
        let bytes = response
            .bytes()
            .await
            .map_err(|error| unreachable(error_chain(&error.without_url())))?;
        if (200..300).contains(&status) {
            return if bytes.is_empty() {
                Ok(Value::Null)
            } else {
                serde_json::from_slice(&bytes).map_err(|error| EdgeError::Unreadable {
                    path: rpc.claim.clone(),
                    reason: error.to_string(),
                })
            };
        }
        let detail = serde_json::from_slice::<Value>(&bytes)
            .ok()
            .and_then(|body| {
                let detail = body.get("detail")?;
                Some(
                    detail
                        .as_str()
                        .map_or_else(|| detail.to_string(), str::to_owned),
                )
            });
        Err(match status {
            400 if rpc.claim.starts_with("worker/") => EdgeError::Versions {
                detail: detail.unwrap_or_default().trim_end_matches('.').to_owned(),
            },
            403 => self.forbidden(date.as_deref(), Utc::now()),
            404 if rpc.claim.starts_with("worker/") || rpc.claim.starts_with("jobs/fetch/") => {
                match detail {
                    // A route that is not there answers "Not Found".
                    Some(detail) if detail != "Not Found" => EdgeError::UnknownWorker,
                    detail => EdgeError::NotThere {
                        url: without_userinfo(url.as_str()).into_owned(),
                        status,
                        airflows: detail.is_some(),
                    },
                }
            }
            405 => EdgeError::NotThere {
                url: without_userinfo(url.as_str()).into_owned(),
                status,
                airflows: detail.is_some(),
            },
            _ => EdgeError::Refused {
                method,
                path: rpc.claim.clone(),
                status,
                detail: detail
                    .unwrap_or_else(|| String::from_utf8_lossy(&bytes).chars().take(300).collect()),
                retry_after: retry_after
                    .and_then(|text| text.trim().parse().ok())
                    .map(Duration::from_secs),
            },
        })
    }

    /// A 403 means a wrong secret or clocks that are apart: the answer's `Date` tells which.
    fn forbidden(&self, date: Option<&str>, now: DateTime<Utc>) -> EdgeError {
        let server = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        let leeway = self.signing.leeway.as_secs();
        match server.map(|server| (now - server.to_utc()).num_seconds()) {
            Some(ahead) if ahead.unsigned_abs() >= leeway.max(2) => EdgeError::Clock {
                apart: ahead.abs(),
                direction: if ahead > 0 {
                    "this worker's is ahead"
                } else {
                    "the server's is ahead"
                },
                leeway,
            },
            _ => EdgeError::Secret,
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(rpc: &Rpc, answer: Value) -> Result<T, EdgeError> {
    serde_json::from_value(answer).map_err(|error| EdgeError::Unreadable {
        path: rpc.claim.clone(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
