//! OpenAI's Chat Completions API, and the many servers that speak it.
//!
//! Our own adapters and not a library's, because the arguments of a call must come through as the model wrote them, and
//! because requests are to be the ones that the Python provider sends.

use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::chat_providers::{ChatProvider, SendThinking};
use super::openrouter_cache;
use super::profile::{drops_sampling, effort, system_role};
use super::schema;
use crate::agent::message::{
    Message, ModelResponse, Origin, RequestPart, ResponsePart, Thinking, ToolCall, ToolOutcome,
    UserContent,
};
use crate::agent::model::RequestParameters;
use crate::agent::output::{ObjectMode, OutputObject};
use crate::agent::render::{arguments_text, feedback_text, tool_error_text, tool_result_text};
use crate::agent::usage::RequestUsage;
use crate::agent::{Model, ModelError, ToolDefinition};
use crate::model::conversation::{instructions, new_tool_call_id, openings, refuse_native_tools};
use crate::model::endpoint::Endpoint;
use crate::model::http::{client, post, server};
use crate::model::prices;
use crate::model::thinking::WantedThinking;
use crate::model::tool_files::{self, FilePart, file_parts, prompt_part, result_content};

/// Tags that some models put around their thinking, and in which thinking is told to other models.
const THINK: (&str, &str) = ("<think>", "</think>");

/// Settings that go into the body under their own or another name: `(setting, field, a sampling setting?)`.
const FIELDS: &[(&str, &str, bool)] = &[
    ("seed", "seed", false),
    ("stop_sequences", "stop", false),
    ("temperature", "temperature", true),
    ("top_p", "top_p", true),
    ("presence_penalty", "presence_penalty", true),
    ("frequency_penalty", "frequency_penalty", true),
    ("logit_bias", "logit_bias", true),
    ("openai_logprobs", "logprobs", true),
    ("openai_top_logprobs", "top_logprobs", true),
    ("openai_user", "user", false),
    ("service_tier", "service_tier", false),
    ("openai_service_tier", "service_tier", false),
    ("openai_prediction", "prediction", false),
    ("openai_store", "store", false),
    ("openai_text_verbosity", "verbosity", false),
    ("openai_prompt_cache_key", "prompt_cache_key", false),
    (
        "openai_prompt_cache_retention",
        "prompt_cache_retention",
        false,
    ),
];

fn file_part(part: FilePart<'_>) -> Value {
    match part {
        FilePart::Text(text) => json!({ "text": text, "type": "text" }),
        FilePart::Image(file) => {
            json!({ "image_url": { "url": file.data_uri() }, "type": "image_url" })
        }
        FilePart::Document(file, ending) => json!({
            "file": { "file_data": file.data_uri(), "filename": format!("filename.{ending}") },
            "type": "file",
        }),
    }
}

/// A model behind a Chat Completions API.
pub struct OpenAiChat {
    client: reqwest::Client,
    endpoint: Endpoint,
    model_name: String,
    provider: ChatProvider,
}

impl OpenAiChat {
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(
        model_name: &str,
        provider: ChatProvider,
        endpoint: Endpoint,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            client: client()?,
            endpoint,
            model_name: model_name.to_owned(),
            provider,
        })
    }

    fn body(&self, messages: &[Message], parameters: &RequestParameters) -> Value {
        let settings = &parameters.settings;
        let mut body = Map::new();
        body.insert("model".to_owned(), self.model_name.clone().into());
        let object = parameters.output_object.as_ref();
        body.insert(
            "messages".to_owned(),
            self.messages(messages, object).into(),
        );
        body.insert("stream".to_owned(), false.into());
        let effort = settings
            .get("openai_reasoning_effort")
            .and_then(Value::as_str)
            .or_else(|| effort(&self.model_name, WantedThinking::of(settings)?, false));
        if let Some(effort) = effort {
            body.insert("reasoning_effort".to_owned(), effort.into());
        }
        let no_sampling = drops_sampling(&self.model_name, effort);
        for (setting, field, sampling) in FIELDS {
            if let Some(value) = settings.get(*setting)
                && !(*sampling && no_sampling)
            {
                body.insert((*field).to_owned(), value.clone());
            }
        }
        if let Some(max_tokens) = settings.get("max_tokens") {
            body.insert(
                self.provider.max_tokens_field.to_owned(),
                max_tokens.clone(),
            );
        }
        if let Some(object) = object {
            body.insert("response_format".to_owned(), self.response_format(object));
        }
        let tools: Vec<Value> = parameters
            .all_tools()
            .map(|(tool, strict)| self.tool(tool, strict))
            .collect();
        if !tools.is_empty() {
            body.insert("tools".to_owned(), tools.into());
            let choice = if parameters.allow_text_output {
                "auto"
            } else {
                "required"
            };
            body.insert("tool_choice".to_owned(), choice.into());
            if let Some(parallel) = settings.get("parallel_tool_calls") {
                body.insert("parallel_tool_calls".to_owned(), parallel.clone());
            }
        }
        if self.provider.prefix == "openrouter" {
            let lasting = openings(messages) + parameters.static_instructions;
            openrouter_cache::mark(&mut body, &self.model_name, settings, lasting);
        }
        if let Some(Value::Object(extra)) = settings.get("extra_body") {
            body.extend(extra.clone());
        }
        Value::Object(body)
    }

    fn response_format(&self, object: &OutputObject) -> Value {
        if object.mode == ObjectMode::Prompted {
            return json!({ "type": "json_object" });
        }
        let (schema, strict) = schema::transform(&object.schema, object.strict);
        let mut named = Map::new();
        let name = object.name.as_deref().unwrap_or("final_result");
        named.insert("name".to_owned(), name.into());
        named.insert("schema".to_owned(), schema);
        if let Some(description) = object
            .description
            .as_deref()
            .filter(|text| !text.is_empty())
        {
            named.insert("description".to_owned(), description.into());
        }
        if self.provider.strict_tools {
            named.insert("strict".to_owned(), strict.into());
        }
        json!({ "type": "json_schema", "json_schema": named })
    }

    fn tool(&self, tool: &ToolDefinition, strict: Option<bool>) -> Value {
        let (parameters, strict) = schema::transform(&tool.parameters, strict);
        let mut function = Map::new();
        function.insert("name".to_owned(), tool.name.clone().into());
        function.insert(
            "description".to_owned(),
            tool.description.clone().unwrap_or_default().into(),
        );
        function.insert("parameters".to_owned(), parameters);
        if strict && self.provider.strict_tools {
            function.insert("strict".to_owned(), true.into());
        }
        json!({ "type": "function", "function": function })
    }

    fn messages(&self, messages: &[Message], object: Option<&OutputObject>) -> Vec<Value> {
        let mut out = Vec::new();
        // What stands at the conversation's beginning comes before what is said anew with each request.
        let opening = openings(messages);
        let schema = object.map(|object| schema::transform(&object.schema, object.strict).0);
        let instructions: Vec<Value> = instructions(messages, object, schema.as_ref())
            .iter()
            .map(|text| self.system(text))
            .collect();
        let mut announced = false;
        for message in messages {
            match message {
                Message::Request(request) => {
                    for part in &request.parts {
                        if !announced
                            && let RequestPart::RetryFeedback(feedback) = part
                            && !feedback.speaks_for_the_application()
                        {
                            announced = true;
                            out.push(self.system(tool_files::ANNOUNCEMENT));
                        }
                        out.push(self.request_part(part));
                    }
                    let files = file_parts(request);
                    if !files.is_empty() {
                        if !std::mem::replace(&mut announced, true) {
                            out.push(self.system(tool_files::ANNOUNCEMENT));
                        }
                        let parts: Vec<Value> = files.into_iter().map(file_part).collect();
                        out.push(json!({ "role": "user", "content": parts }));
                    }
                }
                Message::Response(response) => out.extend(self.assistant(response)),
            }
        }
        out.splice(opening..opening, instructions);
        out
    }

    fn system(&self, text: &str) -> Value {
        json!({ "role": system_role(&self.model_name), "content": text })
    }

    fn request_part(&self, part: &RequestPart) -> Value {
        match part {
            RequestPart::SystemPrompt(text) => self.system(text),
            RequestPart::RetryFeedback(feedback) if feedback.speaks_for_the_application() => {
                self.system(&feedback_text(feedback))
            }
            RequestPart::RetryFeedback(feedback) => {
                json!({ "role": "user", "content": feedback_text(feedback) })
            }
            RequestPart::UserPrompt(UserContent::Text(text)) => {
                json!({ "role": "user", "content": text })
            }
            RequestPart::UserPrompt(UserContent::Parts(parts)) => {
                let parts: Vec<Value> = parts.iter().map(prompt_part).map(file_part).collect();
                json!({ "role": "user", "content": parts })
            }
            RequestPart::ToolReturn(result) => {
                let content = match result.outcome {
                    ToolOutcome::Success => tool_result_text(&result_content(result)),
                    ToolOutcome::Retried => tool_error_text(&result.content),
                    // A failed result's structure goes as the text it would have been.
                    ToolOutcome::Failed => {
                        tool_error_text(&Value::String(tool_result_text(&result.content)))
                    }
                };
                json!({ "role": "tool", "tool_call_id": result.tool_call_id, "content": content })
            }
        }
    }

    /// The assistant's message, or none for a response without text and calls: the API refuses an empty one.
    fn assistant(&self, response: &ModelResponse) -> Option<Value> {
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        let mut fields: Vec<(&str, Vec<&str>)> = Vec::new();
        for part in &response.parts {
            match part {
                ResponsePart::Text(text) => texts.push(text.content.clone()),
                ResponsePart::NativeTool(_) => {}
                ResponsePart::ToolCall(call) => calls.push(json!({
                    "id": call.tool_call_id,
                    "type": "function",
                    "function": { "name": call.tool_name, "arguments": arguments_text(&call.args) },
                })),
                ResponsePart::Thinking(thinking) => match self.thinking_field(thinking) {
                    Some(field) => match fields.iter_mut().find(|(name, _)| *name == field) {
                        Some((_, contents)) => contents.push(&thinking.content),
                        None => fields.push((field, vec![&thinking.content])),
                    },
                    None => texts.push(format!("{}\n{}\n{}", THINK.0, thinking.content, THINK.1)),
                },
            }
        }
        if texts.is_empty() && calls.is_empty() {
            return None;
        }
        let mut message = Map::new();
        message.insert("role".to_owned(), "assistant".into());
        for (field, contents) in fields {
            message.insert(field.to_owned(), contents.join("\n\n").into());
        }
        let content = if texts.is_empty() {
            Value::Null
        } else {
            texts.join("\n\n").into()
        };
        message.insert("content".to_owned(), content);
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        Some(Value::Object(message))
    }

    /// The field in which thinking goes back, or `None` for tagged text.
    fn thinking_field<'a>(&self, thinking: &'a Thinking) -> Option<&'a str> {
        match self.provider.thinking {
            SendThinking::Field(field) => Some(field),
            SendThinking::Auto => thinking.origin.id.as_deref().filter(|id| {
                *id != "content"
                    && thinking.origin.provider_name.as_deref() == Some(self.provider.provider_name)
            }),
        }
    }

    fn read(&self, body: &Value) -> Result<ModelResponse, ModelError> {
        let choice = match body
            .get("choices")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
        {
            Some([choice, ..]) => choice,
            Some([]) => return Err(self.invalid("its list of choices is empty")),
            None => return Err(self.invalid("it has no list of choices")),
        };
        let Some(Value::Object(message)) = choice.get("message") else {
            return Err(self.invalid("its first choice has no message"));
        };
        let text = |value: Option<&Value>| {
            value
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let raw_reason = text(choice.get("finish_reason"));
        let refusal = text(message.get("refusal"));
        let mut details = Map::new();
        match (&refusal, &raw_reason) {
            (Some(refusal), _) => details.insert("refusal".to_owned(), refusal.clone().into()),
            (None, Some(reason)) => {
                details.insert("finish_reason".to_owned(), reason.clone().into())
            }
            (None, None) => None,
        };
        if let Some(tier) = text(body.get("service_tier")) {
            details.insert("service_tier".to_owned(), tier.into());
        }
        let created = body
            .get("created")
            .and_then(Value::as_i64)
            .filter(|seconds| *seconds != 0);
        if let Some(created) =
            created.and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0))
        {
            let created = created.to_rfc3339_opts(SecondsFormat::Secs, true);
            details.insert("timestamp".to_owned(), created.into());
        }
        let finish_reason = match (&refusal, raw_reason.as_deref()) {
            (Some(_), _) | (None, Some("content_filter")) => Some("content_filter"),
            (None, None | Some("stop")) => Some("stop"),
            (None, Some("length")) => Some("length"),
            (None, Some("tool_calls" | "function_call")) => Some("tool_call"),
            (None, Some(_)) => None,
        };
        let model_name = text(body.get("model")).unwrap_or_else(|| self.model_name.clone());
        let mut usage = usage(body.get("usage"));
        usage.cost = prices::cost(self.provider.provider_name, &model_name, &usage);
        Ok(ModelResponse {
            parts: if refusal.is_some() {
                Vec::new()
            } else {
                self.parts(message)?
            },
            usage,
            model_name,
            finish_reason: finish_reason.map(str::to_owned),
            provider_response_id: text(body.get("id")),
            provider_name: self.provider.provider_name.to_owned(),
            provider_url: Some(format!("{}/", self.endpoint.base_url.trim_end_matches('/'))),
            provider_details: details,
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
        })
    }

    fn parts(&self, message: &Map<String, Value>) -> Result<Vec<ResponsePart>, ModelError> {
        let mut parts = Vec::new();
        let thinking = |content: &str, id: &str| {
            ResponsePart::Thinking(Thinking {
                content: content.to_owned(),
                signature: None,
                origin: Origin {
                    id: Some(id.to_owned()),
                    provider_name: Some(self.provider.provider_name.to_owned()),
                    provider_details: Map::new(),
                },
            })
        };
        for field in ["reasoning", "reasoning_content"] {
            if let Some(Value::String(content)) = message.get(field)
                && !content.is_empty()
            {
                parts.push(thinking(content, field));
                break;
            }
        }
        for (is_thinking, piece) in split_thinking(&content_text(message.get("content"))) {
            parts.push(if is_thinking {
                thinking(piece, "content")
            } else {
                ResponsePart::text(piece)
            });
        }
        let calls = match message.get("tool_calls") {
            Some(Value::Array(calls)) => calls.as_slice(),
            _ => &[],
        };
        for call in calls {
            let function = call.get("function");
            let Some(name) = function
                .and_then(|function| function.get("name"))
                .and_then(Value::as_str)
            else {
                return Err(self.invalid("it holds a tool call without a function name"));
            };
            let args = match function.and_then(|function| function.get("arguments")) {
                Some(Value::String(text)) => text.clone(),
                None | Some(Value::Null) => String::new(),
                Some(other) => other.to_string(),
            };
            let tool_call_id = match call.get("id").and_then(Value::as_str) {
                Some(id) if !id.is_empty() => id.to_owned(),
                _ => new_tool_call_id(),
            };
            parts.push(ResponsePart::ToolCall(ToolCall {
                tool_name: name.to_owned(),
                args,
                tool_call_id,
                ..ToolCall::default()
            }));
        }
        Ok(parts)
    }

    fn invalid(&self, what: &str) -> ModelError {
        ModelError::UnexpectedBehavior(format!(
            "Invalid response from {} chat completions endpoint: {what}",
            self.provider.provider_name
        ))
    }
}

#[async_trait]
impl Model for OpenAiChat {
    fn name(&self) -> &str {
        &self.model_name
    }

    fn provider(&self) -> &str {
        self.provider.provider_name
    }

    fn server(&self) -> Option<(String, u16)> {
        server(&self.endpoint.base_url)
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        refuse_native_tools(parameters, self.provider.provider_name)?;
        let body = self.body(messages, parameters);
        let settings = &parameters.settings;
        let request = self
            .endpoint
            .post("chat/completions", body, settings, &self.model_name)?;
        let answer = post(&self.client, &request).await?;
        match serde_json::from_str(&answer) {
            Ok(body @ Value::Object(_)) => self.read(&body),
            _ => Err(ModelError::UnexpectedBehavior(format!(
                "Invalid response from {} chat completions endpoint, expected JSON data",
                self.provider.provider_name
            ))),
        }
    }
}

/// A message's text; some servers send a list of parts in place of a string.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| match part {
                Value::String(text) => Some(text.as_str()),
                part if part.get("type") == Some(&json!("text")) => {
                    part.get("text").and_then(Value::as_str)
                }
                _ => None,
            })
            .collect(),
        _ => String::new(),
    }
}

/// Splits text at thinking tags: `(is thinking, piece)`. A tag that is never closed is dropped.
fn split_thinking(content: &str) -> Vec<(bool, &str)> {
    let mut pieces = Vec::new();
    let mut rest = content;
    while let Some((before, after)) = rest.split_once(THINK.0) {
        if !before.is_empty() {
            pieces.push((false, before));
        }
        match after.split_once(THINK.1) {
            Some((thinking, after)) => {
                pieces.push((true, thinking));
                rest = after;
            }
            None => {
                pieces.push((false, after));
                rest = "";
            }
        }
    }
    if !rest.is_empty() {
        pieces.push((false, rest));
    }
    pieces
}

fn usage(usage: Option<&Value>) -> RequestUsage {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else {
        return RequestUsage::unmeasured();
    };
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    RequestUsage {
        input_tokens: count("/prompt_tokens"),
        output_tokens: count("/completion_tokens"),
        cache_read_tokens: count("/prompt_tokens_details/cached_tokens"),
        cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens"),
        output_reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
        unmeasured: false,
        cost: None,
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
