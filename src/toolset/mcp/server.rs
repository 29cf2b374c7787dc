//! How an MCP server is reached: from a connection of type `mcp`, or as a Dag file says it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::airflow::connection::Connection;
use crate::airflow::python_text::{repr_str, repr_value};

/// How long the first answer of a server may take, when nothing else is said: pydantic-ai's default.
pub const INIT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long any later answer may take: pydantic-ai's default.
pub const READ_TIMEOUT: Duration = Duration::from_secs(300);
/// The `timeout` of a stdio connection that has none.
const STDIO_INIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server, and how long it may take; `Duration::MAX` is without end.
#[derive(Clone, Debug)]
pub struct Server {
    pub transport: Transport,
    /// From the start to the end of the handshake.
    pub init_timeout: Duration,
    /// For one answer.
    pub read_timeout: Duration,
}

/// A time-out in seconds, of which 0 is none: FastMCP's way.
#[must_use]
pub fn timeout_of(seconds: f64) -> Option<Duration> {
    if seconds == 0.0 {
        return Some(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// The way to a server.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Streamable HTTP.
    Http(HttpServer),
    /// HTTP with server-sent events: the transport of MCP before 2025.
    Sse(HttpServer),
    /// A child process.
    Stdio(StdioServer),
}

/// A server behind an address.
#[derive(Clone, Debug)]
pub struct HttpServer {
    pub url: String,
    pub headers: Vec<(String, SecretString)>,
    /// How long a stream of server-sent events may be silent; `None`: as long as an answer may take.
    pub event_timeout: Option<Duration>,
}

/// A server that is started as a command.
#[derive(Clone, Debug)]
pub struct StdioServer {
    pub command: String,
    pub args: Vec<String>,
    /// Added to the few variables that every server sees.
    pub env: BTreeMap<String, SecretString>,
    /// Where it runs; `None`: where the worker does.
    pub cwd: Option<PathBuf>,
}

/// A server can't be told from its connection or from what a Dag function gave. All are Airflow's `ValueError`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServerError(String);

/// Values that functions of the Dag file gave for a connection.
#[derive(Debug, Default)]
pub struct Provided {
    /// From `token_provider`, which overrides the password of an HTTP connection.
    pub token: Option<Value>,
    /// From `env_provider`, which goes over the `env` of a stdio connection.
    pub env: Option<Value>,
}

/// `http`, `sse` or `stdio`: the `transport` of a connection.
///
/// # Errors
/// The extra field is no JSON object, or names another transport.
pub fn transport_name(connection: &Connection) -> Result<&'static str, ServerError> {
    let extra = extra(connection)?;
    match extra.get("transport") {
        None => Ok("http"),
        Some(Value::String(name)) if name == "http" => Ok("http"),
        Some(Value::String(name)) if name == "sse" => Ok("sse"),
        Some(Value::String(name)) if name == "stdio" => Ok("stdio"),
        Some(other) => Err(ServerError(format!(
            "Unknown transport {} in connection {}. Supported: 'http', 'sse', 'stdio'.",
            repr_value(other),
            repr_str(&connection.conn_id)
        ))),
    }
}

fn extra(connection: &Connection) -> Result<Map<String, Value>, ServerError> {
    connection
        .extra_json()
        .map_err(|error| ServerError(error.to_string()))
}

/// Reads a connection as Airflow's `MCPHook` does.
///
/// # Errors
/// See [`ServerError`].
pub fn of_connection(connection: &Connection, provided: Provided) -> Result<Server, ServerError> {
    let extra = extra(connection)?;
    let transport = transport_name(connection)?;
    let conn_id = repr_str(&connection.conn_id);
    if transport == "stdio" {
        let command = match extra.get("command") {
            Some(Value::String(command)) if !command.is_empty() => command.clone(),
            _ => {
                return Err(ServerError(format!(
                    "Connection {conn_id} requires 'command' in extra for stdio transport."
                )));
            }
        };
        let mut env = BTreeMap::new();
        for (given, source) in [
            (extra.get("env"), "'env' in extra"),
            (provided.env.as_ref(), "env_provider"),
        ] {
            env.extend(environment(given, source, &conn_id)?);
        }
        return Ok(Server {
            transport: Transport::Stdio(StdioServer {
                command,
                args: arguments(extra.get("args"), &conn_id)?,
                env,
                cwd: None,
            }),
            init_timeout: timeout(extra.get("timeout"), &conn_id)?,
            read_timeout: READ_TIMEOUT,
        });
    }
    let host = connection.host.as_deref().unwrap_or_default();
    if host.is_empty() {
        return Err(ServerError(format!(
            "Connection {conn_id} requires a host URL for {} transport.",
            transport.to_uppercase()
        )));
    }
    let token = match provided.token {
        Some(Value::String(token)) if !token.is_empty() => Some(token),
        Some(other) => {
            return Err(ServerError(format!(
                "token_provider for connection {conn_id} must return a non-empty string token, got {}.",
                python_type(&other)
            )));
        }
        None => connection
            .password
            .clone()
            .filter(|password| !password.is_empty()),
    };
    let server = HttpServer {
        url: host.to_owned(),
        headers: token.iter().map(|token| bearer(token)).collect(),
        event_timeout: None,
    };
    Ok(Server {
        transport: if transport == "sse" {
            Transport::Sse(server)
        } else {
            Transport::Http(server)
        },
        init_timeout: INIT_TIMEOUT,
        read_timeout: READ_TIMEOUT,
    })
}

/// The `Authorization` header of a token.
#[must_use]
pub fn bearer(token: &str) -> (String, SecretString) {
    (
        "Authorization".to_owned(),
        SecretString::from(format!("Bearer {token}")),
    )
}

/// `args` is a list, a single argument, or (from the connection form) the text of a JSON list.
fn arguments(given: Option<&Value>, conn_id: &str) -> Result<Vec<String>, ServerError> {
    let items = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => {
            return Ok(serde_json::from_str(text).unwrap_or_else(|_| vec![text.clone()]));
        }
        Some(Value::Array(items)) => items,
        Some(other) => {
            return Err(ServerError(format!(
                "'args' in extra for connection {conn_id} must be a list of strings, got {}.",
                python_type(other)
            )));
        }
    };
    items
        .iter()
        .map(|item| match item {
            Value::String(text) => Ok(text.clone()),
            other => Err(ServerError(format!(
                "'args' in extra for connection {conn_id} must be a list of strings, and holds {}.",
                repr_value(other)
            ))),
        })
        .collect()
}

fn environment(
    given: Option<&Value>,
    source: &str,
    conn_id: &str,
) -> Result<BTreeMap<String, SecretString>, ServerError> {
    let must = if source == "env_provider" {
        "must return a dict[str, str]"
    } else {
        "must be an object of string keys/values"
    };
    let given = match given {
        None => return Ok(BTreeMap::new()),
        Some(Value::Null) if source != "env_provider" => return Ok(BTreeMap::new()),
        Some(Value::Object(given)) if !given.contains_key("__classname__") => given,
        Some(other) => {
            return Err(ServerError(format!(
                "{source} for connection {conn_id} {must}, got {}.",
                python_type(other)
            )));
        }
    };
    given
        .iter()
        .map(|(key, value)| match value {
            _ if key.is_empty() => Err(ServerError(format!(
                "{source} for connection {conn_id} must have non-empty string keys, got str."
            ))),
            Value::String(text) if !text.is_empty() => {
                Ok((key.clone(), SecretString::from(text.as_str())))
            }
            other => Err(ServerError(format!(
                "{source} for connection {conn_id} must have non-empty string values, got {} for key {}.",
                python_type(other),
                repr_str(key)
            ))),
        })
        .collect()
}

fn timeout(given: Option<&Value>, conn_id: &str) -> Result<Duration, ServerError> {
    let given = match given {
        None | Some(Value::Null) => return Ok(STDIO_INIT_TIMEOUT),
        Some(given) => given,
    };
    given.as_f64().and_then(timeout_of).ok_or_else(|| {
        ServerError(format!(
            "'timeout' in extra for connection {conn_id} must be a number of seconds, got {}.",
            repr_value(given)
        ))
    })
}

/// The name of the Python type that a value has in Dag code.
pub(super) fn python_type(value: &Value) -> &str {
    match value {
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() || number.is_u64() => "int",
        Value::Number(_) => "float",
        Value::String(_) => "str",
        Value::Array(_) => "list",
        Value::Object(map) => match map.get("__classname__").and_then(Value::as_str) {
            Some(class) => class.rsplit('.').next().unwrap_or(class),
            None => "dict",
        },
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use secrecy::ExposeSecret as _;
    use serde_json::json;

    use super::*;

    fn connection(host: &str, password: Option<&str>, extra: &Value) -> Connection {
        Connection {
            conn_id: "m".to_owned(),
            conn_type: "mcp".to_owned(),
            host: Some(host.to_owned()),
            password: password.map(str::to_owned),
            extra: Some(extra.to_string()),
            ..Connection::default()
        }
    }

    fn refusal(extra: &Value, provided: Provided) -> String {
        of_connection(&connection("", None, extra), provided)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_host_is_a_streamable_http_server_and_the_password_its_token() {
        let server = of_connection(
            &connection("http://h/mcp", Some("made-up-token"), &json!({})),
            Provided::default(),
        )
        .unwrap();
        assert!(!format!("{server:?}").contains("made-up-token"));
        let Transport::Http(http) = server.transport else {
            panic!("not HTTP")
        };
        assert_eq!(http.url, "http://h/mcp");
        assert_eq!(http.headers[0].1.expose_secret(), "Bearer made-up-token");
        assert_eq!(
            (server.init_timeout, server.read_timeout),
            (INIT_TIMEOUT, READ_TIMEOUT)
        );
    }

    #[test]
    fn a_token_provider_goes_before_the_password_of_sse_too() {
        let provided = Provided {
            token: Some(json!("minted")),
            env: None,
        };
        let given = connection("http://h/sse", Some("old"), &json!({"transport": "sse"}));
        let Transport::Sse(http) = of_connection(&given, provided).unwrap().transport else {
            panic!("not SSE")
        };
        assert_eq!(http.headers[0].1.expose_secret(), "Bearer minted");
    }

    #[test]
    fn stdio_takes_its_arguments_in_three_forms() {
        for (args, expected) in [
            (json!(["a", "b"]), vec!["a", "b"]),
            (json!("mcp-run-python"), vec!["mcp-run-python"]),
            (json!("[\"a\", \"b\"]"), vec!["a", "b"]),
            (Value::Null, vec![]),
        ] {
            let extra = json!({"transport": "stdio", "command": "uvx", "args": args, "timeout": 60,
                               "env": {"A": "1", "B": "2"}});
            let provided = Provided {
                token: None,
                env: Some(json!({"B": "3"})),
            };
            let server = of_connection(&connection("", None, &extra), provided).unwrap();
            assert_eq!(server.init_timeout, Duration::from_secs(60));
            let Transport::Stdio(stdio) = server.transport else {
                panic!("not stdio")
            };
            assert_eq!(stdio.args, expected);
            let env: Vec<_> = stdio
                .env
                .iter()
                .map(|(key, value)| (key.as_str(), value.expose_secret()))
                .collect();
            assert_eq!(env, [("A", "1"), ("B", "3")]);
        }
    }

    #[test]
    fn a_timeout_of_0_is_none() {
        for (timeout, expected) in [
            (json!(0), Duration::MAX),
            (json!(0.5), Duration::from_millis(500)),
            (json!(null), STDIO_INIT_TIMEOUT),
        ] {
            let extra = json!({"transport": "stdio", "command": "x", "timeout": timeout});
            let server = of_connection(&connection("", None, &extra), Provided::default()).unwrap();
            assert_eq!(server.init_timeout, expected);
        }
        assert_eq!(timeout_of(-1.0), None);
    }

    #[test]
    fn what_is_wrong_with_a_connection_is_said_as_airflow_says_it() {
        let none = Provided::default;
        for (extra, expected) in [
            (
                json!({}),
                "Connection 'm' requires a host URL for HTTP transport.",
            ),
            (
                json!({"transport": "sse"}),
                "Connection 'm' requires a host URL for SSE transport.",
            ),
            (
                json!({"transport": "zz"}),
                "Unknown transport 'zz' in connection 'm'. Supported: 'http', 'sse', 'stdio'.",
            ),
            (
                json!({"transport": "stdio"}),
                "Connection 'm' requires 'command' in extra for stdio transport.",
            ),
            (
                json!({"transport": "stdio", "command": "x", "env": ["A=1"]}),
                "'env' in extra for connection 'm' must be an object of string keys/values, got list.",
            ),
            (
                json!({"transport": "stdio", "command": "x", "env": {"K": 1}}),
                "'env' in extra for connection 'm' must have non-empty string values, got int for key 'K'.",
            ),
        ] {
            assert_eq!(refusal(&extra, none()), expected);
        }
        let stdio = json!({"transport": "stdio", "command": "x"});
        let env = |value| Provided {
            token: None,
            env: Some(value),
        };
        assert_eq!(
            refusal(&stdio, env(json!(null))),
            "env_provider for connection 'm' must return a dict[str, str], got NoneType."
        );
        assert_eq!(
            refusal(&stdio, env(json!({"K": ""}))),
            "env_provider for connection 'm' must have non-empty string values, got str for key 'K'."
        );
        let http = connection("http://h", None, &json!({}));
        let token = Provided {
            token: Some(Value::Null),
            env: None,
        };
        assert_eq!(
            of_connection(&http, token).unwrap_err().to_string(),
            "token_provider for connection 'm' must return a non-empty string token, got NoneType."
        );
    }
}
