//! Anthropic's Messages API: what is asked.

pub(super) mod profile;
mod response;
pub(super) mod schema;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::conversation::{instructions, openings, tagged_thinking};
use super::endpoint::Endpoint;
use super::http::{ErrorBody, client, post, post_stream, server};
use super::thinking::WantedThinking;
use super::tool_files::{self, ResultItem};
use crate::agent::message::{
    Message, ModelRequest, ModelResponse, NativeToolPart, NativeToolStep, RequestPart,
    ResponsePart, Thinking, ToolOutcome, ToolReturn, UserContent,
};
use crate::agent::model::{NativeTool, RequestParameters};
use crate::agent::output::ObjectMode;
use crate::agent::render::{arguments_object, feedback_text, tool_result_text};
use crate::agent::{BinaryContent, Model, ModelError, ToolDefinition};
use profile::{AnthropicProfile, profile};

/// The version of the API, which decides on the form of requests and answers.
const VERSION: &str = "2026-10-21";
/// An answer that may be longer than this comes as a stream: nobody waits so long at a silent connection.
const LONGEST_UNSTREAMED: u64 = 21_333;
/// What a thinking budget must leave of `max_tokens`.
const BESIDE_BUDGET: u64 = 4_096;
/// `max_tokens` and the settings that go into the body under their own or another name.
const FIELDS: &[(&str, &str)] = &[
    ("stop_sequences", "stop_sequences"),
    ("anthropic_metadata", "metadata"),
    ("anthropic_container", "container"),
    ("anthropic_context_management", "context_management"),
];
const SAMPLING: &[&str] = &["temperature", "top_p", "top_k"];
/// The kind of a thinking block that shows nothing.
const REDACTED: &str = "redacted_thinking";

/// A model behind the Messages API.
pub struct Anthropic {
    client: reqwest::Client,
    endpoint: Endpoint,
    model_name: String,
    pub(super) provider: &'static str,
    profile: AnthropicProfile,
}

impl Anthropic {
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(
        model_name: &str,
        provider: &'static str,
        mut endpoint: Endpoint,
    ) -> Result<Self, ModelError> {
        endpoint.headers.insert(
            "anthropic-version",
            reqwest::header::HeaderValue::from_static(VERSION),
        );
        Ok(Self {
            client: client()?,
            endpoint,
            model_name: model_name.to_owned(),
            provider,
            profile: profile(model_name),
        })
    }

    fn body(&self, messages: &[Message], parameters: &RequestParameters) -> Value {
        let settings = &parameters.settings;
        let profile = &self.profile;
        let thinking = self.thinking(settings);
        let max_tokens = self.max_tokens(settings, thinking.as_ref());
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", self.model_name.clone().into());
        put("max_tokens", max_tokens.into());
        put("stream", (max_tokens > LONGEST_UNSTREAMED).into());
        for (setting, field) in FIELDS {
            if let Some(value) = settings.get(*setting) {
                put(field, value.clone());
            }
        }
        for name in SAMPLING.iter().filter(|_| !profile.drops_sampling) {
            if let Some(value) = settings.get(*name) {
                put(name, value.clone());
            }
        }
        if let Some(tier) = service_tier(settings) {
            put("service_tier", tier.into());
        }
        if let Some(ttl) = cache_ttl(settings, "anthropic_cache") {
            put("cache_control", cache_control(&ttl));
        }
        let system = self.system(messages, parameters);
        if !system.is_empty() {
            put("system", system.into());
        }
        let mut conversation = self.messages(messages);
        if let Some(ttl) = cache_ttl(settings, "anthropic_cache_messages") {
            mark_last_block(&mut conversation, &ttl);
        }
        put("messages", conversation.into());
        let thinks = thinks(thinking.as_ref(), profile);
        if let Some(thinking) = thinking {
            put("thinking", thinking);
        }
        if let Some(config) = self.output_config(parameters) {
            put("output_config", config);
        }
        let mut tools = self.tools(parameters);
        if !tools.is_empty() {
            let forced = !parameters.allow_text_output && profile.forced_tool_choice && !thinks;
            let mut choice = json!({ "type": if forced { "any" } else { "auto" } });
            if let Some(parallel) = settings.get("parallel_tool_calls")
                && let Value::Object(choice) = &mut choice
            {
                let alone = parallel == &Value::Bool(false);
                choice.insert("disable_parallel_tool_use".to_owned(), alone.into());
            }
            put("tool_choice", choice);
        }
        let native = parameters.native_tools.iter();
        tools.extend(native.map(|tool| self.native_tool(tool)));
        if !tools.is_empty() {
            put("tools", tools.into());
        }
        if let Some(Value::Object(extra)) = settings.get("extra_body") {
            body.extend(extra.clone());
        }
        Value::Object(body)
    }

    /// The text before the conversation, a block for each part of it.
    fn system(&self, messages: &[Message], parameters: &RequestParameters) -> Vec<Value> {
        let object = parameters.output_object.as_ref();
        let opening: Vec<&str> = match messages.first() {
            Some(Message::Request(request)) => system_prompts(request).collect(),
            _ => Vec::new(),
        };
        let opening = opening.join("\n\n");
        let instructions = instructions(messages, object, object.map(|object| &object.schema));
        // Only what is the same in every run is worth a mark: what comes after it may change.
        let lasting = usize::from(!opening.is_empty()) + parameters.static_instructions;
        let texts = Some(opening).filter(|text| !text.is_empty());
        let mut blocks: Vec<Value> = texts
            .into_iter()
            .chain(instructions)
            .map(|text| json!({ "type": "text", "text": text }))
            .collect();
        if let Some(ttl) = cache_ttl(&parameters.settings, "anthropic_cache_instructions")
            && let Some(Value::Object(block)) = lasting
                .checked_sub(1)
                .and_then(|index| blocks.get_mut(index))
        {
            block.insert("cache_control".to_owned(), cache_control(&ttl));
        }
        blocks
    }

    fn messages(&self, messages: &[Message]) -> Vec<Value> {
        let mut out: Vec<Value> = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            match message {
                Message::Request(request) => {
                    let skipped = if index == 0 { openings(messages) } else { 0 };
                    self.push_request(request, skipped, &mut out);
                }
                Message::Response(response) => self.push_response(response, &mut out),
            }
        }
        out
    }

    fn push_request(&self, request: &ModelRequest, skipped: usize, out: &mut Vec<Value>) {
        let mut content = Vec::new();
        let mut system = Vec::new();
        let mut say = |text: &str| {
            if self.profile.inline_system {
                system.push(text_block(text));
                None
            } else {
                Some(text_block(&format!("<system>{text}</system>")))
            }
        };
        for part in request.parts.iter().skip(skipped) {
            match part {
                RequestPart::SystemPrompt(text) => content.extend(say(text)),
                RequestPart::RetryFeedback(feedback) => {
                    let text = feedback_text(feedback);
                    if feedback.speaks_for_the_application() {
                        content.extend(say(&text));
                    } else {
                        content.push(text_block(&text));
                    }
                }
                RequestPart::UserPrompt(UserContent::Text(text)) => content.push(text_block(text)),
                RequestPart::UserPrompt(UserContent::Parts(parts)) => {
                    content.extend(parts.iter().map(tool_files::prompt_item).map(block));
                }
                RequestPart::ToolReturn(result) => content.push(tool_result(result)),
            }
        }
        if !content.is_empty() {
            out.push(json!({ "role": "user", "content": content }));
        }
        if !system.is_empty() {
            out.push(json!({ "role": "system", "content": system }));
        }
    }

    fn push_response(&self, response: &ModelResponse, out: &mut Vec<Value>) {
        let mut content = Vec::new();
        let mut carried = Vec::new();
        for part in &response.parts {
            match part {
                ResponsePart::Text(text) if text.content.is_empty() => {}
                ResponsePart::Text(text) => content.push(text_block(&text.content)),
                ResponsePart::ToolCall(call) => content.push(json!({
                    "id": call.tool_call_id,
                    "type": "tool_use",
                    "name": call.tool_name,
                    "input": arguments_object(&call.args),
                })),
                ResponsePart::Thinking(thinking) => match self.own_thinking(thinking, response) {
                    Some(block) => content.push(block),
                    None if !thinking.content.is_empty() => {
                        carried.push(text_block(&tagged_thinking(&thinking.content)));
                    }
                    None => {}
                },
                ResponsePart::NativeTool(part) if part.origin.is(self.provider, response) => {
                    content.push(native_tool_block(part));
                }
                ResponsePart::NativeTool(_) => {}
            }
        }
        if !carried.is_empty() {
            out.push(json!({ "role": "user", "content": carried }));
        }
        if !content.is_empty() {
            out.push(json!({ "role": "assistant", "content": content }));
        }
    }

    /// Thinking goes back as such only with the signature that this provider gave it.
    fn own_thinking(&self, thinking: &Thinking, response: &ModelResponse) -> Option<Value> {
        let signature = thinking
            .signature
            .as_deref()
            .filter(|signature| !signature.is_empty())?;
        if !thinking.origin.is(self.provider, response) {
            return None;
        }
        Some(if thinking.origin.id.as_deref() == Some(REDACTED) {
            json!({ "data": signature, "type": REDACTED })
        } else {
            json!({ "thinking": thinking.content, "signature": signature, "type": "thinking" })
        })
    }

    fn tools(&self, parameters: &RequestParameters) -> Vec<Value> {
        let mut tools: Vec<Value> = parameters
            .all_tools()
            .map(|(tool, strict)| self.tool(tool, strict))
            .collect();
        if let Some(ttl) = cache_ttl(&parameters.settings, "anthropic_cache_tool_definitions")
            && let Some(Value::Object(last)) = tools.last_mut()
        {
            last.insert("cache_control".to_owned(), cache_control(&ttl));
        }
        tools
    }

    fn tool(&self, tool: &ToolDefinition, strict: Option<bool>) -> Value {
        let strict = strict == Some(true) && self.profile.json_schema;
        let mut out = Map::new();
        out.insert("name".to_owned(), tool.name.clone().into());
        let description = tool.description.clone().unwrap_or_default();
        out.insert("description".to_owned(), description.into());
        let schema = schema::transform(&tool.parameters, strict);
        out.insert("input_schema".to_owned(), schema);
        if strict {
            out.insert("strict".to_owned(), true.into());
        }
        Value::Object(out)
    }

    fn native_tool(&self, tool: &NativeTool) -> Value {
        let NativeTool::WebSearch(search) = tool;
        let mut out = Map::new();
        out.insert("name".to_owned(), "web_search".into());
        // The models that think as much as they need also filter what they find.
        let version = if self.profile.adaptive_thinking {
            "web_search_20260209"
        } else {
            "web_search_20250305"
        };
        out.insert("type".to_owned(), version.into());
        if let Some(uses) = search.max_uses {
            out.insert("max_uses".to_owned(), uses.into());
        }
        for (name, domains) in [
            ("allowed_domains", &search.allowed_domains),
            ("blocked_domains", &search.blocked_domains),
        ] {
            if let Some(domains) = domains {
                out.insert(name.to_owned(), domains.clone().into());
            }
        }
        if let Some(Value::Object(place)) = &search.user_location {
            let mut location = Map::from_iter([("type".to_owned(), "approximate".into())]);
            location.extend(place.clone());
            out.insert("user_location".to_owned(), location.into());
        }
        Value::Object(out)
    }

    fn thinking(&self, settings: &Map<String, Value>) -> Option<Value> {
        if let Some(thinking @ Value::Object(_)) = settings.get("anthropic_thinking") {
            return Some(thinking.clone());
        }
        self.profile.thinking(WantedThinking::of(settings)?)
    }

    fn max_tokens(&self, settings: &Map<String, Value>, thinking: Option<&Value>) -> u64 {
        let most = self.profile.most_max_tokens.unwrap_or(u64::MAX);
        if let Some(tokens) = settings.get("max_tokens").and_then(Value::as_u64) {
            return tokens.min(most);
        }
        let budget = thinking.and_then(|thinking| thinking.get("budget_tokens"));
        let budget = budget.and_then(Value::as_u64).unwrap_or(0);
        self.profile.default_max_tokens.max(budget + BESIDE_BUDGET)
    }

    fn output_config(&self, parameters: &RequestParameters) -> Option<Value> {
        let mut config = Map::new();
        if let Some(object) = &parameters.output_object
            && object.mode == ObjectMode::Native
        {
            let schema = schema::transform(&object.schema, true);
            let format = json!({ "type": "json_schema", "schema": schema });
            config.insert("format".to_owned(), format);
        }
        if let Some(effort) = self.effort(&parameters.settings) {
            config.insert("effort".to_owned(), effort);
        }
        (!config.is_empty()).then_some(Value::Object(config))
    }

    fn effort(&self, settings: &Map<String, Value>) -> Option<Value> {
        if let Some(effort) = settings
            .get("anthropic_effort")
            .filter(|effort| !effort.is_null())
        {
            return Some(effort.clone());
        }
        let effort = self.profile.effort(WantedThinking::of(settings)?)?;
        Some(effort.into())
    }
}

fn system_prompts(request: &ModelRequest) -> impl Iterator<Item = &str> {
    request.parts.iter().map_while(|part| match part {
        RequestPart::SystemPrompt(text) => Some(text.as_str()),
        _ => None,
    })
}

fn text_block(text: &str) -> Value {
    json!({ "text": text, "type": "text" })
}

fn block(item: ResultItem<'_>) -> Value {
    match item {
        ResultItem::Text(text) => text_block(&text),
        ResultItem::Image(file) => file_block("image", file),
        ResultItem::Pdf(file) => file_block("document", file),
    }
}

fn file_block(kind: &str, file: &BinaryContent) -> Value {
    json!({
        "type": kind,
        "source": { "type": "base64", "media_type": file.media_type, "data": file.base64() },
    })
}

fn tool_result(result: &ToolReturn) -> Value {
    let is_error = result.outcome != ToolOutcome::Success;
    let content: Vec<Value> = if result.outcome == ToolOutcome::Retried {
        vec![text_block(&tool_result_text(&result.content))]
    } else {
        tool_files::items(result).into_iter().map(block).collect()
    };
    json!({
        "tool_use_id": result.tool_call_id,
        "type": "tool_result",
        "content": content,
        "is_error": is_error,
    })
}

/// What the provider's own tools did, as it came.
fn native_tool_block(part: &NativeToolPart) -> Value {
    match &part.step {
        NativeToolStep::Call(input) => json!({
            "id": part.tool_call_id, "type": "server_tool_use", "name": part.tool_name, "input": input,
        }),
        NativeToolStep::Return(content) => json!({
            "tool_use_id": part.tool_call_id,
            "type": format!("{}_tool_result", part.tool_name),
            "content": content,
        }),
    }
}

/// `true` stands for five minutes.
fn cache_ttl(settings: &Map<String, Value>, name: &str) -> Option<String> {
    match settings.get(name)? {
        Value::Bool(true) => Some("5m".to_owned()),
        Value::String(ttl) => Some(ttl.clone()),
        _ => None,
    }
}

fn cache_control(ttl: &str) -> Value {
    json!({ "type": "ephemeral", "ttl": ttl })
}

/// Marks the end of what the next request begins with again.
fn mark_last_block(conversation: &mut [Value], ttl: &str) {
    let blocks = conversation
        .last_mut()
        .and_then(|message| message.get_mut("content"))
        .and_then(Value::as_array_mut);
    // Thinking can't be marked.
    let last = blocks.and_then(|blocks| {
        blocks.iter_mut().rev().find(|block| {
            !matches!(
                block.get("type").and_then(Value::as_str),
                Some("thinking" | REDACTED)
            )
        })
    });
    if let Some(Value::Object(block)) = last {
        block.insert("cache_control".to_owned(), cache_control(ttl));
    }
}

fn service_tier(settings: &Map<String, Value>) -> Option<&str> {
    let text = |name: &str| settings.get(name).and_then(Value::as_str);
    text("anthropic_service_tier").or(match text("service_tier")? {
        "auto" => Some("auto"),
        "default" => Some("standard_only"),
        _ => None,
    })
}

/// A model that thinks can't be made to call a tool, or would not think.
fn thinks(thinking: Option<&Value>, profile: &AnthropicProfile) -> bool {
    match thinking.and_then(|thinking| thinking.get("type")?.as_str()) {
        Some(kind) => matches!(kind, "enabled" | "adaptive"),
        None => profile.thinks_by_default,
    }
}

#[async_trait]
impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.model_name
    }

    fn provider(&self) -> &str {
        self.provider
    }

    fn server(&self) -> Option<(String, u16)> {
        server(&self.endpoint.base_url)
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        let body = self.body(messages, parameters);
        let streams = body.get("stream") == Some(&Value::Bool(true));
        let settings = &parameters.settings;
        let mut request = self
            .endpoint
            .post("v1/messages", body, settings, &self.model_name)?;
        request.error_body = ErrorBody::Whole;
        let message = if streams {
            let answer = post_stream(&self.client, &request).await?;
            response::reassemble(&answer, &self.model_name)?
        } else {
            let answer = post(&self.client, &request).await?;
            serde_json::from_str(&answer).map_err(|_| {
                ModelError::UnexpectedBehavior(
                    "Invalid response from anthropic messages endpoint, expected JSON data"
                        .to_owned(),
                )
            })?
        };
        let base_url = self.endpoint.base_url.trim_end_matches('/');
        response::read(&message, self.provider, &self.model_name, base_url)
    }
}

#[cfg(test)]
mod tests;
