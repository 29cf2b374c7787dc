//! Agents that Dag code builds and runs: `pydantic_ai.Agent(...).run_sync(...)` in the function of a task.
//!
//! Requests and answers are those of `updraft_agent.py`. The loop runs here, on the runtime; the code that waits for it
//! is asked for the agent's functions, its output type and the toolset classes of the Dag, and answers between two waits.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::agent_model;
use super::agent_runs::{Chosen, Run};
use super::agent_task::{AgentParams, history, prompt};
use super::attempt::{Attempt, Rendered};
use super::failure::Failure;
use super::python_output::PythonOutput;
use super::python_toolset::PythonSide;
use super::toolsets;
use super::usage_limits::usage_limits;
use crate::agent::{Agent, NativeTool, Output, OutputSpec, RunInput, RunUsage};
use crate::dag::Interpreter;
use crate::dag::definitions::{Handle, ToolsetSpec};

#[derive(Deserialize)]
struct Request {
    run_id: String,
    conversation_id: Option<String>,
    /// As `agent_params` has them: `name`, `model_settings`, `retries`, `end_strategy`.
    params: Value,
    model: Map<String, Value>,
    prompt: Value,
    system_prompts: Vec<String>,
    message_history: Value,
    usage_limits: Value,
    usage: Map<String, Value>,
    output: Option<Handle>,
    toolsets: Vec<ToolsetSpec>,
    native_tools: Vec<NativeTool>,
    /// With `AirflowDurability`.
    durable: Option<Durable>,
}

#[derive(Deserialize)]
struct Durable {
    /// What steps are named for.
    name: String,
    /// The place of the step that the agent is started in.
    within: Option<String>,
}

/// One step of what Dag code asks: `{"start": REQUEST}`, then `{"run", "answer": [NUMBER, TEXT]}` as long as the answer is
/// `{"run", "call"}`; `{"run", "end"}` after `{"done"}`, or in its place. `{"durable"}` and `{"span"}` are of agents whose
/// loop is Python's.
///
/// # Errors
/// There is no such run.
pub(super) async fn step(attempt: &Arc<Attempt>, asked: &Value) -> Result<Value, String> {
    let agents = &attempt.agents;
    if let Some(asked) = asked.get("durable") {
        return agents.named.answer(attempt, asked).await;
    }
    if let Some(told) = asked.get("span") {
        return agents.tell_span(told).map(|()| Value::Null);
    }
    let number = match asked.get("run").and_then(Value::as_u64) {
        Some(number) => number,
        None => start(attempt, asked.get("start").cloned().unwrap_or_default()),
    };
    if asked.get("end").is_some() {
        agents.end(number);
        return Ok(Value::Null);
    }
    let run = agents
        .run(number)
        .ok_or("there is no such run of an agent")?;
    let mut run = run.lock().await;
    if let Some([called, Value::String(text)]) = asked
        .get("answer")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        let called = called.as_u64().unwrap_or_default();
        run.served.answer(called, text.clone());
    }
    let Run { served, work, .. } = &mut *run;
    tokio::select! {
        biased;
        Some(call) = served.next() => Ok(json!({ "run": number, "call": call })),
        done = work => match done {
            Ok(answer) => Ok(json!({ "run": number, "done": answer })),
            Err(error) => Err(format!("a fault of Updraft: {error}")),
        },
    }
}

/// Starts an agent beside the code that waits for it.
fn start(attempt: &Arc<Attempt>, request: Value) -> u64 {
    let (interpreter, served) = Interpreter::served_by_its_code();
    let cancel = CancellationToken::new();
    let (own, cancelled) = (Arc::clone(attempt), cancel.clone());
    let work = tokio::spawn(async move {
        match run(&own, Arc::new(interpreter), request, cancelled).await {
            Ok(answer) => answer,
            Err(failure) => {
                json!({ "error": { "class": failure.class, "message": failure.message } })
            }
        }
    });
    attempt.agents.start(served, work, cancel)
}

async fn model(
    attempt: &Attempt,
    fields: Map<String, Value>,
    cancel: CancellationToken,
) -> Result<Chosen, Failure> {
    let name = Value::from(fields.clone()).to_string();
    if let Some(chosen) = attempt.agents.model(&name) {
        return Ok(chosen);
    }
    let rendered = Rendered {
        fields,
        ..Rendered::default()
    };
    let chosen = agent_model::choose(attempt, &rendered, cancel).await?;
    Ok(attempt.agents.keep_model(name, chosen))
}

async fn run(
    attempt: &Arc<Attempt>,
    interpreter: Arc<Interpreter>,
    request: Value,
    cancel: CancellationToken,
) -> Result<Value, Failure> {
    let request: Request =
        serde_json::from_value(request).map_err(|error| Failure::of("RuntimeError", &error))?;
    let params = AgentParams::of(&request.params)?;
    // The function that runs the agent has its context already.
    let context = Value::Null;
    let side = PythonSide {
        interpreter: Arc::clone(&interpreter),
        context: Arc::new(context.clone()),
        run_id: request.run_id.clone(),
        max_retries: params.retries.tools,
        files: Arc::clone(&attempt.native_toolsets.files),
    };
    let output = match request.output {
        Some(handle) => {
            PythonOutput::new(interpreter, context, handle, false)
                .spec(&json!({}))
                .await?
        }
        None => OutputSpec::default(),
    };
    let durable = match &request.durable {
        Some(Durable { name, within }) => {
            let journal = attempt.agents.journal(attempt).await?;
            let run = journal.start_run(name, within.as_deref()).await;
            Some(run.map_err(|error| Failure::of_journal(&error))?)
        }
        None => None,
    };
    let agent = Agent {
        name: params.name,
        model: model(attempt, request.model, cancel.clone()).await?.model,
        toolsets: toolsets::for_agent_of_dag_code(
            attempt,
            &request.toolsets,
            side,
            durable.is_some(),
        )?,
        // Among the toolsets' instructions: functions of the agent may make them.
        instructions: String::new(),
        native_tools: request.native_tools,
        settings: params.settings,
        retries: params.retries,
        limits: usage_limits(&request.usage_limits)?.unwrap_or_default(),
        output,
        end_strategy: params.end_strategy,
    };
    let history = history(&request.message_history)?.unwrap_or_default();
    let conversation_id = request
        .conversation_id
        .or_else(|| history.conversation_id().map(ToOwned::to_owned))
        .unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    let input = RunInput {
        system_prompts: request.system_prompts,
        prompt: match &request.prompt {
            Value::Null => None,
            given => Some(prompt(given)?),
        },
        history: history.messages.clone(),
        run_id: request.run_id.clone(),
        conversation_id: conversation_id.clone(),
        usage: RunUsage::from_record(&request.usage)
            .map_err(|error| Failure::of("ValueError", &error))?,
        cancel,
        telemetry: attempt.agents.telemetry(),
        durable,
    };
    let outcome = agent.run(input).await;
    let answer = outcome.output.map_err(|error| Failure::of_agent(&error))?;
    let messages = history.continued(&outcome.messages, &request.run_id, &conversation_id);
    Ok(json!({
        "output": shown(answer),
        "conversation_id": conversation_id,
        "usage": outcome.usage.to_record(),
        "messages": messages,
        "new_message_index": history.messages.len(),
    }))
}

fn shown(answer: Output) -> Value {
    match answer {
        Output::Text(text) => json!({ "text": text }),
        Output::Nothing => json!({ "text": null }),
        Output::Validated(valid) => json!({ "handle": valid.value.get("handle") }),
    }
}
