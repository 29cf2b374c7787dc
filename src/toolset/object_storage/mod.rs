//! `ObjectStorageToolset`: the files under one root, in any store, for reading only.
//!
//! Texts and JSON are those of the Python toolset to the byte. What a call can't read the model is told (*tool-failed*);
//! a connection that is missing or wrong ends the run.

pub mod analysis;
mod columnar;
mod content;
mod file_format;
mod local;
mod relative_path;
mod remote;
mod storage;
mod tools;
mod window;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use self::file_format::Format;
use self::local::LocalStorage;
use self::remote::RemoteStorage;
use self::storage::{Entry, Info, Storage, StorageError};
use self::tools::Tool;
use super::sql::{Mask, masked};
use crate::agent::{ToolDefinition, ToolError, Toolset};
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;
use crate::airflow::python_text::{JsonStyle, dumps, repr_str};
use crate::hook::object_store::{self as store, Location, Scheme, StoreError};
use crate::hook::{ConnectionError, ConnectionSource, blocking};

/// The arguments of `ObjectStorageToolset`, after templates were rendered.
#[derive(Clone, Debug)]
pub struct ObjectStorageToolsetConfig {
    /// The root: a URL, or a path on the worker's disk. It may name the connection: `s3://conn_id@bucket/folder`.
    pub path: String,
    /// Goes before the connection that the path names.
    pub conn_id: Option<String>,
    /// Entries of one listing.
    pub max_files: i64,
    /// The largest file that is read, in bytes, decompressed.
    pub max_read_bytes: i64,
    /// Bytes of UTF-8 that one result of `read_file` holds.
    pub max_output_bytes: i64,
    /// Goes before the tools' names, with an underscore.
    pub tool_prefix: String,
    /// `None`: the run's own budget.
    pub max_retries: Option<u32>,
}

impl ObjectStorageToolsetConfig {
    /// The defaults of the Python class.
    #[must_use]
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            conn_id: None,
            max_files: 200,
            max_read_bytes: 10 << 20,
            max_output_bytes: 50 << 10,
            tool_prefix: String::new(),
            max_retries: None,
        }
    }
}

/// Why a toolset can't be made of its arguments.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectStorageToolsetError {
    /// A limit below one.
    #[error("{name} must be at least 1, got {value}.")]
    Limit { name: &'static str, value: i64 },
}

/// Three tools over the files under one root.
pub struct ObjectStorageToolset {
    config: ObjectStorageToolsetConfig,
    connections: Arc<dyn ConnectionSource>,
    environment: Environment,
    mask: Mask,
    storage: OnceCell<Box<dyn Storage>>,
}

/// How a call can go wrong.
enum Problem {
    /// For the model: a whole sentence.
    Refused(String),
    /// For the model, after the path.
    Storage(StorageError),
    /// The run ends.
    Fatal(String),
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Url { .. } => {
                Self::Storage(StorageError::exception("ValueError", error.to_string()))
            }
            other => Self::Fatal(other.to_string()),
        }
    }
}

impl ObjectStorageToolset {
    /// A toolset. Nothing is opened before the first call.
    ///
    /// # Errors
    /// A limit is below one.
    pub fn new(
        config: ObjectStorageToolsetConfig,
        connections: Arc<dyn ConnectionSource>,
        environment: Environment,
        mask: Mask,
    ) -> Result<Self, ObjectStorageToolsetError> {
        let limits = [
            ("max_files", config.max_files),
            ("max_read_bytes", config.max_read_bytes),
            ("max_output_bytes", config.max_output_bytes),
        ];
        if let Some((name, value)) = limits.into_iter().find(|(_, value)| *value < 1) {
            return Err(ObjectStorageToolsetError::Limit { name, value });
        }
        Ok(Self {
            config,
            connections,
            environment,
            mask,
            storage: OnceCell::new(),
        })
    }

    async fn storage(&self) -> Result<&dyn Storage, Problem> {
        let opened = self.storage.get_or_try_init(|| async {
            let location = Location::parse(&self.config.path)?;
            let conn_id = self.config.conn_id.as_deref();
            open_storage(&location, conn_id, &*self.connections, &self.environment).await
        });
        Ok(opened.await?.as_ref())
    }

    async fn list_files(&self, path: &str, offset: i64) -> Result<String, Problem> {
        let parts = relative_path::parts(path).map_err(Problem::Refused)?;
        let Some(mut entries) = self.storage().await?.list(&parts).await? else {
            return Err(Problem::Refused(format!(
                "{} is not a directory.",
                repr_str(shown(path))
            )));
        };
        entries.sort_by(|a, b| a.name().cmp(b.name()));
        let page = slice(
            &entries,
            offset,
            offset.saturating_add(self.config.max_files),
        );
        let listed: Vec<Value> = page
            .iter()
            .map(|entry| match entry {
                Entry::Directory { name } => json!({"name": format!("{name}/")}),
                Entry::File { name, size } => json!({"name": name, "size_bytes": size}),
            })
            .collect();
        let mut result = json!({"path": shown(path), "entries": listed});
        let count = |items: &[Entry]| i64::try_from(items.len()).unwrap_or(i64::MAX);
        let (next, total) = (offset.saturating_add(count(page)), count(&entries));
        if next < total
            && let Some(result) = result.as_object_mut()
        {
            let note = format!(
                "Showing entries {} to {next} of {total}; list again with offset={next} for more.",
                offset + 1
            );
            result.insert("note".to_owned(), note.into());
        }
        Ok(self.loose(result))
    }

    async fn get_file_info(&self, path: &str) -> Result<String, Problem> {
        let parts = relative_path::parts(path).map_err(Problem::Refused)?;
        let result = match self.storage().await?.info(&parts).await? {
            None => {
                let text = format!("{} does not exist.", repr_str(path));
                return Err(Problem::Refused(text));
            }
            Some(Info::Directory) => json!({"path": path, "type": "directory"}),
            Some(Info::File { size, modified }) => {
                let mut result = json!({"path": path, "type": "file", "size_bytes": size});
                if let (Some(modified), Some(result)) = (modified, result.as_object_mut()) {
                    let format = match modified.timestamp_subsec_micros() {
                        0 => "%Y-%m-%dT%H:%M:%S+00:00",
                        _ => "%Y-%m-%dT%H:%M:%S.%6f+00:00",
                    };
                    let modified = modified.format(format).to_string();
                    result.insert("modified".to_owned(), modified.into());
                }
                result
            }
        };
        Ok(self.loose(result))
    }

    async fn read_file(
        &self,
        path: &str,
        offset: Option<i64>,
        limit: Option<i64>,
    ) -> Result<String, Problem> {
        let parts = relative_path::parts(path).map_err(Problem::Refused)?;
        let Some(file) = self.storage().await?.open(&parts).await? else {
            return Err(Problem::Refused(format!(
                "{} is not a file.",
                repr_str(path)
            )));
        };
        // The root itself may be a file.
        let root_name = self.config.path.rsplit('/').find(|part| !part.is_empty());
        let name = parts.last().copied().or(root_name).unwrap_or_default();
        let max_bytes = self.config.max_read_bytes.unsigned_abs();
        let max_output = self.config.max_output_bytes.unsigned_abs();
        let codec = match file_format::of_name(name) {
            Format::Media(kind) => {
                return Err(Problem::Refused(format!(
                    "{} is a {kind} file, which this tool cannot read as text.",
                    repr_str(path)
                )));
            }
            Format::Parquet | Format::Avro if file.size() > max_bytes => {
                return Err(StorageError::TooLarge.into());
            }
            Format::Parquet => {
                let text = columnar::parquet(&file, &self.mask).await?;
                return Ok(columnar::cut(text, max_output));
            }
            Format::Avro => {
                let text = columnar::avro(&file, &self.mask).await?;
                return Ok(columnar::cut(text, max_output));
            }
            Format::Text(codec) => codec,
        };
        let content = content::read(&file, codec, max_bytes).await?;
        if content.contains(&0) {
            return Err(Problem::Refused(format!(
                "{} is a binary file, which this tool cannot read as text.",
                repr_str(path)
            )));
        }
        // Masked whole: a secret of several lines would otherwise be shown a line at a time.
        let text = (self.mask)(&String::from_utf8_lossy(&content));
        Ok(window::render(&text, offset, limit, max_output))
    }

    fn loose(&self, value: Value) -> String {
        dumps(&masked(value, &self.mask), JsonStyle::LOOSE)
    }
}

/// What stands at a location. `conn_id` goes before the connection that the location names.
async fn open_storage(
    location: &Location,
    conn_id: Option<&str>,
    connections: &dyn ConnectionSource,
    environment: &Environment,
) -> Result<Box<dyn Storage>, Problem> {
    if location.scheme == Scheme::File {
        return Ok(Box::new(LocalStorage::new(location.path.as_str())));
    }
    let connection = match conn_id.or(location.conn_id.as_deref()) {
        Some(conn_id) => connection(conn_id, location.scheme, connections).await?,
        None => None,
    };
    let store = store::open(location, connection.as_ref(), environment).await?;
    let storage = RemoteStorage::new(store, &location.path);
    Ok(Box::new(match location.scheme {
        Scheme::Http => storage.on_the_web(),
        _ => storage,
    }))
}

async fn connection(
    conn_id: &str,
    scheme: Scheme,
    connections: &dyn ConnectionSource,
) -> Result<Option<Connection>, Problem> {
    match connections.connection(conn_id).await {
        Ok(connection) => Ok(Some(connection)),
        // The Amazon provider takes a missing connection for an empty one.
        Err(ConnectionError::NotDefined(_)) if scheme == Scheme::S3 => {
            tracing::warn!(
                target: "airflow.providers.amazon.aws.hooks.s3",
                "Unable to find AWS Connection ID '{conn_id}', switching to empty."
            );
            Ok(None)
        }
        Err(error) => Err(Problem::Fatal(error.to_string())),
    }
}

/// The root is shown as `/`.
fn shown(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Python's `items[from:to]`, with its reading of negative numbers.
fn slice<T>(items: &[T], from: i64, to: i64) -> &[T] {
    let at = |index: i64| {
        let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        match index {
            0.. => distance.min(items.len()),
            _ => items.len().saturating_sub(distance),
        }
    };
    items.get(at(from)..at(to)).unwrap_or_default()
}

/// A whole number, however large, and also where it is written as `2.0`.
fn number(value: Option<&Value>) -> Option<i64> {
    let value = value.filter(|value| !value.is_null())?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is too large becomes the largest number"
    )]
    let whole = value.as_i64().or_else(|| Some(value.as_f64()? as i64));
    whole.or_else(|| {
        let is_negative = value.to_string().starts_with('-');
        Some(if is_negative { i64::MIN } else { i64::MAX })
    })
}

#[async_trait]
impl Toolset for ObjectStorageToolset {
    fn id(&self) -> String {
        let conn_id = self.config.conn_id.as_deref();
        let conn_id = conn_id.filter(|conn_id| !conn_id.is_empty());
        let prefix = match self.config.tool_prefix.as_str() {
            "" => String::new(),
            prefix => format!("-{prefix}"),
        };
        format!("object-storage-{}{prefix}", conn_id.unwrap_or("default"))
    }

    fn label(&self) -> &'static str {
        "ObjectStorageToolset"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let prefix = &self.config.tool_prefix;
        Ok(tools::definitions(prefix, self.config.max_retries))
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let prefix = &self.config.tool_prefix;
        let tool = Tool::ALL.into_iter().find(|tool| tool.name(prefix) == name);
        let Some(tool) = tool else {
            return Err(ToolError::Fatal(format!(
                "Unknown tool: {}",
                repr_str(name)
            )));
        };
        let path = args.get("path").and_then(Value::as_str).unwrap_or_default();
        let offset = number(args.get("offset"));
        let _turn = blocking::exclusive().await;
        let done = match tool {
            Tool::ListFiles => self.list_files(path, offset.unwrap_or(0)).await,
            Tool::GetFileInfo => self.get_file_info(path).await,
            Tool::ReadFile => {
                self.read_file(path, offset, number(args.get("limit")))
                    .await
            }
        };
        let text = match done {
            Ok(text) => return Ok(Value::String(text)),
            Err(Problem::Fatal(text)) => return Err(ToolError::Fatal((self.mask)(&text))),
            Err(Problem::Refused(text)) => text,
            Err(Problem::Storage(StorageError::Outside)) => {
                format!("{} resolves outside the storage root.", repr_str(path))
            }
            Err(Problem::Storage(StorageError::TooLarge)) => {
                let limit = window::size_text(self.config.max_read_bytes.unsigned_abs());
                format!(
                    "{} is larger than the {limit} this tool reads.",
                    repr_str(path)
                )
            }
            Err(Problem::Storage(error)) => {
                format!("{} cannot be read: {error}", repr_str(shown(path)))
            }
        };
        Err(ToolError::Failed((self.mask)(&text)))
    }
}

#[cfg(test)]
mod tests;
