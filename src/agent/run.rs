//! The agent loop: ask the model, run the tools it calls, ask again, until it answers in text.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::error::AgentError;
use super::events;
use super::history::response_dump;
use super::message::{
    Message, ModelRequest, ModelResponse, RequestPart, ResponsePart, ToolCall, UserContent,
};
use super::model::{Model, RequestParameters};
use super::render::is_arguments_object;
use super::spans::{RunSpan, Telemetry};
use super::tool_calls::{RetryCounts, Tools};
use super::toolset::Toolset;
use super::usage::{RunUsage, UsageLimits};
use crate::airflow::python_text::repr_str;

/// How long toolsets may take to close when a run ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the model may correct itself: pydantic-ai's `retries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Failing turns per tool, for tools that have no budget of their own.
    pub tools: u32,
    /// Responses that are no answer, in the whole run.
    pub output: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            tools: 1,
            output: 1,
        }
    }
}

/// An agent: a model, what it may call, and the rules of a run.
pub struct Agent {
    /// For spans: `agent_params["name"]`, else `agent`.
    pub name: String,
    pub model: Arc<dyn Model>,
    /// Outermost wrappers included; tools are offered in this order.
    pub toolsets: Vec<Arc<dyn Toolset>>,
    /// The system prompt. White space around it is dropped; blank means none.
    pub instructions: String,
    /// pydantic-ai's `model_settings`.
    pub settings: Map<String, Value>,
    pub retries: Retries,
    pub limits: UsageLimits,
}

/// What one run starts from.
pub struct RunInput {
    pub prompt: UserContent,
    /// Messages of earlier runs, oldest first.
    pub history: Vec<Message>,
    /// The task instance's id.
    pub run_id: String,
    /// A UUID that several runs of one conversation share.
    pub conversation_id: String,
    /// What earlier attempts have used of the limits.
    pub usage: RunUsage,
    /// Cancels model calls and tools.
    pub cancel: CancellationToken,
    /// `None` when no spans are wanted.
    pub telemetry: Option<Telemetry>,
}

/// How a run ended. Usage and messages are there however it ended.
pub struct RunOutcome {
    pub output: Result<String, AgentError>,
    /// `RunInput::usage` and what this run added.
    pub usage: RunUsage,
    /// The history and everything this run said and heard.
    pub messages: Vec<Message>,
    /// Who answered last: the response's own model name.
    pub model_name: Option<String>,
}

impl RunOutcome {
    /// The names of the tools the model called, in order.
    pub fn tool_call_sequence(&self) -> impl Iterator<Item = &str> {
        self.messages
            .iter()
            .flat_map(|message| match message {
                Message::Response(response) => response.parts.as_slice(),
                Message::Request(_) => &[],
            })
            .filter_map(|part| match part {
                ResponsePart::ToolCall(call) => Some(call.tool_name.as_str()),
                _ => None,
            })
    }
}

/// What changes in the course of a run.
struct State {
    messages: Vec<Message>,
    usage: RunUsage,
    retries: RetryCounts,
    output_retries: u32,
    turn: u64,
}

impl Agent {
    /// Runs until the model answers, something fails, or the run is cancelled; then closes the toolsets.
    pub async fn run(&self, input: RunInput) -> RunOutcome {
        let RunInput {
            prompt,
            history,
            run_id,
            conversation_id,
            usage,
            cancel,
            telemetry,
        } = input;
        let span = RunSpan::start(
            telemetry,
            &self.name,
            self.model.as_ref(),
            &run_id,
            &conversation_id,
        );
        let before = usage.clone();
        let mut state = State {
            messages: history,
            usage,
            retries: RetryCounts::default(),
            output_retries: 0,
            turn: 0,
        };
        let ids = Ids {
            run_id: &run_id,
            conversation_id: &conversation_id,
        };
        let output = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(AgentError::Cancelled),
            output = self.drive(prompt, &mut state, &span, ids) => output,
        };
        self.close().await;
        span.end(&output, &state.messages, &state.usage.since(&before));
        let model_name = state
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::Response(response) => Some(response.model_name.clone()),
                Message::Request(_) => None,
            });
        RunOutcome {
            output,
            usage: state.usage,
            messages: state.messages,
            model_name,
        }
    }

    async fn close(&self) {
        let closing =
            futures::future::join_all(self.toolsets.iter().map(|toolset| toolset.close()));
        if tokio::time::timeout(CLOSE_TIMEOUT, closing).await.is_err() {
            tracing::warn!(
                seconds = CLOSE_TIMEOUT.as_secs(),
                "a toolset did not close in time and was abandoned"
            );
        }
    }

    async fn drive(
        &self,
        prompt: UserContent,
        state: &mut State,
        span: &RunSpan,
        ids: Ids<'_>,
    ) -> Result<String, AgentError> {
        self.open().await?;
        let mut next = vec![RequestPart::UserPrompt(prompt)];
        loop {
            let tools = Tools::collect(&self.toolsets).await?;
            state.messages.push(Message::Request(ModelRequest {
                parts: std::mem::take(&mut next),
                instructions: self.instruction_parts().await?,
            }));
            self.limits.check_before_request(&state.usage)?;
            state.turn += 1;
            let response = self.ask(state, &tools, span).await?;
            state
                .messages
                .push(Message::Response(Box::new(response.clone())));
            state.usage.requests += 1;
            state.usage += &response.usage;
            self.limits
                .check_after_response(&state.usage, response.usage.input_tokens)?;

            match Answer::of(&response) {
                Answer::Calls(calls) => {
                    check_unique_ids(&calls)?;
                    self.limits
                        .check_before_tool_calls(&state.usage, calls.len() as u64)?;
                    let prepared = tools
                        .prepare(&calls, &state.retries, self.retries.tools, span)
                        .await
                        .map_err(|error| self.cut_off(&response).unwrap_or(error))?;
                    next = tools
                        .run(
                            prepared,
                            &mut state.retries,
                            &mut state.usage,
                            state.turn,
                            span,
                        )
                        .await?;
                }
                Answer::Text(text) => return Ok(text),
                Answer::Nothing => {
                    self.refuse_hopeless(&response, ids)?;
                    state.output_retries += 1;
                    if state.output_retries > self.retries.output {
                        return Err(AgentError::OutputRetriesExceeded {
                            max_retries: self.retries.output,
                        });
                    }
                    let reminder = if tools.is_empty() {
                        "Please return text."
                    } else {
                        "Please return text or call a tool."
                    };
                    next = vec![RequestPart::SystemPrompt(reminder.to_owned())];
                }
            }
        }
    }

    async fn ask(
        &self,
        state: &State,
        tools: &Tools<'_>,
        span: &RunSpan,
    ) -> Result<ModelResponse, AgentError> {
        let parameters = RequestParameters {
            tools: tools.definitions(),
            allow_text_output: true,
            settings: self.settings.clone(),
        };
        events::model_request(state.turn, self.model.name());
        let chat = span.chat(self.model.as_ref(), &state.messages, &parameters);
        let started = Instant::now();
        let answer = self.model.request(&state.messages, &parameters).await;
        chat.end(&answer);
        let response = answer?;
        events::model_response(state.turn, &response, started.elapsed());
        Ok(response)
    }

    async fn open(&self) -> Result<(), AgentError> {
        for toolset in &self.toolsets {
            toolset
                .open()
                .await
                .map_err(|error| AgentError::Tool(error.to_string()))?;
        }
        Ok(())
    }

    /// The system prompt, and what toolsets add to it.
    async fn instruction_parts(&self) -> Result<Vec<String>, AgentError> {
        let mut parts = vec![self.instructions.clone()];
        for toolset in &self.toolsets {
            let added = toolset
                .instructions()
                .await
                .map_err(|error| AgentError::Tool(error.to_string()))?;
            parts.extend(added);
        }
        let trimmed = parts.iter().map(|part| part.trim());
        Ok(trimmed
            .filter(|part| !part.is_empty())
            .map(ToOwned::to_owned)
            .collect())
    }

    fn max_tokens(&self) -> Option<String> {
        let set = self
            .settings
            .get("max_tokens")
            .filter(|value| !value.is_null());
        set.map(ToString::to_string)
    }

    /// Was the response cut off within a tool call? Then that, and not the call, is what is wrong.
    fn cut_off(&self, response: &ModelResponse) -> Option<AgentError> {
        let Some(ResponsePart::ToolCall(call)) = response.parts.last() else {
            return None;
        };
        let cut =
            response.finish_reason.as_deref() == Some("length") && !is_arguments_object(&call.args);
        cut.then(|| AgentError::IncompleteToolCall {
            max_tokens: self.max_tokens(),
        })
    }

    /// An empty response that asking again would not improve.
    fn refuse_hopeless(&self, response: &ModelResponse, ids: Ids<'_>) -> Result<(), AgentError> {
        match response.finish_reason.as_deref() {
            Some("length") => Err(AgentError::OutputTokenLimitExceeded {
                max_tokens: self.max_tokens(),
            }),
            Some("content_filter") => Err(AgentError::ContentFilter {
                reasons: filter_reasons(&response.provider_details),
                body: response_dump(response, ids.run_id, ids.conversation_id),
            }),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy)]
struct Ids<'a> {
    run_id: &'a str,
    conversation_id: &'a str,
}

/// What a response comes to.
enum Answer {
    /// Text beside calls is commentary: the calls are made and the run goes on.
    Calls(Vec<ToolCall>),
    /// White space is an answer too.
    Text(String),
    /// No parts, or nothing but empty text and thinking.
    Nothing,
}

impl Answer {
    fn of(response: &ModelResponse) -> Self {
        let mut text = String::new();
        let mut calls = Vec::new();
        for part in &response.parts {
            match part {
                ResponsePart::Text(piece) => text.push_str(piece),
                ResponsePart::ToolCall(call) => calls.push(call.clone()),
                ResponsePart::Thinking(_) => {}
            }
        }
        if !calls.is_empty() {
            Self::Calls(calls)
        } else if text.is_empty() {
            Self::Nothing
        } else {
            Self::Text(text)
        }
    }
}

/// Results are matched to calls by id, so two calls with one id can't both be answered.
fn check_unique_ids(calls: &[ToolCall]) -> Result<(), AgentError> {
    let mut seen = HashSet::new();
    let mut duplicates: Vec<String> = Vec::new();
    for call in calls {
        let id = &call.tool_call_id;
        if !seen.insert(id) && !duplicates.contains(id) {
            duplicates.push(id.clone());
        }
    }
    if duplicates.is_empty() {
        Ok(())
    } else {
        Err(AgentError::DuplicateToolCallIds {
            tool_call_ids: duplicates,
        })
    }
}

/// ` Finish reason: '...'. Refusal: '...'`: what the provider said about a filtered response.
fn filter_reasons(details: &Map<String, Value>) -> String {
    let text = |key: &str| {
        details
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let mut reasons = Vec::new();
    if let Some(reason) = text("finish_reason") {
        reasons.push(format!("Finish reason: '{reason}'"));
    } else if let Some(reason) = text("block_reason") {
        reasons.push(format!("Block reason: '{reason}'"));
    }
    if let Some(refusal) = text("refusal") {
        reasons.push(format!("Refusal: {}", repr_str(refusal)));
    }
    match reasons.join(". ") {
        reasons if reasons.is_empty() => reasons,
        reasons => format!(" {reasons}"),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
