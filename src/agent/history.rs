//! Conversations as pydantic-ai stores them (`ModelMessagesTypeAdapter`): read, continued, and written again.

mod stored;
mod written;

use serde_json::Value;

use super::message::Message;
use stored::{request, response};
use written::{request_json, response_json};

pub(super) use written::response_dump;

/// A stored conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The same, as they are written again: what a message holds beyond [`Message`] is kept.
    recorded: Vec<Value>,
}

/// Why a text is no conversation.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryError {
    #[error(
        "1 validation error for list[tagged-union[ModelRequest,ModelResponse]]\n  Invalid JSON: {0}. message_history \
         takes the text that a task's XCom message_history holds, or nothing"
    )]
    NotJson(String),
    /// `place` is like `0.request.parts.1`.
    #[error(
        "1 validation error for list[tagged-union[ModelRequest,ModelResponse]]\n{place}\n  {what}"
    )]
    Invalid { place: String, what: String },
    /// A part that pydantic-ai knows and that can't be sent from here.
    #[error(
        "message_history holds {what} at {place}, which is not supported natively: send the task to a Python worker"
    )]
    Unsupported { place: String, what: String },
}

impl History {
    /// Reads a conversation. Blank text is an empty one.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn read(text: &str) -> Result<Self, HistoryError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let value =
            serde_json::from_str(text).map_err(|error| HistoryError::NotJson(error.to_string()))?;
        Self::from_json(&value)
    }

    /// Reads a conversation that is JSON already.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn from_json(value: &Value) -> Result<Self, HistoryError> {
        let Value::Array(items) = value else {
            return Err(invalid("", "Input should be a valid array"));
        };
        let mut history = Self::default();
        for (index, item) in items.iter().enumerate() {
            let place = index.to_string();
            let Value::Object(item) = item else {
                return Err(invalid(&place, "Input should be an object"));
            };
            let (message, recorded) = match item.get("kind").and_then(Value::as_str) {
                Some("request") => request(item, &format!("{place}.request"))?,
                Some("response") => response(item, &format!("{place}.response"))?,
                Some(other) => {
                    let what = format!("kind is {other:?}, and not 'request' or 'response'");
                    return Err(invalid(&place, &what));
                }
                None => {
                    return Err(invalid(
                        &place,
                        "Unable to extract tag using discriminator 'kind'",
                    ));
                }
            };
            history.messages.push(message);
            history.recorded.push(recorded);
        }
        Ok(history)
    }

    /// The conversation that the newest message with an id belongs to.
    #[must_use]
    pub fn conversation_id(&self) -> Option<&str> {
        let mut newest = self.recorded.iter().rev();
        newest.find_map(|message| message.get("conversation_id")?.as_str())
    }

    /// The conversation after a run: this one, and what the run has added to it. `messages` begin with this history's.
    #[must_use]
    pub fn continued(&self, messages: &[Message], run_id: &str, conversation_id: &str) -> Value {
        let added = messages.iter().skip(self.recorded.len());
        let added = added.map(|message| match message {
            Message::Request(request) => request_json(request, run_id, conversation_id),
            Message::Response(response) => response_json(response, run_id, conversation_id),
        });
        self.recorded.iter().cloned().chain(added).collect()
    }
}
fn invalid(place: &str, what: &str) -> HistoryError {
    HistoryError::Invalid {
        place: place.to_owned(),
        what: what.to_owned(),
    }
}
#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn what_is_no_conversation_says_where() {
        for (text, place, what) in [
            ("{}", "", "Input should be a valid array"),
            ("[1]", "0", "Input should be an object"),
            (
                "[{\"kind\": \"request\"}]",
                "0.request.parts",
                "Field required",
            ),
            (
                "[{\"kind\": \"request\", \"parts\": [{\"part_kind\": \"user-prompt\"}]}]",
                "0.request.parts.0.content",
                "Field required",
            ),
        ] {
            assert_eq!(History::read(text), Err(invalid(place, what)), "{text}");
        }
        let error = History::read("None").unwrap_err().to_string();
        assert!(error.contains("Invalid JSON: "), "{error}");
        assert_eq!(History::read(" \n"), Ok(History::default()));
    }
}
