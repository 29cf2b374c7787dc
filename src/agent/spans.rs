//! GenAI spans of a run, named and attributed as pydantic-ai does (instrumentation format 5).
//!
//! Contexts are handed on explicitly and never made current: tool calls of one turn overlap on one thread, so a
//! thread-bound current span would give them wrong parents.

use std::sync::Arc;

use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, InstrumentationScope, KeyValue, global};
use serde_json::{Map, Value, json};

use super::error::AgentError;
use super::message::{
    Message, ModelResponse, NativeToolPart, NativeToolStep, RequestPart, ResponsePart, ToolCall,
    UserContent, UserPart,
};
use super::metrics::{Meters, RequestMetrics};
use super::model::{Model, ModelError, RequestParameters};
use super::output::{ObjectMode, Output};
use super::render::{arguments_text, feedback_text, tool_result_text};
use super::toolset::ToolDefinition;
use super::usage::RunUsage;

/// The name under which pydantic-ai's spans are known to dashboards.
const SCOPE_NAME: &str = "pydantic-ai";
/// The pydantic-ai version whose span format this is.
const SCOPE_VERSION: &str = "2.68.0";

/// Where a run's spans go.
#[derive(Clone)]
pub struct Telemetry {
    pub tracer: Arc<BoxedTracer>,
    /// What model requests used and how long they took.
    pub meters: Meters,
    /// Holds the task's span.
    pub parent: Context,
    /// `airflow.dag_id` and the like: set on every span.
    pub identity: Vec<KeyValue>,
    /// `[common.ai] capture_content`: record prompts, answers, arguments and results.
    pub capture_content: bool,
}

impl Telemetry {
    /// Spans through the global tracer provider, metrics through the global meter provider.
    #[must_use]
    pub fn global(parent: Context, identity: Vec<KeyValue>, capture_content: bool) -> Self {
        let scope = InstrumentationScope::builder(SCOPE_NAME)
            .with_version(SCOPE_VERSION)
            .build();
        Self {
            tracer: Arc::new(global::tracer_with_scope(scope.clone())),
            meters: Meters::global(scope),
            parent,
            identity,
            capture_content,
        }
    }

    fn span(
        &self,
        name: String,
        kind: SpanKind,
        parent: &Context,
        attributes: Vec<KeyValue>,
    ) -> Context {
        let builder = self
            .tracer
            .span_builder(name)
            .with_kind(kind)
            .with_attributes(self.identity.iter().cloned().chain(attributes));
        parent.with_span(self.tracer.build_with_context(builder, parent))
    }
}

/// The `invoke_agent` span; the other spans are its children. A span that is dropped early is ended by that.
pub(super) struct RunSpan(Option<RunSpanInner>);

struct RunSpanInner {
    telemetry: Telemetry,
    context: Context,
    agent: Vec<KeyValue>,
}

impl RunSpan {
    pub(super) fn start(
        telemetry: Option<Telemetry>,
        agent_name: &str,
        model: &dyn Model,
        run_id: &str,
        conversation_id: &str,
    ) -> Self {
        let Some(telemetry) = telemetry else {
            return Self(None);
        };
        let agent = vec![
            KeyValue::new("gen_ai.agent.name", agent_name.to_owned()),
            KeyValue::new("gen_ai.agent.call.id", run_id.to_owned()),
            KeyValue::new("gen_ai.conversation.id", conversation_id.to_owned()),
        ];
        let mut attributes = agent.clone();
        attributes.extend([
            KeyValue::new("gen_ai.operation.name", "invoke_agent"),
            KeyValue::new("agent_name", agent_name.to_owned()),
            KeyValue::new("model_name", model.name().to_owned()),
            KeyValue::new("logfire.msg", format!("{agent_name} run")),
        ]);
        let name = format!("invoke_agent {agent_name}");
        let context = telemetry.span(name, SpanKind::Internal, &telemetry.parent, attributes);
        Self(Some(RunSpanInner {
            telemetry,
            context,
            agent,
        }))
    }

    pub(super) fn end(
        &self,
        output: &Result<Output, AgentError>,
        messages: &[Message],
        usage: &RunUsage,
    ) {
        let Some(inner) = &self.0 else { return };
        let content = inner.telemetry.capture_content;
        let span = inner.context.span();
        span.set_attributes([
            KeyValue::new(
                "gen_ai.aggregated_usage.input_tokens",
                count(usage.input_tokens),
            ),
            KeyValue::new(
                "gen_ai.aggregated_usage.output_tokens",
                count(usage.output_tokens),
            ),
            KeyValue::new(
                "pydantic_ai.all_messages",
                messages_json(messages, content).to_string(),
            ),
            KeyValue::new(
                "logfire.json_schema",
                schema(&[
                    ("pydantic_ai.all_messages", "array"),
                    ("final_result", "object"),
                ]),
            ),
        ]);
        match output {
            Ok(output) if content => {
                let text = match output {
                    Output::Text(text) => text.clone(),
                    Output::Validated(output) => output.json.to_string(),
                    Output::Nothing => Value::Null.to_string(),
                };
                span.set_attribute(KeyValue::new("final_result", text));
            }
            Ok(_) => {}
            Err(error) => fail(
                &inner.context,
                error_class(error),
                content.then(|| error.to_string()),
            ),
        }
        span.end();
    }

    /// The span of one model request.
    pub(super) fn chat(
        &self,
        model: &dyn Model,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> ChatSpan {
        let Some(inner) = &self.0 else {
            return ChatSpan(None);
        };
        let content = inner.telemetry.capture_content;
        let mut attributes = inner.agent.clone();
        attributes.extend([
            KeyValue::new("gen_ai.operation.name", "chat"),
            KeyValue::new("gen_ai.provider.name", model.provider().to_owned()),
            KeyValue::new("gen_ai.system", model.provider().to_owned()),
            KeyValue::new("gen_ai.request.model", model.name().to_owned()),
            KeyValue::new(
                "gen_ai.input.messages",
                messages_json(messages, content).to_string(),
            ),
            KeyValue::new(
                "model_request_parameters",
                request_parameters_json(parameters).to_string(),
            ),
        ]);
        if let Some((host, port)) = model.server() {
            attributes.push(KeyValue::new("server.address", host));
            attributes.push(KeyValue::new("server.port", i64::from(port)));
        }
        if parameters.all_tools().next().is_some() {
            attributes.push(KeyValue::new(
                "gen_ai.tool.definitions",
                tools_json(parameters).to_string(),
            ));
        }
        attributes.extend(request_settings(&parameters.settings));
        if content && let Some(instructions) = last_instructions(messages) {
            let parts = json!([{ "type": "text", "content": instructions }]);
            attributes.push(KeyValue::new(
                "gen_ai.system_instructions",
                parts.to_string(),
            ));
        }
        let name = format!("chat {}", model.name());
        let context = inner
            .telemetry
            .span(name, SpanKind::Client, &inner.context, attributes);
        ChatSpan(Some(Chat {
            context,
            content,
            metrics: inner.telemetry.meters.request(model),
        }))
    }

    /// The span of one tool call.
    pub(super) fn tool(&self, call: &ToolCall) -> ToolSpan {
        let Some(inner) = &self.0 else {
            return ToolSpan(None);
        };
        let content = inner.telemetry.capture_content;
        let mut attributes = inner.agent.clone();
        attributes.extend([
            KeyValue::new("gen_ai.operation.name", "execute_tool"),
            KeyValue::new("gen_ai.tool.name", call.tool_name.clone()),
            KeyValue::new("gen_ai.tool.call.id", call.tool_call_id.clone()),
            KeyValue::new("logfire.msg", format!("running tool: {}", call.tool_name)),
        ]);
        let mut properties = vec![("gen_ai.tool.name", ""), ("gen_ai.tool.call.id", "")];
        if content {
            attributes.push(KeyValue::new(
                "gen_ai.tool.call.arguments",
                arguments_text(&call.args),
            ));
            properties.insert(0, ("gen_ai.tool.call.result", "object"));
            properties.insert(0, ("gen_ai.tool.call.arguments", "object"));
        }
        attributes.push(KeyValue::new("logfire.json_schema", schema(&properties)));
        let name = format!("execute_tool {}", call.tool_name);
        let context = inner
            .telemetry
            .span(name, SpanKind::Internal, &inner.context, attributes);
        ToolSpan(Some((context, content)))
    }
}

/// A `chat` span under way.
pub(super) struct ChatSpan(Option<Chat>);

struct Chat {
    context: Context,
    content: bool,
    metrics: RequestMetrics,
}

impl ChatSpan {
    /// The request was answered or failed.
    pub(super) fn end(self, answer: &Result<ModelResponse, ModelError>) {
        let Some(chat) = self.0 else {
            return;
        };
        chat.mark(answer);
        match answer {
            Ok(response) => chat.metrics.answered(response),
            Err(_) => chat.metrics.failed(MODEL_FAILED),
        }
    }

    /// An earlier attempt's answer was taken: what it used was counted then.
    pub(super) fn end_replayed(self, response: ModelResponse) {
        if let Some(chat) = self.0 {
            chat.mark(&Ok(response));
        }
    }
}

/// The exception of pydantic-ai that a model request fails with.
const MODEL_FAILED: &str = "ModelAPIError";

impl Chat {
    /// Ends the span.
    fn mark(&self, answer: &Result<ModelResponse, ModelError>) {
        let content = self.content;
        let span = self.context.span();
        match answer {
            Ok(response) => {
                span.set_attributes([
                    KeyValue::new("gen_ai.response.model", response.model_name.clone()),
                    KeyValue::new(
                        "gen_ai.usage.input_tokens",
                        count(response.usage.input_tokens),
                    ),
                    KeyValue::new(
                        "gen_ai.usage.output_tokens",
                        count(response.usage.output_tokens),
                    ),
                    KeyValue::new(
                        "gen_ai.output.messages",
                        json!([response_json(response, content)]).to_string(),
                    ),
                    KeyValue::new(
                        "logfire.json_schema",
                        schema(&[
                            ("gen_ai.input.messages", "array"),
                            ("gen_ai.output.messages", "array"),
                            ("model_request_parameters", "object"),
                        ]),
                    ),
                ]);
                if let Some(id) = &response.provider_response_id {
                    span.set_attribute(KeyValue::new("gen_ai.response.id", id.clone()));
                }
                if let Some(reason) = &response.finish_reason {
                    let reasons = opentelemetry::Array::String(vec![reason.clone().into()]);
                    span.set_attribute(KeyValue::new(
                        "gen_ai.response.finish_reasons",
                        opentelemetry::Value::Array(reasons),
                    ));
                }
                if let Some(cost) = response.usage.cost
                    && let Ok(dollars) = cost.to_string().parse::<f64>()
                {
                    span.set_attribute(KeyValue::new("operation.cost", dollars));
                }
            }
            Err(error) => fail(
                &self.context,
                MODEL_FAILED,
                content.then(|| error.to_string()),
            ),
        }
        span.end();
    }
}

/// Which retry a failing call makes.
pub(super) struct ToolAttempt {
    /// From 1.
    pub(super) attempt: u32,
    pub(super) max_retries: u32,
    pub(super) cause: &'static str,
}

/// An `execute_tool` span under way.
pub(super) struct ToolSpan(Option<(Context, bool)>);

impl ToolSpan {
    pub(super) fn succeed(&self, result: &str) {
        if let Some((context, true)) = &self.0 {
            context
                .span()
                .set_attribute(KeyValue::new("gen_ai.tool.call.result", result.to_owned()));
        }
    }

    pub(super) fn retry(&self, attempt: &ToolAttempt, content: &Value) {
        let Some((context, capture)) = &self.0 else {
            return;
        };
        context.span().set_attributes([
            KeyValue::new("pydantic_ai.tool.retry.attempt", i64::from(attempt.attempt)),
            KeyValue::new(
                "pydantic_ai.tool.retry.max_retries",
                i64::from(attempt.max_retries),
            ),
            KeyValue::new("pydantic_ai.tool.retry.cause", attempt.cause),
        ]);
        let text = tool_result_text(content);
        if *capture {
            self.succeed(&text);
        }
        fail(context, "ToolRetryError", capture.then_some(text));
    }

    pub(super) fn fail(&self, text: &str) {
        if let Some((context, capture)) = &self.0 {
            fail(context, "Exception", capture.then(|| text.to_owned()));
        }
    }
}

/// Marks a span as failed, with an exception event. The message is content: it may quote prompts and results.
fn fail(context: &Context, class: &'static str, message: Option<String>) {
    let span = context.span();
    let mut attributes = vec![KeyValue::new("exception.type", class)];
    attributes.extend(
        message
            .clone()
            .map(|message| KeyValue::new("exception.message", message)),
    );
    span.add_event("exception", attributes);
    span.set_status(Status::error(message.unwrap_or_default()));
}

/// The exception class of pydantic-ai that stands for an error.
fn error_class(error: &AgentError) -> &'static str {
    match error {
        AgentError::UsageLimitExceeded(_) => "UsageLimitExceeded",
        AgentError::Model(ModelError::UnexpectedBehavior(_))
        | AgentError::ToolRetriesExceeded { .. }
        | AgentError::OutputRetriesExceeded { .. }
        | AgentError::DuplicateToolCallIds { .. } => "UnexpectedModelBehavior",
        AgentError::Model(_) => "ModelAPIError",
        AgentError::OutputTokenLimitExceeded { .. } | AgentError::IncompleteOutput { .. } => {
            "OutputTokenLimitExceeded"
        }
        AgentError::IncompleteToolCall { .. } => "IncompleteToolCall",
        AgentError::ContentFilter { .. } => "ContentFilterError",
        AgentError::ToolNameConflict { .. } | AgentError::UnansweredCalls => "UserError",
        AgentError::Tool(_) => "Exception",
        AgentError::Journal(_) => "DurableJournalError",
        AgentError::Cancelled => "CancelledError",
    }
}

/// Logfire's hint on which attributes hold JSON.
fn schema(properties: &[(&str, &str)]) -> String {
    let properties: Map<String, Value> = properties
        .iter()
        .map(|(name, kind)| {
            (
                (*name).to_owned(),
                if kind.is_empty() {
                    json!({})
                } else {
                    json!({ "type": kind })
                },
            )
        })
        .collect();
    json!({ "type": "object", "properties": properties }).to_string()
}

fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

fn last_instructions(messages: &[Message]) -> Option<String> {
    messages.iter().rev().find_map(|message| match message {
        Message::Request(request) if !request.instructions.is_empty() => {
            Some(request.instructions.join("\n\n"))
        }
        _ => None,
    })
}

fn request_settings(settings: &Map<String, Value>) -> Vec<KeyValue> {
    [
        "max_tokens",
        "top_p",
        "seed",
        "temperature",
        "presence_penalty",
        "frequency_penalty",
    ]
    .into_iter()
    .filter_map(|name| {
        let value = settings.get(name)?;
        let key = format!("gen_ai.request.{name}");
        match value.as_i64() {
            Some(integer) => Some(KeyValue::new(key, integer)),
            None => value.as_f64().map(|float| KeyValue::new(key, float)),
        }
    })
    .collect()
}

fn tools_json(parameters: &RequestParameters) -> Value {
    parameters
        .all_tools()
        .map(|(tool, _)| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": tool.parameters,
            })
        })
        .collect()
}

fn request_parameters_json(parameters: &RequestParameters) -> Value {
    let tool_json = |tool: &ToolDefinition, kind: &str| {
        json!({
            "name": tool.name, "parameters_json_schema": tool.parameters,
            "description": tool.description, "sequential": tool.sequential, "kind": kind,
        })
    };
    let functions = parameters.tools.iter();
    let outputs = parameters.output_tools.iter();
    let mode = match &parameters.output_object {
        Some(object) if object.mode == ObjectMode::Native => "native",
        Some(_) => "prompted",
        None if parameters.output_tools.is_empty() => "text",
        None => "tool",
    };
    json!({
        "function_tools": functions.map(|tool| tool_json(tool, "function")).collect::<Vec<_>>(),
        "output_mode": mode,
        "output_tools": outputs.map(|tool| tool_json(&tool.definition, "output")).collect::<Vec<_>>(),
        "allow_text_output": parameters.allow_text_output,
    })
}

/// Messages in the GenAI shape; without `content` only their kinds, names and ids show.
fn messages_json(messages: &[Message], content: bool) -> Value {
    let mut out: Vec<Value> = Vec::new();
    for message in messages {
        match message {
            Message::Request(request) => {
                for part in &request.parts {
                    let (role, pieces) = request_part_json(part, content);
                    match out.last_mut() {
                        Some(last) if last.get("role") == Some(&json!(role)) => {
                            if let Some(Value::Array(parts)) = last.get_mut("parts") {
                                parts.extend(pieces);
                            }
                        }
                        _ => out.push(json!({ "role": role, "parts": pieces })),
                    }
                }
            }
            Message::Response(response) => out.push(response_json(response, content)),
        }
    }
    Value::Array(out)
}

fn request_part_json(part: &RequestPart, content: bool) -> (&'static str, Vec<Value>) {
    match part {
        RequestPart::SystemPrompt(text) => ("system", vec![text_json(text, content)]),
        RequestPart::RetryFeedback(feedback) => {
            let role = if feedback.speaks_for_the_application() {
                "system"
            } else {
                "user"
            };
            let text = feedback_text(feedback);
            (role, vec![text_json(&text, content)])
        }
        RequestPart::UserPrompt(UserContent::Text(text)) => {
            ("user", vec![text_json(text, content)])
        }
        RequestPart::UserPrompt(UserContent::Parts(parts)) => (
            "user",
            parts.iter().map(|part| user_part(part, content)).collect(),
        ),
        RequestPart::ToolReturn(result) => {
            let mut piece = json!({
                "type": "tool_call_response", "id": result.tool_call_id, "name": result.tool_name,
            });
            if content && let Value::Object(piece) = &mut piece {
                piece.insert("result".to_owned(), result.content.clone());
            }
            ("user", vec![piece])
        }
    }
}

fn user_part(part: &UserPart, content: bool) -> Value {
    match part {
        UserPart::Text(text) => text_json(text, content),
        UserPart::File(file) => {
            let mut piece = json!({ "type": "blob", "mime_type": file.media_type });
            if content && let Value::Object(piece) = &mut piece {
                piece.insert("content".to_owned(), file.base64().into());
            }
            piece
        }
    }
}

fn text_json(text: &str, content: bool) -> Value {
    if content {
        json!({ "type": "text", "content": text })
    } else {
        json!({ "type": "text" })
    }
}

fn response_json(response: &ModelResponse, content: bool) -> Value {
    let parts: Vec<Value> = response
        .parts
        .iter()
        .map(|part| match part {
            ResponsePart::Text(text) => text_json(&text.content, content),
            ResponsePart::Thinking(thinking) if content => {
                json!({ "type": "thinking", "content": thinking.content })
            }
            ResponsePart::Thinking(_) => json!({ "type": "thinking" }),
            ResponsePart::ToolCall(call) => {
                let mut piece =
                    json!({ "type": "tool_call", "id": call.tool_call_id, "name": call.tool_name });
                if content && let Value::Object(piece) = &mut piece {
                    piece.insert("arguments".to_owned(), call.args.clone().into());
                }
                piece
            }
            ResponsePart::NativeTool(part) => native_tool_json(part, content),
        })
        .collect();
    let mut message = json!({ "role": "assistant", "parts": parts });
    if let (Some(reason), Value::Object(message)) = (&response.finish_reason, &mut message) {
        message.insert("finish_reason".to_owned(), reason.clone().into());
    }
    message
}

fn native_tool_json(part: &NativeToolPart, content: bool) -> Value {
    let (kind, key, value) = match &part.step {
        NativeToolStep::Call(arguments) => ("tool_call", "arguments", arguments),
        NativeToolStep::Return(found) => ("tool_call_response", "result", found),
    };
    let mut piece = json!({
        "type": kind, "id": part.tool_call_id, "name": part.tool_name, "builtin": true,
    });
    if content && let Value::Object(piece) = &mut piece {
        piece.insert(key.to_owned(), value.clone());
    }
    piece
}
