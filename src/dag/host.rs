//! What the interpreter may ask of the world around it: connections, variables, XComs, the masker. Nothing else.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};

/// Answers the interpreter's questions. Called on the interpreter's own thread; may block.
pub trait Host: Send + Sync {
    /// A connection as the object of `Connection`'s JSON form (`conn_id`, `conn_type`, `host` ...).
    ///
    /// # Errors
    /// The text of the Python exception to raise (`AirflowNotFoundException`).
    fn connection(&self, conn_id: &str) -> Result<Value, HostError>;

    /// A variable's text; `None` when there is no such variable.
    ///
    /// # Errors
    /// The lookup itself failed.
    fn variable(&self, key: &str) -> Result<Option<String>, HostError>;

    /// Sets (or, with `None`, deletes) a variable.
    ///
    /// # Errors
    /// The server refused.
    fn set_variable(
        &self,
        key: &str,
        value: Option<&str>,
        description: Option<&str>,
    ) -> Result<(), HostError>;

    /// `ti.xcom_pull`. Values are in XCom wire form (`airflow::xcom`).
    ///
    /// # Errors
    /// The lookup itself failed; a missing XCom is null.
    fn xcom_pull(&self, query: XComQuery) -> Result<Value, HostError>;

    /// `ti.xcom_push`: the value in XCom wire form.
    ///
    /// # Errors
    /// The server refused.
    fn xcom_push(&self, key: &str, value: Value) -> Result<(), HostError>;

    /// Any other request of the supervisor protocol, with its `type`; the answer is a message body, an `ErrorResponse`
    /// among them, or null.
    ///
    /// # Errors
    /// It is no request that Dag code may make, or nobody is there to answer it.
    fn request(&self, body: Value) -> Result<Value, HostError> {
        let kind = body.get("type").and_then(Value::as_str).unwrap_or("that");
        Err(HostError::Other(format!("nobody is here to answer {kind}")))
    }

    /// A Jinja template's text with the context of the running task; `more` goes over it.
    ///
    /// # Errors
    /// The template fails, or no task is running.
    fn render_template(
        &self,
        _text: &str,
        _more: &Map<String, Value>,
    ) -> Result<String, HostError> {
        Err(HostError::Other(
            "templates are rendered while a task runs, and none does".to_owned(),
        ))
    }

    /// Airflow's configuration, for `conf.get(section, key)`; `None` when unset. Never asked for a sensitive option.
    fn config(&self, section: &str, key: &str) -> Option<String>;

    /// Registers a secret with the masker.
    fn mask_secret(&self, value: &Value, name: Option<&str>);

    /// A text without the secrets that are known.
    fn mask(&self, text: &str) -> String {
        text.to_owned()
    }

    /// Does something with one of the worker's own toolsets: see `updraft_toolsets.py`. The answer holds `value`, or
    /// `retry`, `failed` or `fatal` with a text.
    ///
    /// # Errors
    /// There are no toolsets here.
    fn toolset(&self, _request: &Value) -> Result<Value, HostError> {
        Err(HostError::Other(
            "toolsets are there while an agent runs, and at no other time".to_owned(),
        ))
    }

    /// Does what a hook asks that the worker has itself: see `updraft_native_hook.py`.
    ///
    /// # Errors
    /// The text of the Python exception to raise.
    fn hook(&self, _request: &Value) -> Result<Value, HostError> {
        Err(HostError::Other(
            "hooks work while a task runs, and at no other time".to_owned(),
        ))
    }

    /// Runs an agent that Dag code built: see `updraft_agent.py`.
    ///
    /// # Errors
    /// There are no agents here.
    fn agent(&self, _request: &Value) -> Result<Value, HostError> {
        Err(HostError::Other(
            "agents run while a task runs, and at no other time".to_owned(),
        ))
    }

    /// Clones the repositories of `GitSkills` (see `SkillSourceSpec::Git`) into folders of their own, in their order.
    ///
    /// # Errors
    /// The text of the Python exception to raise.
    fn clone_skills(&self, _repositories: &Value) -> Result<ClonedSkills, HostError> {
        Err(HostError::Other(
            "skills are cloned while a task runs, and at no other time".to_owned(),
        ))
    }

    /// Removes what [`Host::clone_skills`] has made.
    fn remove_skills(&self, _key: u64) {}

    /// One record from Python's `logging`, `print` (`logger` = `task.stdout`) or `warnings`.
    fn log(&self, record: LogRecord);
}

/// Clones that Dag code uses for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClonedSkills {
    /// By which the host knows them.
    pub key: u64,
    /// The folders with the skills.
    pub folders: Vec<PathBuf>,
}

/// Arguments of `ti.xcom_pull`; `None` means the author left them out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct XComQuery {
    /// Whose XComs.
    pub task_ids: Vec<String>,
    /// `task_ids` was one string, not a list.
    pub single: bool,
    /// Another Dag than the running one.
    pub dag_id: Option<String>,
    /// Another run than this one.
    pub run_id: Option<String>,
    /// `return_value` unless the author named another.
    pub key: String,
    /// Instances of mapped tasks.
    pub map_indexes: Option<Vec<i64>>,
    /// Runs before this one as well.
    pub include_prior_dates: bool,
}

/// A log record made by Dag code.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    /// Its name.
    pub logger: String,
    /// `debug`, `info`, `warning`, `error`, `critical`.
    pub level: String,
    /// The text, formatted.
    pub message: String,
    /// Fields such as `error_detail` (see `airflow::task_log`).
    pub fields: Map<String, Value>,
}

/// Why the host could not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// There is no such thing: `LookupError` in Python.
    #[error("{0}")]
    NotFound(String),
    /// Anything else: `RuntimeError`.
    #[error("{0}")]
    Other(String),
}
