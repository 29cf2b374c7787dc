//! From the fields and extras of a connection to what is opened and how, as `DuckDBHook` reads them.

use duckdb::{AccessMode, Config, Connection as Session, Error};
use serde_json::{Map, Value};

use crate::airflow::connection::Connection;
use crate::hook::Access;

/// What a connection says.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// `None` is in memory.
    file: Option<String>,
    read_only: bool,
    options: Vec<(String, String)>,
    extensions: Vec<String>,
}

impl Settings {
    /// Reads the fields and extras.
    pub(super) fn of(connection: &Connection) -> Result<Self, String> {
        let extra = connection.extra_json().map_err(|error| error.to_string())?;
        let text = |key: &str| {
            extra
                .get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let named = text("database").map(str::to_owned);
        let token = text("motherduck_token")
            .or(connection.password.as_deref())
            .filter(|token| !token.is_empty());
        if named.as_deref().is_some_and(|name| name.starts_with("md:"))
            || (named.is_none() && token.is_some())
        {
            return Err(
                "MotherDuck is not supported by this worker's DuckDB driver: take the token out of the connection, or \
                 send the task to a queue that a Python worker serves"
                    .to_owned(),
            );
        }
        let file = named
            .or_else(|| connection.host.clone())
            .filter(|name| !name.is_empty() && name != ":memory:");
        let extensions: Vec<String> = extra
            .get("extensions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        for name in &extensions {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !plain || name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
                return Err(format!("Invalid DuckDB extension name: '{name}'"));
            }
        }
        Ok(Self {
            file,
            read_only: extra.get("read_only") == Some(&Value::Bool(true)),
            options: options(&extra),
            extensions,
        })
    }

    /// Opens a session that can do no more than `access` says.
    pub(super) fn open(&self, access: &Access) -> Result<Session, Error> {
        let mut config = Config::default();
        for (name, value) in &self.options {
            config = config.with(name, value)?;
        }
        // A database in memory is always new, so there is nothing to keep from being changed.
        let read_only = self.file.is_some() && (self.read_only || !access.allow_writes);
        if read_only {
            config = config.access_mode(AccessMode::ReadOnly)?;
        }
        let session = match &self.file {
            Some(file) => Session::open_with_flags(file, config)?,
            None => Session::open_in_memory_with_flags(config)?,
        };
        for name in &self.extensions {
            session.execute_batch(&format!("LOAD {name}"))?;
        }
        if !access.allow_writes || access.tables.is_some() {
            // Files, network and other databases: what `read_parquet('/etc/...')` and ATTACH would need.
            session.execute_batch(
                "SET enable_external_access = false; SET lock_configuration = true",
            )?;
        }
        Ok(session)
    }
}

/// Options that the database is opened with, those of the hook first.
fn options(extra: &Map<String, Value>) -> Vec<(String, String)> {
    let flag =
        |key: &str, default: bool| extra.get(key).and_then(Value::as_bool).unwrap_or(default);
    let mut options = vec![
        (
            "autoinstall_known_extensions".to_owned(),
            flag("autoinstall_extensions", false).to_string(),
        ),
        (
            "autoload_known_extensions".to_owned(),
            flag("autoload_extensions", true).to_string(),
        ),
        (
            "allow_community_extensions".to_owned(),
            flag("allow_community_extensions", false).to_string(),
        ),
    ];
    let given = [
        "extension_directory",
        "memory_limit",
        "threads",
        "temp_directory",
    ]
    .iter()
    .filter_map(|&key| Some((key, extra.get(key)?)));
    let settings = extra
        .get("settings")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value));
    for (key, value) in given.chain(settings) {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        options.retain(|(name, _)| name != key);
        options.push((key.to_owned(), value));
    }
    options
}
