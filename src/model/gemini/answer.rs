//! Google's `generateContent`: what it answers.

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use crate::agent::ModelError;
use crate::agent::message::{
    ModelResponse, NativeToolPart, NativeToolStep, Origin, ResponsePart, TextPart, Thinking,
    ToolCall,
};
use crate::agent::pydantic_json::compact_json;
use crate::agent::usage::RequestUsage;
use crate::model::conversation::new_tool_call_id;
use crate::model::prices;

/// Reads an answer.
///
/// # Errors
/// It is none.
pub(super) fn read(
    answer: &str,
    provider: &'static str,
    asked: &str,
    base_url: &str,
) -> Result<ModelResponse, ModelError> {
    let Ok(body @ Value::Object(_)) = serde_json::from_str::<Value>(answer) else {
        return Err(ModelError::UnexpectedBehavior(format!(
            "Invalid response from {provider} generateContent endpoint, expected JSON data"
        )));
    };
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
    let candidate = body.pointer("/candidates/0");
    let parts = body
        .pointer("/candidates/0/content/parts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|given| part(given, provider));
    let mut details = Map::new();
    let mut finish_reason = None;
    let mut tell = |name: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            details.insert(name.to_owned(), value.clone());
        }
    };
    if let Some(candidate) = candidate {
        let reason = candidate.get("finishReason");
        tell("finish_reason", reason);
        if reason.is_some() {
            tell("safety_ratings", candidate.get("safetyRatings"));
        }
        finish_reason = reason.and_then(Value::as_str).and_then(finish);
    } else if let Some(reason) = body.pointer("/promptFeedback/blockReason") {
        tell("block_reason", Some(reason));
        tell(
            "block_reason_message",
            body.pointer("/promptFeedback/blockReasonMessage"),
        );
        finish_reason = Some("content_filter");
    }
    tell("timestamp", body.get("createTime"));
    tell("traffic_type", body.pointer("/usageMetadata/trafficType"));
    let model_name = text("/modelVersion").unwrap_or(asked).to_owned();
    let mut usage = usage(body.get("usageMetadata"));
    usage.cost = prices::cost("google", &model_name, &usage);
    Ok(ModelResponse {
        parts: parts.collect(),
        usage,
        model_name,
        finish_reason: finish_reason.map(ToOwned::to_owned),
        provider_response_id: text("/responseId").map(ToOwned::to_owned),
        provider_name: provider.to_owned(),
        provider_url: Some(base_url.to_owned()),
        provider_details: details,
        timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
    })
}

fn finish(reason: &str) -> Option<&'static str> {
    match reason {
        "STOP" => Some("stop"),
        "MAX_TOKENS" | "CONTINUATION" => Some("length"),
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "MODEL_ARMOR" => Some("content_filter"),
        "LANGUAGE" | "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "NO_IMAGE" => {
            Some("error")
        }
        _ => None,
    }
}

/// `None` for what says nothing, and for kinds of parts that are not known.
fn part(given: &Value, provider: &str) -> Option<ResponsePart> {
    let mut origin = Origin::default();
    if let Some(signature @ Value::String(_)) = given.get("thoughtSignature") {
        origin.provider_name = Some(provider.to_owned());
        let details = &mut origin.provider_details;
        details.insert("thought_signature".to_owned(), signature.clone());
    }
    if let Some(Value::String(text)) = given.get("text") {
        if text.is_empty() && origin.provider_name.is_none() {
            return None;
        }
        let content = text.clone();
        return Some(if given.get("thought") == Some(&Value::Bool(true)) {
            ResponsePart::Thinking(Thinking {
                content,
                signature: None,
                origin,
            })
        } else {
            ResponsePart::Text(TextPart { content, origin })
        });
    }
    let id = |object: &Value| {
        object
            .get("id")
            .and_then(Value::as_str)
            .filter(|id| !id.is_empty())
            .map_or_else(new_tool_call_id, ToOwned::to_owned)
    };
    if let Some(call) = given.get("functionCall") {
        return Some(ResponsePart::ToolCall(ToolCall {
            tool_name: call.get("name")?.as_str()?.to_owned(),
            args: match call.get("args") {
                None | Some(Value::Null) => String::new(),
                Some(args) => compact_json(args),
            },
            tool_call_id: id(call),
            origin,
        }));
    }
    let (step, object) = if let Some(call) = given.get("toolCall") {
        let args = call.get("args").cloned().unwrap_or_else(|| json!({}));
        (NativeToolStep::Call(args), call)
    } else {
        let found = given.get("toolResponse")?;
        let response = found.get("response").cloned().unwrap_or_default();
        (NativeToolStep::Return(response), found)
    };
    origin.provider_name = Some(provider.to_owned());
    if let Some(kind) = object.get("toolType") {
        let details = &mut origin.provider_details;
        details.insert("tool_type".to_owned(), kind.clone());
    }
    Some(ResponsePart::NativeTool(NativeToolPart {
        tool_name: "web_search".to_owned(),
        tool_call_id: id(object),
        step,
        origin,
    }))
}

fn usage(usage: Option<&Value>) -> RequestUsage {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else {
        return RequestUsage::unmeasured();
    };
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let thoughts = count("thoughtsTokenCount");
    RequestUsage {
        input_tokens: count("promptTokenCount") + count("toolUsePromptTokenCount"),
        output_tokens: count("candidatesTokenCount") + thoughts,
        cache_read_tokens: count("cachedContentTokenCount"),
        output_reasoning_tokens: thoughts,
        ..RequestUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn response(body: &Value) -> ModelResponse {
        read(&body.to_string(), "google", "gemini-x", "http://x").unwrap()
    }

    #[test]
    fn a_blocked_prompt_is_a_content_filter() {
        let response = response(&json!({"promptFeedback": {"blockReason": "SAFETY"}}));
        assert_eq!(response.parts, []);
        assert_eq!(response.finish_reason.as_deref(), Some("content_filter"));
        assert_eq!(response.provider_details["block_reason"], "SAFETY");
    }

    #[test]
    fn thoughts_and_signatures_are_kept_to_go_back() {
        let response = response(
            &json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
                {"text": "Hm.", "thought": true},
                {"text": "", "thoughtSignature": "c2ln"},
                {"text": ""},
                {"functionCall": {"name": "query", "args": {"sql": "SELECT 1"}, "id": "f1"}, "thoughtSignature": "c2ln"},
            ]}}]}),
        );
        let signed = || Origin {
            id: None,
            provider_name: Some("google".to_owned()),
            provider_details: Map::from_iter([("thought_signature".to_owned(), "c2ln".into())]),
        };
        assert_eq!(
            response.parts,
            [
                ResponsePart::Thinking(Thinking {
                    content: "Hm.".to_owned(),
                    ..Thinking::default()
                }),
                ResponsePart::Text(TextPart {
                    content: String::new(),
                    origin: signed(),
                }),
                ResponsePart::ToolCall(ToolCall {
                    tool_name: "query".to_owned(),
                    args: "{\"sql\":\"SELECT 1\"}".to_owned(),
                    tool_call_id: "f1".to_owned(),
                    origin: signed(),
                }),
            ]
        );
        assert!(response.usage.unmeasured);
    }
}
