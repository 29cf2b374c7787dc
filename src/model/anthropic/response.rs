//! Anthropic's Messages API: what it answers, whole or as a stream.

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use crate::agent::ModelError;
use crate::agent::message::{
    ModelResponse, NativeToolPart, NativeToolStep, Origin, ResponsePart, TextPart, Thinking,
    ToolCall,
};
use crate::agent::pydantic_json::compact_json;
use crate::agent::usage::RequestUsage;
use crate::airflow::python_text::repr_value;
use crate::model::conversation::new_tool_call_id;
use crate::model::prices;
use crate::model::server_sent_events::events;

/// The status that an error has when it does not come within a stream.
const STATUS_OF_ERRORS: &[(&str, u16)] = &[
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("api_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
];

/// Puts the events of a stream together to the message that would have come in one piece. The arguments of calls stay the
/// text they come as.
///
/// # Errors
/// The provider said within the stream that it failed, or the stream broke off.
pub(super) fn reassemble(text: &str, model_name: &str) -> Result<Value, ModelError> {
    let mut message = Map::new();
    let mut blocks: Vec<Map<String, Value>> = Vec::new();
    let mut ended = false;
    for event in events(text) {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                if let Some(Value::Object(start)) = event.get("message") {
                    message.clone_from(start);
                }
            }
            Some("content_block_start") => {
                if let Some(Value::Object(block)) = event.get("content_block") {
                    let mut block = block.clone();
                    if block.get("input") == Some(&json!({})) {
                        block.insert("input".to_owned(), "".into());
                    }
                    blocks.push(block);
                }
            }
            Some("content_block_delta") => {
                if let (Some(block), Some(delta)) = (blocks.get_mut(at), event.get("delta")) {
                    grow(block, delta);
                }
            }
            Some("message_delta") => {
                if let Some(Value::Object(delta)) = event.get("delta") {
                    message.extend(delta.clone());
                }
                if let Some(Value::Object(counted)) = event.get("usage") {
                    let usage = message.entry("usage").or_insert_with(|| json!({}));
                    if let Value::Object(usage) = usage {
                        let known = counted.iter().filter(|(_, count)| !count.is_null());
                        usage.extend(known.map(|(name, count)| (name.clone(), count.clone())));
                    }
                }
            }
            Some("message_stop") => ended = true,
            Some("error") => return Err(failed(&event, model_name)),
            // `ping`, `content_block_stop`, and what later versions may add.
            _ => {}
        }
    }
    if message.is_empty() || !ended {
        return Err(ModelError::Connection(
            "Connection error. The model's server ended its answer before it was complete."
                .to_owned(),
        ));
    }
    let blocks = blocks.into_iter().map(Value::Object).collect();
    message.insert("content".to_owned(), Value::Array(blocks));
    Ok(Value::Object(message))
}

fn grow(block: &mut Map<String, Value>, delta: &Value) {
    for (from, to) in [
        ("text", "text"),
        ("thinking", "thinking"),
        ("signature", "signature"),
        ("partial_json", "input"),
    ] {
        if let Some(Value::String(piece)) = delta.get(from) {
            match block.get_mut(to) {
                Some(Value::String(text)) => text.push_str(piece),
                _ => {
                    block.insert(to.to_owned(), piece.as_str().into());
                }
            }
        }
    }
}

fn failed(event: &Value, model_name: &str) -> ModelError {
    let kind = event.pointer("/error/type").and_then(Value::as_str);
    let status = STATUS_OF_ERRORS
        .iter()
        .find(|(name, _)| kind == Some(*name))
        .map_or(500, |(_, status)| *status);
    ModelError::Http {
        status,
        model_name: model_name.to_owned(),
        body: repr_value(event),
    }
}

/// Reads a message.
///
/// # Errors
/// It is none.
pub(super) fn read(
    message: &Value,
    provider: &'static str,
    asked: &str,
    base_url: &str,
) -> Result<ModelResponse, ModelError> {
    let text = |name: &str| {
        message
            .get(name)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let Some(Value::Array(blocks)) = message.get("content") else {
        return Err(ModelError::UnexpectedBehavior(
            "Invalid response from anthropic messages endpoint: it has no list of content blocks"
                .to_owned(),
        ));
    };
    let parts = blocks.iter().filter_map(|block| part(block, provider));
    let mut details = Map::new();
    let reason = text("stop_reason");
    if let Some(reason) = &reason {
        details.insert("finish_reason".to_owned(), reason.clone().into());
    }
    for (from, to) in [
        ("/stop_details/explanation", "refusal"),
        ("/stop_details/category", "refusal_category"),
    ] {
        if let Some(Value::String(said)) = message.pointer(from) {
            details.insert(to.to_owned(), said.clone().into());
        }
    }
    let finish_reason = match reason.as_deref() {
        Some("end_turn" | "stop_sequence" | "compaction") => Some("stop"),
        Some("max_tokens" | "model_context_window_exceeded") => Some("length"),
        Some("tool_use") => Some("tool_call"),
        Some("refusal") => Some("content_filter"),
        _ => None,
    };
    let model_name = text("model").unwrap_or_else(|| asked.to_owned());
    let mut usage = usage(message.get("usage"));
    usage.cost = prices::cost("anthropic", &model_name, &usage);
    Ok(ModelResponse {
        parts: parts.collect(),
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

/// `None` for what says nothing, and for kinds of blocks that are not known.
fn part(block: &Value, provider: &str) -> Option<ResponsePart> {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    let owned = |name: &str| text(name).unwrap_or_default().to_owned();
    let origin = |id: Option<&str>| Origin {
        id: id.map(ToOwned::to_owned),
        provider_name: Some(provider.to_owned()),
        provider_details: Map::new(),
    };
    match text("type")? {
        "text" => Some(TextPart::from(text("text")?))
            .filter(|part| !part.content.is_empty())
            .map(ResponsePart::Text),
        "thinking" => Some(ResponsePart::Thinking(Thinking {
            content: owned("thinking"),
            signature: text("signature").map(ToOwned::to_owned),
            origin: origin(None),
        })),
        "redacted_thinking" => Some(ResponsePart::Thinking(Thinking {
            content: String::new(),
            signature: text("data").map(ToOwned::to_owned),
            origin: origin(Some("redacted_thinking")),
        })),
        "tool_use" => Some(ResponsePart::ToolCall(ToolCall {
            tool_name: owned("name"),
            args: match block.get("input") {
                Some(Value::String(raw)) => raw.clone(),
                None | Some(Value::Null) => String::new(),
                Some(input) => compact_json(input),
            },
            tool_call_id: text("id")
                .filter(|id| !id.is_empty())
                .map_or_else(new_tool_call_id, ToOwned::to_owned),
            ..ToolCall::default()
        })),
        "server_tool_use" => Some(ResponsePart::NativeTool(NativeToolPart {
            tool_name: owned("name"),
            tool_call_id: owned("id"),
            step: NativeToolStep::Call(match block.get("input") {
                Some(Value::String(raw)) => serde_json::from_str(raw).unwrap_or_else(|_| json!({})),
                input => input.cloned().unwrap_or_else(|| json!({})),
            }),
            origin: origin(None),
        })),
        kind => kind.strip_suffix("_tool_result").map(|tool_name| {
            ResponsePart::NativeTool(NativeToolPart {
                tool_name: tool_name.to_owned(),
                tool_call_id: owned("tool_use_id"),
                step: NativeToolStep::Return(block.get("content").cloned().unwrap_or_default()),
                origin: origin(None),
            })
        }),
    }
}

/// What is read from and written to the cache is counted apart there, and is part of the input here.
fn usage(usage: Option<&Value>) -> RequestUsage {
    let Some(usage) = usage.filter(|usage| usage.is_object()) else {
        return RequestUsage::unmeasured();
    };
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let read = count("cache_read_input_tokens");
    let written = count("cache_creation_input_tokens");
    RequestUsage {
        input_tokens: count("input_tokens") + read + written,
        output_tokens: count("output_tokens"),
        cache_read_tokens: read,
        cache_write_tokens: written,
        ..RequestUsage::default()
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn stream(events: &[Value]) -> String {
        events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect()
    }

    #[test]
    fn the_arguments_of_a_streamed_call_stay_as_the_model_wrote_them() {
        let text = stream(&[
            json!({"type": "message_start", "message": {"id": "m", "model": "claude-x", "content": [],
                "usage": {"input_tokens": 3, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "tool_use", "id": "toolu_1", "name": "query", "input": {}}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": "{\"sql\": "}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": "oops"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ]);
        let message = reassemble(&text, "claude-x").unwrap();
        let response = read(&message, "anthropic", "claude-x", "http://x").unwrap();
        let [ResponsePart::ToolCall(call)] = response.parts.as_slice() else {
            panic!("{:?}", response.parts);
        };
        assert_eq!(call.args, "{\"sql\": oops");
        assert_eq!(response.finish_reason.as_deref(), Some("length"));
        assert_eq!(
            (response.usage.input_tokens, response.usage.output_tokens),
            (3, 9)
        );
    }

    #[test]
    fn an_error_within_a_stream_has_the_status_of_its_kind() {
        let text = stream(&[
            json!({"type": "message_start", "message": {"id": "m"}}),
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ]);
        assert_eq!(
            reassemble(&text, "claude-x").unwrap_err().to_string(),
            "status_code: 529, model_name: claude-x, body: {'type': 'error', 'error': {'type': 'overloaded_error', \
             'message': 'Overloaded'}}"
        );
    }

    #[test]
    fn a_stream_that_breaks_off_is_a_broken_connection() {
        let text = stream(&[json!({"type": "message_start", "message": {"id": "m"}})]);
        let error = reassemble(&text, "claude-x").unwrap_err();
        assert!(error.is_api_error(), "{error}");
        assert!(
            error.to_string().contains("before it was complete"),
            "{error}"
        );
    }

    #[test]
    fn what_a_search_found_is_kept_to_go_back() {
        let message = json!({"id": "m", "model": "claude-x", "stop_reason": "end_turn", "content": [
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "tides"}},
            {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"encrypted_content": "ZW5j"}]},
            {"type": "redacted_thinking", "data": "c2Vj"},
            {"type": "text", "text": "High at noon."},
        ]});
        let response = read(&message, "anthropic", "claude-x", "http://x").unwrap();
        let native = |step| {
            ResponsePart::NativeTool(NativeToolPart {
                tool_name: "web_search".to_owned(),
                tool_call_id: "srv_1".to_owned(),
                step,
                origin: Origin {
                    provider_name: Some("anthropic".to_owned()),
                    ..Origin::default()
                },
            })
        };
        assert_eq!(
            response.parts[..2],
            [
                native(NativeToolStep::Call(json!({"query": "tides"}))),
                native(NativeToolStep::Return(
                    json!([{"encrypted_content": "ZW5j"}])
                )),
            ]
        );
        assert_eq!(response.parts[3], ResponsePart::text("High at noon."));
    }
}
