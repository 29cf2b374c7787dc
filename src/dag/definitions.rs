//! What a Dag file says, as plain data: the outcome of loading it.
//!
//! The interpreter writes this as JSON (see `python/`), so that no Python object crosses the border. Objects that must
//! be called or resolved later stay in the interpreter; a [`Handle`] names them.

mod argument;
mod question;
mod toolsets;

pub use argument::{Argument, MalformedArgument, TimeClass};
pub use question::{
    Approval, FileQuestion, LlmQuestion, QuestionKind, SchemaQuestion, SqlQuestion,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use toolsets::{
    DataFusionToolsetSpec, DataSourceSpec, McpHttpSpec, McpServerAddress, McpServerSpec,
    McpStdioSpec, McpToolsetSpec, ObjectStorageToolsetSpec, SkillSourceSpec, SkillsToolsetSpec,
    SqlToolsetSpec, ToolsetSpec,
};

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
    /// Stands for a task of another language: `@task.stub`.
    Stub(Box<StubTask>),
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

/// A task whose function is written in another language; the Dag has its name, its parameters and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StubTask {
    pub dag_id: String,
    /// The Python function's name, for messages.
    pub name: String,
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// The defaults that it writes down.
    #[serde(default)]
    pub defaults: Map<String, Value>,
    #[serde(default)]
    pub op_args: Argument,
    #[serde(default)]
    pub op_kwargs: Argument,
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
    /// `enable_hitl_review`: a person reads each answer.
    #[serde(default)]
    pub hitl_review: Option<HitlReview>,
    /// Set for `LLMOperator`, the operators that derive from it and their decorators, which ask without tools.
    #[serde(default)]
    pub llm: Option<LlmQuestion>,
}

/// How a person reviews an agent's answers while its task waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HitlReview {
    /// Answers that are shown at most: `max_hitl_iterations`.
    pub max_iterations: i64,
    /// Seconds from the first answer on: `hitl_timeout`.
    pub timeout: Option<f64>,
    /// Seconds between two looks for what the person says: `hitl_poll_interval`.
    pub poll_interval: f64,
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
