//! `HttpHook`: requests to the server of a connection of type `http`.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Method, Proxy, Url, redirect};
use serde_json::{Map, Value, json};

use crate::airflow::connection::Connection;
use crate::airflow::error_chain::error_chain;

/// How long a request may take where neither the connection nor the call says.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of an answer that are read.
const MAX_BODY: usize = 64 << 20;
const MAX_REDIRECTS: usize = 30;

/// Keys of a connection's extra that are settings; all others are headers.
const OPTIONS: [&str; 12] = [
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

/// What a call and the connection's extra set; the call's goes first.
struct Options<'a> {
    call: &'a Map<String, Value>,
    connection: &'a Map<String, Value>,
}

impl Options<'_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.call
            .get(name)
            .or_else(|| self.connection.get(name))
            .filter(|value| !value.is_null())
    }

    fn client(&self, has_credentials: bool) -> Result<Client, HttpError> {
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
fn is_true(value: &Value) -> bool {
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
fn refused(error: reqwest::Error, from: &str) -> HttpError {
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

/// Adds to a query: text as it stands, or names and values.
fn add_query(url: &mut Url, data: &Value) -> Result<(), HttpError> {
    match data {
        Value::Null => {}
        Value::String(text) => {
            let text = text.trim_start_matches('?');
            if !text.is_empty() {
                let query = match url.query() {
                    Some(before) if !before.is_empty() => format!("{before}&{text}"),
                    _ => text.to_owned(),
                };
                url.set_query(Some(&query));
            }
        }
        data => {
            let fields = fields(data)?;
            if !fields.is_empty() {
                url.query_pairs_mut().extend_pairs(fields);
            }
        }
    }
    Ok(())
}

/// What is sent beside the headers.
struct Body {
    bytes: Vec<u8>,
    /// Its media type, where that is known.
    kind: Option<&'static str>,
}

fn body(request: &HttpRequest, method: &Method) -> Result<Option<Body>, HttpError> {
    use base64::Engine as _;

    let unreadable = |error: &dyn std::fmt::Display| {
        HttpError::Settings(format!("the request's body can't be read: {error}"))
    };
    let some = |bytes: Vec<u8>, kind| Ok(Some(Body { bytes, kind }));
    if !request.json.is_null() {
        let text = serde_json::to_vec(&request.json).map_err(|error| unreadable(&error))?;
        return some(text, Some("application/json"));
    }
    if method == Method::GET || method == Method::HEAD {
        return Ok(None);
    }
    if let Some(encoded) = &request.body {
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
        return some(bytes.map_err(|error| unreadable(&error))?, None);
    }
    match &request.data {
        Value::Null => Ok(None),
        Value::String(text) => some(text.clone().into_bytes(), None),
        fields => some(
            form(fields)?.into_bytes(),
            Some("application/x-www-form-urlencoded"),
        ),
    }
}

fn form(data: &Value) -> Result<String, HttpError> {
    let fields = fields(data)?;
    // A query and a form are written alike.
    let mut writer = Url::parse("http://form/")
        .map_err(|error| HttpError::Settings(format!("the form can't be written: {error}")))?;
    writer.query_pairs_mut().extend_pairs(fields);
    Ok(writer.query().unwrap_or_default().to_owned())
}

/// Names and values: an object, or a list of pairs.
fn fields(data: &Value) -> Result<Vec<(String, String)>, HttpError> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        // As Python's str() has them.
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    };
    let mut found = Vec::new();
    let mut add = |name: &str, value: &Value| match value {
        Value::Array(items) => {
            found.extend(items.iter().map(|item| (name.to_owned(), text(item))));
        }
        Value::Null => {}
        other => found.push((name.to_owned(), text(other))),
    };
    match data {
        Value::Object(entries) => entries.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(pairs) => {
            for pair in pairs {
                match pair.as_array().map(Vec::as_slice) {
                    Some([name, value]) => add(&text(name), value),
                    _ => return Err(no_fields(data)),
                }
            }
        }
        other => return Err(no_fields(other)),
    }
    Ok(found)
}

fn no_fields(data: &Value) -> HttpError {
    HttpError::Settings(format!(
        "data is {data}, and must be text or names and values"
    ))
}

fn read(file: &str) -> Result<Vec<u8>, HttpError> {
    std::fs::read(file).map_err(|error| HttpError::Settings(format!("{file}: {error}")))
}

enum BodyError {
    Broken(reqwest::Error),
    TooLarge,
}

async fn read_body(mut answer: reqwest::Response) -> Result<Value, BodyError> {
    use base64::Engine as _;

    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(BodyError::Broken)? {
        if bytes.len() + piece.len() > MAX_BODY {
            return Err(BodyError::TooLarge);
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
