//! Providers whose APIs are their own, through the `genai` crate: OpenAI Responses, Anthropic, Gemini, Cohere, Bedrock.
//!
//! Requests are not streamed. Retries are ours, since `genai` makes none. It refuses a whole Responses answer when one
//! call's arguments are not a JSON object: such an answer ends the run here, where the model could have been told.

use std::time::Duration;

use ::genai::adapter::AdapterKind;
use ::genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponseFormat, ContentPart, JsonSpec,
    MessageContent, StopReason, Tool, ToolCall as Call, ToolChoice, ToolResponse,
};
use ::genai::resolver::{AuthData, Endpoint};
use ::genai::{Client, Error, ModelIden, ServiceTarget, webc};
use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};

use super::http::{
    MAX_RETRIES, Retry, client, connection_error, decide, error_body, server, timeout, with_retries,
};
use super::prices;
use super::tool_files::{FilePart, file_parts, result_content};
use crate::agent::message::{
    Message, ModelRequest, ModelResponse, RequestPart, ResponsePart, Thinking, ToolCall,
    ToolOutcome, UserContent,
};
use crate::agent::model::RequestParameters;
use crate::agent::output::ObjectMode;
use crate::agent::pydantic_json::compact_json;
use crate::agent::render::{arguments_object, feedback_text, tool_error_text, tool_result_text};
use crate::agent::usage::RequestUsage;
use crate::agent::{Model, ModelError};
use crate::airflow::url_text::without_userinfo;

/// A provider that is reached through `genai`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenaiProvider {
    /// The prefix of a model id, which is also `gen_ai.provider.name`.
    pub prefix: &'static str,
    kind: AdapterKind,
    /// Base URL when the connection has no host.
    pub base_url: &'static str,
    /// What a connection's host lacks of the base URL: the Python SDKs add the API's version themselves.
    pub host_suffix: &'static str,
    /// Environment variables that hold the key, for a connection without one.
    pub key_env: &'static [&'static str],
    max_retries: u32,
    /// How a note of the application reads in the midst of a conversation: a system message, or a tagged user message.
    inline_system: bool,
}

const RESPONSES: GenaiProvider = GenaiProvider {
    prefix: "openai",
    kind: AdapterKind::OpenAIResp,
    base_url: "https://api.openai.com/v1",
    host_suffix: "",
    key_env: &["OPENAI_API_KEY"],
    max_retries: MAX_RETRIES,
    inline_system: true,
};

/// All of them.
pub const GENAI_PROVIDERS: &[GenaiProvider] = &[
    RESPONSES,
    GenaiProvider {
        prefix: "openai-responses",
        ..RESPONSES
    },
    GenaiProvider {
        prefix: "anthropic",
        kind: AdapterKind::Anthropic,
        base_url: "https://api.anthropic.com/v1",
        host_suffix: "/v1",
        key_env: &["ANTHROPIC_API_KEY"],
        inline_system: false,
        ..RESPONSES
    },
    GenaiProvider {
        prefix: "google",
        kind: AdapterKind::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        host_suffix: "/v1beta",
        key_env: &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
        // Google's own client does not try again.
        max_retries: 0,
        inline_system: false,
    },
    GenaiProvider {
        prefix: "cohere",
        kind: AdapterKind::Cohere,
        base_url: "https://api.cohere.com/v1",
        host_suffix: "/v1",
        key_env: &["CO_API_KEY"],
        inline_system: false,
        ..RESPONSES
    },
    GenaiProvider {
        prefix: "bedrock",
        kind: AdapterKind::BedrockApi,
        base_url: "",
        host_suffix: "",
        key_env: &["AWS_BEARER_TOKEN_BEDROCK"],
        inline_system: false,
        ..RESPONSES
    },
];

/// The provider of a prefix, if it is reached through `genai`.
#[must_use]
pub fn genai_provider(prefix: &str) -> Option<&'static GenaiProvider> {
    GENAI_PROVIDERS
        .iter()
        .find(|provider| provider.prefix == prefix)
}

/// A model behind `genai`.
pub struct GenaiModel {
    client: Client,
    provider: GenaiProvider,
    model_name: String,
    base_url: String,
    target: ServiceTarget,
}

impl GenaiModel {
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(
        model_name: &str,
        provider: GenaiProvider,
        base_url: &str,
        api_key: &str,
    ) -> Result<Self, ModelError> {
        let client = Client::builder()
            .with_reqwest(client()?)
            .build()
            .map_err(|error| ModelError::Configuration(error.to_string()))?;
        let base_url = format!("{}/", base_url.trim_end_matches('/'));
        Ok(Self {
            client,
            provider,
            model_name: model_name.to_owned(),
            target: ServiceTarget {
                endpoint: Endpoint::from_owned(base_url.clone()),
                auth: AuthData::from_single(api_key),
                model: ModelIden::new(provider.kind, model_name),
            },
            base_url,
        })
    }

    fn chat_request(&self, messages: &[Message], parameters: &RequestParameters) -> ChatRequest {
        let mut request = ChatRequest::default();
        let newest = messages.iter().rev().find_map(|message| match message {
            Message::Request(request) => Some(request),
            Message::Response(_) => None,
        });
        let mut instructions = newest.map_or_else(Vec::new, |newest| newest.instructions.clone());
        let object = parameters.output_object.as_ref();
        instructions.extend(object.and_then(|object| object.instructions(&object.schema)));
        if !instructions.is_empty() {
            request = request.with_system(instructions.join("\n\n"));
        }
        for message in messages {
            match message {
                Message::Request(part) => {
                    request = request.append_messages(self.request_messages(part))
                }
                Message::Response(response) => {
                    if let Some(message) = assistant(response) {
                        request = request.append_message(message);
                    }
                }
            }
        }
        let mut tools = parameters.all_tools().peekable();
        if tools.peek().is_none() {
            return request;
        }
        request.with_tools(tools.map(|(tool, _)| {
            Tool::new(tool.name.clone())
                .with_description(tool.description.clone().unwrap_or_default())
                .with_schema(tool.parameters.clone())
        }))
    }

    /// The results of one turn go in one message, which some of the APIs insist on.
    fn request_messages(&self, request: &ModelRequest) -> Vec<ChatMessage> {
        let mut out = Vec::new();
        let mut results = Vec::new();
        for part in &request.parts {
            match part {
                RequestPart::SystemPrompt(text) if self.provider.inline_system => {
                    out.push(ChatMessage::system(text.clone()));
                }
                RequestPart::SystemPrompt(text) => {
                    out.push(ChatMessage::user(format!("<system>{text}</system>")));
                }
                RequestPart::RetryFeedback(feedback) => {
                    let text = feedback_text(feedback);
                    out.push(if !feedback.speaks_for_the_application() {
                        ChatMessage::user(text)
                    } else if self.provider.inline_system {
                        ChatMessage::system(text)
                    } else {
                        ChatMessage::user(format!("<system>{text}</system>"))
                    });
                }
                RequestPart::UserPrompt(UserContent::Text(text)) => {
                    out.push(ChatMessage::user(text.clone()))
                }
                RequestPart::UserPrompt(UserContent::Parts(parts)) => {
                    let parts: Vec<_> = parts.iter().cloned().map(ContentPart::Text).collect();
                    out.push(ChatMessage::user(MessageContent::from_parts(parts)));
                }
                RequestPart::ToolReturn(result) => {
                    let content = match result.outcome {
                        ToolOutcome::Success => tool_result_text(&result_content(result)),
                        ToolOutcome::Retried | ToolOutcome::Failed => {
                            tool_error_text(&result.content)
                        }
                    };
                    let response = ToolResponse::new(result.tool_call_id.clone(), content);
                    results.push(ContentPart::ToolResponse(
                        response.with_fn_name(result.tool_name.clone()),
                    ));
                }
            }
        }
        if !results.is_empty() {
            out.insert(0, ChatMessage::tool(MessageContent::from_parts(results)));
        }
        let files: Vec<ContentPart> = file_parts(request)
            .into_iter()
            .map(|part| match part {
                FilePart::Text(text) => ContentPart::Text(text),
                FilePart::Image(file) => {
                    ContentPart::from_binary_base64(file.media_type.as_str(), file.base64(), None)
                }
                FilePart::Document(file, ending) => ContentPart::from_binary_base64(
                    file.media_type.as_str(),
                    file.base64(),
                    Some(format!("filename.{ending}")),
                ),
            })
            .collect();
        if !files.is_empty() {
            out.push(ChatMessage::user(MessageContent::from_parts(files)));
        }
        out
    }

    fn options(&self, parameters: &RequestParameters) -> ChatOptions {
        let settings = &parameters.settings;
        let number = |name: &str| settings.get(name).and_then(Value::as_f64);
        let integer = |name: &str| settings.get(name).and_then(Value::as_u64);
        let mut options = ChatOptions::default().with_capture_raw_body(false);
        options.temperature = number("temperature");
        options.top_p = number("top_p");
        options.max_tokens = integer("max_tokens").and_then(|tokens| u32::try_from(tokens).ok());
        options.seed = integer("seed");
        if let Some(Value::Array(stops)) = settings.get("stop_sequences") {
            options.stop_sequences = stops
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
        }
        if let Some(body @ Value::Object(_)) = settings.get("extra_body") {
            options.extra_body = Some(body.clone());
        }
        if parameters.all_tools().next().is_some() && !parameters.allow_text_output {
            options.tool_choice = Some(ToolChoice::Required);
        }
        options.response_format =
            parameters
                .output_object
                .as_ref()
                .map(|object| match object.mode {
                    ObjectMode::Native => {
                        let name = object.name.as_deref().unwrap_or("final_result");
                        ChatResponseFormat::JsonSpec(JsonSpec::new(name, object.schema.clone()))
                    }
                    ObjectMode::Prompted => ChatResponseFormat::JsonMode,
                });
        options
    }

    async fn attempt(
        &self,
        request: ChatRequest,
        options: &ChatOptions,
        timeout: Duration,
    ) -> Result<ModelResponse, (ModelError, Retry)> {
        let answer = self
            .client
            .exec_chat(self.target.clone(), request, Some(options));
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(response)) => Ok(self.read(response)),
            Ok(Err(error)) => Err(self.error(error)),
            Err(_) => Err((
                ModelError::Connection(format!(
                    "Request timed out. No answer from {} within {} s: check the connection's host, or raise the \
                     timeout setting.",
                    without_userinfo(&self.base_url),
                    timeout.as_secs()
                )),
                Retry::After(None),
            )),
        }
    }

    fn read(&self, response: ::genai::chat::ChatResponse) -> ModelResponse {
        let mut parts = Vec::new();
        if let Some(content) = response
            .reasoning_content
            .filter(|content| !content.is_empty())
        {
            parts.push(self.thinking(content));
        }
        let mut signatures = Vec::new();
        for part in response.content.into_parts() {
            match part {
                ContentPart::Text(text) if !text.is_empty() => parts.push(ResponsePart::Text(text)),
                ContentPart::ReasoningContent(content) => parts.push(self.thinking(content)),
                ContentPart::ThoughtSignature(signature) => signatures.push(signature),
                ContentPart::ToolCall(call) => {
                    let mut signatures = std::mem::take(&mut signatures);
                    signatures.extend(call.thought_signatures.unwrap_or_default());
                    parts.push(ResponsePart::ToolCall(ToolCall {
                        tool_name: call.fn_name,
                        args: match call.fn_arguments {
                            Value::String(raw) => raw,
                            Value::Null => String::new(),
                            args => compact_json(&args),
                        },
                        tool_call_id: if call.call_id.is_empty() {
                            format!("pyd_ai_{}", uuid::Uuid::new_v4().simple())
                        } else {
                            call.call_id
                        },
                        signatures,
                    }));
                }
                // Pictures and provider-specific parts have no place in a text answer.
                ContentPart::Text(_)
                | ContentPart::Binary(_)
                | ContentPart::ToolResponse(_)
                | ContentPart::Custom(_) => {}
            }
        }
        let mut details = Map::new();
        if let Some(reason) = &response.stop_reason {
            details.insert("finish_reason".to_owned(), reason.raw().into());
        }
        let finish_reason = response
            .stop_reason
            .as_ref()
            .and_then(|reason| match reason {
                StopReason::Completed(_) | StopReason::StopSequence(_) => Some("stop"),
                StopReason::MaxTokens(_) => Some("length"),
                StopReason::ToolCall(_) => Some("tool_call"),
                StopReason::ContentFilter(_) => Some("content_filter"),
                StopReason::Other(_) => None,
            });
        let usage = &response.usage;
        let count = |tokens: Option<i32>| {
            tokens
                .and_then(|tokens| u64::try_from(tokens).ok())
                .unwrap_or(0)
        };
        let prompt = usage.prompt_tokens_details.as_ref();
        let completion = usage.completion_tokens_details.as_ref();
        let mut usage = RequestUsage {
            input_tokens: count(usage.prompt_tokens),
            output_tokens: count(usage.completion_tokens),
            cache_read_tokens: count(prompt.and_then(|details| details.cached_tokens)),
            cache_write_tokens: count(prompt.and_then(|details| details.cache_creation_tokens)),
            output_reasoning_tokens: count(completion.and_then(|details| details.reasoning_tokens)),
            unmeasured: usage.prompt_tokens.is_none() && usage.completion_tokens.is_none(),
            cost: None,
        };
        let model_name = response.provider_model_iden.model_name.as_str().to_owned();
        usage.cost = prices::cost(self.provider.prefix, &model_name, &usage);
        ModelResponse {
            parts,
            usage,
            model_name,
            finish_reason: finish_reason.map(str::to_owned),
            provider_response_id: response.response_id,
            provider_name: self.provider.prefix.to_owned(),
            provider_url: Some(self.base_url.clone()),
            provider_details: details,
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
        }
    }

    fn thinking(&self, content: String) -> ResponsePart {
        ResponsePart::Thinking(Thinking {
            content,
            id: None,
            provider_name: Some(self.provider.prefix.to_owned()),
        })
    }

    fn error(&self, error: Error) -> (ModelError, Retry) {
        let refused = |status: u16, body: &str, headers| {
            let error = ModelError::Http {
                status,
                model_name: self.model_name.clone(),
                body: error_body(body.trim()),
            };
            (error, decide(status, headers))
        };
        match error {
            Error::HttpError {
                status,
                body,
                headers,
                ..
            } => refused(status.as_u16(), &body, &headers),
            Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
                match webc_error {
                    webc::Error::ResponseFailedStatus {
                        status,
                        body,
                        headers,
                    } => refused(status.as_u16(), &body, &headers),
                    webc::Error::Reqwest(error) => {
                        (connection_error(&error, &self.base_url), Retry::After(None))
                    }
                    webc::Error::ResponseFailedNotJson { .. }
                    | webc::Error::ResponseFailedInvalidJson { .. } => {
                        (self.unexpected("expected JSON data"), Retry::Never)
                    }
                    other => (self.unexpected(&other.to_string()), Retry::Never),
                }
            }
            // This variant's own text repeats the whole request.
            Error::ChatResponseGeneration { cause, .. } => (self.unexpected(&cause), Retry::Never),
            other => (self.unexpected(&other.to_string()), Retry::Never),
        }
    }

    fn unexpected(&self, what: &str) -> ModelError {
        ModelError::UnexpectedBehavior(format!(
            "Invalid response from {} endpoint, {what}",
            self.provider.prefix
        ))
    }
}

fn assistant(response: &ModelResponse) -> Option<ChatMessage> {
    let mut parts = Vec::new();
    for part in &response.parts {
        match part {
            ResponsePart::Text(text) if text.is_empty() => {}
            ResponsePart::Text(text) => parts.push(ContentPart::Text(text.clone())),
            ResponsePart::ToolCall(call) => parts.push(ContentPart::ToolCall(Call {
                call_id: call.tool_call_id.clone(),
                fn_name: call.tool_name.clone(),
                fn_arguments: Value::Object(arguments_object(&call.args)),
                thought_signatures: Some(call.signatures.clone())
                    .filter(|signatures| !signatures.is_empty()),
            })),
            // Thinking without its provider's signature is refused by those who ask for it, and ignored by the others.
            ResponsePart::Thinking(_) => {}
        }
    }
    (!parts.is_empty()).then(|| ChatMessage::assistant(MessageContent::from_parts(parts)))
}

#[async_trait]
impl Model for GenaiModel {
    fn name(&self) -> &str {
        &self.model_name
    }

    fn provider(&self) -> &str {
        self.provider.prefix
    }

    fn server(&self) -> Option<(String, u16)> {
        server(&self.base_url)
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        let timeout = timeout(&parameters.settings);
        let request = self.chat_request(messages, parameters);
        let options = self.options(parameters);
        with_retries(self.provider.max_retries, || {
            self.attempt(request.clone(), &options, timeout)
        })
        .await
    }
}

#[cfg(test)]
#[path = "genai_tests.rs"]
mod tests;
