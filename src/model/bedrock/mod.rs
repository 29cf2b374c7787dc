//! Amazon Bedrock's Converse API.

use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::anthropic::profile::{AnthropicProfile, profile};
use super::anthropic::schema;
use super::conversation::{
    instructions, new_tool_call_id, openings, refuse_native_tools, tagged_thinking,
};
use super::endpoint::Endpoint;
use super::http::{ErrorBody, client, post, server};
use super::thinking::WantedThinking;
use super::tool_files::{self, FilePart, result_content};
use crate::agent::message::{
    Message, ModelRequest, ModelResponse, Origin, RequestPart, ResponsePart, Thinking, ToolCall,
    ToolOutcome, UserContent,
};
use crate::agent::model::RequestParameters;
use crate::agent::output::ObjectMode;
use crate::agent::pydantic_json::compact_json;
use crate::agent::render::{arguments_object, feedback_text, tool_result_text};
use crate::agent::usage::RequestUsage;
use crate::agent::{Model, ModelError};

const PROVIDER: &str = "bedrock";
/// Areas whose name may stand before a model's, to have it run anywhere within.
const AREAS: [&str; 9] = [
    "us", "eu", "apac", "jp", "au", "ca", "in", "global", "us-gov",
];
/// Vendors whose models can be made to call a tool.
const FORCIBLE: [&str; 6] = [
    "anthropic",
    "amazon",
    "zai",
    "moonshot",
    "moonshotai",
    "xai",
];
/// Vendors whose models want results of tools alone in their message.
const RESULTS_ALONE: [&str; 2] = ["meta", "mistral"];
/// Settings of a generation, under their name here.
const GENERATION: &[(&str, &str)] = &[
    ("max_tokens", "maxTokens"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("stop_sequences", "stopSequences"),
];
/// Settings of a request.
const FIELDS: &[(&str, &str)] = &[
    ("bedrock_guardrail_config", "guardrailConfig"),
    ("bedrock_performance_configuration", "performanceConfig"),
    ("bedrock_request_metadata", "requestMetadata"),
    ("bedrock_prompt_variables", "promptVariables"),
    (
        "bedrock_additional_model_response_fields_paths",
        "additionalModelResponseFieldPaths",
    ),
];
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A model behind the Converse API.
pub struct Bedrock {
    client: reqwest::Client,
    endpoint: Endpoint,
    model_name: String,
    /// `anthropic`, `amazon` ...
    vendor: String,
    /// Set for Anthropic's models.
    anthropic: Option<AnthropicProfile>,
}

impl Bedrock {
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(model_name: &str, endpoint: Endpoint) -> Result<Self, ModelError> {
        let (vendor, name) = vendor_and_name(model_name);
        Ok(Self {
            client: client()?,
            endpoint,
            model_name: model_name.to_owned(),
            anthropic: (vendor == "anthropic").then(|| profile(name)),
            vendor: vendor.to_owned(),
        })
    }

    fn caches(&self) -> bool {
        self.anthropic.is_some() || (self.vendor == "amazon" && self.model_name.contains("nova"))
    }

    fn body(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<Value, ModelError> {
        refuse_native_tools(parameters, PROVIDER)?;
        let settings = &parameters.settings;
        let mut body = Map::new();
        for (setting, field) in FIELDS {
            if let Some(value) = settings.get(*setting) {
                body.insert((*field).to_owned(), value.clone());
            }
        }
        let system = self.system(messages, parameters);
        if !system.is_empty() {
            body.insert("system".to_owned(), system.into());
        }
        let mut conversation = self.messages(messages);
        if let Some(point) = self.cache_point(settings, "bedrock_cache_messages")
            && let Some(Value::Array(content)) = conversation
                .last_mut()
                .filter(|message| message.get("role") == Some(&json!("user")))
                .and_then(|message| message.get_mut("content"))
        {
            content.push(point);
        }
        body.insert("messages".to_owned(), conversation.into());
        let generation = self.generation(settings);
        if !generation.is_empty() {
            body.insert("inferenceConfig".to_owned(), generation.into());
        }
        let (additional, thinks) = self.additional(settings);
        if !additional.is_empty() {
            body.insert("additionalModelRequestFields".to_owned(), additional.into());
        }
        if let Some(object) = &parameters.output_object
            && object.mode == ObjectMode::Native
        {
            let schema = schema::transform(&object.schema, true).to_string();
            let name = object.name.as_deref().unwrap_or("final_result");
            let json_schema = json!({ "schema": schema, "name": name });
            let structure = json!({ "jsonSchema": json_schema });
            let format = json!({ "textFormat": { "type": "json_schema", "structure": structure } });
            body.insert("outputConfig".to_owned(), format);
        }
        if let Some(config) = self.tool_config(parameters, thinks) {
            body.insert("toolConfig".to_owned(), config);
        }
        if let Some(Value::Object(extra)) = settings.get("extra_body") {
            body.extend(extra.clone());
        }
        Ok(Value::Object(body))
    }

    fn generation(&self, settings: &Map<String, Value>) -> Map<String, Value> {
        let drops_sampling = self.anthropic.is_some_and(|profile| profile.drops_sampling);
        let mut generation = Map::new();
        for (setting, field) in GENERATION {
            let dropped = drops_sampling && matches!(*setting, "temperature" | "top_p");
            if let Some(value) = settings.get(*setting).filter(|_| !dropped) {
                generation.insert((*field).to_owned(), value.clone());
            }
        }
        let most = self.anthropic.and_then(|profile| profile.most_max_tokens);
        if let Some(most) = most.filter(|_| !generation.contains_key("maxTokens")) {
            generation.insert("maxTokens".to_owned(), most.into());
        }
        generation
    }

    /// What only this vendor's models know, and whether it makes them think.
    fn additional(&self, settings: &Map<String, Value>) -> (Map<String, Value>, bool) {
        let mut fields = match settings.get("bedrock_additional_model_requests_fields") {
            Some(Value::Object(fields)) => fields.clone(),
            _ => Map::new(),
        };
        let Some(profile) = self.anthropic else {
            return (fields, false);
        };
        if let Some(top_k) = settings.get("top_k").filter(|_| !profile.drops_sampling) {
            fields.entry("top_k").or_insert_with(|| top_k.clone());
        }
        if let Some(wanted) = WantedThinking::of(settings) {
            let off = || json!({ "type": "disabled" });
            let thinking = match profile.thinking(wanted) {
                None if wanted == WantedThinking::Off && !profile.adaptive_thinking => Some(off()),
                thinking => thinking,
            };
            if let Some(thinking) = thinking {
                fields.entry("thinking").or_insert(thinking);
            }
            if let Some(effort) = profile.effort(wanted).filter(|_| profile.adaptive_thinking) {
                let config = || json!({ "effort": effort });
                fields.entry("output_config").or_insert_with(config);
            }
        }
        let kind = fields
            .get("thinking")
            .and_then(|thinking| thinking.get("type"));
        let thinks = match kind.and_then(Value::as_str) {
            Some(kind) => matches!(kind, "enabled" | "adaptive"),
            None => profile.thinks_by_default,
        };
        (fields, thinks)
    }

    fn tool_config(&self, parameters: &RequestParameters, thinks: bool) -> Option<Value> {
        let mut tools: Vec<Value> = parameters
            .all_tools()
            .map(|(tool, _)| {
                let schema = schema::transform(&tool.parameters, false);
                let mut spec = json!({ "name": tool.name, "inputSchema": { "json": schema } });
                if let (Some(text), Value::Object(spec)) = (&tool.description, &mut spec)
                    && !text.is_empty()
                {
                    spec.insert("description".to_owned(), text.as_str().into());
                }
                json!({ "toolSpec": spec })
            })
            .collect();
        if tools.is_empty() {
            return None;
        }
        if self.anthropic.is_some() {
            tools.extend(self.cache_point(&parameters.settings, "bedrock_cache_tool_definitions"));
        }
        let mut config = json!({ "tools": tools });
        let forcible = FORCIBLE.contains(&self.vendor.as_str());
        if let Value::Object(config) = &mut config
            && forcible
        {
            let unforced = self
                .anthropic
                .is_some_and(|profile| !profile.forced_tool_choice);
            let choice = if parameters.allow_text_output || thinks || unforced {
                json!({ "auto": {} })
            } else {
                json!({ "any": {} })
            };
            config.insert("toolChoice".to_owned(), choice);
        }
        Some(config)
    }

    fn cache_point(&self, settings: &Map<String, Value>, name: &str) -> Option<Value> {
        match settings.get(name).filter(|_| self.caches())? {
            Value::Bool(true) => Some(json!({ "cachePoint": { "type": "default" } })),
            Value::String(ttl) => Some(json!({ "cachePoint": { "type": "default", "ttl": ttl } })),
            _ => None,
        }
    }

    fn system(&self, messages: &[Message], parameters: &RequestParameters) -> Vec<Value> {
        let opening = openings(messages);
        let mut texts = Vec::new();
        if let Some(Message::Request(request)) = messages.first() {
            for part in request.parts.iter().take(opening) {
                if let RequestPart::SystemPrompt(text) = part {
                    texts.push(text.clone());
                }
            }
        }
        let object = parameters.output_object.as_ref();
        texts.extend(instructions(
            messages,
            object,
            object.map(|object| &object.schema),
        ));
        let mut blocks: Vec<Value> = texts
            .into_iter()
            .map(|text| json!({ "text": text }))
            .collect();
        // Only what is the same in every run is worth keeping: what comes after it may change.
        let lasting = opening + parameters.static_instructions;
        if lasting > 0
            && lasting <= blocks.len()
            && let Some(point) =
                self.cache_point(&parameters.settings, "bedrock_cache_instructions")
        {
            blocks.insert(lasting, point);
        }
        blocks
    }

    fn messages(&self, messages: &[Message]) -> Vec<Value> {
        let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
        let mut documents = 0;
        for (index, message) in messages.iter().enumerate() {
            match message {
                Message::Request(request) => {
                    let opening = if index == 0 { openings(messages) } else { 0 };
                    for content in request_turns(request, opening, &mut documents) {
                        self.push_user(content, &mut turns);
                    }
                }
                Message::Response(response) => {
                    let (content, carried) = self.response_content(response);
                    self.push_user(carried, &mut turns);
                    if !content.is_empty() {
                        turns.push(("assistant", content));
                    }
                }
            }
        }
        let begins_with_model = turns.first().is_none_or(|(role, _)| *role != "user");
        if begins_with_model && self.anthropic.is_none() {
            turns.insert(0, ("user", vec![json!({ "text": "." })]));
        }
        turns
            .into_iter()
            .map(|(role, content)| json!({ "role": role, "content": content }))
            .collect()
    }

    /// What the user says in a row is one message, but for models that want results alone.
    fn push_user(&self, content: Vec<Value>, turns: &mut Vec<(&str, Vec<Value>)>) {
        if content.is_empty() {
            return;
        }
        let is_result = |block: &Value| block.get("toolResult").is_some();
        match turns.last_mut() {
            Some(("user", last)) => {
                let all = last.iter().chain(&content);
                let mixed =
                    last.iter().chain(&content).any(is_result) && !all.clone().all(is_result);
                if mixed && RESULTS_ALONE.contains(&self.vendor.as_str()) {
                    turns.push(("assistant", vec![json!({ "text": "." })]));
                    turns.push(("user", content));
                } else {
                    last.extend(content);
                }
            }
            _ => turns.push(("user", content)),
        }
    }

    /// What the model said, and what it thought for another provider, which the user tells it.
    fn response_content(&self, response: &ModelResponse) -> (Vec<Value>, Vec<Value>) {
        let (mut content, mut carried) = (Vec::new(), Vec::new());
        for part in &response.parts {
            match part {
                ResponsePart::Text(text) if text.content.is_empty() => {}
                ResponsePart::Text(text) => content.push(json!({ "text": text.content })),
                ResponsePart::ToolCall(call) => content.push(json!({ "toolUse": {
                    "toolUseId": call.tool_call_id,
                    "name": call.tool_name,
                    "input": arguments_object(&call.args),
                } })),
                ResponsePart::Thinking(thinking) => {
                    let own = thinking.origin.is(PROVIDER, response) && self.anthropic.is_some();
                    match thinking.signature.as_deref().filter(|_| own) {
                        Some(signature) => content.push(reasoning(thinking, signature)),
                        None if thinking.content.is_empty() => {}
                        None if self.anthropic.is_some() => {
                            carried.push(json!({ "text": tagged_thinking(&thinking.content) }));
                        }
                        None => content.push(json!({
                            "text": format!("<think>\n{}\n</think>", thinking.content),
                        })),
                    }
                }
                ResponsePart::NativeTool(_) => {}
            }
        }
        (content, carried)
    }

    fn read(&self, answer: &str) -> Result<ModelResponse, ModelError> {
        let invalid = |what: &str| {
            ModelError::UnexpectedBehavior(format!(
                "Invalid response from bedrock converse endpoint{what}"
            ))
        };
        let Ok(body @ Value::Object(_)) = serde_json::from_str::<Value>(answer) else {
            return Err(invalid(", expected JSON data"));
        };
        let Some(Value::Array(blocks)) = body.pointer("/output/message/content") else {
            return Err(invalid(": it has no message"));
        };
        let reason = body.get("stopReason").and_then(Value::as_str);
        let details = reason.map(|reason| ("finish_reason".to_owned(), Value::from(reason)));
        let finish_reason = match reason.unwrap_or_default() {
            "end_turn" | "stop_sequence" => Some("stop"),
            "max_tokens" | "model_context_window_exceeded" => Some("length"),
            "tool_use" => Some("tool_call"),
            "content_filtered" | "guardrail_intervened" => Some("content_filter"),
            "malformed_model_output" | "malformed_tool_use" => Some("error"),
            _ => None,
        };
        let base_url = self.endpoint.base_url.trim_end_matches('/');
        Ok(ModelResponse {
            parts: blocks.iter().filter_map(part).collect(),
            usage: usage(body.get("usage")),
            model_name: self.model_name.clone(),
            finish_reason: finish_reason.map(ToOwned::to_owned),
            provider_response_id: None,
            provider_name: PROVIDER.to_owned(),
            provider_url: Some(base_url.to_owned()),
            provider_details: details.into_iter().collect(),
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
        })
    }
}

/// `("anthropic", "claude-sonnet-4-5-...")` of `us.anthropic.claude-sonnet-4-5-...`, or of the ARN that ends with it.
fn vendor_and_name(model_name: &str) -> (&str, &str) {
    let name = match model_name.strip_prefix("arn:") {
        Some(arn) => arn.rsplit('/').next().unwrap_or(arn),
        None => model_name,
    };
    let name = AREAS
        .iter()
        .find_map(|area| name.strip_prefix(area)?.strip_prefix('.'))
        .unwrap_or(name);
    name.split_once('.').unwrap_or(("", name))
}

/// The turns of one request: its results, the files they bring, and what else is said. `documents` counts those of the
/// whole conversation, in which each needs a name of its own.
fn request_turns(request: &ModelRequest, skipped: usize, documents: &mut usize) -> Vec<Vec<Value>> {
    let (mut results, mut others) = (Vec::new(), Vec::new());
    let text = |text: &str| json!({ "text": text });
    for part in request.parts.iter().skip(skipped) {
        match part {
            RequestPart::ToolReturn(result) => {
                let status = if result.outcome == ToolOutcome::Success {
                    "success"
                } else {
                    "error"
                };
                let content = tool_result_text(&result_content(result));
                results.push(json!({ "toolResult": {
                    "toolUseId": result.tool_call_id, "content": [{ "text": content }], "status": status,
                } }));
            }
            RequestPart::SystemPrompt(said) => {
                others.push(text(&format!("<system>{said}</system>")));
            }
            RequestPart::RetryFeedback(feedback) => {
                let said = feedback_text(feedback);
                others.push(if feedback.speaks_for_the_application() {
                    text(&format!("<system>{said}</system>"))
                } else {
                    text(&said)
                });
            }
            RequestPart::UserPrompt(UserContent::Text(said)) => others.push(text(said)),
            RequestPart::UserPrompt(UserContent::Parts(parts)) => {
                let parts = parts.iter().map(tool_files::prompt_part);
                others.extend(parts.map(|part| file_block(part, documents)));
            }
        }
    }
    let files = tool_files::file_parts(request).into_iter();
    let files = files.map(|part| file_block(part, documents)).collect();
    vec![results, files, others]
}

fn file_block(part: FilePart<'_>, documents: &mut usize) -> Value {
    match part {
        FilePart::Text(said) => json!({ "text": said }),
        FilePart::Image(file) => {
            let format = file.media_type.trim_start_matches("image/");
            json!({ "image": { "format": format, "source": { "bytes": file.base64() } } })
        }
        FilePart::Document(file, ending) => {
            *documents += 1;
            json!({ "document": {
                "format": ending, "name": format!("Document {documents}"),
                "source": { "bytes": file.base64() },
            } })
        }
    }
}

fn reasoning(thinking: &Thinking, signature: &str) -> Value {
    if thinking.origin.id.as_deref() == Some("redacted_content") {
        return json!({ "reasoningContent": { "redactedContent": signature } });
    }
    json!({ "reasoningContent": {
        "reasoningText": { "text": thinking.content, "signature": signature },
    } })
}

/// `None` for what says nothing, and for kinds of blocks that are not known.
fn part(block: &Value) -> Option<ResponsePart> {
    let origin = |id: Option<&str>| Origin {
        id: id.map(ToOwned::to_owned),
        provider_name: Some(PROVIDER.to_owned()),
        provider_details: Map::new(),
    };
    if let Some(Value::String(text)) = block.get("text") {
        return (!text.is_empty()).then(|| ResponsePart::text(text));
    }
    if let Some(call) = block.get("toolUse") {
        return Some(ResponsePart::ToolCall(ToolCall {
            tool_name: call.get("name")?.as_str()?.to_owned(),
            args: call.get("input").map(compact_json).unwrap_or_default(),
            tool_call_id: call
                .get("toolUseId")
                .and_then(Value::as_str)
                .map_or_else(new_tool_call_id, ToOwned::to_owned),
            ..ToolCall::default()
        }));
    }
    let reasoning = block.get("reasoningContent")?;
    let text = |pointer: &str| {
        let text = reasoning.pointer(pointer).and_then(Value::as_str);
        text.map(ToOwned::to_owned)
    };
    Some(ResponsePart::Thinking(
        if let Some(redacted) = text("/redactedContent") {
            Thinking {
                content: String::new(),
                signature: Some(redacted),
                origin: origin(Some("redacted_content")),
            }
        } else {
            Thinking {
                content: text("/reasoningText/text")?,
                signature: text("/reasoningText/signature"),
                origin: origin(None),
            }
        },
    ))
}

fn usage(usage: Option<&Value>) -> RequestUsage {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else {
        return RequestUsage::unmeasured();
    };
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let (read, written) = (
        count("cacheReadInputTokens"),
        count("cacheWriteInputTokens"),
    );
    RequestUsage {
        input_tokens: count("inputTokens") + read + written,
        output_tokens: count("outputTokens"),
        cache_read_tokens: read,
        cache_write_tokens: written,
        ..RequestUsage::default()
    }
}

#[async_trait]
impl Model for Bedrock {
    fn name(&self) -> &str {
        &self.model_name
    }

    fn provider(&self) -> &str {
        PROVIDER
    }

    fn server(&self) -> Option<(String, u16)> {
        server(&self.endpoint.base_url)
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        let body = self.body(messages, parameters)?;
        let path = format!(
            "model/{}/converse",
            utf8_percent_encode(&self.model_name, IN_PATH)
        );
        let settings = &parameters.settings;
        let mut request = self
            .endpoint
            .post(&path, body, settings, &self.model_name)?;
        request.error_body = ErrorBody::Whole;
        let answer = post(&self.client, &request).await?;
        self.read(&answer)
    }
}

#[cfg(test)]
mod tests;
