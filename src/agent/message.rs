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
    /// Several pieces, sent as content parts.
    Parts(Vec<UserPart>),
}

/// One piece of what a user says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum UserPart {
    Text(String),
    File(BinaryContent),
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
    Text(TextPart),
    Thinking(Thinking),
    ToolCall(ToolCall),
    /// What the provider did by itself, such as a search of the web. It goes back to that provider as it came.
    NativeTool(NativeToolPart),
}

impl ResponsePart {
    /// Text that says nothing of where it comes from.
    #[must_use]
    pub fn text(content: &str) -> Self {
        Self::Text(content.into())
    }
}

/// Where a part comes from, and what its provider wants back with it. Other providers don't get it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The provider's id of the part; with Chat Completions the field that held it: `reasoning_content`, `reasoning`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `None`: that of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
    /// Opaque values, such as Gemini's `thought_signature`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub provider_details: Map<String, Value>,
}

impl Origin {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Was the part made by `provider`? `response` tells who made what does not say so itself.
    #[must_use]
    pub fn is(&self, provider: &str, response: &ModelResponse) -> bool {
        self.provider_name
            .as_deref()
            .unwrap_or(&response.provider_name)
            == provider
    }
}

/// What a model says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "WrittenText", into = "WrittenText")]
pub struct TextPart {
    pub content: String,
    pub origin: Origin,
}

/// Text alone is written as a string.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WrittenText {
    Alone(String),
    WithOrigin { content: String, origin: Origin },
}

impl From<WrittenText> for TextPart {
    fn from(written: WrittenText) -> Self {
        match written {
            WrittenText::Alone(content) => content.as_str().into(),
            WrittenText::WithOrigin { content, origin } => Self { content, origin },
        }
    }
}

impl From<TextPart> for WrittenText {
    fn from(part: TextPart) -> Self {
        let TextPart { content, origin } = part;
        if origin.is_unknown() {
            Self::Alone(content)
        } else {
            Self::WithOrigin { content, origin }
        }
    }
}

impl From<&str> for TextPart {
    fn from(content: &str) -> Self {
        Self {
            content: content.to_owned(),
            origin: Origin::default(),
        }
    }
}

/// What a model thought before it answered. It goes back only to the provider it came from, in the form it came in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thinking {
    /// Empty when the provider keeps it to itself and gives only a signature.
    pub content: String,
    /// By which the provider knows its own thinking again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[serde(skip_serializing_if = "Origin::is_unknown")]
    pub origin: Origin,
}

/// A call that the model wants made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolCall {
    pub tool_name: String,
    /// The arguments as the model wrote them: usually, not always, a JSON object.
    pub args: String,
    pub tool_call_id: String,
    #[serde(skip_serializing_if = "Origin::is_unknown")]
    pub origin: Origin,
}

/// A step of a tool that runs at the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NativeToolPart {
    /// pydantic-ai's name of the tool: `web_search`.
    pub tool_name: String,
    pub tool_call_id: String,
    pub step: NativeToolStep,
    pub origin: Origin,
}

/// What a [`NativeToolPart`] shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeToolStep {
    /// The tool's arguments.
    Call(Value),
    /// What it found.
    Return(Value),
}

impl Default for NativeToolStep {
    fn default() -> Self {
        Self::Call(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    #[test]
    fn text_is_recorded_as_a_string_until_it_has_an_origin() {
        let part = ResponsePart::text("Hi.");
        assert_eq!(json!(part), json!({ "text": "Hi." }));
        assert_eq!(
            serde_json::from_value::<ResponsePart>(json!({ "text": "Hi." })).unwrap(),
            part
        );
        let mut part = TextPart::from("Hi.");
        part.origin.id = Some("msg_1".to_owned());
        let part = ResponsePart::Text(part);
        let written = json!({ "text": { "content": "Hi.", "origin": { "id": "msg_1" } } });
        assert_eq!(json!(part), written);
        assert_eq!(
            serde_json::from_value::<ResponsePart>(written).unwrap(),
            part
        );
    }
}
