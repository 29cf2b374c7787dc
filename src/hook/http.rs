//! `HttpHook`: requests to the server of a connection of type `http`.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Identity, Method, Url, redirect};
use serde_json::{Map, Value, json};

use crate::airflow::connection::Connection;
use crate::airflow::error_chain::error_chain;

/// How long a request may take where neither the connection nor the call says.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of an answer that are read.
const MAX_BODY: usize = 64 << 20;
const MAX_REDIRECTS: usize = 30;

/// Keys of a connection's extra that are settings; all others are headers.
const OPTIONS: [&str; 11] = [
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
];

/// One request, as `HttpHook.run` is given it.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct HttpRequest {
    pub method: String,
    pub endpoint: Option<String>,
    /// The query of GET, the body of others: text, or a form's fields.
    pub data: Value,
    /// A JSON body; goes before `data`.
    pub json: Value,
    pub headers: Map<String, Value>,
    pub extra_options: Map<String, Value>,
}

/// Why there is no answer. An answer with an error status is an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The connection or the call asks for something that is not there.
    #[error("{0}")]
    Settings(String),
    /// Credentials would go to somebody else.
    #[error(
        "{from} redirects to {to}, and the connection's credentials are not sent to another host: set the \
         connection's host to that address, or allow_redirects to false in its extra"
    )]
    Redirect { from: String, to: String },
    /// The server could not be reached, or broke off.
    #[error("{0}")]
    Transport(String),
}

/// Sends a request and reads the answer: `{"status", "reason", "url", "headers", "body"}`, the body as text or, where it
/// is none, as `{"base64"}`.
///
/// # Errors
/// See [`HttpError`].
pub async fn run(connection: &Connection, request: &HttpRequest) -> Result<Value, HttpError> {
    let extra = connection
        .extra_json()
        .map_err(|error| HttpError::Settings(error.to_string()))?;
    let option = |name: &str| {
        request
            .extra_options
            .get(name)
            .or_else(|| extra.get(name))
            .filter(|value| !value.is_null())
    };
    let mut url = address(connection, request.endpoint.as_deref())?;
    let method = Method::from_bytes(request.method.to_uppercase().as_bytes())
        .map_err(|_| HttpError::Settings(format!("{:?} is no HTTP method", request.method)))?;
    let mut headers = HeaderMap::new();
    let own = extra
        .iter()
        .filter(|(name, _)| !OPTIONS.contains(&name.as_str()));
    for (name, value) in own.chain(&request.headers) {
        let (name, value) = header(name, value)?;
        headers.insert(name, value);
    }
    let login = connection
        .login
        .as_deref()
        .filter(|login| !login.is_empty());
    // Headers of a connection's extra are where API keys stand.
    let has_credentials = login.is_some() || !headers.is_empty();
    let follow = option("allow_redirects") != Some(&Value::Bool(false));
    let mut builder = Client::builder()
        .timeout(timeout(option("timeout"))?)
        .redirect(policy(follow, has_credentials));
    match option("verify").or_else(|| option("verify_ssl")) {
        Some(Value::Bool(false)) => builder = builder.tls_danger_accept_invalid_certs(true),
        Some(Value::String(file)) => {
            let pem = read(file)?;
            let certificates = Certificate::from_pem_bundle(&pem)
                .map_err(|error| HttpError::Settings(format!("{file}: {error}")))?;
            builder = builder.tls_certs_merge(certificates);
        }
        _ => {}
    }
    if let Some(Value::String(file)) = option("cert") {
        let identity = Identity::from_pem(&read(file)?)
            .map_err(|error| HttpError::Settings(format!("{file}: {error}")))?;
        builder = builder.identity(identity);
    }
    let client = builder
        .build()
        .map_err(|error| HttpError::Settings(error_chain(&error)))?;
    let form = match (&request.json, &request.data) {
        (Value::Null, Value::Object(_) | Value::Array(_)) => Some(fields(&request.data)?),
        (Value::Null, Value::String(_)) if method == Method::GET => Some(fields(&request.data)?),
        _ => None,
    };
    if let Some(form) = form.as_ref().filter(|_| method == Method::GET) {
        url.query_pairs_mut().extend_pairs(form);
    }
    let mut sent = client.request(method.clone(), url.clone()).headers(headers);
    if let Some(login) = login {
        sent = sent.basic_auth(login, connection.password.as_deref());
    }
    sent = match (&request.json, &request.data, form) {
        (Value::Null, Value::Null, _) => sent,
        (Value::Null, ..) if method == Method::GET => sent,
        (Value::Null, _, Some(form)) => {
            // A query and a form are written alike.
            url.set_query(None);
            url.query_pairs_mut().extend_pairs(&form);
            sent.header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(url.query().unwrap_or_default().to_owned())
        }
        (Value::Null, Value::String(text), None) => sent.body(text.clone()),
        (Value::Null, other, None) => {
            return Err(HttpError::Settings(format!(
                "data is {other}, and must be text or names and values"
            )));
        }
        (json, ..) => sent.json(json),
    };
    let answer = sent.send().await.map_err(refused)?;
    let status = answer.status();
    let url = answer.url().to_string();
    let shown: Map<String, Value> = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.to_string(), value.into())
        })
        .collect();
    let body = read_body(answer).await?;
    Ok(json!({
        "status": status.as_u16(),
        "reason": status.canonical_reason().unwrap_or_default(),
        "url": url,
        "headers": shown,
        "body": body,
    }))
}

/// The connection's address with an endpoint.
fn address(connection: &Connection, endpoint: Option<&str>) -> Result<Url, HttpError> {
    let host = connection.host.as_deref().unwrap_or_default();
    let mut base = if host.contains("://") {
        host.to_owned()
    } else {
        let schema = connection
            .schema
            .as_deref()
            .filter(|schema| !schema.is_empty());
        format!("{}://{host}", schema.unwrap_or("http"))
    };
    if let Some(port) = connection.port {
        base.push_str(&format!(":{port}"));
    }
    let endpoint = endpoint.unwrap_or_default();
    if !base.ends_with('/') && !endpoint.is_empty() && !endpoint.starts_with('/') {
        base.push('/');
    }
    let url = Url::parse(&format!("{base}{endpoint}")).map_err(|error| {
        HttpError::Settings(format!(
            "connection {} and the endpoint {endpoint:?} make no URL: {error}",
            connection.conn_id
        ))
    })?;
    // An endpoint such as `.evil.example` or `@evil.example` would make another host of it.
    let expected = Url::parse(&base)
        .ok()
        .and_then(|base| base.host_str().map(ToOwned::to_owned));
    if url.host_str() != expected.as_deref() {
        return Err(HttpError::Settings(format!(
            "the endpoint {endpoint:?} leads to another host than connection {} names",
            connection.conn_id
        )));
    }
    Ok(url)
}

fn header(name: &str, value: &Value) -> Result<(HeaderName, HeaderValue), HttpError> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let name = HeaderName::try_from(name)
        .map_err(|_| HttpError::Settings(format!("{name:?} is no name of a header")))?;
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| HttpError::Settings(format!("the header {name} holds what no header can")))?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn timeout(value: Option<&Value>) -> Result<Duration, HttpError> {
    let Some(value) = value else {
        return Ok(TIMEOUT);
    };
    let seconds = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| HttpError::Settings(format!("timeout is {value}, and must be seconds")))
}

/// Text in an error of the redirect policy, to be told apart from other failures.
#[derive(Debug, thiserror::Error)]
#[error("another host")]
struct OtherHost {
    from: String,
    to: String,
}

fn policy(follow: bool, has_credentials: bool) -> redirect::Policy {
    if !follow {
        return redirect::Policy::none();
    }
    redirect::Policy::custom(move |attempt| {
        let origin = |url: &Url| url.origin().ascii_serialization();
        let to = origin(attempt.url());
        let from = attempt.previous().first().map(origin).unwrap_or_default();
        if has_credentials && from != to {
            return attempt.error(OtherHost { from, to });
        }
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error("too many redirects");
        }
        attempt.follow()
    })
}

fn refused(error: reqwest::Error) -> HttpError {
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
    HttpError::Transport(error_chain(&error))
}

fn fields(data: &Value) -> Result<Vec<(String, String)>, HttpError> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match data {
        Value::Object(entries) => Ok(entries
            .iter()
            .flat_map(|(name, value)| match value {
                Value::Array(items) => items
                    .iter()
                    .map(|item| (name.clone(), text(item)))
                    .collect(),
                Value::Null => Vec::new(),
                other => vec![(name.clone(), text(other))],
            })
            .collect()),
        Value::String(query) => Ok(query
            .split('&')
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (name, value) = part.split_once('=').unwrap_or((part, ""));
                (name.to_owned(), value.to_owned())
            })
            .collect()),
        other => Err(HttpError::Settings(format!(
            "data is {other}, and must be text or names and values"
        ))),
    }
}

fn read(file: &str) -> Result<Vec<u8>, HttpError> {
    std::fs::read(file).map_err(|error| HttpError::Settings(format!("{file}: {error}")))
}

async fn read_body(mut answer: reqwest::Response) -> Result<Value, HttpError> {
    use base64::Engine as _;

    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(refused)? {
        if bytes.len() + piece.len() > MAX_BODY {
            return Err(HttpError::Transport(format!(
                "the answer has more than {MAX_BODY} bytes"
            )));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => {
            json!({"base64": base64::engine::general_purpose::STANDARD.encode(error.as_bytes())})
        }
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use wiremock::matchers::{body_string, header as has_header, method, path, query_param};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    fn connection(server: &MockServer, extra: Value) -> Connection {
        Connection {
            conn_id: "web".to_owned(),
            conn_type: "http".to_owned(),
            host: Some("127.0.0.1".to_owned()),
            port: Some(server.address().port()),
            login: Some("reader".to_owned()),
            password: Some("made-up-password".to_owned()),
            extra: Some(extra.to_string()),
            ..Connection::default()
        }
    }

    fn get(endpoint: &str) -> HttpRequest {
        HttpRequest {
            method: "GET".to_owned(),
            endpoint: Some(endpoint.to_owned()),
            ..HttpRequest::default()
        }
    }

    #[tokio::test]
    async fn a_connection_gives_address_login_headers_and_options() {
        let server = MockServer::start().await;
        Mock::given(method("GET"))
            .and(path("/tides"))
            .and(query_param("port", "Oslo"))
            .and(has_header(
                "authorization",
                "Basic cmVhZGVyOm1hZGUtdXAtcGFzc3dvcmQ=",
            ))
            .and(has_header("x-key", "made-up-key"))
            .respond_with(ResponseTemplate::new(404).set_body_string("none"))
            .expect(1)
            .mount(&server)
            .await;
        let mut request = get("tides");
        request.data = json!({"port": "Oslo"});
        let connection = connection(&server, json!({"x-key": "made-up-key", "timeout": 5}));
        let answer = run(&connection, &request).await.unwrap();
        assert_eq!(answer["status"], 404);
        assert_eq!(answer["reason"], "Not Found");
        assert_eq!(answer["body"], "none");
    }

    #[tokio::test]
    async fn other_methods_send_text_forms_or_json() {
        let server = MockServer::start().await;
        for body in ["a=1&b=x", "plain", "{\"a\":[1]}"] {
            Mock::given(method("POST"))
                .and(body_string(body))
                .respond_with(ResponseTemplate::new(200))
                .expect(1)
                .mount(&server)
                .await;
        }
        let connection = connection(&server, json!({}));
        let post = |data: Value, json: Value| HttpRequest {
            method: "post".to_owned(),
            data,
            json,
            ..HttpRequest::default()
        };
        for request in [
            post(json!({"a": 1, "b": "x"}), Value::Null),
            post(json!("plain"), Value::Null),
            post(Value::Null, json!({"a": [1]})),
        ] {
            assert_eq!(run(&connection, &request).await.unwrap()["status"], 200);
        }
    }

    #[tokio::test]
    async fn credentials_do_not_follow_a_redirect_to_another_host() {
        let (server, other) = (MockServer::start().await, MockServer::start().await);
        let to = |address: String| ResponseTemplate::new(302).insert_header("location", address);
        Mock::given(path("/away"))
            .respond_with(to(format!("{}/x", other.uri())))
            .mount(&server)
            .await;
        Mock::given(path("/moved"))
            .respond_with(to("/here".to_owned()))
            .mount(&server)
            .await;
        Mock::given(path("/here"))
            .respond_with(ResponseTemplate::new(200))
            .mount(&server)
            .await;
        let connection = connection(&server, json!({}));
        let error = run(&connection, &get("away")).await.unwrap_err();
        assert!(matches!(error, HttpError::Redirect { .. }), "{error}");
        assert!(other.received_requests().await.unwrap().is_empty());
        assert_eq!(
            run(&connection, &get("moved")).await.unwrap()["status"],
            200
        );
        let mut stay = get("away");
        stay.extra_options = Map::from_iter([("allow_redirects".to_owned(), false.into())]);
        assert_eq!(run(&connection, &stay).await.unwrap()["status"], 302);
    }

    #[tokio::test]
    async fn an_endpoint_can_not_lead_to_another_host() {
        let connection = Connection {
            conn_id: "web".to_owned(),
            host: Some("https://api.example.com".to_owned()),
            ..Connection::default()
        };
        assert_eq!(
            address(&connection, Some("v1/x")).unwrap().as_str(),
            "https://api.example.com/v1/x"
        );
        let same = address(&connection, Some("@evil.example/x")).unwrap();
        assert_eq!(same.host_str(), Some("api.example.com"));
        let with_port = Connection {
            port: Some(8443),
            ..connection
        };
        assert!(address(&with_port, Some("/a")).is_ok());
    }
}
