//! OpenAI's Responses API: what it answers.

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};

use crate::agent::ModelError;
use crate::agent::message::{
    ModelResponse, NativeToolPart, NativeToolStep, Origin, ResponsePart, TextPart, Thinking,
    ToolCall,
};
use crate::agent::usage::RequestUsage;
use crate::airflow::python_text::repr_value;
use crate::model::conversation::new_tool_call_id;
use crate::model::prices;

fn invalid(provider: &str, what: &str) -> ModelError {
    ModelError::UnexpectedBehavior(format!(
        "Invalid response from {provider} responses endpoint{what}"
    ))
}

/// Reads an answer.
///
/// # Errors
/// It is none, or says that the model failed.
pub(super) fn read(
    answer: &str,
    provider: &'static str,
    asked: &str,
    base_url: &str,
) -> Result<ModelResponse, ModelError> {
    let Ok(body @ Value::Object(_)) = serde_json::from_str::<Value>(answer) else {
        return Err(invalid(provider, ", expected JSON data"));
    };
    if let Some(error @ Value::Object(_)) = body.get("error") {
        return Err(failed(error, asked));
    }
    let Some(Value::Array(items)) = body.get("output") else {
        return Err(invalid(provider, ": it has no list of output items"));
    };
    let text = |name: &str| {
        body.get(name)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let mut reading = Reading {
        provider,
        parts: Vec::new(),
        refusal: None,
    };
    for item in items {
        reading.item(item);
    }
    let Reading { parts, refusal, .. } = reading;
    let mut details = Map::new();
    let reason = body
        .pointer("/incomplete_details/reason")
        .and_then(Value::as_str)
        .map(ToOwned::to_owned)
        .or_else(|| text("status"));
    match (&refusal, &reason) {
        (Some(refusal), _) => details.insert("refusal".to_owned(), refusal.clone().into()),
        (None, Some(reason)) => details.insert("finish_reason".to_owned(), reason.clone().into()),
        (None, None) => None,
    };
    let created = body.get("created_at").and_then(Value::as_f64);
    if let Some(created) = created
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| chrono::DateTime::from_timestamp_micros((seconds * 1e6) as i64))
    {
        let created = created.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        details.insert("timestamp".to_owned(), created.into());
    }
    if let Some(tier) = text("service_tier") {
        details.insert("service_tier".to_owned(), tier.into());
    }
    let finish_reason = match (&refusal, reason.as_deref()) {
        (Some(_), _) | (None, Some("content_filter")) => Some("content_filter"),
        (None, Some("max_output_tokens")) => Some("length"),
        (None, Some("completed")) => Some("stop"),
        (None, Some("cancelled" | "failed")) => Some("error"),
        (None, _) => None,
    };
    let model_name = text("model").unwrap_or_else(|| asked.to_owned());
    let mut usage = usage(body.get("usage"));
    usage.cost = prices::cost("openai", &model_name, &usage);
    Ok(ModelResponse {
        parts: if refusal.is_some() { Vec::new() } else { parts },
        usage,
        model_name,
        finish_reason: finish_reason.map(ToOwned::to_owned),
        provider_response_id: text("id"),
        provider_name: provider.to_owned(),
        provider_url: Some(base_url.to_owned()),
        provider_details: details,
        timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
    })
}

/// An answer that says the model failed is as a refusal with the status of its kind.
fn failed(error: &Value, asked: &str) -> ModelError {
    let status = match error.get("code").and_then(Value::as_str) {
        Some("rate_limit_exceeded") => 429,
        Some("server_error") => 500,
        _ => 400,
    };
    ModelError::Http {
        status,
        model_name: asked.to_owned(),
        body: repr_value(error),
    }
}

struct Reading {
    provider: &'static str,
    parts: Vec<ResponsePart>,
    refusal: Option<String>,
}

impl Reading {
    fn origin(&self, item: &Value) -> Origin {
        Origin {
            id: item
                .get("id")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned),
            provider_name: Some(self.provider.to_owned()),
            provider_details: Map::new(),
        }
    }

    fn item(&mut self, item: &Value) {
        let owned = |name: &str| {
            item.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match item.get("type").and_then(Value::as_str) {
            Some("message") => self.message(item),
            Some("reasoning") => self.reasoning(item),
            Some("function_call") => self.parts.push(ResponsePart::ToolCall(ToolCall {
                tool_name: owned("name"),
                args: owned("arguments"),
                tool_call_id: Some(owned("call_id"))
                    .filter(|id| !id.is_empty())
                    .unwrap_or_else(new_tool_call_id),
                origin: self.origin(item),
            })),
            Some("web_search_call") => self.web_search(item),
            // What other tools of the provider did: none of them is offered.
            _ => {}
        }
    }

    fn message(&mut self, item: &Value) {
        let content = item.get("content").and_then(Value::as_array);
        for piece in content.into_iter().flatten() {
            let text = |name: &str| {
                piece
                    .get(name)
                    .and_then(Value::as_str)
                    .filter(|text| !text.is_empty())
            };
            if let Some(refusal) = text("refusal") {
                self.refusal = Some(refusal.to_owned());
            } else if let Some(content) = text("text") {
                self.parts.push(ResponsePart::Text(TextPart {
                    content: content.to_owned(),
                    origin: self.origin(item),
                }));
            }
        }
    }

    /// One part for each summary; the first holds what can't be read.
    fn reasoning(&mut self, item: &Value) {
        let list = |name: &str| item.get(name).and_then(Value::as_array);
        let mut signature = item
            .get("encrypted_content")
            .and_then(Value::as_str)
            .map(ToOwned::to_owned);
        let mut origin = self.origin(item);
        let raw: Vec<Value> = list("content")
            .into_iter()
            .flatten()
            .filter_map(|piece| piece.get("text").cloned())
            .collect();
        if !raw.is_empty() {
            let raw = raw.into();
            origin
                .provider_details
                .insert("raw_content".to_owned(), raw);
        }
        let mut summaries = list("summary").into_iter().flatten().peekable();
        if summaries.peek().is_none()
            && (signature.is_some() || !origin.provider_details.is_empty())
        {
            self.parts.push(ResponsePart::Thinking(Thinking {
                content: String::new(),
                signature,
                origin,
            }));
            return;
        }
        for summary in summaries {
            let content = summary.get("text").and_then(Value::as_str);
            self.parts.push(ResponsePart::Thinking(Thinking {
                content: content.unwrap_or_default().to_owned(),
                signature: signature.take(),
                origin: origin.clone(),
            }));
            origin.provider_details.clear();
        }
    }

    fn web_search(&mut self, item: &Value) {
        let origin = self.origin(item);
        let tool_call_id = origin.id.clone().unwrap_or_default();
        let mut found = Map::new();
        found.insert(
            "status".to_owned(),
            item.get("status").cloned().unwrap_or_default(),
        );
        let mut action = match item.get("action") {
            Some(Value::Object(action)) => action.clone(),
            _ => Map::new(),
        };
        action.retain(|_, value| !value.is_null());
        if let Some(sources) = action.shift_remove("sources") {
            found.insert("sources".to_owned(), sources);
        }
        let from_provider = Origin {
            id: None,
            ..origin.clone()
        };
        for (step, origin) in [
            (NativeToolStep::Call(action.into()), origin),
            (NativeToolStep::Return(found.into()), from_provider),
        ] {
            self.parts.push(ResponsePart::NativeTool(NativeToolPart {
                tool_name: "web_search".to_owned(),
                tool_call_id: tool_call_id.clone(),
                step,
                origin,
            }));
        }
    }
}

fn usage(usage: Option<&Value>) -> RequestUsage {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else {
        return RequestUsage::unmeasured();
    };
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    RequestUsage {
        input_tokens: count("/input_tokens"),
        output_tokens: count("/output_tokens"),
        cache_read_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
        output_reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
        ..RequestUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn parts(output: &Value) -> Vec<ResponsePart> {
        let body =
            json!({"id": "resp_1", "status": "completed", "model": "gpt-5", "output": output});
        read(&body.to_string(), "openai", "gpt-5", "http://x/")
            .unwrap()
            .parts
    }

    #[test]
    fn thinking_has_a_part_for_each_summary_and_its_secret_once() {
        let parts = parts(&json!([{
            "type": "reasoning", "id": "rs_1", "encrypted_content": "ZW5j",
            "summary": [{"text": "First."}, {"text": "Then."}],
        }]));
        let signatures: Vec<_> = parts
            .iter()
            .map(|part| match part {
                ResponsePart::Thinking(thinking) => {
                    (thinking.content.as_str(), thinking.signature.as_deref())
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(signatures, [("First.", Some("ZW5j")), ("Then.", None)]);
    }

    #[test]
    fn a_refusal_leaves_nothing_but_its_text() {
        let body = json!({
            "id": "resp_1", "status": "completed", "model": "gpt-5",
            "output": [{"type": "message", "id": "msg_1", "content": [{"type": "refusal", "refusal": "No."}]}],
        });
        let response = read(&body.to_string(), "openai", "gpt-5", "http://x/").unwrap();
        assert_eq!(response.parts, []);
        assert_eq!(response.finish_reason.as_deref(), Some("content_filter"));
        assert_eq!(response.provider_details["refusal"], "No.");
    }

    #[test]
    fn what_is_no_answer_says_so() {
        for (text, what) in [
            ("<html>", ", expected JSON data"),
            ("{}", ": it has no list of output items"),
        ] {
            let error = read(text, "openai", "gpt-5", "http://x/").unwrap_err();
            let whole = format!("Invalid response from openai responses endpoint{what}");
            assert_eq!(error.to_string(), whole);
        }
        let body = json!({"error": {"code": "server_error", "message": "broke"}});
        assert_eq!(
            read(&body.to_string(), "openai", "gpt-5", "http://x/")
                .unwrap_err()
                .to_string(),
            "status_code: 500, model_name: gpt-5, body: {'code': 'server_error', 'message': 'broke'}"
        );
    }
}
