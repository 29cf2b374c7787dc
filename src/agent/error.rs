//! Why a run failed.

use super::durable::JournalError;
use super::model::ModelError;
use super::usage::UsageLimitExceeded;
use crate::airflow::python_text::{repr_str, repr_value};

/// Why a run failed. The texts are pydantic-ai's, since they end up in task logs that people search and compare.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// A limit on requests, tokens or tool calls.
    #[error(transparent)]
    UsageLimitExceeded(#[from] UsageLimitExceeded),
    /// The model gave no usable response, or none at all.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// One tool failed in more turns than its retry budget allows.
    #[error(
        "Tool {} exceeded max retries count of {max_retries}. Consider raising the retry limit, or see the docs on \
         tool retries: https://pydantic.dev/docs/ai/tools-toolsets/tools-advanced/#tool-retries",
        repr_str(tool_name)
    )]
    ToolRetriesExceeded { tool_name: String, max_retries: u32 },
    /// The model did not come to a usable answer within the output retry budget.
    #[error("Exceeded maximum output retries ({max_retries})")]
    OutputRetriesExceeded { max_retries: u32 },
    /// Two calls of one response share an id, so their results could not be told apart.
    #[error(
        "Function tool calls must have unique `tool_call_id` values; duplicate `tool_call_id`s: {}",
        repr_value(&serde_json::Value::from(tool_call_ids.clone()))
    )]
    DuplicateToolCallIds { tool_call_ids: Vec<String> },
    /// The response was cut off before it held anything.
    #[error(
        "Model token limit ({}) exceeded before any response was generated. Increase the `max_tokens` model setting, \
         or simplify the prompt to result in a shorter response that will fit within the limit.",
        max_tokens.as_deref().unwrap_or("provider default")
    )]
    OutputTokenLimitExceeded { max_tokens: Option<String> },
    /// The response was cut off within a tool call, and the model has no corrections left.
    #[error(
        "Model token limit ({}) exceeded while generating a tool call, resulting in incomplete arguments. Increase the \
         `max_tokens` model setting, or simplify the prompt to result in a shorter response that will fit within the \
         limit.",
        max_tokens.as_deref().unwrap_or("provider default")
    )]
    IncompleteToolCall { max_tokens: Option<String> },
    /// The token limit cut off an answer that was to be JSON.
    #[error(
        "Model token limit ({}) exceeded while generating structured output, resulting in incomplete JSON. Increase \
         the `max_tokens` model setting, or simplify the prompt to result in a shorter response that will fit within \
         the limit.",
        max_tokens.as_deref().unwrap_or("provider default")
    )]
    IncompleteOutput { max_tokens: Option<String> },
    /// The provider's safety system held the response back. `reasons` are its own words, `body` the response.
    #[error("Content filter triggered.{reasons}, body:\n{body}")]
    ContentFilter { reasons: String, body: String },
    /// The conversation so far ends with calls that have no results.
    #[error(
        "Cannot provide a new user prompt when the message history contains unprocessed tool calls. Run the agent \
         with this message history and no new prompt to execute the calls, pass `deferred_tool_results` if they were \
         deferred, or call `pydantic_ai.messages.repair_messages()` on the history first to close them out."
    )]
    UnansweredCalls,
    /// Two toolsets offer a tool of one name.
    #[error(
        "{toolset} defines a tool whose name conflicts with existing tool from {other}: {}. Rename the tool or wrap \
         the toolset in a `PrefixedToolset` to avoid name conflicts.",
        repr_str(tool_name)
    )]
    ToolNameConflict {
        toolset: String,
        other: String,
        tool_name: String,
    },
    /// A tool, the listing of a toolset's tools or the validation of an answer failed in a way the model can't put
    /// right.
    #[error("{0}")]
    Tool(String),
    /// The journal of a durable run can't be read, or can't hold what a step gave.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run was cancelled from outside.
    #[error("The agent run was cancelled.")]
    Cancelled,
}

impl AgentError {
    /// Did the model's answers fail the run, so that the same answers would fail it again?
    #[must_use]
    pub fn is_the_models_fault(&self) -> bool {
        match self {
            Self::ToolRetriesExceeded { .. }
            | Self::OutputRetriesExceeded { .. }
            | Self::DuplicateToolCallIds { .. }
            | Self::OutputTokenLimitExceeded { .. }
            | Self::IncompleteToolCall { .. }
            | Self::IncompleteOutput { .. }
            | Self::ContentFilter { .. }
            | Self::Model(ModelError::UnexpectedBehavior(_)) => true,
            Self::UsageLimitExceeded(_)
            | Self::Model(_)
            | Self::UnansweredCalls
            | Self::ToolNameConflict { .. }
            | Self::Tool(_)
            | Self::Journal(_)
            | Self::Cancelled => false,
        }
    }
}
