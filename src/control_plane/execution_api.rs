//! Airflow's Task Execution API over HTTP: the control plane of a task on a worker.

mod routes;
mod version;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::ControlPlane;
use super::retry::RetryPolicy;
use crate::airflow::error_chain::error_chain;
use crate::airflow::execution::TiRunContext;
use crate::airflow::supervisor::{ErrorKind, ErrorResponse, TaskReply, TaskRequest};
pub use version::ApiVersion;

use routes::Call;

/// How the Execution API is reached. Shared by all tasks of a worker.
#[derive(Clone, Debug)]
pub struct ExecutionApiSettings {
    /// The HTTP client.
    pub http: Client,
    /// Base URL, such as `https://airflow.example.com/execution/`.
    pub base: Url,
    /// The newest version of the API that the server knows.
    pub version: ApiVersion,
    /// Attempts and waits.
    pub retry: RetryPolicy,
    /// Time limit of one attempt until its answer begins, and of each pause within the answer.
    pub timeout: Duration,
}

/// Who runs the task. The server compares all three: they must stay the same for the life of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// Name of the worker.
    pub hostname: String,
    /// Name of the user.
    pub unixname: String,
    /// Process id of the task process.
    pub pid: u32,
}

/// The Execution API on behalf of one try of one task.
#[derive(Debug)]
pub struct ExecutionApi {
    settings: ExecutionApiSettings,
    ti_id: String,
    runner: Runner,
    token: Arc<RwLock<SecretString>>,
}

/// Why a call to the Execution API did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The server refused. Not repeated, except for 429 and statuses of 500 and above.
    #[error("the API server answered {method} {path} with {status}: {detail}")]
    Refused {
        /// HTTP method.
        method: Method,
        /// Path below the base URL.
        path: String,
        /// HTTP status.
        status: u16,
        /// Attempts made.
        attempts: u32,
        /// `detail` of the answer, or the answer itself.
        detail: Value,
    },
    /// No answer, in all attempts.
    #[error("the API server can't be reached for {method} {path} ({attempts} attempts): {reason}")]
    Unreachable {
        /// HTTP method.
        method: Method,
        /// Path below the base URL.
        path: String,
        /// Attempts made.
        attempts: u32,
        /// Of the last attempt.
        reason: String,
    },
    /// An answer that is not what the API's description says.
    #[error("the API server answered {path} with something else than expected: {reason}")]
    Unreadable {
        /// Path below the base URL.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An id that no path can carry.
    #[error("{0:?} can't be part of a URL path")]
    Unaddressable(String),
    /// A token that is none.
    #[error("the token that came with the job can't stand in an HTTP header")]
    Token,
}

impl ApiError {
    /// The HTTP status, when there was an answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Is it in vain to ask again?
    fn is_final(&self) -> bool {
        match self {
            // Airflow's own client gives up at 429, which a proxy may say to a whole worker, and loses a task's state.
            Self::Refused { status, .. } => *status < 500 && *status != 429,
            Self::Unreachable { .. } => false,
            Self::Unreadable { .. } | Self::Unaddressable(_) | Self::Token => true,
        }
    }

    /// Is the server away, and not the request at fault?
    fn is_outage(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }

    fn attempts(&self) -> u32 {
        match self {
            Self::Refused { attempts, .. } | Self::Unreachable { attempts, .. } => *attempts,
            _ => 0,
        }
    }

    /// The same in the words of the supervisor protocol.
    #[must_use]
    pub fn to_response(&self) -> ErrorResponse {
        let detail = match self {
            Self::Refused { status, detail, .. } => {
                json!({"status_code": status, "message": self.to_string(), "detail": detail})
            }
            _ => json!({"status_code": null, "message": self.to_string()}),
        };
        ErrorResponse {
            kind: ErrorKind::ApiServerError,
            detail,
        }
    }
}

/// A successful answer.
#[derive(Debug)]
struct Answer {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl ExecutionApi {
    /// The API for the try `ti_id`, with the token that came with the job.
    #[must_use]
    pub fn new(
        settings: ExecutionApiSettings,
        ti_id: String,
        runner: Runner,
        token: SecretString,
    ) -> Self {
        Self {
            settings,
            ti_id,
            runner,
            token: Arc::new(RwLock::new(token)),
        }
    }

    /// Tells the server that the task runs here now, and adopts the token for everything else. May be repeated.
    ///
    /// # Errors
    /// 409: somebody else runs it, or it is not to run. 404: there is no such try. 403: the token has expired.
    pub async fn run(&self) -> Result<TiRunContext, ApiError> {
        let body = json!({
            "state": "running",
            "hostname": self.runner.hostname,
            "unixname": self.runner.unixname,
            "pid": self.runner.pid,
            "start_date": Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
        });
        let call = Call::new(Method::PATCH)
            .path(&["task-instances", &self.ti_id, "run"])?
            .body(body);
        let path = call.path.clone();
        let answer = self.send(call, None).await?;
        serde_json::from_slice::<Value>(&answer.body)
            .and_then(serde_json::from_value)
            .map_err(|error| ApiError::Unreadable {
                path,
                reason: error.to_string(),
            })
    }

    /// Says that the task is alive. One attempt: the next heartbeat is the better second one.
    ///
    /// # Errors
    /// 404, 409, 410: the server does not want it to run any more.
    pub async fn heartbeat(&self) -> Result<(), ApiError> {
        let body = json!({"hostname": self.runner.hostname, "pid": self.runner.pid});
        let call = Call::new(Method::PUT)
            .path(&["task-instances", &self.ti_id, "heartbeat"])?
            .body(body);
        self.attempt(&call, None, 1).await.map(|_| ())
    }

    /// Sends a call until it is answered, as often and as long as the policy says.
    async fn send(
        &self,
        call: Call,
        carrier: Option<&BTreeMap<String, String>>,
    ) -> Result<Answer, ApiError> {
        let begun = Instant::now();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match self.attempt(&call, carrier, attempts).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => error,
            };
            let Some(wait) = self
                .settings
                .retry
                .next_wait(attempts, begun, error.is_outage())
            else {
                return Err(error);
            };
            tracing::warn!(%error, attempt = attempts, "asking the API server again in {:.1} s", wait.as_secs_f64());
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(
        &self,
        call: &Call,
        carrier: Option<&BTreeMap<String, String>>,
        attempts: u32,
    ) -> Result<Answer, ApiError> {
        let unreachable = |reason: String| ApiError::Unreachable {
            method: call.method.clone(),
            path: call.path.clone(),
            attempts,
            reason,
        };
        let mut url = self.settings.base.clone();
        // Joined by hand: `Url::join` would read ids such as `a:b` as absolute URLs.
        url.set_path(&format!(
            "{}/{}",
            url.path().trim_end_matches('/'),
            call.path
        ));
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut authorization =
            HeaderValue::try_from(format!("Bearer {}", self.token().expose_secret()))
                .map_err(|_| ApiError::Token)?;
        authorization.set_sensitive(true);
        let mut request = self
            .settings
            .http
            .request(call.method.clone(), url)
            .header(AUTHORIZATION, authorization)
            .header("airflow-api-version", self.settings.version.header())
            .header("correlation-id", uuid::Uuid::now_v7().to_string());
        for (name, value) in carrier.into_iter().flatten() {
            // The task's own words: what can't stand in a header costs the span its parent and nothing else.
            if matches!(name.as_str(), "traceparent" | "tracestate")
                && let Ok(value) = HeaderValue::from_str(value)
            {
                request = request.header(name, value);
            }
        }
        let mut limit = self.settings.timeout;
        if let Some(body) = &call.body {
            let text = body.to_string();
            // A big XCom may take longer than a small one: half a megabyte a second is slow enough for anybody.
            limit += Duration::from_secs(text.len() as u64 / 500_000);
            request = request.header(CONTENT_TYPE, "application/json").body(text);
        }
        let mut response = tokio::time::timeout(limit, request.send())
            .await
            .map_err(|_| unreachable(format!("no answer within {} s", limit.as_secs_f64())))?
            .map_err(|error| unreachable(error_chain(&error.without_url())))?;
        self.adopt_token(response.headers());
        let status = response.status();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        loop {
            let chunk = tokio::time::timeout(self.settings.timeout, response.chunk())
                .await
                .map_err(|_| unreachable("the answer came to a halt".into()))?
                .map_err(|error| unreachable(error_chain(&error.without_url())))?;
            match chunk {
                Some(chunk) => body.extend_from_slice(&chunk),
                None => break,
            }
        }
        if status.is_success() {
            return Ok(Answer { headers, body });
        }
        Err(ApiError::Refused {
            method: call.method.clone(),
            path: call.path.clone(),
            status: status.as_u16(),
            attempts,
            detail: detail(&body),
        })
    }

    fn token(&self) -> SecretString {
        self.token
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The server sends a new token with any answer, also with a refusal, when the old one nears its end.
    fn adopt_token(&self, headers: &HeaderMap) {
        let fresh = headers
            .get("Refreshed-API-Token")
            .and_then(|value| value.to_str().ok());
        if let Some(fresh) = fresh.filter(|fresh| !fresh.is_empty()) {
            *self.token.write().unwrap_or_else(PoisonError::into_inner) = fresh.into();
        }
    }
}

/// `detail` of an error body; the body itself when there is none.
fn detail(body: &[u8]) -> Value {
    match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(mut map)) => match map.shift_remove("detail") {
            Some(detail) => detail,
            None => Value::Object(map),
        },
        Ok(other) => other,
        Err(_) => String::from_utf8_lossy(body)
            .chars()
            .take(500)
            .collect::<String>()
            .into(),
    }
}

#[async_trait]
impl ControlPlane for ExecutionApi {
    async fn handle(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse> {
        self.handle_traced(request, None).await
    }

    async fn handle_traced(
        &self,
        request: TaskRequest,
        carrier: Option<&BTreeMap<String, String>>,
    ) -> Result<TaskReply, ErrorResponse> {
        let route = match routes::route(&self.ti_id, request, self.settings.version)? {
            Some(route) => route,
            None => return Ok(TaskReply::Done),
        };
        let path = route.call.path.clone();
        match self.send(route.call, carrier).await {
            Ok(answer) => route
                .answer
                .read(&answer)
                .map_err(|reason| ApiError::Unreadable { path, reason }.to_response()),
            Err(error) => route.refusal.read(&error),
        }
    }
}

#[cfg(test)]
mod tests;
