//! The agent loop: ask the model, run the tools it calls, ask again, until it gives the answer that was asked for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::durable::DurableRun;
use super::error::AgentError;
use super::events;
use super::history::response_dump;
use super::message::{
    Message, ModelRequest, ModelResponse, RequestPart, ResponsePart, RetryFeedback, RetryInfo,
    ToolCall, UserContent,
};
use super::model::{Model, NativeTool, RequestParameters};
use super::output::{EndStrategy, Output, OutputError, OutputSpec, TextOutput};
use super::render::is_arguments_object;
use super::spans::{RunSpan, Telemetry};
use super::tool_calls::{Retries, RetryCounts, Tools, Turn, TurnContext};
use super::toolset::Toolset;
use super::usage::{RunUsage, UsageLimits};
use crate::airflow::python_text::repr_str;

/// How long toolsets may take to close when a run ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// An agent: a model, what it may call, and the rules of a run.
pub struct Agent {
    /// For spans: `agent_params["name"]`, else `agent`.
    pub name: String,
    pub model: Arc<dyn Model>,
    /// Outermost wrappers included; tools are offered in this order.
    pub toolsets: Vec<Arc<dyn Toolset>>,
    /// The system prompt. White space around it is dropped; blank means none.
    pub instructions: String,
    /// Tools that run at the model's provider.
    pub native_tools: Vec<NativeTool>,
    /// pydantic-ai's `model_settings`.
    pub settings: Map<String, Value>,
    pub retries: Retries,
    pub limits: UsageLimits,
    /// What it must answer with.
    pub output: OutputSpec,
    pub end_strategy: EndStrategy,
}

/// What one run starts from.
pub struct RunInput {
    /// Said before the prompt, at the beginning of a conversation.
    pub system_prompts: Vec<String>,
    /// `None` when the history or the instructions say what is to be done.
    pub prompt: Option<UserContent>,
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
    /// Records the run's steps, and replays those of earlier attempts. `None`: nothing is recorded.
    pub durable: Option<Arc<DurableRun>>,
}

/// How a run ended. Usage and messages are there however it ended.
pub struct RunOutcome {
    pub output: Result<Output, AgentError>,
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
            system_prompts,
            prompt,
            history,
            run_id,
            conversation_id,
            usage,
            cancel,
            telemetry,
            durable,
        } = input;
        let durable = durable.as_ref();
        let span = RunSpan::start(
            telemetry,
            &self.name,
            self.model.as_ref(),
            &run_id,
            &conversation_id,
        );
        let before = usage.clone();
        let first = system_prompts
            .into_iter()
            .map(RequestPart::SystemPrompt)
            .chain(prompt.map(RequestPart::UserPrompt))
            .collect();
        let mut state = State {
            messages: history,
            usage,
            retries: RetryCounts::default(),
            output_retries: 0,
            turn: 0,
        };
        let context = RunContext {
            run_id: &run_id,
            conversation_id: &conversation_id,
            span: &span,
            durable,
        };
        let output = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(AgentError::Cancelled),
            output = self.drive(first, &mut state, context) => output,
        };
        match (durable, &output) {
            (Some(run), Ok(_)) => run.succeed().await,
            (Some(run), Err(error)) => run.fail(error.is_the_models_fault()).await,
            (None, _) => {}
        }
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
        first: Vec<RequestPart>,
        state: &mut State,
        context: RunContext<'_>,
    ) -> Result<Output, AgentError> {
        if let Some(Message::Response(last)) = state.messages.last()
            && !Said::by(last).calls.is_empty()
        {
            return Err(AgentError::UnansweredCalls);
        }
        self.open().await?;
        let mut next = first;
        loop {
            let tools = Tools::collect(&self.toolsets, &self.output.tools).await?;
            state.messages.push(Message::Request(ModelRequest {
                parts: std::mem::take(&mut next),
                instructions: self.instruction_parts().await?,
                timestamp: now(),
            }));
            state.turn += 1;
            let (response, is_replayed) = self.ask(state, &tools, context).await?;
            state
                .messages
                .push(Message::Response(Box::new(response.clone())));
            if !is_replayed {
                state.usage.requests += 1;
                state.usage += &response.usage;
                self.limits
                    .check_after_response(&state.usage, response.usage.input_tokens)?;
            }

            let Said { text, calls } = Said::by(&response);
            if !calls.is_empty() {
                let (parts, output) = self
                    .run_calls(&response, &text, &calls, &tools, state, context)
                    .await?;
                if let Some(output) = output {
                    // Without it the history would end with calls that nobody answered.
                    state.messages.push(Message::Request(ModelRequest {
                        parts,
                        instructions: Vec::new(),
                        timestamp: now(),
                    }));
                    return Ok(output);
                }
                next = parts;
                continue;
            }
            if text.is_empty() {
                self.refuse_hopeless(&response, context)?;
                if self.output.allows_none {
                    return Ok(Output::Nothing);
                }
            } else {
                match self.read_text(&text).await {
                    Some(Ok(output)) => return Ok(output),
                    Some(Err(error)) => {
                        self.refuse_cut_off_json(&response, &error)?;
                        let (content, cause) = error.feedback().map_err(AgentError::Tool)?;
                        next = vec![self.ask_again(content, cause, state, &response)?];
                        continue;
                    }
                    None => {}
                }
            }
            let reminder = self.reminder(&tools).into();
            next = vec![self.ask_again(reminder, "no_output", state, &response)?];
        }
    }

    /// The results of a response's calls, and the answer if it is among them.
    async fn run_calls(
        &self,
        response: &ModelResponse,
        text: &str,
        calls: &[ToolCall],
        tools: &Tools<'_>,
        state: &mut State,
        run: RunContext<'_>,
    ) -> Result<(Vec<RequestPart>, Option<Output>), AgentError> {
        let max_tokens = self.max_tokens();
        let context = TurnContext {
            tools,
            output: &self.output,
            retries: self.retries,
            limits: &self.limits,
            turn: state.turn,
            span: run.span,
            durable: run.durable,
            cut_off: is_cut_off(response).then_some(&max_tokens),
        };
        let functions = calls.iter().filter(|call| context.is_function(call));
        let functions = functions.count();
        let mut counted = functions as u64;
        if let Some(durable) = run.durable {
            counted -= durable.replayable(counted).await?;
        }
        if counted > 0 {
            self.limits.check_before_tool_calls(&state.usage, counted)?;
        }
        // Text that was asked for as JSON, and is it, was meant as the answer.
        let mut answer = None;
        if self.end_strategy == EndStrategy::Early
            && self.output.text == TextOutput::Structured
            && functions == calls.len()
            && !text.is_empty()
        {
            answer = self.read_text(text).await.and_then(Result::ok);
        }
        let turn = Turn::new(context, &mut state.retries, &mut state.usage);
        let end = turn.run(calls, self.end_strategy, answer).await?;
        state.output_retries += end.refused_outputs;
        Ok((end.parts, end.output))
    }

    /// The answer in a text; `None` when text is no answer.
    async fn read_text(&self, text: &str) -> Option<Result<Output, OutputError>> {
        match (self.output.text, &self.output.validator) {
            (TextOutput::Plain, _) => Some(Ok(Output::Text(text.to_owned()))),
            (TextOutput::Refused, _) | (_, None) => None,
            (TextOutput::Function | TextOutput::Structured, Some(validator)) => {
                Some(validator.validate(None, text).await.map(Output::Validated))
            }
        }
    }

    /// What the model is told when a response was no answer.
    ///
    /// # Errors
    /// It was told so often enough.
    fn ask_again(
        &self,
        content: Value,
        cause: &str,
        state: &mut State,
        response: &ModelResponse,
    ) -> Result<RequestPart, AgentError> {
        state.output_retries += 1;
        if state.output_retries > self.retries.output {
            return Err(if is_cut_off(response) {
                AgentError::IncompleteToolCall {
                    max_tokens: self.max_tokens(),
                }
            } else {
                AgentError::OutputRetriesExceeded {
                    max_retries: self.retries.output,
                }
            });
        }
        Ok(RequestPart::RetryFeedback(RetryFeedback {
            content,
            retry: RetryInfo {
                cause: cause.to_owned(),
                attempt: state.output_retries,
                max_retries: self.retries.output,
            },
        }))
    }

    fn reminder(&self, tools: &Tools<'_>) -> String {
        let mut ways = Vec::new();
        if self.output.text != TextOutput::Refused {
            ways.push("return text");
        }
        if !self.output.tools.is_empty() {
            ways.push("include your response in a tool call");
        } else if !tools.is_empty() {
            ways.push("call a tool");
        }
        format!("Please {}.", ways.join(" or "))
    }

    /// The next response, and whether it is an earlier attempt's, which counts against no limit.
    async fn ask(
        &self,
        state: &State,
        tools: &Tools<'_>,
        context: RunContext<'_>,
    ) -> Result<(ModelResponse, bool), AgentError> {
        let output = &self.output;
        let parameters = RequestParameters {
            tools: tools.definitions(),
            output_tools: output.tools.clone(),
            output_object: output.object.clone(),
            allow_text_output: match output.text {
                TextOutput::Plain | TextOutput::Function => true,
                TextOutput::Structured => output.tools.is_empty(),
                TextOutput::Refused => false,
            },
            native_tools: self.native_tools.clone(),
            static_instructions: usize::from(!self.instructions.trim().is_empty()),
            settings: self.settings.clone(),
        };
        let (model, messages) = (self.model.as_ref(), &state.messages);
        let step = match context.durable {
            None => None,
            Some(durable) => match durable.claim_model(model, messages, &parameters).await? {
                (_, Some(response)) => {
                    model.is_replayed();
                    let chat = context.span.chat(model, messages, &parameters);
                    chat.end_replayed(response.clone());
                    return Ok((response, true));
                }
                (step, None) => Some((durable, step)),
            },
        };
        self.limits.check_before_request(&state.usage)?;
        events::model_request(state.turn, model.name());
        let chat = context.span.chat(model, messages, &parameters);
        let started = Instant::now();
        let request = model.request(messages, &parameters);
        let answer = match &step {
            Some((durable, step)) => durable.request(step, request).await,
            None => request.await,
        };
        chat.end(&answer);
        let response = answer?;
        events::model_response(state.turn, &response, started.elapsed());
        Ok((response, false))
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

    /// JSON that the token limit cut off: with the same limit the model could only be cut off again.
    fn refuse_cut_off_json(
        &self,
        response: &ModelResponse,
        error: &OutputError,
    ) -> Result<(), AgentError> {
        let cut = response.finish_reason.as_deref() == Some("length")
            && self.output.text == TextOutput::Structured
            && error.is_incomplete_json();
        if !cut {
            return Ok(());
        }
        Err(AgentError::IncompleteOutput {
            max_tokens: self.max_tokens(),
        })
    }

    /// An empty response that asking again would not improve.
    fn refuse_hopeless(
        &self,
        response: &ModelResponse,
        context: RunContext<'_>,
    ) -> Result<(), AgentError> {
        match response.finish_reason.as_deref() {
            Some("length") => Err(AgentError::OutputTokenLimitExceeded {
                max_tokens: self.max_tokens(),
            }),
            Some("content_filter") => Err(AgentError::ContentFilter {
                reasons: filter_reasons(&response.provider_details),
                body: response_dump(response, context.run_id, context.conversation_id),
            }),
            _ => Ok(()),
        }
    }
}

/// What stays the same in the course of a run.
#[derive(Clone, Copy)]
struct RunContext<'a> {
    run_id: &'a str,
    conversation_id: &'a str,
    span: &'a RunSpan,
    durable: Option<&'a Arc<DurableRun>>,
}

/// What a response says.
struct Said {
    /// Beside calls it is commentary.
    text: String,
    calls: Vec<ToolCall>,
}

impl Said {
    fn by(response: &ModelResponse) -> Self {
        let mut said = Self {
            text: String::new(),
            calls: Vec::new(),
        };
        for part in &response.parts {
            match part {
                ResponsePart::Text(piece) => said.text.push_str(&piece.content),
                ResponsePart::ToolCall(call) => said.calls.push(call.clone()),
                ResponsePart::Thinking(_) | ResponsePart::NativeTool(_) => {}
            }
        }
        said
    }
}

/// Was the response cut off within a tool call?
fn is_cut_off(response: &ModelResponse) -> bool {
    let Some(ResponsePart::ToolCall(call)) = response.parts.last() else {
        return false;
    };
    response.finish_reason.as_deref() == Some("length") && !is_arguments_object(&call.args)
}

fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
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
mod tests;
