//! From the fields and extras of a connection to where and how to connect, as `MySqlHook` reads them.

use std::path::PathBuf;

use mysql_async::{ClientIdentity, Opts, OptsBuilder, SslOpts};
use serde_json::{Map, Value};

use crate::airflow::connection::Connection;

/// Where the client library looks for the server on this machine.
const DEFAULT_SOCKET: &str = "/run/mysqld/mysqld.sock";

/// Names of character sets that a connection may ask for.
const CHARSETS: [&str; 43] = [
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "cp932", "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8",
    "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7",
    "macce", "macroman", "sjis", "swe7", "tis620", "ucs2", "ujis", "utf16", "utf16le", "utf32",
    "utf-8", "utf8", "utf8mb3", "utf8mb4",
];

/// How TLS is used. `Prefer` is the default: a server without it is spoken to in the clear, as the client library does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    Prefer,
    Require,
}

/// Where a connection leads, for the texts of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Socket(String),
    Host(String),
}

/// What a connection says.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub place: Place,
    pub tls_mode: TlsMode,
    tls: SslOpts,
    options: OptsBuilder,
}

impl Settings {
    /// Reads the fields and extras. The error is the text that `MySQLdb` has for it.
    pub(super) fn of(connection: &Connection) -> Result<Self, String> {
        let extra = connection.extra_json().map_err(|error| error.to_string())?;
        let text = |key: &str| {
            extra
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        if extra
            .get("iam")
            .is_some_and(|iam| *iam != Value::Bool(false) && !iam.is_null())
        {
            return Err(
                "the extra \"iam\" (a token of AWS instead of a password) is not supported by this worker's MySQL driver: \
                 take it out of the connection, or send the task to a queue that a Python worker serves"
                    .to_owned(),
            );
        }
        if let Some(charset) = text("charset")
            && !CHARSETS.contains(&charset.to_lowercase().as_str())
        {
            return Err(format!(
                "(2019, \"Can't initialize character set {charset} (path: compiled_in)\")"
            ));
        }
        let host = connection
            .host
            .as_deref()
            .filter(|host| !host.is_empty())
            .unwrap_or("localhost");
        let place = if host == "localhost" {
            Place::Socket(text("unix_socket").unwrap_or(DEFAULT_SOCKET).to_owned())
        } else {
            Place::Host(host.to_owned())
        };
        let (tls_mode, tls) = match text("client") {
            None | Some("mysqlclient") => tls(&extra)?,
            Some("mysql-connector-python") => connector_tls(&extra)?,
            Some(_) => return Err("Unknown MySQL client name provided!".to_owned()),
        };
        let options = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(connection.port.filter(|&port| port != 0).unwrap_or(3306))
            .user(connection.login.clone())
            .pass(
                connection
                    .password
                    .clone()
                    .filter(|password| !password.is_empty()),
            )
            .db_name(
                connection
                    .schema
                    .clone()
                    .filter(|schema| !schema.is_empty()),
            )
            // A server on this machine may name its socket; the connection says which way to take.
            .prefer_socket(false);
        Ok(Self {
            place,
            tls_mode,
            tls,
            options,
        })
    }

    /// The driver's options, with TLS or without.
    pub(super) fn options(&self, with_tls: bool) -> Opts {
        let options = self.options.clone();
        match &self.place {
            Place::Socket(socket) => options.socket(Some(socket.clone())),
            Place::Host(_) if with_tls => options.ssl_opts(Some(self.tls.clone())),
            Place::Host(_) => options,
        }
        .into()
    }
}

/// The extras `ssl` (an object, or its text when the connection is a URI) and `ssl_mode`.
fn tls(extra: &Map<String, Value>) -> Result<(TlsMode, SslOpts), String> {
    let files = match extra.get("ssl") {
        Some(Value::Object(files)) => files.clone(),
        Some(Value::String(text)) if !text.is_empty() => serde_json::from_str(text)
            .map_err(|error| format!("the extra \"ssl\" is not a JSON object: {error}"))?,
        _ => Map::new(),
    };
    if files.contains_key("capath") {
        return Err(
            "the key \"capath\" of the extra \"ssl\" is not supported by this worker's MySQL driver: name the \
             certificate file in \"ca\" instead"
                .to_owned(),
        );
    }
    let file = |key: &str| files.get(key).and_then(Value::as_str);
    let given = extra.get("ssl_mode").and_then(Value::as_str);
    let mode = match given.map(str::to_uppercase).as_deref() {
        // Who names the authority wants it asked.
        None | Some("PREFERRED" | "REQUIRED") if file("ca").is_some() => Verify::Yes,
        None | Some("PREFERRED") if files.is_empty() => Verify::NoAndPrefer,
        None | Some("PREFERRED" | "REQUIRED") => Verify::No,
        Some("VERIFY_CA" | "VERIFY_IDENTITY") => Verify::Yes,
        Some("DISABLED") => return Ok((TlsMode::Disable, SslOpts::default())),
        Some(_) => {
            return Err(format!(
                "Unknown ssl_mode specification '{}'",
                given.unwrap_or_default()
            ));
        }
    };
    options(&mode, file("ca"), file("cert"), file("key"))
}

/// The extras that `mysql-connector-python` is given.
fn connector_tls(extra: &Map<String, Value>) -> Result<(TlsMode, SslOpts), String> {
    let on = |key: &str| extra.get(key) == Some(&Value::Bool(true));
    let file = |key: &str| extra.get(key).and_then(Value::as_str);
    if on("ssl_disabled") {
        return Ok((TlsMode::Disable, SslOpts::default()));
    }
    let mode = if on("ssl_verify_cert") || on("ssl_verify_identity") || file("ssl_ca").is_some() {
        Verify::Yes
    } else {
        Verify::NoAndPrefer
    };
    options(&mode, file("ssl_ca"), file("ssl_cert"), file("ssl_key"))
}

enum Verify {
    Yes,
    No,
    NoAndPrefer,
}

fn options(
    verify: &Verify,
    ca: Option<&str>,
    certificate: Option<&str>,
    key: Option<&str>,
) -> Result<(TlsMode, SslOpts), String> {
    let path = |path: &str| {
        let path = PathBuf::from(path);
        if path.exists() {
            Ok(path)
        } else {
            Err("(2026, 'TLS/SSL error: No such file or directory (2)')".to_owned())
        }
    };
    let mut tls = SslOpts::default();
    if let (Some(certificate), Some(key)) = (certificate, key.or(certificate)) {
        tls = tls.with_client_identity(Some(ClientIdentity::new(
            path(certificate)?.into(),
            path(key)?.into(),
        )));
    }
    Ok(match verify {
        Verify::NoAndPrefer => (TlsMode::Prefer, tls.with_danger_accept_invalid_certs(true)),
        Verify::No => (TlsMode::Require, tls.with_danger_accept_invalid_certs(true)),
        Verify::Yes => {
            let roots = match ca {
                Some(ca) => vec![path(ca)?.into()],
                None => rustls_native_certs::load_native_certs()
                    .certs
                    .into_iter()
                    .map(|certificate| certificate.to_vec().into())
                    .collect(),
            };
            let tls = tls.with_root_certs(roots).with_disable_built_in_roots(true);
            (TlsMode::Require, tls)
        }
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn settings(host: Option<&str>, extra: &Value) -> Result<Settings, String> {
        Settings::of(&Connection {
            conn_id: "harbour".to_owned(),
            conn_type: "mysql".to_owned(),
            host: host.map(str::to_owned),
            schema: Some("ships".to_owned()),
            login: Some("ada".to_owned()),
            password: Some("made-up".to_owned()),
            port: None,
            extra: Some(extra.to_string()),
        })
    }

    #[test]
    fn fields_are_read_and_the_port_has_a_default() {
        let settings = settings(Some("db.example"), &json!({"charset": "utf8"})).unwrap();
        let options = settings.options(false);
        assert_eq!(options.ip_or_hostname(), "db.example");
        assert_eq!(options.tcp_port(), 3306);
        assert_eq!(options.user(), Some("ada"));
        assert_eq!(options.db_name(), Some("ships"));
        assert!(options.ssl_opts().is_none());
        assert_eq!(settings.tls_mode, TlsMode::Prefer);
    }

    #[test]
    fn localhost_and_no_host_are_the_socket() {
        let socket = json!({"unix_socket": "/tmp/s"});
        assert_eq!(
            settings(None, &socket).unwrap().place,
            Place::Socket("/tmp/s".to_owned())
        );
        assert_eq!(
            settings(Some("localhost"), &json!({})).unwrap().place,
            Place::Socket(DEFAULT_SOCKET.to_owned())
        );
        // The client library goes by the host when there is one.
        assert_eq!(
            settings(Some("127.0.0.1"), &socket).unwrap().place,
            Place::Host("127.0.0.1".to_owned())
        );
    }

    #[test]
    fn wrong_extras_are_refused_with_the_drivers_text() {
        let error = |extra| settings(Some("h"), &extra).unwrap_err();
        assert_eq!(
            error(json!({"charset": "nope"})),
            "(2019, \"Can't initialize character set nope (path: compiled_in)\")"
        );
        assert_eq!(
            error(json!({"ssl": {"ca": "/nonexistent"}})),
            "(2026, 'TLS/SSL error: No such file or directory (2)')"
        );
        assert_eq!(
            error(json!({"ssl_mode": "foo"})),
            "Unknown ssl_mode specification 'foo'"
        );
        assert!(error(json!({"iam": true})).contains("Python worker"));
    }

    #[test]
    fn tls_is_required_as_soon_as_anything_is_said_of_it() {
        let mode = |extra| settings(Some("h"), &extra).unwrap().tls_mode;
        assert_eq!(mode(json!({"ssl_mode": "DISABLED"})), TlsMode::Disable);
        assert_eq!(mode(json!({"ssl_mode": "REQUIRED"})), TlsMode::Require);
        assert_eq!(
            mode(json!({"ssl": "{\"cipher\": \"x\"}"})),
            TlsMode::Require
        );
        assert_eq!(
            mode(json!({"client": "mysql-connector-python", "ssl_disabled": true})),
            TlsMode::Disable
        );
    }
}
