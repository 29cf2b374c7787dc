//! What a Dag file says, as plain data: the outcome of loading it.
//!
//! The interpreter writes this as JSON (see `python/`), so that no Python object crosses the border. Objects that must
//! be called or resolved later stay in the interpreter; a [`Handle`] names them.

mod question;

use std::collections::HashMap;

pub use question::{
    Approval, FileQuestion, LlmQuestion, QuestionKind, SchemaQuestion, SqlQuestion,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::NativeTool;

/// Names an object that stayed in the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(pub u64);

/// All Dags of one file, in the order in which the file makes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DagFile {
    pub dags: Vec<Dag>,
    /// Modules that have no stand-in and were imported as unavailable, for `check`.
    #[serde(default)]
    pub unavailable_modules: Vec<String>,
}

/// One Dag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dag {
    pub dag_id: String,
    pub location: SourceLocation,
    /// Default values of the Dag's params, with their JSON schemas.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// JSON schema of each param that has one.
    #[serde(default)]
    pub params_schema: Map<String, Value>,
    #[serde(default)]
    pub render_template_as_native_obj: bool,
    /// Folders in which template files are looked up, after the Dag file's own.
    #[serde(default)]
    pub template_searchpath: Vec<String>,
    /// Names of `user_defined_macros`: literal values by name; functions as `Argument::Object`.
    #[serde(default)]
    pub user_defined_macros: Vec<(String, Argument)>,
    #[serde(default)]
    pub user_defined_filters: Vec<(String, Argument)>,
    pub tasks: Vec<Task>,
}

/// A place in a Dag file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceLocation {
    pub file: String,
    pub line: u32,
}

impl std::fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One task of a Dag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// With the prefixes of its task groups.
    pub task_id: String,
    /// What the UI shows: `AgentOperator`, `@task.agent`, `@task` ...
    pub operator: String,
    /// The module the operator class comes from, e.g. `airflow.providers.common.ai.operators.agent`.
    pub module: String,
    /// Where the task is made.
    pub location: SourceLocation,
    #[serde(default)]
    pub upstream_task_ids: Vec<String>,
    #[serde(default)]
    pub downstream_task_ids: Vec<String>,
    #[serde(default)]
    pub queue: Option<String>,
    #[serde(default)]
    pub retries: u32,
    /// Seconds.
    #[serde(default)]
    pub retry_delay: Option<f64>,
    /// Seconds.
    #[serde(default)]
    pub execution_timeout: Option<f64>,
    #[serde(default = "yes")]
    pub do_xcom_push: bool,
    #[serde(default)]
    pub multiple_outputs: bool,
    #[serde(default)]
    pub trigger_rule: String,
    #[serde(default)]
    pub map_index_template: Option<String>,
    /// Task-level params: they go over the Dag's.
    #[serde(default)]
    pub params: Map<String, Value>,
    #[serde(default)]
    pub params_schema: Map<String, Value>,
    /// Names of the template fields, in the operator's order.
    #[serde(default)]
    pub template_fields: Vec<String>,
    /// `expand`/`expand_kwargs` of the mapped task groups around the task, outermost first, then the task's own.
    #[serde(default)]
    pub expansions: Vec<Expansion>,
    /// Is the task itself made by `expand` or `expand_kwargs`? Then the last of `expansions` is its own.
    #[serde(default)]
    pub is_mapped: bool,
    /// The innermost mapped task group around the task.
    #[serde(default)]
    pub mapped_task_group: Option<String>,
    /// Strings with one of these endings in a template field name a template file.
    #[serde(default)]
    pub template_ext: Vec<String>,
    /// Is a downstream task expanded over this task's return value? Then its length goes with the XCom.
    #[serde(default)]
    pub mapped_over: bool,
    /// Asset outlets and inlets, as `{"name", "uri", "type"}` profiles.
    #[serde(default)]
    pub outlets: Vec<Value>,
    #[serde(default)]
    pub inlets: Vec<Value>,
    /// Names of what the interpreter is asked for beside the task's own work: `on_failure_callback` and its kin,
    /// `retry_policy`, `pre_execute`, `post_execute`.
    #[serde(default)]
    pub dag_code: Vec<String>,
    /// Settings that a Python worker would act on and that are not acted on here.
    #[serde(default)]
    pub ignored: Vec<String>,
    pub kind: TaskKind,
}

fn yes() -> bool {
    true
}

impl Task {
    /// Is the interpreter asked for this (see [`Self::dag_code`])?
    #[must_use]
    pub fn has(&self, dag_code: &str) -> bool {
        self.dag_code.iter().any(|name| name == dag_code)
    }
}

/// How a task or task group is mapped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expansion {
    /// `.expand(a=[..], b=..)`: the cross product, the last argument varying fastest.
    Product(Vec<(String, Argument)>),
    /// `.expand_kwargs(..)`: a list of dicts, or something that resolves to one.
    Kwargs(Argument),
}

/// What it takes to run a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    Agent(Box<AgentTask>),
    /// An operator whose `execute` runs in the interpreter: `@task` and its kin, and classes of the Dag author's.
    Python(PythonTask),
    /// Does nothing: `EmptyOperator`.
    Empty,
    /// Can't run natively. `reason` is a sentence without operator, module or place.
    Unsupported {
        reason: String,
    },
}

/// A task whose work is Python.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PythonTask {
    /// The function's name, or the operator's class, for messages.
    pub name: String,
    /// The function of `@task`, `PythonOperator` and their kin.
    #[serde(default)]
    pub function: Option<Handle>,
    /// The template fields with their values.
    #[serde(default)]
    pub fields: Vec<(String, Argument)>,
}

impl PythonTask {
    /// A template field, as written.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Argument> {
        self.fields
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, argument)| argument)
    }
}

/// A call of a Python function that stayed in the interpreter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    pub function: Handle,
    /// The function's name, for messages.
    pub name: String,
    #[serde(default)]
    pub op_args: Argument,
    #[serde(default)]
    pub op_kwargs: Argument,
    #[serde(default)]
    pub templates_dict: Argument,
}

/// `AgentOperator` and `@task.agent`: constructor arguments as written, before rendering.
///
/// For a mapped task, arguments that come from `expand` stand in `Task::expansions` and are `Argument::Null` here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentTask {
    /// `@task.agent`: the function whose return value is the prompt. Else `prompt` holds it.
    #[serde(default)]
    pub prompt_function: Option<FunctionCall>,
    #[serde(default)]
    pub prompt: Argument,
    #[serde(default)]
    pub llm_conn_id: Argument,
    #[serde(default)]
    pub model_id: Argument,
    #[serde(default)]
    pub fallback_conn_ids: Argument,
    #[serde(default)]
    pub system_prompt: Argument,
    #[serde(default)]
    pub agent_params: Argument,
    #[serde(default)]
    pub message_history: Argument,
    #[serde(default)]
    pub usage_limits: Argument,
    #[serde(default)]
    pub output_type: OutputType,
    #[serde(default)]
    pub toolsets: Vec<ToolsetSpec>,
    /// What pydantic-ai's capabilities come to; their toolsets are among `toolsets`.
    #[serde(default)]
    pub capabilities: Capabilities,
    #[serde(default = "yes")]
    pub enable_tool_logging: bool,
    #[serde(default)]
    pub durable: bool,
    #[serde(default = "yes")]
    pub cache_prompt: bool,
    #[serde(default)]
    pub serialize_output: bool,
    #[serde(default)]
    pub enable_hitl_review: bool,
    /// Set for `LLMOperator`, the operators that derive from it and their decorators, which ask without tools.
    #[serde(default)]
    pub llm: Option<LlmQuestion>,
}

/// What the capabilities of an agent come to, but for their toolsets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Go over the agent's own `model_settings`.
    pub settings: Map<String, Value>,
    pub native_tools: Vec<NativeTool>,
    /// The first one that does not run natively.
    pub unsupported: Option<String>,
    /// Why they make no sense as they are given.
    pub fault: Option<String>,
}

/// What the model must answer with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputType {
    /// `str`.
    #[default]
    Text,
    /// Any other type: stays in the interpreter. `name` is for messages.
    Python { handle: Handle, name: String },
}

/// A toolset as the Dag file makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsetSpec {
    Sql(SqlToolsetSpec),
    /// `DataFusionToolset`.
    DataFusion(DataFusionToolsetSpec),
    /// `ObjectStorageToolset`.
    ObjectStorage(ObjectStorageToolsetSpec),
    /// `AgentSkillsToolset`.
    Skills(SkillsToolsetSpec),
    /// `MCPToolset` of the provider: a server behind a connection.
    Mcp(McpToolsetSpec),
    /// pydantic-ai's own classes for MCP servers.
    McpServer(Box<McpServerSpec>),
    /// `.prefixed("x")`.
    Prefixed {
        prefix: String,
        wrapped: Box<ToolsetSpec>,
    },
    /// `.renamed({"new": "old"})`.
    Renamed {
        names: HashMap<String, String>,
        wrapped: Box<ToolsetSpec>,
    },
    /// `.filtered(function)`.
    Filtered {
        function: Handle,
        wrapped: Box<ToolsetSpec>,
    },
    /// `.defer_loading(...)`; the outermost wrapper.
    Deferred {
        /// `None`: all tools.
        #[serde(default)]
        tool_names: Option<Vec<String>>,
        wrapped: Box<ToolsetSpec>,
    },
    /// `CombinedToolset([...])`.
    Combined {
        toolsets: Vec<ToolsetSpec>,
    },
    /// `LoggingToolset(wrapped=..., logger=...)`.
    Logging {
        /// The logger's name; `None`: the toolset's own.
        #[serde(default)]
        logger: Option<String>,
        wrapped: Box<ToolsetSpec>,
    },
    /// One that runs in the interpreter: of functions, of a hook, of a class that the Dag derives.
    Python {
        handle: Handle,
        class: String,
        #[serde(default)]
        id: Option<String>,
        /// Fields that are templates.
        #[serde(default)]
        templated: Vec<(String, Argument)>,
        /// The toolsets that it wraps, as far as they can be seen.
        #[serde(default)]
        inner: Vec<ToolsetSpec>,
    },
    /// Does not run natively.
    Unsupported {
        class: String,
        module: String,
        /// What stands in the way, after "it"; `None`: there is no native counterpart yet.
        #[serde(default)]
        reason: Option<String>,
    },
}

impl ToolsetSpec {
    /// Why the toolset itself can't run natively, without the toolsets inside it.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        if self
            .inner()
            .iter()
            .any(|inner| matches!(inner, Self::Deferred { .. }))
        {
            return Some(
                "its toolset has defer_loading() within another wrapper, which does not run natively: call it last"
                    .to_owned(),
            );
        }
        let Self::Unsupported {
            class,
            module,
            reason,
        } = self
        else {
            return None;
        };
        Some(match reason {
            Some(reason) => {
                format!("its toolset {class} ({module}) does not run natively: it {reason}")
            }
            None => format!("its toolset {class} ({module}) has no native counterpart yet"),
        })
    }

    /// The toolsets directly inside this one.
    #[must_use]
    pub fn inner(&self) -> &[ToolsetSpec] {
        match self {
            Self::Prefixed { wrapped, .. }
            | Self::Renamed { wrapped, .. }
            | Self::Filtered { wrapped, .. }
            | Self::Deferred { wrapped, .. }
            | Self::Logging { wrapped, .. } => std::slice::from_ref(wrapped),
            Self::Combined { toolsets } => toolsets,
            Self::Python { inner, .. } => inner,
            Self::Sql(_)
            | Self::DataFusion(_)
            | Self::ObjectStorage(_)
            | Self::Skills(_)
            | Self::Mcp(_)
            | Self::McpServer(_)
            | Self::Unsupported { .. } => &[],
        }
    }

    /// Must the interpreter stay as long as the agent runs?
    #[must_use]
    pub fn needs_interpreter(&self) -> bool {
        let own = match self {
            Self::Python { .. } | Self::Filtered { .. } => true,
            Self::Mcp(mcp) => mcp.token_provider.is_some() || mcp.env_provider.is_some(),
            _ => false,
        };
        own || self.inner().iter().any(Self::needs_interpreter)
    }
}

/// Arguments of `SQLToolset`, with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqlToolsetSpec {
    /// Templated.
    pub db_conn_id: Argument,
    /// `None` when the argument was left out: every table.
    #[serde(default)]
    pub allowed_tables: Option<Vec<String>>,
    #[serde(default)]
    pub allowed_functions: Vec<String>,
    #[serde(default)]
    pub schema: Option<String>,
    #[serde(default)]
    pub allow_writes: bool,
    pub max_rows: i64,
    pub max_result_bytes: i64,
    pub max_columns: i64,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

/// Arguments of `DataFusionToolset`, with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataFusionToolsetSpec {
    pub datasource_configs: Vec<DataSourceSpec>,
    #[serde(default)]
    pub allow_writes: bool,
    pub max_rows: i64,
    pub max_result_bytes: i64,
    pub max_columns: i64,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

/// `DataSourceConfig`: a table over files or in a catalog.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataSourceSpec {
    #[serde(default)]
    pub conn_id: Option<String>,
    pub table_name: String,
    #[serde(default)]
    pub uri: String,
    #[serde(default)]
    pub format: String,
    #[serde(default)]
    pub db_name: Option<String>,
    /// `s3`, `gcs`, `azure`, `local`: as given, or from the scheme of the URI.
    #[serde(default)]
    pub storage_type: Option<String>,
    #[serde(default)]
    pub options: Vec<(String, Argument)>,
}

impl DataSourceSpec {
    /// Is the connection looked up? Local files need none.
    #[must_use]
    pub fn uses_connection(&self) -> bool {
        self.storage_type.as_deref() != Some("local") && !self.uri.starts_with("file://")
    }
}

/// Arguments of the provider's `MCPToolset`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpToolsetSpec {
    /// Templated.
    pub mcp_conn_id: Argument,
    #[serde(default)]
    pub tool_prefix: Option<String>,
    /// Functions that are called once, when the agent begins.
    #[serde(default)]
    pub token_provider: Option<Handle>,
    #[serde(default)]
    pub env_provider: Option<Handle>,
}

/// Arguments of pydantic-ai's classes for MCP servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpServerSpec {
    /// The class, e.g. `MCPServerStdio`.
    pub class: String,
    #[serde(default)]
    pub id: Option<String>,
    pub server: McpServerAddress,
    #[serde(default)]
    pub max_retries: Option<u32>,
    /// `retry`, `failed` or `error`.
    pub tool_error_behavior: String,
    pub include_instructions: bool,
    pub cache_tools: bool,
}

/// How an MCP server is reached: one of `http` and `stdio` is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpServerAddress {
    #[serde(default)]
    pub http: Option<McpHttpSpec>,
    #[serde(default)]
    pub stdio: Option<McpStdioSpec>,
    /// Seconds; `None`: as long as it takes.
    #[serde(default)]
    pub init_timeout: Option<f64>,
    #[serde(default)]
    pub read_timeout: Option<f64>,
}

/// An MCP server behind an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpHttpSpec {
    pub url: String,
    #[serde(default)]
    pub headers: HashMap<String, String>,
    /// The older transport, with server-sent events.
    #[serde(default)]
    pub sse: bool,
    /// Seconds that the older transport's stream may be silent; `None`: as long as an answer may take.
    #[serde(default)]
    pub sse_read_timeout: Option<f64>,
}

/// An MCP server that is started as a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpStdioSpec {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: HashMap<String, String>,
    #[serde(default)]
    pub cwd: Option<String>,
}

/// Arguments of `ObjectStorageToolset`, with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectStorageToolsetSpec {
    /// Templated.
    pub path: Argument,
    /// Templated. Null: the worker's own credentials, or the connection that the path names.
    #[serde(default)]
    pub conn_id: Argument,
    pub max_files: i64,
    pub max_read_bytes: i64,
    pub max_output_bytes: i64,
    #[serde(default)]
    pub tool_prefix: String,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

impl ObjectStorageToolsetSpec {
    /// The toolset's id, for messages.
    #[must_use]
    pub fn id(&self) -> String {
        let conn_id = match &self.conn_id {
            Argument::String(conn_id) if !conn_id.is_empty() => conn_id,
            _ => "default",
        };
        match self.tool_prefix.as_str() {
            "" => format!("object-storage-{conn_id}"),
            prefix => format!("object-storage-{conn_id}-{prefix}"),
        }
    }
}

/// Arguments of `AgentSkillsToolset`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillsToolsetSpec {
    pub sources: Vec<SkillSourceSpec>,
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    #[serde(default)]
    pub exclude_resources: Vec<String>,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

/// Where skills come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillSourceSpec {
    /// A folder, as written.
    Folder(String),
    /// `GitSkills(...)`.
    Git {
        repo_url: String,
        #[serde(default)]
        conn_id: Option<String>,
        #[serde(default)]
        path: String,
        #[serde(default)]
        branch: Option<String>,
    },
    /// Something else: the name of its Python type.
    Other(String),
}

/// An argument of an operator: JSON, with references where Python objects stood.
///
/// On the wire from the interpreter it is JSON in which `{"$": kind, ...}` stands for an object:
///
/// | kind | other keys |
/// |---|---|
/// | `tuple`, `set` | `items` |
/// | `dict` | `items`: pairs, for a dict with a key `$` or with keys that are not strings |
/// | `datetime`, `date`, `time`, `timedelta` | `value`: ISO 8601 text; seconds for a timedelta |
/// | `xcom` | `task_id`, `key` |
/// | `object` | `handle`, `class` (`module.QualName`), `repr`, and `resolve`: true when it must be asked for its value at run time (`.map(f)`, `.zip(..)`, `.concat(..)`) |
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Argument {
    #[default]
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    List(Vec<Argument>),
    Tuple(Vec<Argument>),
    Set(Vec<Argument>),
    Dict(Vec<(Argument, Argument)>),
    /// A date or time: its Python class and its ISO text (seconds for a timedelta).
    Time {
        class: TimeClass,
        value: String,
    },
    /// `task.output`, `task.output["key"]`: the XCom of an upstream task.
    XCom {
        task_id: String,
        key: String,
    },
    /// Anything else: an object in the interpreter.
    Object {
        handle: Handle,
        class: String,
        repr: String,
        resolve: bool,
    },
}

/// Which of Python's date and time classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeClass {
    DateTime,
    Date,
    Time,
    TimeDelta,
}

/// An argument that the interpreter wrote wrongly: a fault of Updraft, not of the Dag file.
#[derive(Debug, thiserror::Error)]
#[error("unreadable argument from the Dag interpreter: {0}")]
pub struct MalformedArgument(String);

impl TryFrom<Value> for Argument {
    type Error = MalformedArgument;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        Ok(match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(b),
            Value::Number(n) => Self::Number(n),
            Value::String(s) => Self::String(s),
            Value::Array(items) => Self::List(arguments(items)?),
            Value::Object(map) => match map.get("$") {
                None => Self::Dict(
                    map.into_iter()
                        .map(|(k, v)| Ok((Self::String(k), Self::try_from(v)?)))
                        .collect::<Result<_, MalformedArgument>>()?,
                ),
                Some(_) => tagged(map)?,
            },
        })
    }
}

fn arguments(items: Vec<Value>) -> Result<Vec<Argument>, MalformedArgument> {
    items.into_iter().map(Argument::try_from).collect()
}

fn tagged(mut map: Map<String, Value>) -> Result<Argument, MalformedArgument> {
    let kind = text(&mut map, "$")?;
    Ok(match kind.as_str() {
        "tuple" => Argument::Tuple(arguments(list(&mut map, "items")?)?),
        "set" => Argument::Set(arguments(list(&mut map, "items")?)?),
        "dict" => Argument::Dict(
            list(&mut map, "items")?
                .into_iter()
                .map(|pair| match pair {
                    Value::Array(mut kv) if kv.len() == 2 => {
                        let value = kv.pop().unwrap_or_default();
                        let key = kv.pop().unwrap_or_default();
                        Ok((Argument::try_from(key)?, Argument::try_from(value)?))
                    }
                    other => Err(MalformedArgument(format!(
                        "a pair was expected, not {other}"
                    ))),
                })
                .collect::<Result<_, _>>()?,
        ),
        "datetime" => Argument::Time {
            class: TimeClass::DateTime,
            value: text(&mut map, "value")?,
        },
        "date" => Argument::Time {
            class: TimeClass::Date,
            value: text(&mut map, "value")?,
        },
        "time" => Argument::Time {
            class: TimeClass::Time,
            value: text(&mut map, "value")?,
        },
        "timedelta" => Argument::Time {
            class: TimeClass::TimeDelta,
            value: text(&mut map, "value")?,
        },
        "xcom" => Argument::XCom {
            task_id: text(&mut map, "task_id")?,
            key: text(&mut map, "key")?,
        },
        "object" => Argument::Object {
            handle: Handle(
                map.get("handle")
                    .and_then(Value::as_u64)
                    .ok_or_else(|| MalformedArgument("an object without a handle".to_owned()))?,
            ),
            class: text(&mut map, "class")?,
            repr: text(&mut map, "repr")?,
            resolve: map.get("resolve").and_then(Value::as_bool).unwrap_or(false),
        },
        other => return Err(MalformedArgument(format!("unknown kind {other:?}"))),
    })
}

fn text(map: &mut Map<String, Value>, key: &str) -> Result<String, MalformedArgument> {
    match map.remove(key) {
        Some(Value::String(s)) => Ok(s),
        other => Err(MalformedArgument(format!(
            "{key:?} must be text, not {other:?}"
        ))),
    }
}

fn list(map: &mut Map<String, Value>, key: &str) -> Result<Vec<Value>, MalformedArgument> {
    match map.remove(key) {
        Some(Value::Array(items)) => Ok(items),
        other => Err(MalformedArgument(format!(
            "{key:?} must be a list, not {other:?}"
        ))),
    }
}

impl From<Argument> for Value {
    fn from(argument: Argument) -> Self {
        let object = |kind: &str, rest: Value| {
            let mut map = Map::new();
            map.insert("$".to_owned(), kind.into());
            if let Value::Object(rest) = rest {
                map.extend(rest);
            }
            Self::Object(map)
        };
        let values = |items: Vec<Argument>| items.into_iter().map(Self::from).collect::<Vec<_>>();
        match argument {
            Argument::Null => Self::Null,
            Argument::Bool(b) => b.into(),
            Argument::Number(n) => Self::Number(n),
            Argument::String(s) => s.into(),
            Argument::List(items) => values(items).into(),
            Argument::Tuple(items) => {
                object("tuple", serde_json::json!({ "items": values(items) }))
            }
            Argument::Set(items) => object("set", serde_json::json!({ "items": values(items) })),
            Argument::Dict(pairs) => object(
                "dict",
                serde_json::json!({
                    "items": pairs.into_iter().map(|(k, v)| values(vec![k, v])).collect::<Vec<_>>()
                }),
            ),
            Argument::Time { class, value } => object(
                match class {
                    TimeClass::DateTime => "datetime",
                    TimeClass::Date => "date",
                    TimeClass::Time => "time",
                    TimeClass::TimeDelta => "timedelta",
                },
                serde_json::json!({ "value": value }),
            ),
            Argument::XCom { task_id, key } => object(
                "xcom",
                serde_json::json!({ "task_id": task_id, "key": key }),
            ),
            Argument::Object {
                handle,
                class,
                repr,
                resolve,
            } => object(
                "object",
                serde_json::json!({ "handle": handle, "class": class, "repr": repr, "resolve": resolve }),
            ),
        }
    }
}
