//! `HttpHook`: requests to the server of a connection of type `http`.

mod content;
mod options;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Map, Value, json};

use crate::airflow::connection::Connection;
use content::{BodyError, MAX_BODY, add_query, body, read_body};
use options::{OPTIONS, Options, is_true, refused};

/// One request, as `HttpHook.run` is given it.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct HttpRequest {
    pub method: String,
    pub endpoint: Option<String>,
    /// The query of GET, the body of others: text, or a form's fields. HEAD has neither.
    pub data: Value,
    /// A body of bytes, as base64, in place of `data`.
    pub body: Option<String>,
    /// A JSON body; goes before `data`.
    pub json: Value,
    /// A query, for any method.
    pub params: Value,
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
    let options = Options {
        call: &request.extra_options,
        connection: &extra,
    };
    if let Some(on) = options.get("srv_lookup").filter(|on| is_true(on)) {
        return Err(HttpError::Settings(format!(
            "connection {} has srv_lookup {on} in its extra, which is not done natively: name the server itself as \
             its host",
            connection.conn_id
        )));
    }
    let mut url = address(connection, request.endpoint.as_deref())?;
    let method = Method::from_bytes(request.method.to_uppercase().as_bytes())
        .map_err(|_| HttpError::Settings(format!("{:?} is no HTTP method", request.method)))?;
    let mut headers = HeaderMap::new();
    let own = extra
        .iter()
        .filter(|(name, _)| !OPTIONS.contains(&name.as_str()));
    for (name, value) in own.chain(&request.headers) {
        // requests takes a header away that is None.
        if !value.is_null() {
            let (name, value) = header(name, value)?;
            headers.insert(name, value);
        }
    }
    let login = connection
        .login
        .as_deref()
        .filter(|login| !login.is_empty());
    // Headers of a connection's extra are where API keys stand.
    let has_credentials = login.is_some() || !headers.is_empty();
    let client = options.client(has_credentials)?;
    add_query(&mut url, &request.params)?;
    if method == Method::GET {
        add_query(&mut url, &request.data)?;
    }
    let from = url.origin().ascii_serialization();
    let body = body(request, &method)?;
    if let Some(kind) = body.as_ref().and_then(|body| body.kind) {
        headers
            .entry(CONTENT_TYPE)
            .or_insert(HeaderValue::from_static(kind));
    }
    if login.is_some() {
        headers.remove(AUTHORIZATION);
    }
    let mut sent = client.request(method, url).headers(headers);
    if let Some(login) = login {
        sent = sent.basic_auth(login, connection.password.as_deref());
    }
    if let Some(body) = body {
        sent = sent.body(body.bytes);
    }
    let failed = |error| refused(error, &from);
    let answer = sent.send().await.map_err(failed)?;
    let status = answer.status();
    let url = answer.url().to_string();
    let names = answer.headers().keys();
    let shown: Map<String, Value> = names
        .map(|name| {
            let values = answer.headers().get_all(name).iter();
            let values: Vec<_> = values
                .map(|value| String::from_utf8_lossy(value.as_bytes()))
                .collect();
            (name.to_string(), values.join(", ").into())
        })
        .collect();
    let body = read_body(answer).await.map_err(|error| match error {
        BodyError::Broken(error) => refused(error, &from),
        BodyError::TooLarge => HttpError::Transport(format!(
            "the answer of {from} has more than {MAX_BODY} bytes"
        )),
    })?;
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
#[cfg(test)]
mod tests {
    use std::time::Duration;

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
    async fn a_query_goes_as_it_was_written_and_head_has_none() {
        let server = MockServer::start().await;
        let connection = connection(&server, json!({}));
        Mock::given(wiremock::matchers::any())
            .respond_with(ResponseTemplate::new(200))
            .mount(&server)
            .await;
        let mut text = get("x?first=1");
        text.data = json!("q=a%20b&r=c+d");
        let mut pairs = get("x");
        pairs.data = json!([
            ["q", "a b"],
            ["on", true],
            ["left_out", null],
            ["n", [1, 2]]
        ]);
        let mut head = get("x");
        head.method = "HEAD".to_owned();
        head.data = json!({"q": 1});
        let mut both = get("x");
        both.method = "POST".to_owned();
        both.params = json!({"page": 2});
        both.json = json!({"a": 1});
        for request in [text, pairs, head, both] {
            run(&connection, &request).await.unwrap();
        }
        let seen: Vec<_> = server
            .received_requests()
            .await
            .unwrap()
            .iter()
            .map(|request| {
                let query = request.url.query().unwrap_or_default().to_owned();
                (query, String::from_utf8_lossy(&request.body).into_owned())
            })
            .collect();
        let wanted = [
            ("first=1&q=a%20b&r=c+d", ""),
            ("q=a+b&on=True&n=1&n=2", ""),
            ("", ""),
            ("page=2", "{\"a\":1}"),
        ];
        assert_eq!(
            seen,
            wanted.map(|(query, body)| (query.to_owned(), body.to_owned()))
        );
    }

    #[tokio::test]
    async fn a_request_goes_through_the_connections_proxy() {
        let proxy = MockServer::start().await;
        Mock::given(method("GET"))
            .respond_with(ResponseTemplate::new(200).set_body_string("through"))
            .expect(1)
            .mount(&proxy)
            .await;
        let far = Connection {
            conn_id: "web".to_owned(),
            host: Some("far.example.invalid".to_owned()),
            extra: Some(json!({"proxies": {"http": proxy.uri()}}).to_string()),
            ..Connection::default()
        };
        assert_eq!(run(&far, &get("x")).await.unwrap()["body"], "through");
        let wrong = Connection {
            extra: Some(json!({"proxies": {"ftp": "x"}}).to_string()),
            ..far
        };
        assert!(matches!(
            run(&wrong, &get("x")).await,
            Err(HttpError::Settings(_))
        ));
    }

    #[tokio::test]
    async fn a_slow_answer_is_not_waited_for_longer_than_the_timeout() {
        let server = MockServer::start().await;
        Mock::given(method("GET"))
            .respond_with(ResponseTemplate::new(200).set_delay(Duration::from_secs(30)))
            .mount(&server)
            .await;
        for timeout in [json!(0.05), json!("0.05"), json!([5, 0.05])] {
            let connection = connection(&server, json!({ "timeout": timeout }));
            let error = run(&connection, &get("secret-path")).await.unwrap_err();
            assert!(error.to_string().contains("timed out"), "{error}");
            assert!(!error.to_string().contains("secret-path"), "{error}");
        }
        let connection = connection(&server, json!({"timeout": "soon"}));
        assert!(matches!(
            run(&connection, &get("x")).await,
            Err(HttpError::Settings(_))
        ));
    }

    #[tokio::test]
    async fn a_redirect_tells_the_next_server_no_query() {
        let (server, other) = (MockServer::start().await, MockServer::start().await);
        Mock::given(path("/away"))
            .respond_with(ResponseTemplate::new(302).insert_header("location", other.uri()))
            .mount(&server)
            .await;
        let mut open = connection(&server, json!({}));
        open.login = None;
        run(&open, &get("away?key=made-up-key")).await.unwrap();
        let seen = other.received_requests().await.unwrap();
        assert_eq!(seen.len(), 1);
        assert!(!seen[0].headers.contains_key("referer"), "{:?}", seen[0]);
    }

    #[tokio::test]
    async fn the_connections_content_type_and_the_login_are_sent_once() {
        let server = MockServer::start().await;
        let extra = json!({"content-type": "application/x-made-up", "Authorization": "made-up"});
        let connection = connection(&server, extra);
        let post = |data: Value, body: Option<&str>, json: Value| HttpRequest {
            method: "POST".to_owned(),
            data,
            body: body.map(ToOwned::to_owned),
            json,
            ..HttpRequest::default()
        };
        for request in [
            post(json!({"a": 1}), None, Value::Null),
            post(Value::Null, Some("/wA="), Value::Null),
            post(Value::Null, None, json!([1])),
        ] {
            run(&connection, &request).await.unwrap();
        }
        let seen = server.received_requests().await.unwrap();
        let bodies: Vec<_> = seen.iter().map(|request| request.body.as_slice()).collect();
        assert_eq!(bodies, [b"a=1".as_slice(), b"\xff\0", b"[1]"]);
        for request in seen {
            let values = |name: &str| -> Vec<_> {
                let values = request.headers.get_all(name).iter();
                values
                    .map(|value| value.to_str().unwrap().to_owned())
                    .collect()
            };
            assert_eq!(values("content-type"), ["application/x-made-up"]);
            assert_eq!(
                values("authorization"),
                ["Basic cmVhZGVyOm1hZGUtdXAtcGFzc3dvcmQ="]
            );
        }
    }

    #[tokio::test]
    async fn credentials_do_not_follow_a_redirect_to_another_host() {
        let (server, other) = (MockServer::start().await, MockServer::start().await);
        let encrypted = server.uri().replace("http:", "https:");
        let to = |address: String| ResponseTemplate::new(302).insert_header("location", address);
        Mock::given(path("/away"))
            .respond_with(to(format!("{}/x", other.uri())))
            .mount(&server)
            .await;
        // The encrypted side of a server is another server: the login would get lost on the way.
        Mock::given(path("/encrypted"))
            .respond_with(to(encrypted))
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
        let error = run(&connection, &get("encrypted")).await.unwrap_err();
        assert!(matches!(error, HttpError::Redirect { .. }), "{error}");
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
