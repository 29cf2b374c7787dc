//! What a step gave, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::agent::binary_content::{BinaryContent, ToolOutput};
use crate::agent::message::ModelResponse;
use crate::agent::toolset::ToolError;

/// A response, without its cost: prices are looked up when it is counted.
pub(super) fn of_response(response: &ModelResponse) -> Value {
    let mut response = response.clone();
    response.usage.cost = None;
    json!(response)
}

/// `None` for what is no response.
pub(super) fn response(payload: &Value) -> Option<ModelResponse> {
    let has_parts = payload.get("parts").is_some_and(Value::is_array);
    has_parts
        .then(|| serde_json::from_value(payload.clone()).ok())
        .flatten()
}

/// What a call gave; `None` for a failure that ends the run, which is not recorded.
pub(super) fn of_tool_result(result: &Result<ToolOutput, ToolError>) -> Option<Value> {
    Some(match result {
        Ok(ToolOutput { content, files }) if files.is_empty() => {
            json!({ "kind": "tool_return", "result": content })
        }
        Ok(ToolOutput { content, files }) => {
            let files: Vec<Value> = files
                .iter()
                .map(|file| json!({ "data": STANDARD.encode(&file.data), "media_type": file.media_type }))
                .collect();
            json!({ "kind": "tool_return", "result": content, "files": files })
        }
        Err(ToolError::Retry(text)) => json!({ "kind": "model_retry", "message": text }),
        Err(ToolError::Failed(text)) => json!({ "kind": "tool_failed", "message": text }),
        Err(ToolError::Fatal(_)) => return None,
    })
}

/// `None` for what is no result of a tool.
pub(super) fn tool_result(payload: &Value) -> Option<Result<ToolOutput, ToolError>> {
    let message = || Some(payload.get("message")?.as_str()?.to_owned());
    Some(match payload.get("kind")?.as_str()? {
        "tool_return" => {
            let files = match payload.get("files") {
                None => Vec::new(),
                Some(files) => files.as_array()?.iter().map(file).collect::<Option<_>>()?,
            };
            Ok(ToolOutput {
                content: payload.get("result")?.clone(),
                files,
            })
        }
        "model_retry" => Err(ToolError::Retry(message()?)),
        "tool_failed" => Err(ToolError::Failed(message()?)),
        _ => return None,
    })
}

/// Is it a result that counts as a tool call?
pub(super) fn is_success(payload: &Value) -> bool {
    payload.get("kind").and_then(Value::as_str) == Some("tool_return")
}

fn file(recorded: &Value) -> Option<BinaryContent> {
    Some(BinaryContent {
        data: STANDARD.decode(recorded.get("data")?.as_str()?).ok()?,
        media_type: recorded.get("media_type")?.as_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::agent::cost::Cost;
    use crate::agent::message::{ResponsePart, ToolCall};

    #[test]
    fn a_response_comes_back_without_its_cost() {
        let mut given = ModelResponse {
            parts: vec![
                ResponsePart::text("Let me look."),
                ResponsePart::ToolCall(ToolCall {
                    tool_name: "query".to_owned(),
                    args: "{\"sql\": ".to_owned(),
                    tool_call_id: "c1".to_owned(),
                    ..ToolCall::default()
                }),
            ],
            model_name: "gpt-5".to_owned(),
            ..ModelResponse::default()
        };
        given.usage.input_tokens = 7;
        given.usage.cost = Some(Cost::default());
        let read = response(&of_response(&given)).unwrap();
        given.usage.cost = None;
        assert_eq!(read, given);
    }

    #[test]
    fn results_and_what_the_model_is_told_instead_come_back() {
        let output = ToolOutput {
            content: json!({"rows": [1]}),
            files: vec![BinaryContent {
                data: vec![0, 255, 7],
                media_type: "image/png".to_owned(),
            }],
        };
        let payload = of_tool_result(&Ok(output.clone())).unwrap();
        assert_eq!(tool_result(&payload).unwrap().unwrap(), output);
        assert!(is_success(&payload));

        let retry = of_tool_result(&Err(ToolError::Retry("no".to_owned()))).unwrap();
        assert_eq!(retry, json!({"kind": "model_retry", "message": "no"}));
        assert!(matches!(tool_result(&retry), Some(Err(ToolError::Retry(text))) if text == "no"));
        assert!(!is_success(&retry));
        assert_eq!(
            of_tool_result(&Err(ToolError::Fatal("broken".to_owned()))),
            None
        );
    }

    #[test]
    fn what_another_version_recorded_is_nothing() {
        for payload in [
            json!({"kind": "tool_content_result", "result": 1}),
            json!({"kind": "tool_return", "tool_return": {"return_value": 1}}),
            json!({"kind": "model_retry"}),
            json!("text"),
        ] {
            assert!(tool_result(&payload).is_none(), "{payload}");
        }
        assert!(response(&json!({"response": {}})).is_none());
        assert!(response(&json!({"parts": [{"part_kind": "text", "content": "?"}]})).is_none());
    }
}
