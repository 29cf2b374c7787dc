//! A model that replays a transcript: for the first steps without a key, for examples and for tests.
//!
//! A transcript is a JSON file:
//!
//! ```json
//! {
//!   "model": "scripted",
//!   "turns": [
//!     {"tool_calls": [{"name": "query", "args": {"sql": "SELECT count(*) AS n FROM orders"}}]},
//!     {"text": "There are 12 orders.", "usage": {"input_tokens": 40, "output_tokens": 9}}
//!   ]
//! }
//! ```
//!
//! - `turns`: one entry for each request, in order. `text` and `tool_calls` may stand alone or together; a turn with
//!   neither is an empty response.
//! - `args`: an object, or a string that is passed on as the model's raw text (to play a model that writes bad JSON).
//! - `finish_reason`: `stop`, `length`, `tool_call` or `content_filter`; `tool_call` or `stop` by default.
//! - `usage`: `input_tokens`, `output_tokens`, `cache_read_tokens`, `cache_write_tokens`; zero by default.
//! - `model`: the name the responses carry; `scripted` by default.
//!
//! Call ids are `call_<turn>_<n>`, both from 1. Turns are played one after the other, whoever asks: several agents of one
//! task take theirs as they run. A file may also be just the list of turns.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::agent::message::{Message, ModelResponse, ResponsePart, ToolCall};
use crate::agent::model::RequestParameters;
use crate::agent::usage::RequestUsage;
use crate::agent::{Model, ModelError};

/// A transcript that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The file can't be read.
    #[error("the transcript {path} can't be read: {source}")]
    Unreadable {
        path: String,
        source: std::io::Error,
    },
    /// The file is not a transcript.
    #[error("{path} is not a transcript (an object with a list of turns): {source}")]
    Malformed {
        path: String,
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Transcript {
    #[serde(default = "default_model")]
    model: String,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default)]
    args: Value,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
}

fn default_model() -> String {
    "scripted".to_owned()
}

/// A model that answers from a transcript.
pub struct Scripted {
    transcript: Transcript,
    /// For error texts: the file's path.
    source: String,
    /// How many turns were asked for.
    asked: AtomicUsize,
}

impl Scripted {
    /// Reads a transcript.
    ///
    /// # Errors
    /// The file is missing or not a transcript.
    pub fn from_file(path: &Path) -> Result<Self, TranscriptError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| TranscriptError::Unreadable {
            path: name.clone(),
            source,
        })?;
        Self::from_text(&text, &name)
    }

    /// Reads a transcript from text; `source` names it in errors.
    ///
    /// # Errors
    /// The text is not a transcript.
    pub fn from_text(text: &str, source: &str) -> Result<Self, TranscriptError> {
        let malformed = |error| TranscriptError::Malformed {
            path: source.to_owned(),
            source: error,
        };
        let transcript = match serde_json::from_str(text).map_err(malformed)? {
            turns @ Value::Array(_) => Transcript {
                model: default_model(),
                turns: serde_json::from_value(turns).map_err(malformed)?,
            },
            other => serde_json::from_value(other).map_err(malformed)?,
        };
        Ok(Self {
            transcript,
            source: source.to_owned(),
            asked: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        &self.transcript.model
    }

    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn is_replayed(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    async fn request(
        &self,
        _: &[Message],
        _: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        let played = self.asked.fetch_add(1, Ordering::Relaxed);
        let Some(turn) = self.transcript.turns.get(played) else {
            return Err(ModelError::UnexpectedBehavior(format!(
                "the transcript {} has {} turns and was asked for turn {}: add what the model should say next",
                self.source,
                self.transcript.turns.len(),
                played + 1
            )));
        };
        let mut parts: Vec<ResponsePart> = turn
            .text
            .clone()
            .map(|text| ResponsePart::text(&text))
            .into_iter()
            .collect();
        for (index, call) in turn.tool_calls.iter().enumerate() {
            parts.push(ResponsePart::ToolCall(ToolCall {
                tool_name: call.name.clone(),
                args: match &call.args {
                    Value::String(raw) => raw.clone(),
                    Value::Null => "{}".to_owned(),
                    args => args.to_string(),
                },
                tool_call_id: format!("call_{}_{}", played + 1, index + 1),
                ..ToolCall::default()
            }));
        }
        let by_default = if turn.tool_calls.is_empty() {
            "stop"
        } else {
            "tool_call"
        };
        Ok(ModelResponse {
            parts,
            usage: RequestUsage {
                input_tokens: turn.usage.input_tokens,
                output_tokens: turn.usage.output_tokens,
                cache_read_tokens: turn.usage.cache_read_tokens,
                cache_write_tokens: turn.usage.cache_write_tokens,
                ..RequestUsage::default()
            },
            model_name: self.transcript.model.clone(),
            finish_reason: Some(
                turn.finish_reason
                    .clone()
                    .unwrap_or_else(|| by_default.to_owned()),
            ),
            provider_name: "scripted".to_owned(),
            provider_details: Map::new(),
            timestamp: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true),
            ..ModelResponse::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[tokio::test]
    async fn turns_are_played_in_order_and_the_one_too_many_is_named() {
        let model = Scripted::from_text(
            r#"[{"tool_calls": [{"name": "query", "args": {"sql": "SELECT 1"}}, {"name": "list_tables"}]},
                {"text": "One.", "usage": {"input_tokens": 3}}]"#,
            "orders.json",
        )
        .unwrap();
        let parameters = RequestParameters::default();
        let first = model.request(&[], &parameters).await.unwrap();
        assert_eq!(
            first.parts,
            vec![
                ResponsePart::ToolCall(ToolCall {
                    tool_name: "query".to_owned(),
                    args: "{\"sql\":\"SELECT 1\"}".to_owned(),
                    tool_call_id: "call_1_1".to_owned(),
                    ..ToolCall::default()
                }),
                ResponsePart::ToolCall(ToolCall {
                    tool_name: "list_tables".to_owned(),
                    args: "{}".to_owned(),
                    tool_call_id: "call_1_2".to_owned(),
                    ..ToolCall::default()
                }),
            ]
        );
        let second = model.request(&[], &parameters).await.unwrap();
        assert_eq!(second.parts, vec![ResponsePart::text("One.")]);
        assert_eq!(second.usage.input_tokens, 3);
        assert_eq!(
            model
                .request(&[], &parameters)
                .await
                .unwrap_err()
                .to_string(),
            "the transcript orders.json has 2 turns and was asked for turn 3: add what the model should say next"
        );
    }

    #[test]
    fn a_misspelt_key_is_refused_rather_than_ignored() {
        let error = Scripted::from_text(r#"{"turns": [{"texts": "x"}]}"#, "t.json")
            .err()
            .unwrap();
        assert!(
            error.to_string().starts_with("t.json is not a transcript"),
            "{error}"
        );
    }
}
