//! Agent tasks (`AgentOperator`, `@task.agent`): the model, the toolsets, the run, and what it leaves in Airflow.

use std::sync::Arc;

use futures::future::try_join_all;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::agent_model;
use super::attempt::{Attempt, Rendered};
use super::dag_code;
use super::durable;
use super::failure::{Failure, Meaning};
use super::hitl_review::{self, Session, Verdict};
use super::llm::{self, Answered, Prepared};
use super::loggers;
use super::prompt_cache;
use super::python_output::{self, PythonOutput};
use super::services::Services;
use super::support;
use super::toolsets::{self, RunOfTask};
use super::usage_limits::usage_limits;
use super::xcom_push::{MODEL_NAME_KEY, push_one};
use crate::agent::history::{History, HistoryError};
use crate::agent::message::{UserContent, UserPart};
use crate::agent::pydantic_json::compact_json;
use crate::agent::{
    Agent, EndStrategy, ModelError, Output, OutputSpec, Retries, RunInput, RunOutcome, RunUsage,
    Telemetry,
};
use crate::airflow::python_text::repr_str;
use crate::airflow::supervisor::{ErrorKind, TaskReply, TaskRequest};
use crate::dag::definitions::{AgentTask, FunctionCall, LlmQuestion, OutputType, ToolsetSpec};

/// Where an agent's cumulated usage is kept, when the task has `usage_limits`.
const USAGE_KEY: &str = "__commonai_usage__";
const HISTORY_KEY: &str = "message_history";

macro_rules! say {
    ($logger:expr, $($argument:tt)*) => {
        tracing::info!(target: "airflow.task", logger = $logger, $($argument)*)
    };
}

/// Runs the agent; its answer is the result.
///
/// # Errors
/// The prompt function's exception, an argument that is wrong, or the run's failure.
pub async fn run(
    attempt: &Arc<Attempt>,
    task: &AgentTask,
    mut rendered: Rendered,
    cancel: CancellationToken,
    telemetry: Option<Telemetry>,
) -> Result<Value, Failure> {
    if let (Some(question), Some(method)) = (&task.llm, &attempt.details.ti_context.next_method) {
        return resume(attempt, question, &rendered, method).await;
    }
    if let Some(call) = &task.prompt_function {
        let prompt = prompt_of_function(attempt, call, &rendered).await?;
        check_prompt(&prompt, &attempt.task.operator)?;
        let again = Arc::clone(attempt);
        rendered = super::blocking(move || {
            again.render_again(&mut rendered, prompt)?;
            Ok::<_, Failure>(rendered)
        })
        .await??;
    }
    refuse_mapped_settings(&rendered)?;
    if task.hitl_review.is_some() {
        let operator = &attempt.task.operator;
        hitl_review::check(&attempt.services, rendered.field("prompt"), operator)?;
    }
    let keeps_interpreter = rendered.toolsets.iter().any(ToolsetSpec::needs_interpreter)
        || matches!(task.output_type, OutputType::Python { .. })
        || (task.llm.as_ref()).is_some_and(|question| question.approval.has_notifiers);
    if !keeps_interpreter {
        // Everything that is left to do is Rust's.
        dag_code::release_interpreter(attempt).await?;
    }

    let logger = task.llm.as_ref().map_or(loggers::AGENT, llm::logger);
    let services = &attempt.services;
    let limits = usage_limits(rendered.field("usage_limits"))?;
    let Prepared {
        instructions,
        prompt,
    } = match &task.llm {
        Some(question) => llm::prepare(attempt, question, &rendered).await?,
        None => Prepared::plain(&rendered)?,
    };
    let budget = limits.as_ref().map(|_| Budget {
        services,
        logger,
        max_tries: attempt.details.ti_context.max_tries,
    });
    let spent = match &budget {
        Some(budget) => budget.load().await?,
        None => RunUsage::default(),
    };
    let mut params = match &task.llm {
        Some(llm) => AgentParams::of_question(llm, rendered.field("model_settings"))?,
        None => AgentParams::of(rendered.field("agent_params"))?,
    };
    if task.cache_prompt && task.llm.is_none() {
        prompt_cache::switch_on(&mut params.settings);
    }
    params.settings.extend(task.capabilities.settings.clone());
    let (journal, run_id) = if task.durable {
        let (journal, run_id) = durable::journal_of_task(attempt).await?;
        (Some(journal), run_id)
    } else {
        (None, services.ti.id.clone())
    };
    let chosen = agent_model::choose(attempt, &rendered, cancel.clone()).await?;
    let run_of_task = RunOfTask {
        run_id: &run_id,
        logging: task.enable_tool_logging,
        recording: task.durable,
    };
    let durable_run = match &journal {
        Some(journal) => {
            // Agents that the task's own code starts meanwhile are recorded with it.
            attempt.agents.keep_journal(journal);
            // Steps are named for the task where the agent has no name of its own.
            let name = match params.name.as_str() {
                "agent" => &attempt.task.task_id,
                name => name,
            };
            let run = journal.start_run(name, None).await;
            Some(run.map_err(|error| Failure::of_journal(&error))?)
        }
        None => None,
    };
    let mut agent = Agent {
        name: params.name,
        model: chosen.model,
        toolsets: toolsets::build(attempt, &rendered, params.retries, run_of_task)?,
        instructions,
        native_tools: task.capabilities.native_tools.clone(),
        settings: params.settings,
        retries: params.retries,
        limits: limits.unwrap_or_default(),
        output: output_spec(attempt, task, &rendered).await?,
        end_strategy: params.end_strategy,
    };
    let history = history(rendered.field("message_history"))?;
    let conversation_id = match history.as_ref().and_then(History::conversation_id) {
        Some(known) => known.to_owned(),
        None if task.durable => run_id.clone(),
        None => uuid::Uuid::now_v7().to_string(),
    };
    let input = RunInput {
        system_prompts: Vec::new(),
        prompt: Some(prompt),
        history: history
            .as_ref()
            .map_or_else(Vec::new, |history| history.messages.clone()),
        run_id: run_id.clone(),
        conversation_id: conversation_id.clone(),
        usage: spent.clone(),
        cancel: cancel.clone(),
        telemetry: telemetry.clone(),
        durable: durable_run,
    };
    let mut outcome = agent.run(input).await;
    if let Some(journal) = &journal {
        // After a failure as well: that attempt is the one that is retried.
        journal.log_summary(logger);
    }
    if let (Ok(_), Some(left)) = (
        &outcome.output,
        chosen.replay.and_then(|replay| replay.left_over()),
    ) {
        outcome.output = Err(ModelError::Replay(left).into());
    }
    if let Some(budget) = &budget {
        budget.save(&outcome.usage).await;
    }
    let used = outcome.usage.since(&spent);
    match &outcome.output {
        Ok(answer) => {
            log_success(logger, &outcome, &used);
            let mut result = answer_xcom(answer, attempt.task.do_xcom_push);
            if let Some(question) = &task.llm {
                let answered = Answered {
                    outcome: &outcome,
                    output: answer,
                    xcom: result.as_ref().unwrap_or(&Value::Null),
                };
                let settled = llm::settle(attempt, question, &rendered, &answered);
                if let Some(settled) = settled.await? {
                    result = Ok(settled);
                }
            } else if attempt.task.do_xcom_push {
                push_metadata(services, &run_id, &outcome, &used).await?;
            }
            if let Some(history) = &history {
                let all = history.continued(&outcome.messages, &run_id, &conversation_id);
                push_one(services, HISTORY_KEY, compact_json(&all).into()).await?;
            }
            if budget.is_some() {
                log_cumulated(logger, &outcome.usage);
            }
            if let Some(review) = &task.hitl_review {
                let shown = rendered.field("prompt").as_str().unwrap_or_default();
                let mut session = Session::open(services, review, shown, answer).await?;
                let mut last = None;
                while let Verdict::Changes(feedback) = session.verdict(&cancel).await? {
                    let again_id = uuid::Uuid::now_v7().to_string();
                    let run_of_task = RunOfTask {
                        run_id: &again_id,
                        ..run_of_task
                    };
                    agent.toolsets =
                        toolsets::build(attempt, &rendered, params.retries, run_of_task)?;
                    let before = last.as_ref().unwrap_or(&outcome);
                    let usage = match &budget {
                        Some(_) => before.usage.clone(),
                        None => RunUsage::default(),
                    };
                    let input = RunInput {
                        system_prompts: Vec::new(),
                        prompt: Some(UserContent::Text(feedback)),
                        history: before.messages.clone(),
                        run_id: again_id.clone(),
                        conversation_id: conversation_id.clone(),
                        usage: usage.clone(),
                        cancel: cancel.clone(),
                        telemetry: telemetry.clone(),
                        durable: None,
                    };
                    let again = agent.run(input).await;
                    if let Some(budget) = &budget {
                        budget.save(&again.usage).await;
                    }
                    match &again.output {
                        Ok(answer) => {
                            log_success(logger, &again, &again.usage.since(&usage));
                            session.submit(answer).await?;
                            result = answer_xcom(answer, attempt.task.do_xcom_push);
                        }
                        Err(error) => return Err(Failure::of_agent(error)),
                    }
                    last = Some(again);
                }
            }
            // Not before everything that could still fail: a retry must find the journal.
            if let (Some(journal), Ok(_)) = (&journal, &result) {
                journal.clean_up().await;
            }
            if let Some(budget) = &budget {
                budget.clear().await;
            }
            match &task.llm {
                Some(question) => llm::act(attempt, question, &rendered, result?).await,
                None => result,
            }
        }
        Err(error) if task.llm.is_some() => Err(Failure::of_agent(error)),
        Err(error) => {
            say!(logger, "LLM run failed: {}", counts(&used));
            log_cache_and_cost(logger, &used);
            if attempt.task.do_xcom_push {
                for (key, value) in [
                    ("run_id", run_id.as_str().into()),
                    ("usage", used.to_xcom()),
                ] {
                    if let Err(error) = services.request(services.set_xcom(key, value, None)).await
                    {
                        tracing::warn!(
                            target: "airflow.task", logger = loggers::AGENT,
                            "Failed to push {key} XCom for the failed run: {error}"
                        );
                    }
                }
            }
            Err(Failure::of_agent(error))
        }
    }
}

/// Goes on with an answer that has waited for a person.
async fn resume(
    attempt: &Attempt,
    question: &LlmQuestion,
    rendered: &Rendered,
    method: &str,
) -> Result<Value, Failure> {
    refuse_mapped_settings(rendered)?;
    let result = llm::resume(attempt, question, rendered, method).await;
    let succeeds = match &result {
        Ok(_) => true,
        Err(failure) => failure.meaning == Meaning::DownstreamSkipped,
    };
    if succeeds && !rendered.field("usage_limits").is_null() {
        let budget = Budget {
            services: &attempt.services,
            logger: llm::logger(question),
            max_tries: attempt.details.ti_context.max_tries,
        };
        budget.clear().await;
    }
    result
}

/// Refuses a task instance whose map index sets what is read from the Dag file once for all of them.
fn refuse_mapped_settings(rendered: &Rendered) -> Result<(), Failure> {
    let is_set = |name: &&&str| {
        rendered
            .mapped
            .get(**name)
            .is_some_and(|value| !value.is_null())
    };
    match support::NOT_MAPPABLE.iter().find(is_set) {
        None => Ok(()),
        Some(name) => {
            let text = format!(
                "{name} can't differ between map indexes natively: set it with .partial(), or send the task to a queue \
                 that a Python worker serves"
            );
            Err(Failure::new("NotImplementedError", text).for_good())
        }
    }
}

async fn output_spec(
    attempt: &Attempt,
    task: &AgentTask,
    rendered: &Rendered,
) -> Result<OutputSpec, Failure> {
    let OutputType::Python { handle, .. } = task.output_type else {
        return Ok(OutputSpec::default());
    };
    let Some(interpreter) = attempt.interpreter() else {
        return Err(Failure::new(
            "RuntimeError",
            "the Dag interpreter has ended",
        ));
    };
    let context = attempt.dag_code_context(rendered);
    let branches = match &task.llm {
        Some(question) if question.is_branch() => {
            json!({ "branches": rendered.field("branches") })
        }
        _ => json!({}),
    };
    PythonOutput::new(interpreter, context, handle, task.serialize_output)
        .spec(&branches)
        .await
}

/// The task's result, in XCom wire form.
fn answer_xcom(answer: &Output, is_pushed: bool) -> Result<Value, Failure> {
    match answer {
        Output::Text(text) => Ok(text.as_str().into()),
        Output::Nothing => Ok(Value::Null),
        Output::Validated(answer) => match python_output::xcom(&answer.value) {
            Err(_) if !is_pushed => Ok(Value::Null),
            result => result,
        },
    }
}

/// What the function of `@task.agent` returns, in XCom wire form.
async fn prompt_of_function(
    attempt: &Attempt,
    call: &FunctionCall,
    rendered: &Rendered,
) -> Result<Value, Failure> {
    let Some(interpreter) = attempt.interpreter() else {
        return Err(Failure::new(
            "RuntimeError",
            "the Dag interpreter has ended",
        ));
    };
    let args = match rendered.field("op_args") {
        Value::Null => Value::Array(Vec::new()),
        Value::Object(tuple) => tuple.get("__data__").cloned().unwrap_or_default(),
        other => other.clone(),
    };
    let kwargs = match rendered.field("op_kwargs") {
        Value::Null => Value::Object(Map::new()),
        other => other.clone(),
    };
    let context = attempt.dag_code_context(rendered);
    interpreter
        .call(call.function, args, kwargs, &context)
        .await
        .map_err(|error| Failure::of_python(&error))
}

fn check_prompt(prompt: &Value, decorator: &str) -> Result<(), Failure> {
    let class = match prompt {
        Value::String(text) if text.trim().is_empty() => "",
        Value::Array(items) if items.is_empty() => "",
        Value::String(_) | Value::Array(_) => return Ok(()),
        Value::Null => "NoneType",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.to_string().contains(['.', 'e', 'E']) => "float",
        Value::Number(_) => "int",
        Value::Object(map) => match map.get("__classname__").and_then(Value::as_str) {
            Some("builtins.tuple") => return Ok(()),
            Some(class) => class.rsplit('.').next().unwrap_or(class),
            None => "dict",
        },
    };
    let text = if class.is_empty() {
        format!(
            "The returned value from the {decorator} callable must be a non-empty string or a non-empty \
             Sequence[UserContent]."
        )
    } else {
        format!(
            "The returned value from the {decorator} callable must be str or Sequence[UserContent], got {class}."
        )
    };
    Err(Failure::new("TypeError", text))
}

pub(super) fn prompt(value: &Value) -> Result<UserContent, Failure> {
    let unsupported = |what: &str| {
        Failure::new(
            "TypeError",
            format!("a prompt with {what} is not supported natively: use text, or a list of texts"),
        )
        .for_good()
    };
    match value {
        Value::String(text) => Ok(UserContent::Text(text.clone())),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .map(|text| UserPart::Text(text.to_owned()))
                    .ok_or_else(|| unsupported("items that are not text"))
            })
            .collect::<Result<_, _>>()
            .map(UserContent::Parts),
        Value::Object(map)
            if map.get("__classname__").and_then(Value::as_str) == Some("builtins.tuple") =>
        {
            prompt(map.get("__data__").unwrap_or(&Value::Null))
        }
        other => Err(unsupported(&format!(
            "the value {}",
            super::arguments::python_repr(other)
        ))),
    }
}

/// What `agent_params` may hold here.
pub(super) struct AgentParams {
    pub name: String,
    pub settings: Map<String, Value>,
    pub retries: Retries,
    pub end_strategy: EndStrategy,
}

impl AgentParams {
    fn of_question(question: &LlmQuestion, model_settings: &Value) -> Result<Self, Failure> {
        let settings = match model_settings {
            Value::Null => Map::new(),
            Value::Object(settings) => settings.clone(),
            other => {
                let shown = super::arguments::python_repr(other);
                let text = format!("model_settings must be a dict, and is {shown}");
                return Err(Failure::new("TypeError", text));
            }
        };
        let output_retries = super::arguments::literal(&question.output_retries);
        Ok(Self {
            name: "agent".to_owned(),
            settings,
            retries: retries("output_retries", &output_retries)?,
            end_strategy: EndStrategy::default(),
        })
    }

    pub(super) fn of(rendered: &Value) -> Result<Self, Failure> {
        let mut params = Self {
            name: "agent".to_owned(),
            settings: Map::new(),
            retries: Retries::default(),
            end_strategy: EndStrategy::default(),
        };
        let given = match rendered {
            Value::Null => return Ok(params),
            Value::Object(given) => given,
            other => {
                let shown = super::arguments::python_repr(other);
                return Err(Failure::new(
                    "TypeError",
                    format!("agent_params must be a dict, and is {shown}"),
                ));
            }
        };
        for (key, value) in given {
            match (key.as_str(), value) {
                (_, Value::Null) | ("toolsets" | "tools" | "capabilities", _) => {}
                ("end_strategy", value) => {
                    params.end_strategy = match value.as_str() {
                        Some("early") => EndStrategy::Early,
                        Some("graceful") => EndStrategy::Graceful,
                        Some("exhaustive") => EndStrategy::Exhaustive,
                        _ => {
                            let shown = super::arguments::python_repr(value);
                            let text = format!(
                                "agent_params['end_strategy'] is 'early', 'graceful' or 'exhaustive', not {shown}"
                            );
                            return Err(Failure::new("ValueError", text));
                        }
                    };
                }
                ("name", Value::String(name)) => params.name.clone_from(name),
                ("model_settings", Value::Object(settings)) => params.settings = settings.clone(),
                ("retries", value) => params.retries = retries("agent_params['retries']", value)?,
                (_, Value::Array(items)) if items.is_empty() => {}
                (name, _) => {
                    let text =
                        format!("agent_params[{}] is not supported natively", repr_str(name));
                    return Err(Failure::new("NotImplementedError", text).for_good());
                }
            }
        }
        Ok(params)
    }
}

/// How often tools and answers may fail: one number for both, or a dict. `name` is the argument's, for messages.
fn retries(name: &str, value: &Value) -> Result<Retries, Failure> {
    let count = |value: &Value| {
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| {
            let shown = super::arguments::python_repr(value);
            let text = format!("{name} must be a whole number, and is {shown}");
            Failure::new("ValueError", text)
        })
    };
    let mut retries = Retries::default();
    match value {
        Value::Null => {}
        Value::Object(given) => {
            for (kind, value) in given {
                match kind.as_str() {
                    "tools" => retries.tools = count(value)?,
                    "output" => retries.output = count(value)?,
                    other => {
                        let text =
                            format!("{name} has 'tools' and 'output', not {}", repr_str(other));
                        return Err(Failure::new("ValueError", text));
                    }
                }
            }
        }
        value => {
            let count = count(value)?;
            retries = Retries {
                tools: count,
                output: count,
            };
        }
    }
    Ok(retries)
}

async fn push_metadata(
    services: &Services,
    run_id: &str,
    outcome: &RunOutcome,
    used: &RunUsage,
) -> Result<(), Failure> {
    let mut xcoms = vec![("run_id", run_id.into()), ("usage", used.to_xcom())];
    if let Some(name) = &outcome.model_name {
        xcoms.push((MODEL_NAME_KEY, name.as_str().into()));
    }
    let pushes = xcoms
        .into_iter()
        .map(|(key, value)| push_one(services, key, value));
    try_join_all(pushes).await?;
    Ok(())
}

/// The conversation to go on with; `None` when the task keeps none.
pub(super) fn history(given: &Value) -> Result<Option<History>, Failure> {
    let read = match given {
        Value::Null => return Ok(None),
        Value::String(text) => History::read(text),
        other => History::from_json(other),
    };
    read.map(Some).map_err(|error| {
        let class = match error {
            HistoryError::Unsupported { .. } => "NotImplementedError",
            _ => "pydantic_core._pydantic_core.ValidationError",
        };
        Failure::of(class, &error)
    })
}

fn counts(usage: &RunUsage) -> String {
    format!(
        "requests={}, tool_calls={}, input_tokens={}, output_tokens={}, total_tokens={}",
        usage.requests,
        usage.tool_calls,
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens()
    )
}

fn log_success(logger: &str, outcome: &RunOutcome, used: &RunUsage) {
    let model = outcome.model_name.as_deref().unwrap_or("unknown");
    say!(
        logger,
        "::group::LLM run complete: model={model}, {}",
        counts(used)
    );
    log_cache_and_cost(logger, used);
    let sequence: Vec<_> = outcome.tool_call_sequence().collect();
    if !sequence.is_empty() {
        say!(logger, "Tool call sequence: {}", sequence.join(" -> "));
    }
    if let Ok(answer) = &outcome.output {
        let repr = answer.repr();
        let shown = match repr.char_indices().nth(500) {
            Some((end, _)) => format!("{}...", repr.get(..end).unwrap_or_default()),
            None => repr,
        };
        tracing::debug!(target: "airflow.task", logger, "Output: {shown}");
    }
    say!(logger, "::endgroup::");
}

fn log_cache_and_cost(logger: &str, used: &RunUsage) {
    if used.cache_read_tokens > 0 || used.cache_write_tokens > 0 {
        say!(
            logger,
            "LLM prompt cache: cache_read_tokens={}, cache_write_tokens={}",
            used.cache_read_tokens,
            used.cache_write_tokens
        );
    }
    if let Some(cost) = used.cost {
        say!(logger, "LLM run cost: ${cost} (USD, best-effort)");
    }
}

fn log_cumulated(logger: &str, usage: &RunUsage) {
    say!(
        logger,
        "Cumulative usage across attempts: {}",
        counts(usage)
    );
    if let Some(cost) = usage.cost {
        say!(
            logger,
            "Cumulative cost across attempts: ${cost} (USD, best-effort)"
        );
    }
}

/// What earlier tries of this task instance have used of its limits; kept in the task state store.
struct Budget<'a> {
    services: &'a Services,
    logger: &'static str,
    /// Grows when the task is cleared: then the budget starts anew.
    max_tries: i64,
}

impl Budget<'_> {
    async fn load(&self) -> Result<RunUsage, Failure> {
        let request = TaskRequest::GetTaskStateStore {
            ti_id: self.services.ti.id.clone(),
            key: USAGE_KEY.to_owned(),
        };
        let record = match self.services.request(request).await {
            Ok(TaskReply::TaskState(record)) => record,
            Err(error) if error.kind == ErrorKind::TaskStoreNotFound => {
                return Ok(RunUsage::default());
            }
            Ok(_) => return Ok(RunUsage::default()),
            Err(error) => {
                let text = format!(
                    "the usage of earlier tries could not be read from the task state store: {error}"
                );
                return Err(Failure::new(
                    "airflow.sdk.exceptions.AirflowRuntimeError",
                    text,
                ));
            }
        };
        let shown = super::arguments::python_repr(&record);
        let malformed = |what: &str| {
            Failure::new(
                "ValueError",
                format!(
                    "'{USAGE_KEY}' in the task state store {what} (got {shown}); delete the key to reset the budget."
                ),
            )
        };
        let Some(Value::Object(usage)) = record.get("usage") else {
            return Err(malformed("is not a valid usage budget record"));
        };
        if record.get("max_tries").and_then(Value::as_i64) != Some(self.max_tries) {
            return Ok(RunUsage::default());
        }
        RunUsage::from_record(usage)
            .map_err(|error| malformed(&format!("has a malformed cost: {error}")))
    }

    async fn save(&self, usage: &RunUsage) {
        let request = TaskRequest::SetTaskStateStore {
            ti_id: self.services.ti.id.clone(),
            key: USAGE_KEY.to_owned(),
            value: json!({ "version": 1, "max_tries": self.max_tries, "usage": usage.to_record() }),
            expires_at: None,
        };
        if let Err(error) = self.services.request(request).await {
            tracing::warn!(
                target: "airflow.task", logger = self.logger, "Usage budget: failed to persist cumulative usage: {error}"
            );
        }
    }

    async fn clear(&self) {
        let request = TaskRequest::DeleteTaskStateStore {
            ti_id: self.services.ti.id.clone(),
            key: USAGE_KEY.to_owned(),
        };
        if let Err(error) = self.services.request(request).await {
            tracing::warn!(
                target: "airflow.task", logger = self.logger, "Usage budget: failed to delete cumulative usage key: {error}"
            );
        }
    }
}
