//! The trait that every model provider implements.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::message::{Message, ModelResponse};
use super::output::{OutputObject, OutputTool};
use super::toolset::ToolDefinition;

/// What a request carries beside the messages.
#[derive(Clone, Debug, Default)]
pub struct RequestParameters {
    /// The tools the model may call, in the order of registration.
    pub tools: Vec<ToolDefinition>,
    /// The tools by which it may answer; offered after the others.
    pub output_tools: Vec<OutputTool>,
    /// The schema of an answer in text, where one was asked for.
    pub output_object: Option<OutputObject>,
    /// False when only an output tool can end the run.
    pub allow_text_output: bool,
    /// Tools that run at the provider.
    pub native_tools: Vec<NativeTool>,
    /// So many of the newest request's instructions, from the first on, are the same in every run.
    pub static_instructions: usize,
    /// pydantic-ai's `model_settings`: `temperature`, `max_tokens` ...
    pub settings: Map<String, Value>,
}

/// A tool that runs at the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NativeTool {
    WebSearch(WebSearch),
}

/// What a search of the web may do: pydantic-ai's `WebSearchTool`. A provider that can't be told something ignores it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSearch {
    /// `low`, `medium` or `high`.
    pub search_context_size: Option<String>,
    /// `city`, `country`, `region`, `timezone`.
    pub user_location: Option<Value>,
    pub blocked_domains: Option<Vec<String>>,
    pub allowed_domains: Option<Vec<String>>,
    pub max_uses: Option<u64>,
}

impl RequestParameters {
    /// Every tool, with whether the provider is to hold the model to its schema.
    pub fn all_tools(&self) -> impl Iterator<Item = (&ToolDefinition, Option<bool>)> {
        let answers = self.output_tools.iter();
        self.tools
            .iter()
            .map(|tool| (tool, None))
            .chain(answers.map(|tool| (&tool.definition, tool.strict)))
    }
}

/// A model that can be asked.
#[async_trait]
pub trait Model: Send + Sync {
    /// The name the provider knows it by, e.g. `gpt-5`.
    fn name(&self) -> &str;

    /// The provider, as `gen_ai.provider.name`: `openai`, `anthropic`, `scripted` ...
    fn provider(&self) -> &str;

    /// The server, for spans: host and port.
    fn server(&self) -> Option<(String, u16)> {
        None
    }

    /// A response of an earlier attempt is taken in place of the next one. What answers from a list goes on in it.
    fn is_replayed(&self) {}

    /// Asks for the next response.
    ///
    /// # Errors
    /// See [`ModelError`].
    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError>;
}

/// Why a model gave no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider refused. The text is `status_code: 429, model_name: gpt-5, body: ...`.
    #[error("status_code: {status}, model_name: {model_name}, body: {body}")]
    Http {
        status: u16,
        model_name: String,
        body: String,
    },
    /// No connection, or it broke, after the retries.
    #[error("{0}")]
    Connection(String),
    /// No model of a fallback chain answered. `errors` say why, in the chain's order.
    #[error(
        "All models from FallbackModel failed ({} sub-exceptions): {}",
        errors.len(),
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    AllFailed { errors: Vec<ModelError> },
    /// The answer made no sense.
    #[error("{0}")]
    UnexpectedBehavior(String),
    /// The run asks otherwise than the recording that answers in the model's place.
    #[error("{0}")]
    Replay(String),
    /// The connection, the model id or the settings can't be used.
    #[error("{0}")]
    Configuration(String),
}

impl ModelError {
    /// Did the provider or the way to it fail, so that another provider may do better? (`ModelAPIError`)
    #[must_use]
    pub fn is_api_error(&self) -> bool {
        matches!(self, Self::Http { .. } | Self::Connection(_))
    }
}
