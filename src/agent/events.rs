//! Live events of a run, for whoever shows progress: `tracing` events with target [`TARGET`] at level DEBUG.
//!
//! | `event` | other fields |
//! |---|---|
//! | `model_request` | `turn` (from 1), `model` |
//! | `model_response` | `turn`, `model`, `text` (shortened, may be empty), `tool_calls` (how many), `input_tokens`, `output_tokens`, `millis` |
//! | `tool_call` | `turn`, `tool`, `tool_call_id`, `args` (the model's text, shortened) |
//! | `tool_return` | `turn`, `tool`, `tool_call_id`, `outcome` (`success`, `retried`, `failed`, `fatal`), `result` (shortened), `millis` |
//!
//! The calls of one turn overlap: a `tool_return` belongs to the `tool_call` with its `tool_call_id`. Texts are as the
//! model and the tools gave them, results already masked; a subscriber that prints them masks the rest.

use std::time::Duration;

use super::message::{ModelResponse, ResponsePart, ToolCall, ToolOutcome};

/// The target of these events.
pub const TARGET: &str = "updraft.agent";

/// Longest text in an event, in characters.
const SHORT: usize = 300;

pub(super) fn model_request(turn: u64, model: &str) {
    tracing::debug!(target: TARGET, event = "model_request", turn, model);
}

pub(super) fn model_response(turn: u64, response: &ModelResponse, took: Duration) {
    let mut text = String::new();
    let mut tool_calls = 0_u64;
    for part in &response.parts {
        match part {
            ResponsePart::Text(piece) => text.push_str(&piece.content),
            ResponsePart::ToolCall(_) => tool_calls += 1,
            ResponsePart::Thinking(_) | ResponsePart::NativeTool(_) => {}
        }
    }
    tracing::debug!(
        target: TARGET,
        event = "model_response",
        turn,
        model = response.model_name.as_str(),
        text = shorten(&text).as_str(),
        tool_calls,
        input_tokens = response.usage.input_tokens,
        output_tokens = response.usage.output_tokens,
        millis = millis(took),
    );
}

pub(super) fn tool_call(turn: u64, call: &ToolCall) {
    tracing::debug!(
        target: TARGET,
        event = "tool_call",
        turn,
        tool = call.tool_name.as_str(),
        tool_call_id = call.tool_call_id.as_str(),
        args = shorten(&call.args).as_str(),
    );
}

/// `outcome` is `None` for a failure that ends the run.
pub(super) fn tool_return(
    turn: u64,
    call: &ToolCall,
    outcome: Option<ToolOutcome>,
    result: &str,
    took: Duration,
) {
    let outcome = match outcome {
        Some(ToolOutcome::Success) => "success",
        Some(ToolOutcome::Retried) => "retried",
        Some(ToolOutcome::Failed) => "failed",
        None => "fatal",
    };
    tracing::debug!(
        target: TARGET,
        event = "tool_return",
        turn,
        tool = call.tool_name.as_str(),
        tool_call_id = call.tool_call_id.as_str(),
        outcome,
        result = shorten(result).as_str(),
        millis = millis(took),
    );
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

/// The first [`SHORT`] characters, with an ellipsis when there is more.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(shorten("港"), "港");
        let cut = shorten(&"港".repeat(400));
        assert_eq!(cut.chars().count(), SHORT + 1);
        assert!(cut.ends_with('…'));
    }
}
