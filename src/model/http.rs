//! One POST to a model provider, retried as the SDKs of OpenAI and Anthropic retry.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Map, Value};

use crate::agent::ModelError;
use crate::airflow::error_chain::error_chain;
use crate::airflow::python_text::repr_value;

/// Requests after the first one.
pub const MAX_RETRIES: u32 = 2;
/// The whole of one try, connecting included, unless `model_settings["timeout"]` says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(8);
/// A server that asks for a longer wait than this is not asked again.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(120);

/// A POST with a JSON body.
pub struct Post {
    pub url: String,
    /// `authorization` and the like; sensitive values are marked as such.
    pub headers: HeaderMap,
    pub body: Value,
    pub timeout: Duration,
    /// For error texts.
    pub model_name: String,
    /// Tries after the first one.
    pub max_retries: u32,
    pub error_body: ErrorBody,
    /// Where the headers don't say already who asks.
    pub authorization: Option<Arc<dyn Authorize>>,
}

/// Says anew in each request who sends it.
#[async_trait]
pub trait Authorize: Send + Sync {
    /// Adds to `headers` what a server wants with `body` at `url`.
    ///
    /// # Errors
    /// A token can't be got, or a key can't be sent.
    async fn add_to(
        &self,
        headers: &mut HeaderMap,
        url: &str,
        body: &[u8],
    ) -> Result<(), ModelError>;
}

/// How much of a refusal's JSON its error shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorBody {
    /// The object under `error`.
    Inner,
    Whole,
}

/// A client for model requests.
///
/// # Errors
/// The TLS set-up of this machine is unusable.
pub fn client() -> Result<reqwest::Client, ModelError> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| {
            ModelError::Configuration(format!(
                "no HTTP client can be made: {}",
                error_chain(&error)
            ))
        })
}

/// `model_settings["timeout"]` in seconds, or the default.
#[must_use]
pub fn timeout(settings: &Map<String, Value>) -> Duration {
    settings
        .get("timeout")
        .and_then(Value::as_f64)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(DEFAULT_TIMEOUT)
}

/// A header value that no log shows.
///
/// # Errors
/// The key holds characters that no HTTP header may hold.
pub fn secret_header(value: &str) -> Result<HeaderValue, ModelError> {
    let mut header = HeaderValue::from_str(value).map_err(|_| {
        ModelError::Configuration(
            "The model connection's password (the API key) holds characters that can't be sent in an HTTP header; \
             look for line breaks or other stray characters in it."
                .to_owned(),
        )
    })?;
    header.set_sensitive(true);
    Ok(header)
}

/// Host and port of a base URL, for spans.
#[must_use]
pub fn server(base_url: &str) -> Option<(String, u16)> {
    let url = reqwest::Url::parse(base_url).ok()?;
    Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
}

/// Sends, and sends again on connection errors, 408, 409, 429 and from 500 on. The text of an answer with a status
/// below 400.
///
/// # Errors
/// The last try's status or connection error.
pub async fn post(client: &reqwest::Client, post: &Post) -> Result<String, ModelError> {
    with_retries(post.max_retries, || try_once(client, post)).await
}

/// As [`post`], of an answer that comes bit by bit: the time-out counts anew for each of them, and what has begun is not
/// asked for again.
///
/// # Errors
/// As [`post`].
pub async fn post_stream(client: &reqwest::Client, post: &Post) -> Result<String, ModelError> {
    with_retries(post.max_retries, || try_stream(client, post)).await
}

/// Tries once and up to `max_retries` times more, as each failure asks for.
pub(super) async fn with_retries<T, E, F>(
    max_retries: u32,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    E: std::fmt::Display,
    F: Future<Output = Result<T, (E, Retry)>> + Send,
{
    let mut retries = 0;
    loop {
        let (error, retry) = match attempt().await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        match retry {
            Retry::After(wait) if retries < max_retries => {
                let wait = wait.unwrap_or_else(|| backoff(retries));
                tracing::debug!(
                    target: "updraft.model",
                    %error,
                    wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                    "asking the model again"
                );
                tokio::time::sleep(wait).await;
                retries += 1;
            }
            _ => return Err(error),
        }
    }
}

/// What to do after a failed try.
pub(super) enum Retry {
    Never,
    /// Try again after the server's own wait, or an exponential one.
    After(Option<Duration>),
}

async fn try_once(client: &reqwest::Client, post: &Post) -> Result<String, (ModelError, Retry)> {
    let broken = |error: reqwest::Error| (connection_error(&error, &post.url), Retry::After(None));
    let request = request(client, post).await?.timeout(post.timeout);
    let response = request.send().await.map_err(broken)?;
    if response.status().as_u16() < 400 {
        return response.text().await.map_err(broken);
    }
    Err(refused(response, post).await)
}

async fn try_stream(client: &reqwest::Client, post: &Post) -> Result<String, (ModelError, Retry)> {
    let silent = || ModelError::Connection(timed_out(&host(&post.url)));
    let in_time = |error: reqwest::Error| connection_error(&error, &post.url);
    let request = request(client, post).await?;
    let mut response = tokio::time::timeout(post.timeout, request.send())
        .await
        .map_err(|_| (silent(), Retry::After(None)))?
        .map_err(|error| (in_time(error), Retry::After(None)))?;
    if response.status().as_u16() >= 400 {
        return Err(tokio::time::timeout(post.timeout, refused(response, post))
            .await
            .map_err(|_| (silent(), Retry::Never))?);
    }
    let mut body = Vec::new();
    loop {
        let chunk = tokio::time::timeout(post.timeout, response.chunk());
        match chunk.await {
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Ok(Ok(None)) => return Ok(String::from_utf8_lossy(&body).into_owned()),
            Ok(Err(error)) => return Err((in_time(error), Retry::Never)),
            Err(_) => return Err((silent(), Retry::Never)),
        }
    }
}

async fn request(
    client: &reqwest::Client,
    post: &Post,
) -> Result<reqwest::RequestBuilder, (ModelError, Retry)> {
    let body = post.body.to_string().into_bytes();
    let mut headers = post.headers.clone();
    if let Some(authorization) = &post.authorization {
        let added = authorization.add_to(&mut headers, &post.url, &body);
        added.await.map_err(|error| (error, Retry::Never))?;
    }
    Ok(client.post(&post.url).headers(headers).body(body))
}

async fn refused(response: reqwest::Response, post: &Post) -> (ModelError, Retry) {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    // A body that breaks off takes nothing from the status, which is what counts.
    let body = response.text().await.unwrap_or_default();
    let error = ModelError::Http {
        status,
        model_name: post.model_name.clone(),
        body: error_body(body.trim(), post.error_body),
    };
    (error, decide(status, &headers))
}

/// Whether an error status is worth another try.
pub(super) fn decide(status: u16, headers: &HeaderMap) -> Retry {
    let wait = retry_after(headers, SystemTime::now());
    if wait.is_some_and(|wait| wait > LONGEST_RETRY_AFTER) {
        return Retry::Never;
    }
    let retryable = match headers.get("x-should-retry").map(HeaderValue::as_bytes) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => matches!(status, 408 | 409 | 429) || status >= 500,
    };
    if retryable {
        Retry::After(wait.filter(|wait| !wait.is_zero()))
    } else {
        Retry::Never
    }
}

/// `retry-after-ms`, or `retry-after` in seconds or as an HTTP date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    for (name, per_second) in [("retry-after-ms", 1000.0), ("retry-after", 1.0)] {
        if let Some(Ok(delay)) = text(name).map(str::parse::<f64>) {
            return Duration::try_from_secs_f64(delay / per_second).ok();
        }
    }
    let date = chrono::DateTime::parse_from_rfc2822(text("retry-after")?).ok()?;
    SystemTime::from(date).duration_since(now).ok()
}

/// 0.5 s, 1 s, 2 s ... up to 8 s, less a random part of up to a quarter.
fn backoff(retries: u32) -> Duration {
    let full = FIRST_DELAY
        .saturating_mul(2_u32.saturating_pow(retries))
        .min(LONGEST_DELAY);
    // A UUID's first byte is as good a die as any here.
    let quarter = f64::from(*uuid::Uuid::new_v4().as_bytes().first().unwrap_or(&0)) / 1024.0;
    full.mul_f64(1.0 - quarter)
}

fn host(url: &str) -> String {
    server(url).map_or_else(
        || "the model's server".to_owned(),
        |(host, port)| format!("{host}:{port}"),
    )
}

fn timed_out(host: &str) -> String {
    format!(
        "Request timed out. No answer from {host}: check the connection's host, or raise the timeout setting."
    )
}

pub(super) fn connection_error(error: &reqwest::Error, url: &str) -> ModelError {
    let host = host(url);
    ModelError::Connection(if error.is_timeout() {
        timed_out(&host)
    } else {
        format!(
            "Connection error. {host} could not be reached or hung up: {}",
            error_chain(error)
        )
    })
}

/// An error response's body as it reads in the error: as Python prints it, or the plain text.
pub(super) fn error_body(text: &str, shown: ErrorBody) -> String {
    let body = match serde_json::from_str(text) {
        Ok(Value::Object(mut map)) if shown == ErrorBody::Inner => {
            map.remove("error").unwrap_or(Value::Object(map))
        }
        Ok(other) => other,
        Err(_) => return text.to_owned(),
    };
    match body {
        Value::String(text) => text,
        other => repr_value(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn an_error_body_reads_as_a_python_dict_or_as_plain_text() {
        assert_eq!(
            error_body(
                r#"{"error": {"message": "slow", "code": null}}"#,
                ErrorBody::Inner
            ),
            "{'message': 'slow', 'code': None}"
        );
        for (text, shown) in [
            (r#"{"error": "no"}"#, "no"),
            (r#"{"detail": 1}"#, "{'detail': 1}"),
            ("upstream gone", "upstream gone"),
        ] {
            assert_eq!(error_body(text, ErrorBody::Inner), shown);
        }
        assert_eq!(
            error_body(r#"{"error": "no"}"#, ErrorBody::Whole),
            "{'error': 'no'}"
        );
    }

    #[test]
    fn a_wait_is_read_in_milliseconds_seconds_or_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        assert_eq!(
            retry_after(&headers(&[("retry-after", "1.5")]), now),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            retry_after(
                &headers(&[("retry-after-ms", "20"), ("retry-after", "9")]),
                now
            ),
            Some(Duration::from_millis(20))
        );
        let date = chrono::DateTime::from_timestamp(1_790_000_007, 0)
            .unwrap()
            .to_rfc2822();
        assert_eq!(
            retry_after(&headers(&[("retry-after", &date)]), now),
            Some(Duration::from_secs(7))
        );
        assert_eq!(retry_after(&headers(&[("retry-after", "soon")]), now), None);
        assert_eq!(retry_after(&headers(&[]), now), None);
    }

    #[test]
    fn statuses_are_retried_as_the_sdk_retries_them() {
        let retried = |status, pairs: &[(&'static str, &str)]| {
            matches!(decide(status, &headers(pairs)), Retry::After(_))
        };
        for status in [408, 409, 429, 500, 503] {
            assert!(retried(status, &[]), "{status}");
        }
        for status in [400, 401, 404, 422] {
            assert!(!retried(status, &[]), "{status}");
        }
        assert!(retried(400, &[("x-should-retry", "true")]));
        assert!(!retried(500, &[("x-should-retry", "false")]));
        assert!(!retried(429, &[("retry-after", "121")]));
    }

    #[test]
    fn waits_grow_and_are_cut_by_at_most_a_quarter() {
        for (retries, full) in [(0, 500), (1, 1000), (4, 8000), (9, 8000)] {
            let wait = backoff(retries).as_millis();
            assert!(wait <= full && wait >= full * 3 / 4 - 1, "{wait} of {full}");
        }
    }
}
