//! OpenAI's Responses API: what is asked.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::profile::{drops_sampling, effort, reasons, system_role};
use super::responses_answer;
use super::schema;
use crate::agent::message::{
    Message, ModelRequest, ModelResponse, NativeToolPart, NativeToolStep, RequestPart,
    ResponsePart, TextPart, Thinking, ToolCall, ToolOutcome, ToolReturn, UserContent,
};
use crate::agent::model::{NativeTool, RequestParameters};
use crate::agent::output::{ObjectMode, OutputObject};
use crate::agent::render::{arguments_text, feedback_text, tool_error_text, tool_result_text};
use crate::agent::{Model, ModelError, ToolDefinition};
use crate::model::conversation::{instructions, openings};
use crate::model::endpoint::Endpoint;
use crate::model::http::{client, post, server};
use crate::model::thinking::WantedThinking;
use crate::model::tool_files::{self, FilePart, file_parts, prompt_part, result_content};

/// Settings that go into the body under their own or another name: `(setting, field, a sampling setting?)`.
const FIELDS: &[(&str, &str, bool)] = &[
    ("max_tokens", "max_output_tokens", false),
    ("temperature", "temperature", true),
    ("top_p", "top_p", true),
    ("openai_top_logprobs", "top_logprobs", true),
    ("service_tier", "service_tier", false),
    ("openai_service_tier", "service_tier", false),
    ("openai_user", "user", false),
    ("openai_store", "store", false),
    ("openai_truncation", "truncation", false),
    ("openai_prompt_cache_key", "prompt_cache_key", false),
    (
        "openai_prompt_cache_retention",
        "prompt_cache_retention",
        false,
    ),
    ("openai_previous_response_id", "previous_response_id", false),
];

/// What else a response is to hold, by the setting that asks for it.
const INCLUDED: &[(&str, &str)] = &[
    (
        "openai_include_web_search_sources",
        "web_search_call.action.sources",
    ),
    ("openai_logprobs", "message.output_text.logprobs"),
];

/// Fields of Chat Completions, which name thinking of that API and not of this one.
const CHAT_FIELDS: [&str; 3] = ["content", "reasoning", "reasoning_content"];

/// A model behind the Responses API.
pub struct OpenAiResponses {
    client: reqwest::Client,
    endpoint: Endpoint,
    model_name: String,
    provider: &'static str,
}

impl OpenAiResponses {
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(
        model_name: &str,
        provider: &'static str,
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
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", self.model_name.clone().into());
        put("stream", false.into());
        let mut include = Vec::new();
        if reasons(&self.model_name) {
            // What it thought goes back to it, and only it can read it.
            include.push("reasoning.encrypted_content");
        }
        let asked = INCLUDED
            .iter()
            .filter(|(setting, _)| settings.get(*setting) == Some(&Value::Bool(true)));
        include.extend(asked.map(|(_, field)| field));
        if !include.is_empty() {
            put("include", include.into());
        }
        let reasoning = self.reasoning(settings);
        let effort = reasoning.get("effort").and_then(Value::as_str);
        let no_sampling = drops_sampling(&self.model_name, effort);
        for (setting, field, sampling) in FIELDS {
            if let Some(value) = settings.get(*setting)
                && !(*sampling && no_sampling)
            {
                put(field, value.clone());
            }
        }
        if !reasoning.is_empty() {
            put("reasoning", reasoning.into());
        }
        let object = parameters.output_object.as_ref();
        let schema = object.map(|object| schema::transform(&object.schema, object.strict));
        let told = instructions(messages, object, schema.as_ref().map(|(schema, _)| schema));
        let told = Some(told.join("\n\n")).filter(|text| !text.is_empty());
        let mut input = self.input(messages, settings);
        if let Some(text) = told {
            if object.is_some_and(|object| object.mode == ObjectMode::Prompted) {
                // The API wants the word JSON in the conversation itself.
                input.insert(openings(messages), self.system(&text));
            } else {
                put("instructions", text.into());
            }
        }
        if input.is_empty() {
            input.push(json!({ "role": "user", "content": "" }));
        }
        put("input", input.into());
        let text = text_config(settings, object, schema);
        if !text.is_empty() {
            put("text", text.into());
        }
        let functions: Vec<Value> = parameters
            .all_tools()
            .map(|(definition, strict)| tool(definition, strict))
            .collect();
        let native = parameters.native_tools.iter().map(native_tool);
        let tools: Vec<Value> = native.chain(functions).collect();
        if !tools.is_empty() {
            let choice = if parameters.allow_text_output {
                "auto"
            } else {
                "required"
            };
            put("tool_choice", choice.into());
            put("tools", tools.into());
            if let Some(parallel) = settings.get("parallel_tool_calls") {
                put("parallel_tool_calls", parallel.clone());
            }
        }
        if let Some(Value::Object(extra)) = settings.get("extra_body") {
            body.extend(extra.clone());
        }
        Value::Object(body)
    }

    fn reasoning(&self, settings: &Map<String, Value>) -> Map<String, Value> {
        let mut reasoning = Map::new();
        let given = settings
            .get("openai_reasoning_effort")
            .filter(|effort| !effort.is_null());
        let effort = given.cloned().or_else(|| {
            let wanted = WantedThinking::of(settings)?;
            effort(&self.model_name, wanted, true).map(Value::from)
        });
        if let Some(effort) = effort {
            reasoning.insert("effort".to_owned(), effort);
        }
        if let Some(summary) = settings.get("openai_reasoning_summary") {
            reasoning.insert("summary".to_owned(), summary.clone());
        }
        reasoning
    }

    fn input(&self, messages: &[Message], settings: &Map<String, Value>) -> Vec<Value> {
        let with_ids = settings
            .get("openai_send_reasoning_ids")
            .and_then(Value::as_bool)
            .unwrap_or_else(|| reasons(&self.model_name));
        let mut input = Vec::new();
        let mut announced = false;
        for message in messages {
            match message {
                Message::Request(request) => self.push_request(request, &mut announced, &mut input),
                Message::Response(response) => {
                    for part in &response.parts {
                        self.push_part(part, response, with_ids, &mut input);
                    }
                }
            }
        }
        input
    }

    fn system(&self, text: &str) -> Value {
        json!({ "role": system_role(&self.model_name), "content": text })
    }

    fn push_request(&self, request: &ModelRequest, announced: &mut bool, input: &mut Vec<Value>) {
        for part in &request.parts {
            match part {
                RequestPart::SystemPrompt(text) => input.push(self.system(text)),
                RequestPart::RetryFeedback(feedback) => {
                    let text = feedback_text(feedback);
                    if feedback.speaks_for_the_application() {
                        input.push(self.system(&text));
                    } else {
                        if !std::mem::replace(announced, true) {
                            input.push(self.system(tool_files::ANNOUNCEMENT));
                        }
                        input.push(json!({ "role": "user", "content": text }));
                    }
                }
                RequestPart::UserPrompt(UserContent::Text(text)) => {
                    input.push(json!({ "role": "user", "content": text }));
                }
                RequestPart::UserPrompt(UserContent::Parts(parts)) => {
                    let parts: Vec<Value> = parts.iter().map(prompt_part).map(file_part).collect();
                    input.push(json!({ "role": "user", "content": parts }));
                }
                RequestPart::ToolReturn(result) => input.push(tool_output(result)),
            }
        }
        let files = file_parts(request);
        if !files.is_empty() {
            if !std::mem::replace(announced, true) {
                input.push(self.system(tool_files::ANNOUNCEMENT));
            }
            let parts: Vec<Value> = files.into_iter().map(file_part).collect();
            input.push(json!({ "role": "user", "content": parts }));
        }
    }

    fn push_part(
        &self,
        part: &ResponsePart,
        response: &ModelResponse,
        with_ids: bool,
        input: &mut Vec<Value>,
    ) {
        match part {
            ResponsePart::Text(text) => {
                let id = text
                    .origin
                    .id
                    .as_deref()
                    .filter(|_| with_ids && text.origin.is(self.provider, response));
                push_text(text, id, input);
            }
            ResponsePart::ToolCall(call) => {
                let id = call
                    .origin
                    .id
                    .as_deref()
                    .filter(|_| with_ids && call.origin.is(self.provider, response));
                input.push(function_call(call, id));
            }
            ResponsePart::Thinking(thinking) => {
                let own = thinking.origin.is(self.provider, response);
                push_thinking(thinking, with_ids && own, input);
            }
            ResponsePart::NativeTool(part) => {
                if with_ids && part.origin.is(self.provider, response) {
                    input.extend(native_tool_call(part));
                }
            }
        }
    }
}

/// The texts of one message of the model's go back as one message.
fn push_text(part: &TextPart, id: Option<&str>, input: &mut Vec<Value>) {
    let Some(id) = id else {
        input.push(json!({ "role": "assistant", "content": part.content }));
        return;
    };
    let piece = json!({ "text": part.content, "type": "output_text", "annotations": [] });
    let open = input
        .last_mut()
        .filter(|item| item.get("id").and_then(Value::as_str) == Some(id))
        .and_then(|item| item.get_mut("content"));
    if let Some(Value::Array(pieces)) = open {
        pieces.push(piece);
        return;
    }
    input.push(json!({
        "role": "assistant", "id": id, "content": [piece], "type": "message", "status": "completed",
    }));
}

fn function_call(call: &ToolCall, id: Option<&str>) -> Value {
    let mut item = json!({
        "name": call.tool_name,
        "arguments": arguments_text(&call.args),
        "call_id": call.tool_call_id,
        "type": "function_call",
    });
    if let (Some(id), Value::Object(item)) = (id, &mut item) {
        item.insert("id".to_owned(), id.into());
    }
    item
}

/// As the item it came in, when this API made it; else as text in tags.
fn push_thinking(thinking: &Thinking, own: bool, input: &mut Vec<Value>) {
    let id = thinking
        .origin
        .id
        .as_deref()
        .filter(|id| own && (!CHAT_FIELDS.contains(id) || thinking.signature.is_some()));
    let Some(id) = id else {
        if !thinking.content.is_empty() {
            let text = format!("<think>\n{}\n</think>", thinking.content);
            input.push(json!({ "role": "assistant", "content": text }));
        }
        return;
    };
    let is_open = input.last().is_some_and(|item| {
        item.get("id").and_then(Value::as_str) == Some(id)
            && item.get("type") == Some(&json!("reasoning"))
    });
    if !is_open {
        input.push(json!({
            "id": id, "summary": [], "encrypted_content": thinking.signature, "type": "reasoning",
        }));
    }
    let Some(Value::Object(item)) = input.last_mut() else {
        return;
    };
    if !thinking.content.is_empty()
        && let Some(Value::Array(summary)) = item.get_mut("summary")
    {
        summary.push(json!({ "text": thinking.content, "type": "summary_text" }));
    }
    if let Some(Value::Array(raw)) = thinking.origin.provider_details.get("raw_content") {
        let raw = raw
            .iter()
            .map(|text| json!({ "text": text, "type": "reasoning_text" }));
        item.insert("content".to_owned(), raw.collect());
    }
}

/// A search goes back by its id; what it found is at the provider.
fn native_tool_call(part: &NativeToolPart) -> Option<Value> {
    let NativeToolStep::Call(action @ Value::Object(_)) = &part.step else {
        return None;
    };
    Some(json!({
        "id": part.tool_call_id, "action": action, "status": "completed", "type": "web_search_call",
    }))
}

fn input_text(text: &str) -> Value {
    json!({ "text": text, "type": "input_text" })
}

fn file_part(part: FilePart<'_>) -> Value {
    match part {
        FilePart::Text(text) => input_text(&text),
        FilePart::Image(file) => {
            json!({ "image_url": file.data_uri(), "type": "input_image", "detail": "auto" })
        }
        FilePart::Document(file, ending) => json!({
            "file_data": file.data_uri(), "filename": format!("filename.{ending}"), "type": "input_file",
        }),
    }
}

fn tool_output(result: &ToolReturn) -> Value {
    let output = match result.outcome {
        ToolOutcome::Success => tool_result_text(&result_content(result)),
        ToolOutcome::Retried => tool_error_text(&result.content),
        // A failed result's structure goes as the text it would have been.
        ToolOutcome::Failed => tool_error_text(&Value::String(tool_result_text(&result.content))),
    };
    json!({ "type": "function_call_output", "call_id": result.tool_call_id, "output": output })
}

fn tool(tool: &ToolDefinition, strict: Option<bool>) -> Value {
    let (parameters, strict) = schema::transform(&tool.parameters, strict);
    json!({
        "name": tool.name,
        "parameters": parameters,
        "type": "function",
        "description": tool.description,
        "strict": strict,
    })
}

fn native_tool(tool: &NativeTool) -> Value {
    let NativeTool::WebSearch(search) = tool;
    let size = search.search_context_size.as_deref().unwrap_or("medium");
    let mut out = json!({ "type": "web_search", "search_context_size": size });
    let Value::Object(map) = &mut out else {
        return out;
    };
    if let Some(Value::Object(place)) = &search.user_location {
        let mut location = Map::from_iter([("type".to_owned(), "approximate".into())]);
        location.extend(place.clone());
        map.insert("user_location".to_owned(), location.into());
    }
    if let Some(domains) = &search.allowed_domains {
        let filters = json!({ "allowed_domains": domains });
        map.insert("filters".to_owned(), filters);
    }
    out
}

fn text_config(
    settings: &Map<String, Value>,
    object: Option<&OutputObject>,
    schema: Option<(Value, bool)>,
) -> Map<String, Value> {
    let mut config = Map::new();
    match (object, schema) {
        (Some(object), _) if object.mode == ObjectMode::Prompted => {
            config.insert("format".to_owned(), json!({ "type": "json_object" }));
        }
        (Some(object), Some((schema, strict))) => {
            let name = object.name.as_deref().unwrap_or("final_result");
            let mut format = json!({ "type": "json_schema", "name": name, "schema": schema });
            if let Value::Object(format) = &mut format {
                let description = object.description.as_deref();
                if let Some(description) = description.filter(|text| !text.is_empty()) {
                    format.insert("description".to_owned(), description.into());
                }
                format.insert("strict".to_owned(), strict.into());
            }
            config.insert("format".to_owned(), format);
        }
        _ => {}
    }
    if let Some(verbosity) = settings.get("openai_text_verbosity") {
        config.insert("verbosity".to_owned(), verbosity.clone());
    }
    config
}

#[async_trait]
impl Model for OpenAiResponses {
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
        let settings = &parameters.settings;
        let request = self
            .endpoint
            .post("responses", body, settings, &self.model_name)?;
        let answer = post(&self.client, &request).await?;
        let base_url = format!("{}/", self.endpoint.base_url.trim_end_matches('/'));
        responses_answer::read(&answer, self.provider, &self.model_name, &base_url)
    }
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
