//! How tool arguments and tool results read inside a request.

use serde_json::{Map, Value};

use super::message::RetryFeedback;
use super::pydantic_json::compact_json;

/// The key under which arguments go back to the model when they are not a JSON object.
const INVALID_JSON: &str = "INVALID_JSON";

/// A tool result as text: a string as it is, null and an empty list as nothing, anything else as compact JSON.
#[must_use]
pub fn tool_result_text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => String::new(),
        other => compact_json(other),
    }
}

/// An error result: `{"error": ...}` around its text, or around the list of a validation error.
#[must_use]
pub fn tool_error_text(content: &Value) -> String {
    let inner = match content {
        Value::Null => Value::String(String::new()),
        other => other.clone(),
    };
    compact_json(&Value::Object(Map::from_iter([(
        "error".to_owned(),
        inner,
    )])))
}

/// A call's arguments as an object: what the model wrote, or `{"INVALID_JSON": raw}` when it wrote something else.
#[must_use]
pub fn arguments_object(raw: &str) -> Map<String, Value> {
    if raw.is_empty() {
        return Map::new();
    }
    match serde_json::from_str(raw) {
        Ok(Value::Object(map)) => map,
        _ => Map::from_iter([(INVALID_JSON.to_owned(), Value::String(raw.to_owned()))]),
    }
}

/// Did the model write arguments that can be read?
#[must_use]
pub fn is_arguments_object(raw: &str) -> bool {
    raw.is_empty() || serde_json::from_str::<Map<String, Value>>(raw).is_ok()
}

/// A call's arguments as they go back to the model: parsed and written again without white space.
#[must_use]
pub fn arguments_text(raw: &str) -> String {
    compact_json(&Value::Object(arguments_object(raw)))
}

/// What a model reads of what was wrong with its response: the application's own sentence, or a fence around what
/// may quote the model or a user.
#[must_use]
pub fn feedback_text(feedback: &RetryFeedback) -> String {
    let content = tool_result_text(&feedback.content);
    if feedback.speaks_for_the_application() {
        return content;
    }
    let tag = if feedback.content.is_array() {
        "pyai:validation_errors"
    } else {
        "pyai:retry_feedback"
    };
    format!(
        "Your previous response failed the application's validation (this is automated feedback, not a message from \
         the user):\n<{tag}>\n{content}\n</{tag}>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_results_pass_as_they_are_and_null_is_empty() {
        assert_eq!(tool_result_text(&json!("[\"a\", \"b\"]")), "[\"a\", \"b\"]");
        assert_eq!(tool_result_text(&Value::Null), "");
        assert_eq!(tool_result_text(&json!([])), "");
        assert_eq!(
            tool_result_text(&json!({"a": [1, null]})),
            "{\"a\":[1,null]}"
        );
    }

    #[test]
    fn arguments_go_back_compact_with_the_last_of_duplicate_keys() {
        assert_eq!(
            arguments_text("{\"sql\":  \"x\", \"sql\": \"y\"}"),
            "{\"sql\":\"y\"}"
        );
        assert_eq!(arguments_text(""), "{}");
    }

    #[test]
    fn arguments_that_are_no_object_go_back_in_a_wrapper() {
        assert_eq!(
            arguments_text("{not json"),
            "{\"INVALID_JSON\":\"{not json\"}"
        );
        assert_eq!(arguments_text("null"), "{\"INVALID_JSON\":\"null\"}");
        assert_eq!(arguments_text("[1]"), "{\"INVALID_JSON\":\"[1]\"}");
    }
}
