//! Google's `generateContent`, on the Gemini API and on Google Cloud: what is asked.

mod answer;
mod profile;
mod schema;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::conversation::{instructions, openings};
use super::endpoint::Endpoint;
use super::http::{ErrorBody, client, post, server};
use super::thinking::{Effort, WantedThinking};
use super::tool_files::{self, FilePart};
use crate::agent::message::{
    Message, ModelRequest, ModelResponse, NativeToolPart, NativeToolStep, Origin, RequestPart,
    ResponsePart, ToolOutcome, ToolReturn, UserContent, UserPart,
};
use crate::agent::model::{NativeTool, RequestParameters};
use crate::agent::output::ObjectMode;
use crate::agent::render::{arguments_object, feedback_text, tool_result_text};
use crate::agent::{BinaryContent, Model, ModelError, ToolDefinition};
use profile::{GeminiProfile, profile};

/// In place of a signature that another model gave, or none: the API wants one with the first call of a turn.
const NO_SIGNATURE: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";

/// Settings of a generation, under their own or another name.
const GENERATION: &[(&str, &str)] = &[
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("max_tokens", "maxOutputTokens"),
    ("stop_sequences", "stopSequences"),
    ("presence_penalty", "presencePenalty"),
    ("frequency_penalty", "frequencyPenalty"),
    ("seed", "seed"),
    ("google_video_resolution", "mediaResolution"),
    ("google_logprobs", "responseLogprobs"),
    ("google_top_logprobs", "logprobs"),
];
/// Settings of a request.
const FIELDS: &[(&str, &str)] = &[
    ("google_safety_settings", "safetySettings"),
    ("google_labels", "labels"),
    ("google_cached_content", "cachedContent"),
];
/// Files that a result of a modern model's function may hold.
const FILES_IN_RESULTS: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "application/pdf",
    "text/plain",
];

/// A model behind `generateContent`.
pub struct Gemini {
    client: reqwest::Client,
    endpoint: Endpoint,
    model_name: String,
    /// `google` or `google-cloud`: what one has signed, the other refuses.
    provider: &'static str,
    /// Of the model, under the base URL.
    path: String,
    profile: GeminiProfile,
}

impl Gemini {
    /// `models` is where the models are, under the base URL: `v1beta/models`.
    ///
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(
        model_name: &str,
        provider: &'static str,
        models: &str,
        endpoint: Endpoint,
    ) -> Result<Self, ModelError> {
        let name = model_name.strip_prefix("models/").unwrap_or(model_name);
        Ok(Self {
            client: client()?,
            endpoint,
            model_name: model_name.to_owned(),
            provider,
            path: format!("{models}/{name}:generateContent"),
            profile: profile(model_name),
        })
    }

    fn body(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<Value, ModelError> {
        let settings = &parameters.settings;
        let object = parameters.output_object.as_ref();
        let has_functions = parameters.all_tools().next().is_some();
        if !parameters.native_tools.is_empty() && has_functions && !self.profile.modern {
            return Err(ModelError::Configuration(
                "This model does not support function tools and built-in tools at the same time."
                    .to_owned(),
            ));
        }
        let mut generation = Map::new();
        for (setting, field) in GENERATION {
            if let Some(value) = settings.get(*setting) {
                generation.insert((*field).to_owned(), value.clone());
            }
        }
        if let Some(thinking) = self.thinking(settings) {
            generation.insert("thinkingConfig".to_owned(), thinking);
        }
        let json_type = || Value::from("application/json");
        match object {
            Some(object) if object.mode == ObjectMode::Native => {
                if has_functions && !self.profile.modern {
                    return Err(ModelError::Configuration(
                        "This model does not support `NativeOutput` and function tools at the same time. Use \
                         `output_type=ToolOutput(...)` instead."
                            .to_owned(),
                    ));
                }
                let mut schema = schema::transform(&object.schema);
                if let Value::Object(schema) = &mut schema {
                    for (key, text) in [
                        ("title", &object.name),
                        ("description", &object.description),
                    ] {
                        if let Some(text) = text {
                            schema.insert(key.to_owned(), text.as_str().into());
                        }
                    }
                }
                generation.insert("responseMimeType".to_owned(), json_type());
                generation.insert("responseJsonSchema".to_owned(), schema);
            }
            Some(_) if !has_functions && parameters.native_tools.is_empty() => {
                generation.insert("responseMimeType".to_owned(), json_type());
            }
            _ => {}
        }
        generation.insert("responseModalities".to_owned(), json!(["TEXT"]));

        let mut body = Map::new();
        for (setting, field) in FIELDS {
            if let Some(value) = settings.get(*setting) {
                body.insert((*field).to_owned(), value.clone());
            }
        }
        let (system, contents) = self.contents(messages, parameters);
        body.insert("contents".to_owned(), contents.into());
        // The cached content has these three already.
        if !body.contains_key("cachedContent") {
            if !system.is_empty() {
                let system = json!({ "parts": system, "role": "user" });
                body.insert("systemInstruction".to_owned(), system);
            }
            self.put_tools(parameters, &mut body);
        }
        body.insert("generationConfig".to_owned(), generation.into());
        if let Some(Value::Object(extra)) = settings.get("extra_body") {
            body.extend(extra.clone());
        }
        Ok(Value::Object(body))
    }

    fn put_tools(&self, parameters: &RequestParameters, body: &mut Map<String, Value>) {
        let functions: Vec<Value> = parameters
            .all_tools()
            .map(|(tool, _)| declaration(tool))
            .collect();
        let mut config = Map::new();
        let mut tools = Vec::new();
        if !functions.is_empty() {
            let is_open = parameters
                .all_tools()
                .any(|(_, strict)| strict == Some(false));
            let mode = if !parameters.allow_text_output {
                "ANY"
            } else if self.profile.validates && !is_open {
                "VALIDATED"
            } else {
                "AUTO"
            };
            let calling = json!({ "mode": mode });
            config.insert("functionCallingConfig".to_owned(), calling);
            tools.push(json!({ "functionDeclarations": functions }));
        }
        for tool in &parameters.native_tools {
            let NativeTool::WebSearch(_) = tool;
            tools.push(json!({ "googleSearch": {} }));
            if self.profile.modern && self.provider == "google" {
                config.insert("includeServerSideToolInvocations".to_owned(), true.into());
            }
        }
        if !tools.is_empty() {
            body.insert("tools".to_owned(), tools.into());
            if !config.is_empty() {
                body.insert("toolConfig".to_owned(), config.into());
            }
        }
    }

    fn thinking(&self, settings: &Map<String, Value>) -> Option<Value> {
        if let Some(config @ Value::Object(_)) = settings.get("google_thinking_config") {
            return Some(with_camel_keys(config));
        }
        let profile = &self.profile;
        let wanted = WantedThinking::of(settings).filter(|_| profile.thinks)?;
        if profile.modern {
            let level = |effort: Effort| match effort.max(profile.lowest) {
                Effort::Minimal => "MINIMAL",
                Effort::Low => "LOW",
                Effort::Medium => "MEDIUM",
                Effort::High | Effort::XHigh | Effort::Max => "HIGH",
            };
            return Some(match wanted {
                WantedThinking::Off => json!({ "thinkingLevel": level(Effort::Minimal) }),
                WantedThinking::On => json!({ "includeThoughts": true }),
                WantedThinking::Level(effort) => {
                    json!({ "includeThoughts": true, "thinkingLevel": level(effort) })
                }
            });
        }
        Some(match wanted {
            WantedThinking::Off => {
                json!({ "thinkingBudget": if profile.always_thinks { 128 } else { 0 } })
            }
            WantedThinking::On => json!({ "includeThoughts": true }),
            WantedThinking::Level(effort) => {
                let budget = match effort {
                    Effort::Minimal => 128,
                    Effort::Low => 2_048,
                    Effort::Medium => 8_192,
                    Effort::High | Effort::XHigh | Effort::Max => 24_576,
                };
                json!({ "includeThoughts": true, "thinkingBudget": budget })
            }
        })
    }

    /// What is said before the conversation, and the conversation.
    fn contents(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> (Vec<Value>, Vec<Value>) {
        let mut system = Vec::new();
        let mut contents = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            match message {
                Message::Request(request) => {
                    let opening = if index == 0 { openings(messages) } else { 0 };
                    for part in request.parts.iter().take(opening) {
                        if let RequestPart::SystemPrompt(text) = part {
                            system.push(json!({ "text": text }));
                        }
                    }
                    self.push_request(request, opening, &mut contents);
                }
                Message::Response(response) => {
                    let parts = self.response_parts(response);
                    if !parts.is_empty() {
                        contents.push(json!({ "parts": parts, "role": "model" }));
                    }
                }
            }
        }
        // The API wants a user to begin.
        let begins_with_model = contents
            .first()
            .is_none_or(|content| content.get("role") == Some(&json!("model")));
        if begins_with_model {
            contents.insert(0, json!({ "parts": [{ "text": "" }], "role": "user" }));
        }
        let object = parameters.output_object.as_ref();
        let schema = object.map(|object| schema::transform(&object.schema));
        let told = instructions(messages, object, schema.as_ref());
        system.extend(told.into_iter().map(|text| json!({ "text": text })));
        (system, contents)
    }

    /// Results stand apart from what follows them: the API takes all of their content for the model's.
    fn push_request(&self, request: &ModelRequest, skipped: usize, contents: &mut Vec<Value>) {
        let mut results = Vec::new();
        let mut others = Vec::new();
        let text = |text: &str| json!({ "text": text });
        for part in request.parts.iter().skip(skipped) {
            match part {
                RequestPart::ToolReturn(result) => results.push(self.function_response(result)),
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
                    others.extend(parts.iter().map(|part| match part {
                        UserPart::Text(said) => text(said),
                        UserPart::File(file) => inline(file),
                    }));
                }
            }
        }
        let files = tool_files::file_parts_but(request, |file| self.is_in_result(file));
        let files: Vec<Value> = files
            .into_iter()
            .map(|part| match part {
                FilePart::Text(said) => text(&said),
                FilePart::Image(file) | FilePart::Document(file, _) => inline(file),
            })
            .collect();
        for parts in [results, files.into_iter().chain(others).collect()] {
            if !parts.is_empty() {
                contents.push(json!({ "parts": parts, "role": "user" }));
            }
        }
    }

    fn is_in_result(&self, file: &BinaryContent) -> bool {
        self.profile.modern && FILES_IN_RESULTS.contains(&file.media_type.as_str())
    }

    fn function_response(&self, result: &ToolReturn) -> Value {
        let (within, beside): (Vec<_>, Vec<_>) = result
            .files
            .iter()
            .partition(|file| self.is_in_result(file));
        let response = if result.outcome == ToolOutcome::Success {
            let data = tool_files::data(result);
            let mut response = match data {
                Value::Null => json!({}),
                Value::Object(_) if mentions_ref(&data) => {
                    json!({ "output": tool_result_text(&data) })
                }
                Value::Object(_) => data,
                other => json!({ "return_value": other }),
            };
            if !beside.is_empty() {
                let named = beside
                    .iter()
                    .map(|file| Value::from(format!("See file {}.", file.identifier())));
                let all: Vec<Value> = std::iter::once(response).chain(named).collect();
                response = json!({ "output": all });
            }
            response
        } else {
            json!({ "error": tool_result_text(&result.content) })
        };
        let mut function = json!({
            "id": result.tool_call_id, "name": result.tool_name, "response": response,
        });
        if !within.is_empty()
            && let Value::Object(function) = &mut function
        {
            let parts: Vec<Value> = within.into_iter().map(inline).collect();
            function.insert("parts".to_owned(), parts.into());
        }
        json!({ "functionResponse": function })
    }

    fn response_parts(&self, response: &ModelResponse) -> Vec<Value> {
        let mut parts = Vec::new();
        let mut needs_signature = true;
        for part in &response.parts {
            let (mut out, origin) = match part {
                ResponsePart::Text(text) => (json!({ "text": text.content }), &text.origin),
                ResponsePart::Thinking(thinking) if thinking.content.is_empty() => continue,
                ResponsePart::Thinking(thinking) => (
                    json!({ "text": thinking.content, "thought": true }),
                    &thinking.origin,
                ),
                ResponsePart::ToolCall(call) => {
                    let function = json!({
                        "id": call.tool_call_id, "args": arguments_object(&call.args), "name": call.tool_name,
                    });
                    (json!({ "functionCall": function }), &call.origin)
                }
                ResponsePart::NativeTool(native) => {
                    let own = native.origin.is(self.provider, response);
                    if !own || self.provider != "google" || !self.profile.modern {
                        continue;
                    }
                    (native_tool_part(native), &native.origin)
                }
            };
            let signature = self.signature(origin, response).or_else(|| {
                let is_call = matches!(part, ResponsePart::ToolCall(_));
                (is_call && needs_signature).then_some(NO_SIGNATURE)
            });
            needs_signature &= !matches!(part, ResponsePart::ToolCall(_));
            if let (Some(signature), Value::Object(out)) = (signature, &mut out) {
                out.insert("thoughtSignature".to_owned(), signature.into());
            }
            parts.push(out);
        }
        parts
    }

    fn signature<'a>(&self, origin: &'a Origin, response: &ModelResponse) -> Option<&'a str> {
        let signature = origin.provider_details.get("thought_signature")?.as_str()?;
        origin.is(self.provider, response).then_some(signature)
    }
}

fn inline(file: &BinaryContent) -> Value {
    json!({ "inlineData": { "data": file.base64(), "mimeType": file.media_type } })
}

fn declaration(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description.clone().unwrap_or_default(),
        "parameters_json_schema": schema::transform(&tool.parameters),
    })
}

/// A step of a search, as the API tells of it.
fn native_tool_part(part: &NativeToolPart) -> Value {
    let kind = part.origin.provider_details.get("tool_type");
    match &part.step {
        NativeToolStep::Call(args) => json!({
            "toolCall": { "id": part.tool_call_id, "toolType": kind, "args": args },
        }),
        NativeToolStep::Return(found) => json!({
            "toolResponse": { "id": part.tool_call_id, "toolType": kind, "response": found },
        }),
    }
}

/// The API takes `$ref` anywhere in a result for a reference of its own.
fn mentions_ref(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(mentions_ref),
        Value::Array(items) => items.iter().any(mentions_ref),
        _ => false,
    }
}

fn with_camel_keys(value: &Value) -> Value {
    let Value::Object(map) = value else {
        return value.clone();
    };
    let camel = |key: &str| {
        let mut words = key.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |mut name, word| {
            let mut letters = word.chars();
            name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
            name.push_str(letters.as_str());
            name
        })
    };
    map.iter()
        .map(|(key, value)| (camel(key), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

#[async_trait]
impl Model for Gemini {
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
        let body = self.body(messages, parameters)?;
        let settings = &parameters.settings;
        let mut request = self
            .endpoint
            .post(&self.path, body, settings, &self.model_name)?;
        request.error_body = ErrorBody::Whole;
        // Google's own client does not try again.
        request.max_retries = 0;
        let answer = post(&self.client, &request).await?;
        let base_url = self.endpoint.base_url.trim_end_matches('/');
        answer::read(&answer, self.provider, &self.model_name, base_url)
    }
}

#[cfg(test)]
mod tests;
