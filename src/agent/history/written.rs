//! Writes messages as the adapter of pydantic-ai writes them.

use serde_json::{Map, Value, json};

use crate::agent::message::{
    ModelRequest, ModelResponse, NativeToolPart, NativeToolStep, Origin, RequestPart, ResponsePart,
    RetryInfo, TextPart, ToolOutcome,
};

/// A response as indented JSON, in a list of one: the body of a content filter error.
pub(in crate::agent) fn response_dump(
    response: &ModelResponse,
    run_id: &str,
    conversation_id: &str,
) -> String {
    let dump = Value::Array(vec![response_json(response, run_id, conversation_id)]);
    // Serialising a `Value` to a string can't fail; the compact form is there for the type's sake.
    serde_json::to_string_pretty(&dump).unwrap_or_else(|_| dump.to_string())
}
pub(super) fn request_json(request: &ModelRequest, run_id: &str, conversation_id: &str) -> Value {
    let timestamp = &request.timestamp;
    let parts: Vec<Value> = request
        .parts
        .iter()
        .map(|part| match part {
            RequestPart::UserPrompt(content) => {
                json!({ "content": content, "timestamp": timestamp, "part_kind": "user-prompt" })
            }
            RequestPart::SystemPrompt(content) => json!({
                "content": content, "timestamp": timestamp, "dynamic_ref": null, "context_id": null,
                "scope": "conversation", "metadata": null, "part_kind": "system-prompt",
            }),
            RequestPart::ToolReturn(result) => with_digests(json!({
                "tool_name": result.tool_name,
                "content": result.content,
                "tool_call_id": result.tool_call_id,
                "tool_kind": null,
                "metadata": null,
                "timestamp": timestamp,
                "outcome": match result.outcome {
                    ToolOutcome::Success => "success",
                    ToolOutcome::Retried => "retried",
                    ToolOutcome::Failed => "failed",
                },
                "retry": result.retry.as_ref().map(retry_json),
                "part_kind": "tool-return",
            })),
            RequestPart::RetryFeedback(feedback) => json!({
                "content": feedback.content,
                "retry": retry_json(&feedback.retry),
                "timestamp": timestamp,
                "part_kind": "retry-feedback",
            }),
        })
        .collect();
    let instructions = &request.instructions;
    json!({
        "parts": parts,
        "timestamp": timestamp,
        "instructions": (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        "kind": "request",
        "run_id": run_id,
        "conversation_id": conversation_id,
        "metadata": null,
        "state": "complete",
    })
}

fn retry_json(retry: &RetryInfo) -> Value {
    json!({ "cause": retry.cause, "attempt": retry.attempt, "max_retries": retry.max_retries })
}

pub(super) fn response_json(
    response: &ModelResponse,
    run_id: &str,
    conversation_id: &str,
) -> Value {
    let (usage, details) = (&response.usage, &response.provider_details);
    let parts: Vec<Value> = response
        .parts
        .iter()
        .map(|part| match part {
            ResponsePart::Text(TextPart { content, origin }) => json!({
                "content": content, "id": origin.id, "provider_name": origin.provider_name,
                "provider_details": details_json(origin), "citations": null, "part_kind": "text",
            }),
            ResponsePart::Thinking(thinking) => json!({
                "content": thinking.content, "id": thinking.origin.id, "signature": thinking.signature,
                "provider_name": thinking.origin.provider_name,
                "provider_details": details_json(&thinking.origin), "part_kind": "thinking",
            }),
            ResponsePart::ToolCall(call) => json!({
                "tool_name": call.tool_name, "args": call.args, "tool_call_id": call.tool_call_id,
                "tool_kind": null, "id": call.origin.id, "provider_name": call.origin.provider_name,
                "provider_details": details_json(&call.origin), "part_kind": "tool-call",
            }),
            ResponsePart::NativeTool(part) => native_tool_json(part, &response.timestamp),
        })
        .collect();
    json!({
        "parts": parts,
        "usage": {
            "input_tokens": usage.input_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "cache_write_1h_tokens": 0,
            "cache_read_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
            "output_reasoning_tokens": usage.output_reasoning_tokens,
            "input_audio_tokens": 0,
            "cache_audio_read_tokens": 0,
            "output_audio_tokens": 0,
            "audio_seconds": 0.0,
            "details": {},
            "cost": usage.cost.map(|cost| cost.to_string()),
        },
        "model_name": response.model_name,
        "model_id": format!("{}:{}", response.provider_name, response.model_name),
        "timestamp": response.timestamp,
        "kind": "response",
        "provider_name": response.provider_name,
        "provider_url": response.provider_url,
        "canonical_system": response.provider_name,
        "provider_details": (!details.is_empty()).then_some(details),
        "provider_response_id": response.provider_response_id,
        "finish_reason": response.finish_reason,
        "run_id": run_id,
        "conversation_id": conversation_id,
        "metadata": null,
        "workspace_ref": null,
        "history_digest": null,
        "failed_attempts": null,
        "state": "complete",
    })
}

fn details_json(origin: &Origin) -> Option<&Map<String, Value>> {
    Some(&origin.provider_details).filter(|details| !details.is_empty())
}

fn native_tool_json(part: &NativeToolPart, timestamp: &str) -> Value {
    let NativeToolPart {
        tool_name,
        tool_call_id,
        step,
        origin,
    } = part;
    match step {
        NativeToolStep::Call(args) => json!({
            "tool_name": tool_name, "args": args, "tool_call_id": tool_call_id, "tool_kind": tool_name,
            "id": origin.id, "provider_name": origin.provider_name, "provider_details": details_json(origin),
            "part_kind": "builtin-tool-call",
        }),
        NativeToolStep::Return(content) => with_digests(json!({
            "tool_name": tool_name, "content": content, "tool_call_id": tool_call_id, "tool_kind": tool_name,
            "metadata": null, "timestamp": timestamp, "outcome": "success",
            "provider_name": origin.provider_name, "provider_details": details_json(origin),
            "part_kind": "builtin-tool-return",
        })),
    }
}
/// The adapter adds the digests of files to a result that may hold some.
pub(super) fn with_digests(mut tool_return: Value) -> Value {
    let may_hold_files = tool_return
        .get("content")
        .is_some_and(|content| content.is_array() || content.is_object());
    if let (true, Value::Object(map)) = (may_hold_files, &mut tool_return) {
        map.insert("content_file_digests".to_owned(), Value::Array(Vec::new()));
    }
    tool_return
}
