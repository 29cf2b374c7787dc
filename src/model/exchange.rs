//! One exchange with a model's server in the words of whoever asks: the `openai` client of Dag code makes the body and
//! reads the answer itself. Retries are those of every other request to a model.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::http::{Retry, client, connection_error, decide, with_retries};
use crate::agent::ModelError;

/// Bytes of an answer that are read at most.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// What is asked. Read from JSON.
#[derive(Deserialize)]
pub struct Exchange {
    method: String,
    url: String,
    headers: Map<String, Value>,
    /// Sent as JSON; nothing is sent for null.
    #[serde(default)]
    body: Value,
    /// Seconds for the whole of one try.
    timeout: f64,
    /// Tries after the first one.
    max_retries: u32,
}

/// A try that ended without an answer that counts.
#[derive(Debug, thiserror::Error)]
enum Ended {
    /// An answer from 400 on, which is handed on when no try is left.
    #[error("the status {}", .0["status"])]
    Refused(Value),
    #[error(transparent)]
    Broken(ModelError),
}

/// Sends, and sends again on connection errors, 408, 409, 429 and from 500 on. The answer is
/// `{"status", "headers", "text"}`, whatever its status; `{"broken": text, "timeout": bool}` when no try brought one.
///
/// # Errors
/// The request is none: its method, URL or a header can't be sent.
pub async fn exchange(asked: &Exchange) -> Result<Value, String> {
    let method = Method::from_bytes(asked.method.as_bytes()).map_err(|error| error.to_string())?;
    reqwest::Url::parse(&asked.url)
        .map_err(|error| format!("{:?} is no URL for requests to a model: {error}", asked.url))?;
    let headers = headers(&asked.headers)?;
    let timeout = Duration::try_from_secs_f64(asked.timeout)
        .map_err(|error| format!("the timeout of {} seconds: {error}", asked.timeout))?;
    let client = client().map_err(|error| error.to_string())?;
    let send = async || {
        let mut request = client
            .request(method.clone(), &asked.url)
            .headers(headers.clone())
            .timeout(timeout);
        if !asked.body.is_null() {
            request = request.body(asked.body.to_string());
        }
        let broken = |error: reqwest::Error| {
            let error = connection_error(&error, &asked.url);
            (Ended::Broken(error), Retry::After(None))
        };
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status().as_u16();
        let retry = decide(status, response.headers());
        let headers = shown(response.headers());
        let mut text = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            text.extend_from_slice(&chunk);
            if text.len() > MAX_ANSWER_BYTES {
                let error = format!("the answer has more than {MAX_ANSWER_BYTES} bytes");
                let error = ModelError::Connection(error);
                return Err((Ended::Broken(error), Retry::Never));
            }
        }
        let text = String::from_utf8_lossy(&text);
        let answer = json!({ "status": status, "headers": headers, "text": text });
        if status < 400 {
            Ok(answer)
        } else {
            Err((Ended::Refused(answer), retry))
        }
    };
    Ok(match with_retries(asked.max_retries, send).await {
        Ok(answer) | Err(Ended::Refused(answer)) => answer,
        Err(Ended::Broken(error)) => {
            let text = error.to_string();
            json!({ "timeout": text.starts_with("Request timed out"), "broken": text })
        }
    })
}

fn headers(given: &Map<String, Value>) -> Result<HeaderMap, String> {
    given
        .iter()
        .map(|(name, value)| {
            let unsent = || format!("the header {name} of a request to a model can't be sent");
            let key: HeaderName = name.parse().map_err(|_| unsent())?;
            let mut value =
                HeaderValue::from_str(value.as_str().ok_or_else(unsent)?).map_err(|_| unsent())?;
            // Keys have many names.
            value.set_sensitive(true);
            Ok((key, value))
        })
        .collect()
}

fn shown(headers: &HeaderMap) -> Map<String, Value> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value.into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use wiremock::matchers::{body_json, header, method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    async fn ask(server: &MockServer, max_retries: u32) -> Value {
        let asked = json!({
            "method": "POST",
            "url": format!("{}/v1/responses", server.uri()),
            "headers": { "authorization": "Bearer made-up", "content-type": "application/json" },
            "body": { "model": "m", "temperature": 0.5 },
            "timeout": 5.0,
            "max_retries": max_retries,
        });
        exchange(&serde_json::from_value(asked).unwrap())
            .await
            .unwrap()
    }

    fn refusing(status: u16) -> ResponseTemplate {
        ResponseTemplate::new(status)
            .insert_header("retry-after-ms", "1")
            .insert_header("x-request-id", "req_1")
            .set_body_string("{\"error\": \"no\"}")
    }

    #[tokio::test]
    async fn an_answer_is_handed_on_whatever_its_status() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path("/v1/responses"))
            .and(header("authorization", "Bearer made-up"))
            .and(body_json(json!({ "model": "m", "temperature": 0.5 })))
            .respond_with(refusing(503))
            .up_to_n_times(1)
            .mount(&server)
            .await;
        Mock::given(method("POST"))
            .respond_with(refusing(400))
            .mount(&server)
            .await;
        let answer = ask(&server, 2).await;
        assert_eq!(answer["status"], 400);
        assert_eq!(answer["text"], "{\"error\": \"no\"}");
        assert_eq!(answer["headers"]["x-request-id"], "req_1");
        assert_eq!(server.received_requests().await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told_from_one_that_is_slow() {
        let server = MockServer::start().await;
        let asked = |url: String, timeout: f64| {
            let asked = json!({
                "method": "GET", "url": url, "headers": {}, "timeout": timeout, "max_retries": 0,
            });
            serde_json::from_value::<Exchange>(asked).unwrap()
        };
        Mock::given(method("GET"))
            .respond_with(ResponseTemplate::new(200).set_delay(Duration::from_secs(5)))
            .mount(&server)
            .await;
        let slow = exchange(&asked(server.uri(), 0.05)).await.unwrap();
        assert_eq!(slow["timeout"], true, "{slow}");
        let gone = exchange(&asked("http://127.0.0.1:1/".to_owned(), 5.0)).await;
        let gone = gone.unwrap();
        assert_eq!(gone["timeout"], false, "{gone}");
        assert!(
            exchange(&asked("here".to_owned(), 5.0))
                .await
                .unwrap_err()
                .contains("no URL")
        );
    }
}
