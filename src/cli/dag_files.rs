//! Dag files read for a command: no Airflow behind them, only the environment and what lies beside the file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use crate::airflow::config::Config;
use crate::airflow::connection::Connection;
use crate::control_plane::local::LocalControlPlane;
use crate::control_plane::resolve::{ResolveError, Resolver};
use crate::dag::definitions::DagFile;
use crate::dag::host::{Host, HostError, LogRecord, XComQuery};
use crate::dag::{Interpreter, LoadError, LoadOptions};
use crate::task::services::Services;

/// A Dag file's place: its bundle, and what may lie beside it.
#[derive(Clone, Debug)]
pub struct Place {
    pub file: PathBuf,
    /// The folder that stands on `sys.path`: `[core] dags_folder` when the file is in it, else the file's own.
    pub root: PathBuf,
}

impl Place {
    /// The place of a Dag file.
    ///
    /// # Errors
    /// The file is not there.
    pub fn of(file: &Path, config: &Config) -> anyhow::Result<Self> {
        let file = file
            .canonicalize()
            .with_context(|| format!("{} can't be read", file.display()))?;
        anyhow::ensure!(file.is_file(), "{} is not a file", file.display());
        let own = file.parent().map(Path::to_owned).unwrap_or_default();
        let root = config
            .get_path("core", "dags_folder")
            .ok()
            .flatten()
            .and_then(|folder| folder.canonicalize().ok())
            .filter(|folder| file.starts_with(folder))
            .unwrap_or(own);
        Ok(Self { file, root })
    }

    /// The file's path inside its bundle.
    #[must_use]
    pub fn relative(&self) -> String {
        self.file
            .strip_prefix(&self.root)
            .unwrap_or(&self.file)
            .display()
            .to_string()
    }

    fn beside(&self, ending: &str) -> Option<PathBuf> {
        let stem = self.file.file_stem()?.to_str()?;
        let path = self.file.with_file_name(format!("{stem}.{ending}.json"));
        path.is_file().then_some(path)
    }

    /// `<stem>.transcript.json`: what a model says when its connection is not defined.
    #[must_use]
    pub fn transcript(&self) -> Option<PathBuf> {
        self.beside("transcript")
    }

    /// `<stem>.connections.json`, in the shape of Airflow's local secrets file: connection id to object or URI. SQLite
    /// files are looked up from the Dag file's folder.
    ///
    /// # Errors
    /// It is not such a file.
    pub fn connections(&self) -> anyhow::Result<Vec<Connection>> {
        let Some(path) = self.beside("connections") else {
            return Ok(Vec::new());
        };
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        object(&path)?
            .into_iter()
            .map(|(conn_id, value)| {
                let text = match value {
                    Value::String(uri) => uri,
                    other => other.to_string(),
                };
                let mut connection =
                    Connection::from_env_text(&conn_id, &text, &path.display().to_string())?;
                if connection.conn_type == "sqlite"
                    && let Some(host) = connection
                        .host
                        .as_mut()
                        .filter(|host| !host.is_empty() && *host != ":memory:")
                {
                    *host = folder.join(&*host).display().to_string();
                }
                Ok(connection)
            })
            .collect()
    }

    /// `<stem>.variables.json`: variable key to text, or to a value that is kept as JSON text.
    ///
    /// # Errors
    /// It is not such a file.
    pub fn variables(&self) -> anyhow::Result<Vec<(String, String)>> {
        let Some(path) = self.beside("variables") else {
            return Ok(Vec::new());
        };
        Ok(object(&path)?
            .into_iter()
            .map(|(key, value)| match value {
                Value::String(text) => (key, text),
                other => (key, other.to_string()),
            })
            .collect())
    }
}

/// `<stem>.task_state.json`: what an earlier try left in the task state store, by task id and key.
///
/// # Errors
/// It is not such a file.
pub fn task_state(place: &Place) -> anyhow::Result<Map<String, Value>> {
    match place.beside("task_state") {
        Some(path) => object(&path),
        None => Ok(Map::new()),
    }
}

fn object(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{} can't be read", path.display()))?;
    match serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))? {
        Value::Object(map) => Ok(map),
        _ => anyhow::bail!(
            "{} must hold a JSON object of names and values",
            path.display()
        ),
    }
}

/// A control plane that knows what lies beside the Dag file.
///
/// # Errors
/// A malformed file beside it.
pub fn control_plane(place: &Place) -> anyhow::Result<Arc<LocalControlPlane>> {
    let plane = LocalControlPlane::new();
    for connection in place.connections()? {
        plane.set_connection(connection);
    }
    for (key, value) in place.variables()? {
        plane.set_variable(&key, &value);
    }
    Ok(Arc::new(plane))
}

/// Loads a Dag file. Blocks; not to be called on a thread of the runtime.
///
/// # Errors
/// See [`LoadError`].
pub fn load(
    place: &Place,
    config: &Arc<Config>,
    resolver: &Resolver,
    runtime: &Handle,
    current: &CurrentTask,
) -> Result<(DagFile, Interpreter), LoadError> {
    let mut options = LoadOptions::new(place.root.clone());
    if let Ok(seconds) = config.get_float("core", "dagbag_import_timeout")
        && seconds > 0.0
    {
        options.timeout = Duration::from_secs_f64(seconds);
    }
    let host = LoadHost {
        current: current.clone(),
        resolver: resolver.clone(),
        runtime: runtime.clone(),
        config: Arc::clone(config),
    };
    Interpreter::load(&place.file, options, Arc::new(host))
}

/// The task on whose behalf Dag code runs in this process: what `.map(f)` and the like are asked for before a task is
/// expanded. None while the file is loaded. Clones share it.
#[derive(Clone, Default)]
pub struct CurrentTask(Arc<Mutex<Option<Services>>>);

impl CurrentTask {
    /// From now on XComs are this task's.
    pub fn set(&self, services: Services) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(services);
    }

    fn get(&self) -> Result<Services, HostError> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(|| {
                HostError::Other("there are no XComs while the Dag file is loaded".to_owned())
            })
    }
}

/// Answers a Dag file while it is read, and while tasks are expanded.
struct LoadHost {
    current: CurrentTask,
    resolver: Resolver,
    runtime: Handle,
    config: Arc<Config>,
}

fn host_error(error: &ResolveError) -> HostError {
    match error {
        ResolveError::ConnectionNotFound(_) => HostError::NotFound(error.to_string()),
        other => HostError::Other(other.to_string()),
    }
}

impl Host for LoadHost {
    fn connection(&self, conn_id: &str) -> Result<Value, HostError> {
        let connection = self
            .runtime
            .block_on(self.resolver.connection(conn_id))
            .map_err(|error| host_error(&error))?;
        serde_json::to_value(connection).map_err(|error| HostError::Other(error.to_string()))
    }

    fn variable(&self, key: &str) -> Result<Option<String>, HostError> {
        self.runtime
            .block_on(self.resolver.variable(key))
            .map_err(|error| host_error(&error))
    }

    fn set_variable(&self, key: &str, _: Option<&str>, _: Option<&str>) -> Result<(), HostError> {
        Err(HostError::Other(format!(
            "variable {key} can't be set while the Dag file is loaded"
        )))
    }

    fn xcom_pull(&self, query: XComQuery) -> Result<Value, HostError> {
        Ok(self.current.get()?.xcom_pull(&query)?)
    }

    fn xcom_push(&self, key: &str, _: Value) -> Result<(), HostError> {
        Err(HostError::Other(format!(
            "XCom {key} can't be pushed while the Dag file is loaded"
        )))
    }

    fn request(&self, body: Value) -> Result<Value, HostError> {
        self.current
            .get()?
            .dag_code_request(body)
            .map_err(HostError::Other)
    }

    fn config(&self, section: &str, key: &str) -> Option<String> {
        self.config.get(section, key).ok().flatten()
    }

    fn mask_secret(&self, value: &Value, name: Option<&str>) {
        self.resolver.masker().add_value(value, name);
    }

    fn log(&self, record: LogRecord) {
        if matches!(record.level.as_str(), "warning" | "error" | "critical") {
            eprintln!(
                "{}: {}",
                record.level,
                self.resolver.masker().mask_str(&record.message)
            );
        }
    }
}
