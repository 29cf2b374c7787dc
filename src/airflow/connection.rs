//! An Airflow connection, and the two text forms it is written in: JSON and URI.

mod uri;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::python_text::{JsonStyle, dumps};

/// A connection as the Execution API and the supervisor protocol carry it.
///
/// `extra` is the text that Airflow stores, usually a JSON object. `Debug` never shows `password` or `extra`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The id a Dag refers to.
    pub conn_id: String,
    /// `sqlite`, `pydanticai`, `postgres` ...
    pub conn_type: String,
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub schema: Option<String>,
    #[serde(default)]
    pub login: Option<String>,
    #[serde(default)]
    pub password: Option<String>,
    #[serde(default)]
    pub port: Option<u16>,
    #[serde(default)]
    pub extra: Option<String>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("conn_id", &self.conn_id)
            .field("conn_type", &self.conn_type)
            .field("host", &self.host)
            .field("schema", &self.schema)
            .field("login", &self.login)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("port", &self.port)
            .field("extra", &self.extra.as_ref().map(|_| "***"))
            .finish()
    }
}

/// A connection that can't be read. Never shows its text, which holds secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedConnection {
    /// The URI form is wrong.
    #[error("{origin} does not hold a valid connection URI: {reason}")]
    Uri { origin: String, reason: String },
    /// The JSON form is wrong.
    #[error("{origin} does not hold a valid connection in JSON: {reason}")]
    Json { origin: String, reason: String },
    /// `extra` is not what a reader needs.
    #[error("the extra field of connection `{conn_id}` {reason}")]
    Extra { conn_id: String, reason: String },
}

impl Connection {
    /// Reads the text of an `AIRFLOW_CONN_...` variable or of a secrets backend: JSON when it starts with `{`, else a URI.
    ///
    /// `origin` names where the text stands, for the error: `environment variable AIRFLOW_CONN_X`.
    /// A connection without a type has an empty `conn_type`.
    ///
    /// # Errors
    /// The text is neither.
    pub fn from_env_text(
        conn_id: &str,
        text: &str,
        origin: &str,
    ) -> Result<Self, MalformedConnection> {
        let text = text.trim();
        let mut connection = if text.starts_with('{') {
            from_json(text).map_err(|reason| MalformedConnection::Json {
                origin: origin.to_owned(),
                reason,
            })?
        } else {
            uri::parse(text).map_err(|reason| MalformedConnection::Uri {
                origin: origin.to_owned(),
                reason,
            })?
        };
        conn_id.clone_into(&mut connection.conn_id);
        Ok(connection)
    }

    /// `extra` as an object; empty when there is none.
    ///
    /// # Errors
    /// `extra` is not JSON, or not an object.
    pub fn extra_json(&self) -> Result<Map<String, Value>, MalformedConnection> {
        let text = self.extra.as_deref().map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Ok(Map::new());
        }
        let wrong = |reason: String| MalformedConnection::Extra {
            conn_id: self.conn_id.clone(),
            reason,
        };
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(other) => Err(wrong(format!(
                "must be a JSON object, not {}",
                kind(&other)
            ))),
            Err(error) => Err(wrong(format!("is not JSON: {error}"))),
        }
    }
}

const JSON_KEYS: [&str; 8] = [
    "conn_type",
    "description",
    "host",
    "login",
    "password",
    "schema",
    "port",
    "extra",
];

fn from_json(text: &str) -> Result<Connection, String> {
    let Value::Object(mut map) = serde_json::from_str(text).map_err(|e| e.to_string())? else {
        return Err("it must be an object".to_owned());
    };
    // Airflow's constructor takes a URI instead of everything else, and so its JSON form does.
    if map.len() == 1
        && let Some(Value::String(uri)) = map.get("uri")
    {
        return uri::parse(uri);
    }
    let extra = match map.remove("extra") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
        Some(Value::Array(items)) if items.is_empty() => None,
        Some(Value::Object(entries)) if entries.is_empty() => None,
        Some(other) => Some(dumps(&other, JsonStyle::LOOSE)),
    };
    let conn_type = text_of(&mut map, "conn_type")?.unwrap_or_default();
    let connection = Connection {
        conn_id: String::new(),
        conn_type: normalise(&conn_type),
        host: text_of(&mut map, "host")?,
        schema: text_of(&mut map, "schema")?,
        login: text_of(&mut map, "login")?,
        password: text_of(&mut map, "password")?,
        port: port_of(map.remove("port"))?,
        extra,
    };
    map.remove("description");
    match map.keys().next() {
        None => Ok(connection),
        Some(key) => Err(format!(
            "unknown key {key:?}: only {} are allowed",
            JSON_KEYS.join(", ")
        )),
    }
}

fn text_of(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(format!("{key} must be text, not {}", kind(&other))),
    }
}

fn port_of(value: Option<Value>) -> Result<Option<u16>, String> {
    let text = match value {
        None | Some(Value::Null | Value::Bool(false)) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => text,
        // Python's int() cuts a float's fraction off.
        Some(Value::Number(number)) => number
            .to_string()
            .split('.')
            .next()
            .unwrap_or_default()
            .to_owned(),
        Some(other) => return Err(format!("port must be a number, not {}", kind(&other))),
    };
    match text.trim().parse() {
        Ok(0) => Ok(None),
        Ok(port) => Ok(Some(port)),
        Err(_) => Err("port must be a whole number from 0 to 65535".to_owned()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Airflow's spelling of a connection type: `postgresql` is `postgres`, and dashes are underscores.
fn normalise(conn_type: &str) -> String {
    if conn_type == "postgresql" {
        "postgres".to_owned()
    } else {
        conn_type.replace('-', "_")
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn json_form(text: &str) -> Result<Connection, MalformedConnection> {
        Connection::from_env_text("c", text, "environment variable AIRFLOW_CONN_C")
    }

    fn reason(text: &str) -> String {
        json_form(text).unwrap_err().to_string()
    }

    #[test]
    fn the_json_form_is_read_as_airflow_reads_it() {
        let connection = json_form(
            r#" {"conn_type":"postgresql","host":"H","port":"5432","extra":{"a":1,"é":[1,2.50,null,true]},"description":"d"}"#,
        )
        .unwrap();
        assert_eq!(
            connection,
            Connection {
                conn_id: "c".to_owned(),
                conn_type: "postgres".to_owned(),
                host: Some("H".to_owned()),
                port: Some(5432),
                extra: Some(r#"{"a": 1, "\u00e9": [1, 2.5, null, true]}"#.to_owned()),
                ..Connection::default()
            }
        );
        assert_eq!(
            json_form(r#"{"conn_type":"my-type"}"#).unwrap().conn_type,
            "my_type"
        );
        assert_eq!(
            json_form(r#"{"uri":"x://h"}"#).unwrap().host.as_deref(),
            Some("h")
        );
    }

    #[test]
    fn extra_text_is_kept_and_an_empty_extra_is_none() {
        let extra = |text: &str| json_form(text).unwrap().extra;
        assert_eq!(extra(r#"{"extra":"{}"}"#).as_deref(), Some("{}"));
        assert_eq!(
            extra(r#"{"extra":"not json"}"#).as_deref(),
            Some("not json")
        );
        assert_eq!(extra(r#"{"extra":[1]}"#).as_deref(), Some("[1]"));
        assert_eq!(extra(r#"{"extra":{}}"#), None);
        assert_eq!(extra(r#"{"extra":""}"#), None);
        assert_eq!(
            extra(r#"{"extra":{"big":123456789012345678901234567890,"e":1e5}}"#).as_deref(),
            Some(r#"{"big": 123456789012345678901234567890, "e": 100000.0}"#)
        );
    }

    #[test]
    fn a_port_may_be_a_number_or_numeric_text() {
        let port = |text: &str| json_form(text).unwrap().port;
        assert_eq!(port(r#"{"port":"5432 "}"#), Some(5432));
        assert_eq!(port(r#"{"port":5.7}"#), Some(5));
        assert_eq!(port(r#"{"port":0}"#), None);
        assert_eq!(port(r#"{"port":""}"#), None);
        assert!(reason(r#"{"port":"x"}"#).ends_with("port must be a whole number from 0 to 65535"));
        assert!(json_form(r#"{"port":-1}"#).is_err());
        assert!(json_form(r#"{"port":70000}"#).is_err());
    }

    #[test]
    fn errors_name_the_variable_and_never_the_secret() {
        for text in [
            r#"{"password":"made-up-secret""#,
            r#"{"password":"made-up-secret","foo":1}"#,
            r#"{"password":["made-up-secret"]}"#,
            r#"{} made-up-secret"#,
            "x://u:made-up-secret",
            "x://u:made-up-secret/@h",
            "a://b://c://made-up-secret",
            "made-up-secret",
        ] {
            let error = json_form(text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(
                shown.contains("environment variable AIRFLOW_CONN_C"),
                "{shown}"
            );
            assert!(!shown.contains("made-up"), "{shown}");
        }
        assert!(
            reason(r#"{"foo":1}"#)
                .contains("unknown key \"foo\": only conn_type, description, host")
        );
    }

    #[test]
    fn extra_json_is_an_object_or_an_error_without_the_text() {
        let extra = |text: &str| {
            Connection {
                conn_id: "c".to_owned(),
                extra: Some(text.to_owned()),
                ..Connection::default()
            }
            .extra_json()
        };
        assert_eq!(
            Value::Object(extra(r#"{"a": 1}"#).unwrap()),
            json!({"a": 1})
        );
        assert_eq!(extra("  ").unwrap(), Map::new());
        assert_eq!(
            extra("[\"made-up-secret\"]").unwrap_err().to_string(),
            "the extra field of connection `c` must be a JSON object, not a list"
        );
        assert!(
            !extra("made-up-secret")
                .unwrap_err()
                .to_string()
                .contains("made-up")
        );
    }

    #[test]
    fn debug_shows_neither_password_nor_extra() {
        let connection =
            json_form(r#"{"password":"made-up-secret","extra":{"k":"made-up-too"}}"#).unwrap();
        assert!(!format!("{connection:?}").contains("made-up"));
    }
}
