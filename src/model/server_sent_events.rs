//! Answers that come as server-sent events.

use serde_json::Value;

/// The JSON of each event's data, in order. An event without JSON, such as OpenAI's `[DONE]`, says nothing.
pub(super) fn events(text: &str) -> Vec<Value> {
    let mut events = Vec::new();
    let mut data = String::new();
    // The text's last event may lack the blank line that ends one.
    for line in text.lines().chain(std::iter::once("")) {
        if line.is_empty() {
            events.extend(serde_json::from_str::<Value>(&data));
            data.clear();
        } else if let Some(piece) = line.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(piece.strip_prefix(' ').unwrap_or(piece));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_read_with_any_line_ends_and_over_several_lines() {
        let text = "event: a\r\ndata: {\"n\":1}\r\n\r\n: a comment\ndata:{\"n\":\ndata:2}\n\ndata: [DONE]\n\ndata: {\"n\":3}";
        assert_eq!(
            events(text),
            [json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]
        );
    }
}
