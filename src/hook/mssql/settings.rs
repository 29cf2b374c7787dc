//! From the fields and extras of a connection to where and how to connect, as `MsSqlHook` and pymssql read them.

use std::time::Duration;

use serde_json::Value;
use tiberius::{AuthMethod, Config, EncryptionLevel};

use crate::airflow::connection::Connection;
use crate::airflow::python_text::repr_str;

/// pymssql's `login_timeout`.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(60);

/// Arguments of `pymssql.connect` that change nothing here, and the one extra that `MsSqlHook` keeps for itself.
const WITHOUT_EFFECT: [&str; 7] = [
    "arraysize",
    "as_dict",
    "autocommit",
    "charset",
    "sqlalchemy_scheme",
    "tds_version",
    "use_datetime2",
];

/// What a connection says.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub config: Config,
    /// For the texts of failures.
    pub host: String,
    pub login_timeout: Duration,
    /// How long a statement may take.
    pub timeout: Option<Duration>,
    /// Statements that start a session.
    pub start: String,
}

impl Settings {
    /// Reads the fields and extras. The error is the text that pymssql has for it.
    ///
    /// `read_only` asks for a server that is there for reading, where there are several.
    pub(super) fn of(connection: &Connection, read_only: bool) -> Result<Self, String> {
        let extra = connection.extra_json().map_err(|error| error.to_string())?;
        let mut host = connection.host.clone().unwrap_or_default();
        let mut config = Config::new();
        let mut timeout = None;
        let mut login_timeout = LOGIN_TIMEOUT;
        let mut start = None;
        let mut intent = read_only;
        // The login alone is encrypted unless the server wants more, as FreeTDS does it.
        let mut encryption = EncryptionLevel::Off;
        for (name, value) in &extra {
            match name.as_str() {
                "host" => match value.as_str() {
                    Some("") | None => {}
                    Some(other) => other.clone_into(&mut host),
                },
                "appname" => {
                    if let Some(name) = value.as_str() {
                        config.application_name(name);
                    }
                }
                "timeout" => timeout = seconds(value),
                "login_timeout" => login_timeout = seconds(value).unwrap_or(LOGIN_TIMEOUT),
                "read_only" => intent |= truthy(value),
                "conn_properties" => start = statements(value),
                "encryption" => encryption = encryption_level(value)?,
                other if WITHOUT_EFFECT.contains(&other) => {}
                other => {
                    return Err(format!(
                        "connect() got an unexpected keyword argument {}",
                        repr_str(other)
                    ));
                }
            }
        }
        if host.contains('\\') {
            return Err(format!(
                "the host {host} names an instance, which this worker's SQL Server driver does not look up: give the \
                 instance's port instead, or send the task to a queue that a Python worker serves"
            ));
        }
        if matches!(host.as_str(), "" | "." | "(local)") {
            "localhost".clone_into(&mut host);
        }
        let mut port = connection.port.filter(|&port| port != 0).unwrap_or(1433);
        // One colon: with more of them it is an address of IPv6.
        if let Some((name, number)) = host.clone().split_once(':')
            && let Ok(number) = number.parse()
        {
            name.clone_into(&mut host);
            port = number;
        }
        config.host(&host);
        config.port(port);
        if let Some(database) = connection.schema.as_deref().filter(|name| !name.is_empty()) {
            config.database(database);
        }
        config.authentication(AuthMethod::sql_server(
            connection.login.as_deref().unwrap_or_default(),
            connection.password.as_deref().unwrap_or_default(),
        ));
        config.encryption(encryption);
        // FreeTDS asks no authority either.
        config.trust_cert();
        config.readonly(intent);
        Ok(Self {
            config,
            host,
            login_timeout,
            timeout,
            start: start.unwrap_or_else(|| {
                "SET ARITHABORT ON; SET CONCAT_NULL_YIELDS_NULL ON; SET ANSI_NULLS ON; SET ANSI_NULL_DFLT_ON ON; \
                 SET ANSI_PADDING ON; SET ANSI_WARNINGS ON; SET CURSOR_CLOSE_ON_COMMIT ON; SET QUOTED_IDENTIFIER ON; \
                 SET TEXTSIZE 2147483647"
                    .to_owned()
            }),
        })
    }
}

/// Zero is no limit.
fn seconds(value: &Value) -> Option<Duration> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        other => other.as_u64()?,
    };
    (number > 0).then(|| Duration::from_secs(number))
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// A text, or several; empty ones leave the server's own settings alone.
fn statements(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(
            items
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" "),
        ),
        _ => None,
    }
}

fn encryption_level(value: &Value) -> Result<EncryptionLevel, String> {
    match value {
        Value::Null => Ok(EncryptionLevel::Off),
        Value::String(level) => match level.as_str() {
            "default" | "request" => Ok(EncryptionLevel::Off),
            "off" => Ok(EncryptionLevel::NotSupported),
            "require" => Ok(EncryptionLevel::Required),
            _ => Err(()),
        },
        _ => Err(()),
    }
    .map_err(|()| {
        "'encryption' option should be one of ('default', 'off', 'request', 'require') or None."
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn settings(host: &str, extra: &Value) -> Result<Settings, String> {
        let connection = Connection {
            conn_id: "harbour".to_owned(),
            conn_type: "mssql".to_owned(),
            host: Some(host.to_owned()),
            schema: Some("ships".to_owned()),
            login: Some("ada".to_owned()),
            password: Some("made-up".to_owned()),
            port: None,
            extra: Some(extra.to_string()),
        };
        Settings::of(&connection, true)
    }

    #[test]
    fn the_host_may_carry_its_port() {
        let address = |host| settings(host, &json!({})).unwrap().config.get_addr();
        assert_eq!(address("db.example"), "db.example:1433");
        assert_eq!(address("db.example:1444"), "db.example:1444");
        assert_eq!(address("(local)"), "localhost:1433");
    }

    #[test]
    fn extras_are_the_arguments_of_pymssql() {
        let read = settings(
            "h",
            &json!({"timeout": 7, "login_timeout": "3", "conn_properties": ["SET A ON;", "SET B ON;"], "charset": "x"}),
        )
        .unwrap();
        assert_eq!(read.timeout, Some(Duration::from_secs(7)));
        assert_eq!(read.login_timeout, Duration::from_secs(3));
        assert_eq!(read.start, "SET A ON; SET B ON;");
        assert_eq!(
            settings("h", &json!({"foo": 1})).unwrap_err(),
            "connect() got an unexpected keyword argument 'foo'"
        );
        assert!(
            settings("h", &json!({"encryption": "x"}))
                .unwrap_err()
                .starts_with("'encryption' option should be one of")
        );
        assert!(
            settings("h\\instance", &json!({}))
                .unwrap_err()
                .contains("port")
        );
    }
}
