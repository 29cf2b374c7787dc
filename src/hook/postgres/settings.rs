//! From the fields and extras of a connection to where and how to connect, as `PostgresHook` and libpq read them.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, SslMode, SslNegotiation, TargetSessionAttrs};

use super::tls::{Roots, Verification};
use crate::airflow::connection::Connection;

/// psycopg's limit where `connect_timeout` is not set.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(130);

/// Extras that `PostgresHook` keeps for itself.
const IGNORED_BY_THE_HOOK: [&str; 8] = [
    "cursor",
    "aws_conn_id",
    "cluster-identifier",
    "workgroup-name",
    "sqlalchemy_scheme",
    "sqlalchemy_query",
    "redshift",
    "redshift-serverless",
];

/// Options of libpq and of psycopg's `connect` that change nothing here: there is no GSSAPI, no compression and no
/// client-side cursor whose class could be chosen, and text is UTF-8 whatever the client encoding.
const WITHOUT_EFFECT: [&str; 18] = [
    "client_encoding",
    "fallback_application_name",
    "gssdelegation",
    "gsslib",
    "krbsrvname",
    "max_protocol_version",
    "min_protocol_version",
    "sslcertmode",
    "sslcompression",
    "sslkeylogfile",
    "sslsni",
    "ssl_max_protocol_version",
    "autocommit",
    "context",
    "cursor_factory",
    "prepare_threshold",
    "row_factory",
    "load_balance_hosts",
];

/// Options that libpq knows and this driver does not. Leaving one out silently would weaken what its author asked for.
const UNSUPPORTED: [&str; 17] = [
    "azure_conn_id",
    "oauth_client_id",
    "oauth_client_secret",
    "oauth_issuer",
    "oauth_scope",
    "passfile",
    "replication",
    "require_auth",
    "requirepeer",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
    "ssl_min_protocol_version",
];

/// Where one attempt to connect goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// The folder of a unix socket.
    Socket(PathBuf),
    /// A name, or an address, and the address that replaces looking the name up.
    Tcp(String, Option<IpAddr>),
}

/// libpq's `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    Allow,
    Prefer,
    Require,
}

impl TlsMode {
    /// How to try, in this order: the second only after the server or the handshake refused the first.
    pub(super) fn attempts(self) -> &'static [SslMode] {
        match self {
            Self::Disable => &[SslMode::Disable],
            Self::Allow => &[SslMode::Disable, SslMode::Require],
            Self::Prefer => &[SslMode::Prefer, SslMode::Disable],
            Self::Require => &[SslMode::Require],
        }
    }
}

/// What a connection says, without its hosts in `config`.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub config: Config,
    pub hosts: Vec<(Host, u16)>,
    pub connect_timeout: Duration,
    pub tls_mode: TlsMode,
    pub verification: Verification,
    /// Certificate chain and key of the client, in PEM.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
}

impl Settings {
    /// Reads the fields and extras.
    ///
    /// # Errors
    /// The text that psycopg gives for an option that is unknown or has a wrong value.
    pub(super) fn of(connection: &Connection) -> Result<Self, String> {
        let extra = connection.extra_json().map_err(|error| error.to_string())?;
        let options = Options::of(&extra)?;
        let mut config = Config::new();
        // libpq falls back to the name of the operating system's user.
        let user = connection.login.clone().filter(|login| !login.is_empty());
        config.user(user.or_else(system_user).unwrap_or_default());
        if let Some(password) = &connection.password {
            config.password(password);
        }
        if let Some(database) = connection.schema.as_deref().or(options.text("dbname")) {
            config.dbname(database);
        }
        if let Some(options) = options.text("options") {
            config.options(options);
        }
        if let Some(name) = options.text("application_name") {
            config.application_name(name);
        }
        keepalive(&mut config, &options)?;
        negotiation(&mut config, &options)?;
        let (tls_mode, verification) = tls(&options)?;
        let file = |option: &str, default: &str| {
            options
                .text(option)
                .map_or_else(|| libpq_file(default), PathBuf::from)
        };
        let certificate = file("sslcert", "postgresql.crt");
        // libpq goes on without a certificate that is not there: the server says whether it wants one.
        let client_certificate = certificate
            .exists()
            .then(|| (certificate, file("sslkey", "postgresql.key")));
        let connect_timeout = match options.seconds("connect_timeout")? {
            None | Some(0) => CONNECT_TIMEOUT,
            // libpq's least.
            Some(seconds) => Duration::from_secs(seconds.max(2)),
        };
        Ok(Self {
            config,
            hosts: hosts(connection, &options)?,
            connect_timeout,
            tls_mode,
            verification,
            client_certificate,
        })
    }
}

/// The extras that are meant for the server's driver, as text.
struct Options(Vec<(String, String)>);

impl Options {
    fn of(extra: &serde_json::Map<String, Value>) -> Result<Self, String> {
        let mut options = Vec::new();
        for (name, value) in extra {
            let name = name.as_str();
            if name == "iam" {
                if truthy(value) {
                    return Err(not_here(
                        "the extra \"iam\" (a token of AWS instead of a password)",
                    ));
                }
                continue;
            }
            if UNSUPPORTED.contains(&name) {
                return Err(not_here(&format!("connection option \"{name}\"")));
            }
            if IGNORED_BY_THE_HOOK.contains(&name) || WITHOUT_EFFECT.contains(&name) {
                continue;
            }
            if !KNOWN.contains(&name) {
                return Err(format!("invalid connection option \"{name}\"\n"));
            }
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            options.push((name.to_owned(), text));
        }
        Ok(Self(options))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> Result<Option<i64>, String> {
        self.text(name)
            .map(|text| {
                text.trim().parse().map_err(|_| {
                    format!("invalid integer value \"{text}\" for connection option \"{name}\"")
                })
            })
            .transpose()
    }

    /// A count of seconds; negative counts as 0, which is libpq's "not set".
    fn seconds(&self, name: &str) -> Result<Option<u64>, String> {
        Ok(self
            .number(name)?
            .map(|number| u64::try_from(number).unwrap_or(0)))
    }
}

/// The options that are read below.
const KNOWN: [&str; 19] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "gssencmode",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "options",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "host",
];

fn not_here(what: &str) -> String {
    format!(
        "{what} is not supported by this worker's PostgreSQL driver: take it out of the connection, or send the task to \
         a queue that a Python worker serves"
    )
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
    }
}

fn system_user() -> Option<String> {
    nix::unistd::User::from_uid(nix::unistd::geteuid())
        .ok()
        .flatten()
        .map(|user| user.name)
}

/// A file that libpq looks for in the user's home.
fn libpq_file(name: &str) -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_default();
    Path::new(&home).join(".postgresql").join(name)
}

fn keepalive(config: &mut Config, options: &Options) -> Result<(), String> {
    if options.number("keepalives")? == Some(0) {
        config.keepalives(false);
    }
    if let Some(seconds) = options.seconds("keepalives_idle")?.filter(|&s| s > 0) {
        config.keepalives_idle(Duration::from_secs(seconds));
    }
    if let Some(seconds) = options.seconds("keepalives_interval")?.filter(|&s| s > 0) {
        config.keepalives_interval(Duration::from_secs(seconds));
    }
    if let Some(count) = options.number("keepalives_count")?.filter(|&n| n > 0) {
        config.keepalives_retries(u32::try_from(count).unwrap_or(u32::MAX));
    }
    if let Some(ms) = options.number("tcp_user_timeout")?.filter(|&ms| ms > 0) {
        config.tcp_user_timeout(Duration::from_millis(ms.unsigned_abs()));
    }
    Ok(())
}

fn negotiation(config: &mut Config, options: &Options) -> Result<(), String> {
    let wrong = |name: &str, value: &str| Err(format!("invalid {name} value: \"{value}\""));
    match options.text("channel_binding") {
        None | Some("prefer") => {}
        Some("disable") => {
            config.channel_binding(ChannelBinding::Disable);
        }
        Some("require") => {
            config.channel_binding(ChannelBinding::Require);
        }
        Some(other) => return wrong("channel_binding", other),
    }
    match options.text("sslnegotiation") {
        None | Some("postgres") => {}
        Some("direct") => {
            config.ssl_negotiation(SslNegotiation::Direct);
        }
        Some(other) => return wrong("sslnegotiation", other),
    }
    match options.text("target_session_attrs") {
        None | Some("any") => {}
        Some("read-write") => {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Some("read-only") => {
            config.target_session_attrs(TargetSessionAttrs::ReadOnly);
        }
        Some(other @ ("primary" | "standby" | "prefer-standby")) => {
            return Err(not_here(&format!("target_session_attrs \"{other}\"")));
        }
        Some(other) => return wrong("target_session_attrs", other),
    }
    match options.text("gssencmode") {
        None | Some("disable" | "prefer") => Ok(()),
        Some("require") => Err(not_here("gssencmode \"require\"")),
        Some(other) => wrong("gssencmode", other),
    }
}

fn tls(options: &Options) -> Result<(TlsMode, Verification), String> {
    let given = options.text("sslrootcert");
    let system = given == Some("system");
    let file = given.map_or_else(|| libpq_file("root.crt"), PathBuf::from);
    let roots = || {
        if system {
            Roots::System
        } else {
            Roots::File(file.clone())
        }
    };
    // With the system's roots anybody's certificate is in order, so libpq takes nothing less than the name as well.
    let mode = options
        .text("sslmode")
        .unwrap_or(if system { "verify-full" } else { "prefer" });
    let known = matches!(
        mode,
        "disable" | "allow" | "prefer" | "require" | "verify-ca" | "verify-full"
    );
    if system && known && mode != "verify-full" {
        return Err(format!(
            "weak sslmode \"{mode}\" may not be used with sslrootcert=system (use \"verify-full\")"
        ));
    }
    // A root certificate that is there makes even `require` check the chain, as libpq documents.
    let chain_if_there = || {
        if file.exists() {
            Verification::Chain(Roots::File(file.clone()))
        } else {
            Verification::None
        }
    };
    Ok(match mode {
        "disable" => (TlsMode::Disable, Verification::None),
        "allow" => (TlsMode::Allow, Verification::None),
        "prefer" => (TlsMode::Prefer, Verification::None),
        "require" => (TlsMode::Require, chain_if_there()),
        "verify-ca" => (TlsMode::Require, Verification::Chain(roots())),
        "verify-full" => (TlsMode::Require, Verification::ChainAndName(roots())),
        other => return Err(format!("invalid sslmode value: \"{other}\"")),
    })
}

/// Hosts and ports, several of each separated by commas; without a host the local socket.
fn hosts(connection: &Connection, options: &Options) -> Result<Vec<(Host, u16)>, String> {
    let port = connection.port.unwrap_or(5432);
    let host = connection
        .host
        .as_deref()
        .filter(|host| !host.is_empty())
        .or(options.text("host"));
    let addresses: Vec<IpAddr> = match options.text("hostaddr") {
        None => Vec::new(),
        Some(text) => text
            .split(',')
            .map(|address| {
                address
                    .parse()
                    .map_err(|_| format!("could not parse network address \"{address}\""))
            })
            .collect::<Result<_, _>>()?,
    };
    let Some(host) = host else {
        if !addresses.is_empty() {
            return Ok(addresses
                .into_iter()
                .map(|address| (Host::Tcp(address.to_string(), Some(address)), port))
                .collect());
        }
        let folder = ["/var/run/postgresql", "/run/postgresql"]
            .iter()
            .map(PathBuf::from)
            .find(|folder| folder.is_dir());
        return Ok(vec![(
            Host::Socket(folder.unwrap_or_else(|| "/tmp".into())),
            port,
        )]);
    };
    let names: Vec<&str> = host.split(',').collect();
    if !addresses.is_empty() && addresses.len() != names.len() {
        return Err(format!(
            "could not match {} host names to {} hostaddr values",
            names.len(),
            addresses.len()
        ));
    }
    Ok(names
        .into_iter()
        .enumerate()
        .map(|(index, name)| {
            let host = if name.starts_with('/') {
                Host::Socket(name.into())
            } else {
                Host::Tcp(name.to_owned(), addresses.get(index).copied())
            };
            (host, port)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn connection(extra: &Value) -> Connection {
        Connection {
            conn_id: "harbour".to_owned(),
            conn_type: "postgres".to_owned(),
            host: Some("db.example".to_owned()),
            schema: Some("ships".to_owned()),
            login: Some("ada".to_owned()),
            password: Some("made-up".to_owned()),
            port: Some(6543),
            extra: Some(extra.to_string()),
        }
    }

    fn settings(extra: &Value) -> Result<Settings, String> {
        Settings::of(&connection(extra))
    }

    #[test]
    fn fields_and_extras_are_read_as_libpq_reads_them() {
        let settings = settings(&json!({
            "options": "-c search_path=depot",
            "connect_timeout": "5",
            "keepalives_idle": 30,
            "application_name": "agents",
            "cursor": "dictcursor",
        }))
        .unwrap();
        assert_eq!(settings.config.get_user(), Some("ada"));
        assert_eq!(settings.config.get_dbname(), Some("ships"));
        assert_eq!(settings.config.get_options(), Some("-c search_path=depot"));
        assert_eq!(settings.config.get_application_name(), Some("agents"));
        assert_eq!(
            settings.config.get_keepalives_idle(),
            Duration::from_secs(30)
        );
        assert_eq!(settings.connect_timeout, Duration::from_secs(5));
        assert_eq!(
            settings.hosts,
            [(Host::Tcp("db.example".to_owned(), None), 6543)]
        );
        assert_eq!(settings.tls_mode, TlsMode::Prefer);
    }

    #[test]
    fn an_unknown_option_is_refused_with_libpqs_text() {
        assert_eq!(
            settings(&json!({"foo": "1"})).unwrap_err(),
            "invalid connection option \"foo\"\n"
        );
        assert_eq!(
            settings(&json!({"sslmode": "foo"})).unwrap_err(),
            "invalid sslmode value: \"foo\""
        );
    }

    #[test]
    fn an_option_that_would_be_lost_is_refused() {
        for extra in [json!({"sslcrl": "/revoked.pem"}), json!({"iam": true})] {
            assert!(settings(&extra).unwrap_err().contains("Python worker"));
        }
        assert!(settings(&json!({"iam": false})).is_ok());
    }

    #[test]
    fn verification_is_what_the_mode_and_the_roots_say() {
        let full = settings(&json!({"sslmode": "verify-full", "sslrootcert": "/r.crt"})).unwrap();
        assert_eq!(
            full.verification,
            Verification::ChainAndName(Roots::File("/r.crt".into()))
        );
        assert!(
            settings(&json!({"sslmode": "require", "sslrootcert": "system"}))
                .unwrap_err()
                .starts_with("weak sslmode \"require\"")
        );
        let system = settings(&json!({"sslrootcert": "system"})).unwrap();
        assert_eq!(
            system.verification,
            Verification::ChainAndName(Roots::System)
        );
    }

    #[test]
    fn a_host_may_be_several_or_the_folder_of_a_socket() {
        let mut several = connection(&json!({"hostaddr": "10.0.0.1,10.0.0.2"}));
        several.host = Some("a,b".to_owned());
        let address = |last| IpAddr::from([10, 0, 0, last]);
        assert_eq!(
            Settings::of(&several).unwrap().hosts,
            [
                (Host::Tcp("a".to_owned(), Some(address(1))), 6543),
                (Host::Tcp("b".to_owned(), Some(address(2))), 6543),
            ]
        );
        several.host = Some("/run/pg".to_owned());
        several.extra = None;
        assert_eq!(
            Settings::of(&several).unwrap().hosts,
            [(Host::Socket("/run/pg".into()), 6543)]
        );
    }
}
