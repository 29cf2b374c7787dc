//! Messages as pydantic-ai's JSON (`ModelMessagesTypeAdapter`).

use serde_json::{Value, json};

use super::message::{ModelResponse, ResponsePart};

/// A response as indented JSON, in a list of one: the body of a content filter error.
pub(super) fn response_dump(
    response: &ModelResponse,
    run_id: &str,
    conversation_id: &str,
) -> String {
    let dump = Value::Array(vec![response_json(response, run_id, conversation_id)]);
    // Serialising a `Value` to a string can't fail; the compact form is there for the type's sake.
    serde_json::to_string_pretty(&dump).unwrap_or_else(|_| dump.to_string())
}

fn response_json(response: &ModelResponse, run_id: &str, conversation_id: &str) -> Value {
    let usage = &response.usage;
    let parts: Vec<Value> = response
        .parts
        .iter()
        .map(|part| match part {
            ResponsePart::Text(content) => json!({
                "content": content, "id": null, "provider_name": null, "provider_details": null,
                "part_kind": "text",
            }),
            ResponsePart::Thinking(thinking) => json!({
                "content": thinking.content, "id": thinking.id, "signature": null,
                "provider_name": thinking.provider_name, "provider_details": null, "part_kind": "thinking",
            }),
            ResponsePart::ToolCall(call) => json!({
                "tool_name": call.tool_name, "args": call.args, "tool_call_id": call.tool_call_id,
                "tool_kind": null, "id": null, "provider_name": null, "provider_details": null,
                "part_kind": "tool-call",
            }),
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
        "provider_details": response.provider_details,
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
