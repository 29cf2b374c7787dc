//! What every API is told of a conversation, before it takes the API's own form.

use serde_json::Value;

use crate::agent::ModelError;
use crate::agent::message::{Message, ModelRequest, RequestPart};
use crate::agent::model::{NativeTool, RequestParameters};
use crate::agent::output::OutputObject;

/// The instructions of the newest request, and those that tell of the answer's schema. `schema` is the object's, as the API
/// wants schemas.
pub(super) fn instructions(
    messages: &[Message],
    object: Option<&OutputObject>,
    schema: Option<&Value>,
) -> Vec<String> {
    let newest = messages.iter().rev().find_map(|message| match message {
        Message::Request(request) => Some(request),
        Message::Response(_) => None,
    });
    let mut instructions = newest.map_or_else(Vec::new, |ModelRequest { instructions, .. }| {
        instructions.clone()
    });
    if let (Some(object), Some(schema)) = (object, schema) {
        instructions.extend(object.instructions(schema));
    }
    instructions
}

/// How many system prompts stand at the beginning of the conversation.
pub(super) fn openings(messages: &[Message]) -> usize {
    match messages.first() {
        Some(Message::Request(request)) => request
            .parts
            .iter()
            .take_while(|part| matches!(part, RequestPart::SystemPrompt(_)))
            .count(),
        _ => 0,
    }
}

/// # Errors
/// The agent wants a tool that runs at the provider, and this provider has none.
pub(super) fn refuse_native_tools(
    parameters: &RequestParameters,
    provider: &str,
) -> Result<(), ModelError> {
    let names: Vec<&str> = parameters
        .native_tools
        .iter()
        .map(|tool| match tool {
            NativeTool::WebSearch(_) => "'WebSearchTool'",
        })
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(ModelError::Configuration(format!(
        "Native tool(s) [{}] not supported by this model. Ask a model of openai, anthropic or google, which search the \
         web themselves, or give the agent a tool of its own in place of the capability ({provider} has none).",
        names.join(", ")
    )))
}

/// Thinking that a model can't be given back as its own, as a user tells of it: in the assistant's turn some models take
/// it for the form of an answer.
pub(super) fn tagged_thinking(content: &str) -> String {
    format!("<assistant_thinking>\n{content}\n</assistant_thinking>")
}

/// An id for a call that came without one.
pub(super) fn new_tool_call_id() -> String {
    format!("pyd_ai_{}", uuid::Uuid::new_v4().simple())
}
