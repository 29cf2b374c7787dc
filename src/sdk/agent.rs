//! Agents built in Rust.

use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::team::{Member, Team, TeamModel, TeamToolset};
use super::tool::{FunctionTools, Tool, schema};
use crate::agent::durable::{JournalError, RecordedToolset, current_step};
use crate::agent::message::{Message, UserContent};
use crate::agent::output::{
    OutputError, OutputTool, OutputValidator, TextOutput, ValidOutput, json_in,
};
use crate::agent::{
    Agent as LoopAgent, AgentError, EndStrategy, Model, Output, OutputSpec, Retries, RunInput,
    RunUsage, ToolDefinition, ToolError, Toolset, UsageLimits,
};
use crate::airflow::python_text::repr_value;
use crate::task::rust::TaskContext;
use crate::toolset::combined::CombinedToolset;
use crate::toolset::logging::LoggingToolset;
use crate::toolset::masking::MaskingToolset;

/// The name of the tool by which a model gives a structured answer: pydantic-ai's.
const ANSWER_TOOL: &str = "final_result";
/// Under which tool calls stand in the task log.
const LOGGER: &str = "updraft.sdk.Agent";

type InputGuard = Arc<dyn for<'a> Fn(&'a str) -> BoxFuture<'a, Result<(), String>> + Send + Sync>;
type OutputGuard<O> = Arc<dyn for<'a> Fn(&'a O) -> BoxFuture<'a, Result<(), String>> + Send + Sync>;

/// A model with instructions and tools, which answers with an `O`.
///
/// ```
/// # use std::sync::Arc;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use updraft::sdk::{Agent, Model, Tool, ToolError};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Order {
///     /// The order's number.
///     number: u32,
/// }
///
/// fn support(model: Arc<dyn Model>) -> Agent {
///     Agent::builder("support", model)
///         .instructions("You know where orders are.")
///         .tool(Tool::new("find", "Finds an order.", |order: Order| async move {
///             match order.number {
///                 7 => Ok("at sea"),
///                 _ => Err(ToolError::Retry("there is no such order".to_owned())),
///             }
///         }))
///         .build()
/// }
/// ```
pub struct Agent<O = String> {
    member: Parts,
    /// Those that the conversation may go on to.
    others: Vec<Parts>,
    answer: AnswerKind,
    limits: UsageLimits,
    retries: Retries,
    settings: Map<String, Value>,
    input_guards: Vec<(String, InputGuard)>,
    output_guards: Vec<(String, OutputGuard<O>)>,
}

/// What each agent of a team has of its own.
#[derive(Clone)]
struct Parts {
    name: String,
    handoff_description: Option<String>,
    instructions: String,
    model: Arc<dyn Model>,
    tools: Vec<Tool>,
    toolsets: Vec<Arc<dyn Toolset>>,
    handoffs: Vec<String>,
}

/// How the model gives its answer.
#[derive(Clone)]
enum AnswerKind {
    Text,
    /// By a call of [`ANSWER_TOOL`].
    Structured {
        schema: Value,
        /// Is the schema one of an object? Others stand under `response`.
        is_object: bool,
    },
}

/// What a run has come to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer<O> {
    pub output: O,
    /// The agent that gave the answer.
    pub agent: String,
    /// Requests, tokens and cost of the whole run.
    pub usage: RunUsage,
    /// The conversation, for [`Agent::run_on`].
    pub messages: Vec<Message>,
}

/// Why a run gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The model, a tool or a limit.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A guardrail let the prompt not pass. No model was asked.
    #[error("the input guardrail {guardrail} refuses the prompt: {reason}")]
    InputRefused { guardrail: String, reason: String },
    /// A guardrail let the answer not pass.
    #[error("the output guardrail {guardrail} refuses the answer: {reason}")]
    OutputRefused { guardrail: String, reason: String },
    /// The journal of a durable run can't be had.
    #[error("the run's journal: {0}")]
    Journal(String),
    /// The answer met its schema and is none nevertheless.
    #[error("the answer can't be read: {0}")]
    Answer(#[from] serde_json::Error),
}

impl From<JournalError> for RunError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error.to_string())
    }
}

/// Builds an [`Agent`].
#[must_use = "an agent is there after build()"]
pub struct AgentBuilder<O = String>(Agent<O>);

impl Agent {
    /// An agent that answers with text. `name` is its name in spans, in the records of durable runs, and for handoffs.
    pub fn builder(name: &str, model: Arc<dyn Model>) -> AgentBuilder {
        AgentBuilder(Self {
            member: Parts {
                name: name.to_owned(),
                handoff_description: None,
                instructions: String::new(),
                model,
                tools: Vec::new(),
                toolsets: Vec::new(),
                handoffs: Vec::new(),
            },
            others: Vec::new(),
            answer: AnswerKind::Text,
            limits: UsageLimits::default(),
            retries: Retries::default(),
            settings: Map::new(),
            input_guards: Vec::new(),
            output_guards: Vec::new(),
        })
    }
}

impl AgentBuilder {
    /// Answers with a `T` instead: the model is told its schema, and asked again when what it says is none.
    pub fn output<T: DeserializeOwned + JsonSchema>(self) -> AgentBuilder<T> {
        let schema = schema::<T>();
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        AgentBuilder(Agent {
            member: self.0.member,
            others: self.0.others,
            answer: AnswerKind::Structured { schema, is_object },
            limits: self.0.limits,
            retries: self.0.retries,
            settings: self.0.settings,
            input_guards: self.0.input_guards,
            output_guards: Vec::new(),
        })
    }
}

impl<O> AgentBuilder<O> {
    /// The system prompt.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.0.member.instructions = text.into();
        self
    }

    /// One more tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.0.member.tools.push(tool);
        self
    }

    /// One more toolset: of this crate ([`crate::toolset`]) or of your own.
    pub fn toolset(mut self, toolset: impl Toolset + 'static) -> Self {
        self.0.member.toolsets.push(Arc::new(toolset));
        self
    }

    /// The model may hand the conversation to this agent, by a tool `transfer_to_<name>`. The answer is given by whoever
    /// has the conversation then, in this agent's output type. The other's guardrails, limits and settings do not count.
    pub fn handoff<P>(mut self, other: Agent<P>) -> Self {
        self.0.member.handoffs.push(other.member.name.clone());
        self.0.others.push(other.member);
        self.0.others.extend(other.others);
        self
    }

    /// The model may hand the conversation to an agent of this name that somebody else brings: back to where it came from.
    pub fn handoff_to(mut self, name: &str) -> Self {
        self.0.member.handoffs.push(name.to_owned());
        self
    }

    /// What models that may hand a conversation to this agent are told of it.
    pub fn handoff_description(mut self, text: impl Into<String>) -> Self {
        self.0.member.handoff_description = Some(text.into());
        self
    }

    /// Looks at each prompt before a model is asked. `Err` says why it is refused, and ends the run.
    pub fn input_guardrail<F>(mut self, name: &str, guard: F) -> Self
    where
        F: for<'a> Fn(&'a str) -> BoxFuture<'a, Result<(), String>> + Send + Sync + 'static,
    {
        self.0.input_guards.push((name.to_owned(), Arc::new(guard)));
        self
    }

    /// Looks at each answer. `Err` says why it is refused, and ends the run.
    pub fn output_guardrail<F>(mut self, name: &str, guard: F) -> Self
    where
        F: for<'a> Fn(&'a O) -> BoxFuture<'a, Result<(), String>> + Send + Sync + 'static,
    {
        self.0
            .output_guards
            .push((name.to_owned(), Arc::new(guard)));
        self
    }

    /// What a run may use. Default: 50 requests.
    pub fn limits(mut self, limits: UsageLimits) -> Self {
        self.0.limits = limits;
        self
    }

    /// How often tools and answers may be wrong. Default: once each.
    pub fn retries(mut self, retries: Retries) -> Self {
        self.0.retries = retries;
        self
    }

    /// One of pydantic-ai's `model_settings`: `temperature`, `max_tokens` ...
    pub fn setting(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.settings.insert(name.to_owned(), value.into());
        self
    }

    /// The agent.
    #[must_use]
    pub fn build(self) -> Agent<O> {
        self.0
    }
}

/// What a run is a part of.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    task: Option<&'a TaskContext>,
    is_durable: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Request {
    /// What is to be done.
    input: String,
}

impl<O: DeserializeOwned + Send + 'static> Agent<O> {
    /// Answers a prompt, in any program.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run(&self, prompt: &str) -> Result<Answer<O>, RunError> {
        self.go(prompt, Vec::new(), Around::default()).await
    }

    /// Goes on with a conversation of an earlier run.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run_on(
        &self,
        messages: Vec<Message>,
        prompt: &str,
    ) -> Result<Answer<O>, RunError> {
        self.go(prompt, messages, Around::default()).await
    }

    /// Answers a prompt as a part of a task: its spans belong to the task's, tool calls stand in its log, secrets that the
    /// task knows are masked in what tools give, and it stops when the task does.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run_in(&self, task: &TaskContext, prompt: &str) -> Result<Answer<O>, RunError> {
        let around = Around {
            task: Some(task),
            is_durable: false,
        };
        self.go(prompt, Vec::new(), around).await
    }

    /// The same, with each answer of the model and each result of a tool recorded in Airflow: a retry of the task repeats
    /// none that it finds there. The record goes when the run has succeeded. Tools must give the same for the same
    /// arguments, or things that may be repeated.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run_durably(
        &self,
        task: &TaskContext,
        prompt: &str,
    ) -> Result<Answer<O>, RunError> {
        let around = Around {
            task: Some(task),
            is_durable: true,
        };
        self.go(prompt, Vec::new(), around).await
    }

    /// This agent as another one's tool: it answers one request, in a conversation of its own.
    #[must_use]
    pub fn into_tool(self, name: &str, description: &str) -> Tool
    where
        O: serde::Serialize,
    {
        let agent = Arc::new(self);
        Tool::new(name, description, move |request: Request| {
            let agent = Arc::clone(&agent);
            async move {
                let answer = agent.run(&request.input).await;
                answer
                    .map(|answer| answer.output)
                    .map_err(|error| ToolError::Fatal(error.to_string()))
            }
        })
    }

    async fn go(
        &self,
        prompt: &str,
        history: Vec<Message>,
        around: Around<'_>,
    ) -> Result<Answer<O>, RunError> {
        for (name, guard) in &self.input_guards {
            guard(prompt)
                .await
                .map_err(|reason| RunError::InputRefused {
                    guardrail: name.clone(),
                    reason,
                })?;
        }
        let others = self.others.iter().map(|parts| parts.member(around));
        let team = Team::new(self.member.member(around), others.collect());
        let journal = match around {
            Around {
                task: Some(task),
                is_durable: true,
            } => {
                let journal = task.journal().await;
                Some(journal.map_err(|error| RunError::Journal(error.to_string()))?)
            }
            _ => None,
        };
        let durable = match &journal {
            Some(journal) => {
                let within = current_step().map(|step| step.place());
                Some(
                    journal
                        .start_run(&self.member.name, within.as_deref())
                        .await?,
                )
            }
            None => None,
        };
        let agent = LoopAgent {
            name: self.member.name.clone(),
            model: Arc::new(TeamModel(Arc::clone(&team))),
            toolsets: vec![Arc::new(TeamToolset(Arc::clone(&team)))],
            instructions: String::new(),
            native_tools: Vec::new(),
            settings: self.settings.clone(),
            retries: self.retries,
            limits: self.limits.clone(),
            output: self.answer.spec::<O>(),
            end_strategy: EndStrategy::default(),
        };
        let input = RunInput {
            system_prompts: Vec::new(),
            prompt: Some(UserContent::Text(prompt.to_owned())),
            history,
            run_id: around.task.map_or_else(
                || uuid::Uuid::now_v7().to_string(),
                |task| task.ti_id().to_owned(),
            ),
            conversation_id: uuid::Uuid::now_v7().to_string(),
            usage: RunUsage::default(),
            cancel: around
                .task
                .map_or_else(CancellationToken::new, |task| task.cancellation().clone()),
            telemetry: around.task.and_then(TaskContext::telemetry),
            durable,
        };
        let outcome = agent.run(input).await;
        if let Some(journal) = &journal {
            // After a failure as well: that attempt is the one that is retried.
            journal.log_summary(LOGGER);
        }
        let output = self.answer.read(outcome.output?)?;
        for (name, guard) in &self.output_guards {
            guard(&output)
                .await
                .map_err(|reason| RunError::OutputRefused {
                    guardrail: name.clone(),
                    reason,
                })?;
        }
        Ok(Answer {
            output,
            agent: team.current().name.clone(),
            usage: outcome.usage,
            messages: outcome.messages,
        })
    }
}

impl Parts {
    fn member(&self, around: Around<'_>) -> Member {
        let mut toolsets: Vec<(Arc<dyn Toolset>, &str)> = Vec::new();
        if !self.tools.is_empty() {
            let tools = FunctionTools(self.tools.clone());
            toolsets.push((Arc::new(tools), "function_toolset"));
        }
        let own = self.toolsets.iter().cloned();
        toolsets.extend(own.map(|toolset| (toolset, "airflow_toolset")));
        let wrapped = toolsets.into_iter().map(|(mut toolset, kind)| {
            if let Some(task) = around.task {
                toolset = Arc::new(MaskingToolset::new(toolset, task.masker().clone()));
                if around.is_durable {
                    toolset = Arc::new(RecordedToolset::new(toolset, kind));
                }
                toolset = Arc::new(LoggingToolset::new(toolset, LOGGER));
            }
            toolset
        });
        Member {
            name: self.name.clone(),
            handoff_description: self.handoff_description.clone(),
            instructions: self.instructions.clone(),
            model: Arc::clone(&self.model),
            toolset: Arc::new(CombinedToolset::new(wrapped.collect())),
            handoffs: self.handoffs.clone(),
        }
    }
}

impl AnswerKind {
    fn spec<O: DeserializeOwned + Send + 'static>(&self) -> OutputSpec {
        let Self::Structured { schema, is_object } = self else {
            return OutputSpec::default();
        };
        let parameters = if *is_object {
            schema.clone()
        } else {
            json!({"type": "object", "properties": {"response": schema}, "required": ["response"]})
        };
        let description = schema.get("description").and_then(Value::as_str);
        OutputSpec {
            text: TextOutput::Refused,
            tools: vec![OutputTool {
                definition: ToolDefinition {
                    name: ANSWER_TOOL.to_owned(),
                    description: Some(
                        description
                            .unwrap_or("Gives the answer and ends the run.")
                            .to_owned(),
                    ),
                    parameters,
                    sequential: false,
                    max_retries: None,
                },
                strict: None,
            }],
            validator: Some(Arc::new(Typed::<O> {
                is_object: *is_object,
                output: PhantomData,
            })),
            ..OutputSpec::default()
        }
    }

    fn read<O: DeserializeOwned>(&self, output: Output) -> Result<O, serde_json::Error> {
        serde_json::from_value(match output {
            Output::Text(text) => text.into(),
            Output::Validated(answer) => answer.value,
            Output::Nothing => Value::Null,
        })
    }
}

/// Reads an answer as serde does.
struct Typed<O> {
    is_object: bool,
    output: PhantomData<fn() -> O>,
}

#[async_trait]
impl<O: DeserializeOwned> OutputValidator for Typed<O> {
    async fn validate(&self, _: Option<&str>, raw: &str) -> Result<ValidOutput, OutputError> {
        let text = json_in(raw)?;
        let refused = |kind: &str, error: &serde_json::Error| {
            OutputError::Invalid(vec![json!({
                "type": kind, "loc": [], "msg": error.to_string(), "input": raw
            })])
        };
        let mut value: Value =
            serde_json::from_str(&text).map_err(|error| refused("json_invalid", &error))?;
        if !self.is_object
            && let Some(inner) = value.get_mut("response")
        {
            value = inner.take();
        }
        serde_json::from_value::<O>(value.clone())
            .map_err(|error| refused("value_error", &error))?;
        Ok(ValidOutput {
            repr: repr_value(&value),
            json: value.clone(),
            value,
        })
    }
}

#[cfg(test)]
mod tests;
