//! Cohere's Chat API, version 2.

use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::anthropic::schema;
use super::conversation::{instructions, new_tool_call_id, openings, refuse_native_tools};
use super::endpoint::Endpoint;
use super::http::{ErrorBody, client, post, server};
use super::prices;
use super::thinking::{Effort, WantedThinking};
use super::tool_files::result_content;
use crate::agent::message::{
    Message, ModelResponse, RequestPart, ResponsePart, Thinking, ToolCall, ToolOutcome,
    UserContent, UserPart,
};
use crate::agent::model::RequestParameters;
use crate::agent::render::{arguments_text, feedback_text, tool_error_text, tool_result_text};
use crate::agent::usage::RequestUsage;
use crate::agent::{Model, ModelError};

const PROVIDER: &str = "cohere";
/// Settings under their own or another name.
const FIELDS: &[(&str, &str)] = &[
    ("max_tokens", "max_tokens"),
    ("stop_sequences", "stop_sequences"),
    ("temperature", "temperature"),
    ("top_p", "p"),
    ("top_k", "k"),
    ("seed", "seed"),
    ("presence_penalty", "presence_penalty"),
    ("frequency_penalty", "frequency_penalty"),
];

/// A model behind Cohere's Chat API.
pub struct Cohere {
    client: reqwest::Client,
    endpoint: Endpoint,
    model_name: String,
}

impl Cohere {
    /// # Errors
    /// No HTTP client can be made.
    pub fn new(model_name: &str, endpoint: Endpoint) -> Result<Self, ModelError> {
        Ok(Self {
            client: client()?,
            endpoint,
            model_name: model_name.to_owned(),
        })
    }

    fn body(&self, messages: &[Message], parameters: &RequestParameters) -> Value {
        let settings = &parameters.settings;
        let mut body = Map::new();
        body.insert("model".to_owned(), self.model_name.clone().into());
        body.insert("stream".to_owned(), false.into());
        for (setting, field) in FIELDS {
            if let Some(value) = settings.get(*setting) {
                body.insert((*field).to_owned(), value.clone());
            }
        }
        if let Some(thinking) = WantedThinking::of(settings).map(thinking) {
            body.insert("thinking".to_owned(), thinking);
        }
        let object = parameters.output_object.as_ref();
        let told = instructions(messages, object, object.map(|object| &object.schema));
        let opening = openings(messages);
        let mut conversation: Vec<Value> = messages.iter().flat_map(turns).collect();
        let told = told
            .into_iter()
            .map(|text| json!({ "role": "system", "content": text }));
        conversation.splice(opening..opening, told);
        body.insert("messages".to_owned(), conversation.into());
        let tools: Vec<Value> = parameters
            .all_tools()
            .map(|(tool, _)| {
                json!({ "type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": schema::transform(&tool.parameters, false),
                } })
            })
            .collect();
        if !tools.is_empty() {
            body.insert("tools".to_owned(), tools.into());
            if !parameters.allow_text_output {
                body.insert("tool_choice".to_owned(), "REQUIRED".into());
            }
        }
        Value::Object(body)
    }

    fn read(&self, answer: &str) -> Result<ModelResponse, ModelError> {
        let invalid = |what: &str| {
            ModelError::UnexpectedBehavior(format!(
                "Invalid response from cohere chat endpoint{what}"
            ))
        };
        let Ok(body @ Value::Object(_)) = serde_json::from_str::<Value>(answer) else {
            return Err(invalid(", expected JSON data"));
        };
        let Some(message) = body.get("message").filter(|message| message.is_object()) else {
            return Err(invalid(": it has no message"));
        };
        let list = |name: &str| {
            let items = message.get(name).and_then(Value::as_array);
            items.into_iter().flatten()
        };
        let text = |value: &Value, pointer: &str| {
            let text = value.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let mut parts = Vec::new();
        for piece in list("content") {
            match piece.get("type").and_then(Value::as_str) {
                Some("text") => parts.push(ResponsePart::text(&text(piece, "/text"))),
                Some("thinking") => parts.push(ResponsePart::Thinking(Thinking {
                    content: text(piece, "/thinking"),
                    ..Thinking::default()
                })),
                _ => {}
            }
        }
        for call in list("tool_calls") {
            parts.push(ResponsePart::ToolCall(ToolCall {
                tool_name: text(call, "/function/name"),
                args: text(call, "/function/arguments"),
                tool_call_id: Some(text(call, "/id"))
                    .filter(|id| !id.is_empty())
                    .unwrap_or_else(new_tool_call_id),
                ..ToolCall::default()
            }));
        }
        let reason = body.get("finish_reason").and_then(Value::as_str);
        let finish_reason = match reason.unwrap_or_default() {
            "COMPLETE" | "STOP_SEQUENCE" => Some("stop"),
            "MAX_TOKENS" => Some("length"),
            "TOOL_CALL" => Some("tool_call"),
            "ERROR" => Some("error"),
            _ => None,
        };
        let details = reason.map(|reason| ("finish_reason".to_owned(), Value::from(reason)));
        let mut usage = usage(&body);
        usage.cost = prices::cost(PROVIDER, &self.model_name, &usage);
        Ok(ModelResponse {
            parts,
            usage,
            model_name: self.model_name.clone(),
            finish_reason: finish_reason.map(ToOwned::to_owned),
            provider_response_id: Some(text(&body, "/id")).filter(|id| !id.is_empty()),
            provider_name: PROVIDER.to_owned(),
            provider_url: Some(self.endpoint.base_url.trim_end_matches('/').to_owned()),
            provider_details: details.into_iter().collect(),
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
        })
    }
}

fn thinking(wanted: WantedThinking) -> Value {
    match wanted {
        WantedThinking::Off => json!({ "type": "disabled" }),
        WantedThinking::On => json!({ "type": "enabled" }),
        WantedThinking::Level(effort) => {
            let budget = match effort {
                Effort::Minimal => 1_024,
                Effort::Low => 2_048,
                Effort::Medium => 8_192,
                Effort::High => 16_384,
                Effort::XHigh | Effort::Max => 32_768,
            };
            json!({ "type": "enabled", "token_budget": budget })
        }
    }
}

/// The API takes no files: whoever wrote the prompt must know that the model would not see them.
fn refuse_files(messages: &[Message]) -> Result<(), ModelError> {
    let has_file = |part: &RequestPart| match part {
        RequestPart::UserPrompt(UserContent::Parts(parts)) => {
            let mut parts = parts.iter();
            parts.any(|part| matches!(part, UserPart::File(_)))
        }
        _ => false,
    };
    let mut requests = messages.iter().filter_map(|message| match message {
        Message::Request(request) => Some(request),
        Message::Response(_) => None,
    });
    if requests.any(|request| request.parts.iter().any(has_file)) {
        return Err(ModelError::Configuration(
            "Models of cohere take no files in prompts. Ask a model of openai, anthropic, google or bedrock, or send \
             the files' text."
                .to_owned(),
        ));
    }
    Ok(())
}

fn turns(message: &Message) -> Vec<Value> {
    let say = |role: &str, text: &str| json!({ "role": role, "content": text });
    match message {
        Message::Response(response) => assistant(response).into_iter().collect(),
        Message::Request(request) => request
            .parts
            .iter()
            .map(|part| match part {
                RequestPart::SystemPrompt(text) => say("system", text),
                RequestPart::RetryFeedback(feedback) if feedback.speaks_for_the_application() => {
                    say("system", &feedback_text(feedback))
                }
                RequestPart::RetryFeedback(feedback) => say("user", &feedback_text(feedback)),
                RequestPart::UserPrompt(UserContent::Text(text)) => say("user", text),
                RequestPart::UserPrompt(UserContent::Parts(parts)) => {
                    let parts: Vec<Value> = parts
                        .iter()
                        .filter_map(|part| match part {
                            UserPart::Text(text) => Some(json!({ "type": "text", "text": text })),
                            // Refused before.
                            UserPart::File(_) => None,
                        })
                        .collect();
                    json!({ "role": "user", "content": parts })
                }
                RequestPart::ToolReturn(result) => {
                    let content = match result.outcome {
                        ToolOutcome::Success => tool_result_text(&result_content(result)),
                        ToolOutcome::Retried | ToolOutcome::Failed => {
                            tool_error_text(&result.content)
                        }
                    };
                    json!({ "role": "tool", "tool_call_id": result.tool_call_id, "content": content })
                }
            })
            .collect(),
    }
}

fn assistant(response: &ModelResponse) -> Option<Value> {
    let (mut texts, mut thoughts, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for part in &response.parts {
        match part {
            ResponsePart::Text(text) => texts.push(text.content.as_str()),
            ResponsePart::Thinking(thinking) => thoughts.push(thinking.content.as_str()),
            ResponsePart::ToolCall(call) => calls.push(json!({
                "id": call.tool_call_id,
                "type": "function",
                "function": { "name": call.tool_name, "arguments": arguments_text(&call.args) },
            })),
            ResponsePart::NativeTool(_) => {}
        }
    }
    let mut content = Vec::new();
    if !thoughts.is_empty() {
        content.push(json!({ "type": "thinking", "thinking": thoughts.join("\n\n") }));
    }
    if !texts.is_empty() {
        content.push(json!({ "type": "text", "text": texts.join("\n\n") }));
    }
    let mut message = Map::from_iter([("role".to_owned(), "assistant".into())]);
    if !content.is_empty() {
        message.insert("content".to_owned(), content.into());
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into());
    }
    (message.len() > 1).then_some(Value::Object(message))
}

fn usage(body: &Value) -> RequestUsage {
    let count = |pointer: &str| {
        let count = body.pointer(pointer)?;
        // Some counts come as floats.
        count.as_u64().or_else(|| Some(count.as_f64()? as u64))
    };
    let input = count("/usage/tokens/input_tokens");
    RequestUsage {
        input_tokens: input.unwrap_or(0),
        output_tokens: count("/usage/tokens/output_tokens").unwrap_or(0),
        cache_read_tokens: count("/usage/cached_tokens").unwrap_or(0),
        unmeasured: input.is_none(),
        ..RequestUsage::default()
    }
}

#[async_trait]
impl Model for Cohere {
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
        refuse_native_tools(parameters, PROVIDER)?;
        refuse_files(messages)?;
        let body = self.body(messages, parameters);
        let settings = &parameters.settings;
        let mut request = self
            .endpoint
            .post("v2/chat", body, settings, &self.model_name)?;
        request.error_body = ErrorBody::Whole;
        let answer = post(&self.client, &request).await?;
        self.read(&answer)
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::model::wire_tests::{
        call, parameters, prompt, prompt_with_files, request, response, result,
    };

    fn model() -> Cohere {
        let endpoint = Endpoint::bearer("http://x", "made-up-key").unwrap();
        Cohere::new("command-a", endpoint).unwrap()
    }

    #[test]
    fn a_conversation_with_a_call_is_sent_whole() {
        let messages = [
            prompt("Go."),
            response(
                "cohere",
                vec![ResponsePart::text("Well."), call("{\"sql\": \"x\"}")],
            ),
            request(vec![RequestPart::ToolReturn(result(json!({"n": 1})))]),
        ];
        let settings = json!({"top_p": 0.5, "thinking": "low"});
        let mut forced = parameters(settings);
        forced.allow_text_output = false;
        assert_eq!(
            model().body(&messages, &forced),
            json!({
                "model": "command-a", "stream": false, "p": 0.5, "tool_choice": "REQUIRED",
                "thinking": {"type": "enabled", "token_budget": 2_048},
                "messages": [
                    {"role": "user", "content": "Go."},
                    {
                        "role": "assistant", "content": [{"type": "text", "text": "Well."}],
                        "tool_calls": [{
                            "id": "c1", "type": "function",
                            "function": {"name": "query", "arguments": "{\"sql\":\"x\"}"},
                        }],
                    },
                    {"role": "tool", "tool_call_id": "c1", "content": "{\"n\":1}"},
                ],
                "tools": [{"type": "function", "function": {
                    "name": "query", "description": "Execute a SQL query.", "parameters": {
                        "type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"],
                    },
                }}],
            })
        );
    }

    #[tokio::test]
    async fn a_prompt_with_files_is_refused_before_anything_is_sent() {
        let error = model()
            .request(&[prompt_with_files()], &parameters(json!({})))
            .await
            .unwrap_err();
        let ModelError::Configuration(text) = error else {
            panic!("{error}");
        };
        assert!(
            text.starts_with("Models of cohere take no files in prompts."),
            "{text}"
        );
    }

    #[test]
    fn an_answer_is_read_with_its_counts() {
        let body = json!({
            "id": "r1", "finish_reason": "TOOL_CALL",
            "message": {"content": [{"type": "thinking", "thinking": "Hm."}], "tool_calls": [
                {"id": "", "type": "function", "function": {"name": "query", "arguments": "{oops"}},
            ]},
            "usage": {"tokens": {"input_tokens": 12.0, "output_tokens": 3}},
        });
        let response = model().read(&body.to_string()).unwrap();
        let [ResponsePart::Thinking(_), ResponsePart::ToolCall(call)] = response.parts.as_slice()
        else {
            panic!("{:?}", response.parts);
        };
        assert_eq!(call.args, "{oops");
        assert!(call.tool_call_id.starts_with("pyd_ai_"));
        assert_eq!(response.finish_reason.as_deref(), Some("tool_call"));
        assert_eq!(
            (response.usage.input_tokens, response.usage.output_tokens),
            (12, 3)
        );
    }
}
