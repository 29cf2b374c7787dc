//! Airflow's `LocalFilesystemBackend`: connections, variables and options in JSON, YAML or env files.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::kwargs::Kwargs;
use super::{BackendError, SecretsBackend, text_of};
use crate::airflow::connection::Connection;
use crate::airflow::yaml;

/// Files are read anew at each look, as in Airflow: they may change while a worker runs.
#[derive(Debug)]
pub(super) struct LocalFilesystemBackend {
    variables: Option<PathBuf>,
    connections: Option<PathBuf>,
    configs: Option<PathBuf>,
}

impl LocalFilesystemBackend {
    /// Takes `variables_file_path`, `connections_file_path` and `configs_file_path`.
    ///
    /// # Errors
    /// Other arguments, or one that is not a text.
    pub fn new(mut kwargs: Kwargs) -> Result<Self, BackendError> {
        let mut path = |name: &str| {
            let text = kwargs.text(name)?;
            Ok::<_, BackendError>(text.filter(|text| !text.is_empty()).map(PathBuf::from))
        };
        let backend = Self {
            variables: path("variables_file_path")?,
            connections: path("connections_file_path")?,
            configs: path("configs_file_path")?,
        };
        kwargs.finish()?;
        Ok(backend)
    }
}

#[async_trait]
impl SecretsBackend for LocalFilesystemBackend {
    fn name(&self) -> &'static str {
        "LocalFilesystemBackend"
    }

    async fn connection(&self, conn_id: &str) -> Result<Option<Connection>, BackendError> {
        let Some((path, value)) = entry(self.connections.as_deref(), conn_id)? else {
            return Ok(None);
        };
        let origin = format!("the secrets file {}", path.display());
        // The env format has one value to a key; the others may have a list of one.
        let value = match value {
            Value::Array(mut items) if items.len() == 1 => items.pop().unwrap_or_default(),
            Value::Array(_) => {
                return Err(wrong(path, format!("{conn_id} must have one value")));
            }
            value => value,
        };
        let text = match value {
            Value::String(uri) => uri,
            Value::Object(fields) => {
                Value::Object(plain_fields(path, conn_id, fields)?).to_string()
            }
            _ => {
                return Err(wrong(
                    path,
                    format!("connection {conn_id} must be a URI or an object"),
                ));
            }
        };
        Ok(Some(Connection::from_env_text(conn_id, &text, &origin)?))
    }

    async fn variable(&self, key: &str) -> Result<Option<String>, BackendError> {
        Ok(entry(self.variables.as_deref(), key)?.map(|(_, value)| text_of(value)))
    }

    async fn config(&self, key: &str) -> Result<Option<String>, BackendError> {
        let found = entry(self.configs.as_deref(), key)?;
        Ok(found.map(|(_, value)| match value {
            Value::Array(mut items) if items.len() == 1 => text_of(items.pop().unwrap_or_default()),
            value => text_of(value),
        }))
    }
}

/// An object's fields as a connection's JSON form has them: `extra_dejson` is `extra`, and the id is said once.
fn plain_fields(
    path: &Path,
    conn_id: &str,
    mut fields: Map<String, Value>,
) -> Result<Map<String, Value>, BackendError> {
    if let Some(extra) = fields.remove("extra_dejson") {
        if fields.contains_key("extra") {
            let reason = format!("connection {conn_id} has both extra and extra_dejson");
            return Err(wrong(path, reason));
        }
        fields.insert("extra".to_owned(), extra);
    }
    if let Some(own) = fields.remove("conn_id")
        && own != conn_id
    {
        let reason = format!("the connection under {conn_id} has another conn_id");
        return Err(wrong(path, reason));
    }
    Ok(fields)
}

fn wrong(path: &Path, reason: impl Into<String>) -> BackendError {
    BackendError::File {
        path: path.display().to_string(),
        reason: reason.into(),
    }
}

/// What the file has under this key. Null is nothing.
fn entry<'a>(path: Option<&'a Path>, key: &str) -> Result<Option<(&'a Path, Value)>, BackendError> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(path, error.to_string()))?;
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let parse = match extension.to_str() {
        Some("json") => json,
        Some("yaml" | "yml") => yaml,
        Some("env") => env,
        _ => {
            let reason = "its name must end in .json, .yaml, .yml or .env";
            return Err(wrong(path, reason));
        }
    };
    let mut entries = parse(&text).map_err(|reason| wrong(path, reason))?;
    let value = entries.remove(key).filter(|value| !value.is_null());
    Ok(value.map(|value| (path, value)))
}

/// serde_json's and the YAML reader's own texts may quote the file, which holds secrets: only places are passed on.
fn json(text: &str) -> Result<Map<String, Value>, String> {
    object(serde_json::from_str(text).map_err(|error| {
        format!(
            "it is not JSON (line {}, column {})",
            error.line(),
            error.column()
        )
    })?)
}

fn yaml(text: &str) -> Result<Map<String, Value>, String> {
    object(yaml::load(text).map_err(|error| match error.line() {
        Some(line) => format!("it is not YAML that can be read here (line {line})"),
        None => error.to_string(),
    })?)
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(map) => Ok(map),
        _ => Err("it must hold an object of names and values".to_owned()),
    }
}

/// `KEY=VALUE` lines; blank ones and those that begin with `#` do not count.
fn env(text: &str) -> Result<Map<String, Value>, String> {
    let mut entries = Map::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let number = index + 1;
        match line.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                if entries.insert(key.to_owned(), value.into()).is_some() {
                    return Err(format!("line {number} sets {key} a second time"));
                }
            }
            _ => return Err(format!("line {number} must read KEY=VALUE")),
        }
    }
    Ok(entries)
}
