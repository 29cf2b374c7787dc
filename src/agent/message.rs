//! The messages of a run, as pydantic-ai names them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::binary_content::BinaryContent;

/// One message of the exchange with a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    Request(ModelRequest),
    Response(Box<ModelResponse>),
}

/// What goes to the model: prompts and tool results.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelRequest {
    pub parts: Vec<RequestPart>,
    /// The system prompt and toolset instructions, one entry each. Only the newest request's are sent.
    pub instructions: Vec<String>,
    /// When it was made: RFC 3339, UTC, microseconds.
    #[serde(skip)]
    pub timestamp: String,
}

/// One part of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestPart {
    /// The user's prompt: text, or content items as JSON.
    UserPrompt(UserContent),
    /// A system message in the midst of a run.
    SystemPrompt(String),
    /// The result of one tool call. There is exactly one for every call.
    ToolReturn(ToolReturn),
    /// What was wrong with a response that called nothing.
    RetryFeedback(RetryFeedback),
}

/// Why the model is asked again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RetryFeedback {
    /// Text, or the items of a validation error.
    pub content: Value,
    pub retry: RetryInfo,
}

/// One correction that the model is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RetryInfo {
    /// `validation_error`, `model_retry`, `no_output` or `unknown_tool`.
    pub cause: String,
    /// From 1.
    pub attempt: u32,
    pub max_retries: u32,
}

impl RetryFeedback {
    /// Is it the application's own sentence, which needs no fence around it?
    #[must_use]
    pub fn speaks_for_the_application(&self) -> bool {
        self.retry.cause == "no_output"
    }
}

/// What a user says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum UserContent {
    Text(String),
    /// Several pieces of text, sent as content parts.
    Parts(Vec<String>),
}

/// The result of a tool call, as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolReturn {
    pub tool_name: String,
    pub tool_call_id: String,
    pub content: Value,
    /// Files that `content` refers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<BinaryContent>,
    pub outcome: ToolOutcome,
    /// For one that the model may correct. The model is not told.
    #[serde(skip)]
    pub retry: Option<RetryInfo>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    Success,
    /// The model is told what was wrong and may call again; counts against the tool's retries.
    Retried,
    /// The model is told; no counter moves.
    Failed,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelResponse {
    pub parts: Vec<ResponsePart>,
    pub usage: super::usage::RequestUsage,
    pub model_name: String,
    /// `stop`, `length`, `tool_call`, `content_filter` or `error`, whatever the provider calls it.
    pub finish_reason: Option<String>,
    pub provider_response_id: Option<String>,
    /// `openai`, `anthropic` ...: who answered, which a fallback chain decides anew for each request.
    pub provider_name: String,
    /// The provider's base URL.
    pub provider_url: Option<String>,
    /// What the provider said beyond the common fields: its own `finish_reason`, a `refusal`, its `timestamp`.
    pub provider_details: Map<String, Value>,
    /// When the response arrived: RFC 3339, UTC, microseconds.
    pub timestamp: String,
}

/// One part of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponsePart {
    Text(String),
    Thinking(Thinking),
    ToolCall(ToolCall),
}

/// What a model thought before it answered. It goes back only to the provider it came from, in the field it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thinking {
    pub content: String,
    /// The field of the response that held it: `reasoning_content`, `reasoning`.
    pub id: Option<String>,
    pub provider_name: Option<String>,
}

/// A call that the model wants made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    pub tool_name: String,
    /// The arguments as the model wrote them: usually, not always, a JSON object.
    pub args: String,
    pub tool_call_id: String,
    /// Opaque texts that go back with the call to the provider it came from (Gemini's thought signatures).
    pub signatures: Vec<String>,
}
