//! From an MCP tool result to what the model sees, as pydantic-ai maps it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::agent::binary_content::ToolOutputItem;
use crate::agent::render::tool_result_text;
use crate::agent::{BinaryContent, ToolError, ToolOutput};
use crate::airflow::python_text::repr_str;

/// What becomes of a result that says it is an error: the `tool_error_behavior` of pydantic-ai's `MCPToolset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolErrorBehavior {
    /// The model may try again.
    #[default]
    Retry,
    /// The model is told.
    Failed,
    /// The run fails.
    Error,
}

impl ToolErrorBehavior {
    pub(super) fn error(self, text: String) -> ToolError {
        match self {
            Self::Retry => ToolError::Retry(text),
            Self::Failed => ToolError::Failed(text),
            Self::Error => ToolError::Fatal(text),
        }
    }
}

/// Maps a result.
///
/// # Errors
/// The server says that the call failed; or it sent something that is not base64 as such.
pub(super) fn map(
    tool: &str,
    result: CallToolResult,
    behavior: ToolErrorBehavior,
) -> Result<ToolOutput, ToolError> {
    if !result.is_error.unwrap_or(false) {
        return output(result, false);
    }
    // Of an error the model is told what is text.
    let mut result = result;
    result.content.retain(|block| !is_file(block));
    let text = tool_result_text(&output(result, true)?.content);
    Err(behavior.error(if text.is_empty() {
        format!("Tool {} returned an error", repr_str(tool))
    } else {
        text
    }))
}

fn output(result: CallToolResult, prefer_structured: bool) -> Result<ToolOutput, ToolError> {
    let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
    if let Some(structured) = result.structured_content.filter(|value| !value.is_null())
        && (prefer_structured || result.content.iter().all(is_text))
    {
        return Ok(unwrapped(structured).into());
    }
    let items = result.content.into_iter().map(item);
    Ok(ToolOutput::of_items(items.collect::<Result<_, _>>()?))
}

/// A sole `result` key is what servers put around a value that is no object.
fn unwrapped(structured: Value) -> Value {
    match structured {
        Value::Object(mut map) if map.len() == 1 && map.contains_key("result") => {
            map.remove("result").unwrap_or_default()
        }
        other => other,
    }
}

fn is_file(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Image(_) | ContentBlock::Audio(_) => true,
        ContentBlock::Resource(embedded) => matches!(
            embedded.resource,
            ResourceContents::BlobResourceContents { .. }
        ),
        _ => false,
    }
}

fn item(block: ContentBlock) -> Result<ToolOutputItem, ToolError> {
    Ok(match block {
        ContentBlock::Text(text) => ToolOutputItem::Value(text_value(text.text)),
        ContentBlock::Image(image) => file(&image.data, image.mime_type)?,
        ContentBlock::Audio(audio) => file(&audio.data, audio.mime_type)?,
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => {
                ToolOutputItem::Value(text.into())
            }
            ResourceContents::BlobResourceContents {
                blob, mime_type, ..
            } => file(
                &blob,
                mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            )?,
            _ => return Err(unknown("resource")),
        },
        ContentBlock::ResourceLink(link) => ToolOutputItem::Value(link.uri.into()),
        _ => return Err(unknown("content block")),
    })
}

fn unknown(what: &str) -> ToolError {
    ToolError::Fatal(format!(
        "the MCP server answered with a kind of {what} that Updraft does not know"
    ))
}

/// Text that is a JSON list or object is its value.
fn text_value(text: String) -> Value {
    if text.starts_with(['[', '{'])
        && let Ok(value) = serde_json::from_str(&text)
    {
        return value;
    }
    text.into()
}

fn file(data: &str, media_type: String) -> Result<ToolOutputItem, ToolError> {
    // Some servers break the lines.
    let data: Vec<u8> = data
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let data = STANDARD.decode(data).map_err(|error| {
        ToolError::Fatal(format!(
            "the MCP server sent a file of type {media_type} that is not base64: {error}"
        ))
    })?;
    Ok(ToolOutputItem::File(BinaryContent { data, media_type }))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn mapped(result: Value) -> Result<ToolOutput, ToolError> {
        let result = serde_json::from_value(result).unwrap();
        map("x", result, ToolErrorBehavior::Retry)
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn structured_content_goes_before_its_own_text() {
        for (structured, expected) in [
            (json!({"result": 5}), json!(5)),
            (
                json!({"name": "Aurora", "length": 40}),
                json!({"name": "Aurora", "length": 40}),
            ),
            (
                json!({"result": 1, "more": 2}),
                json!({"result": 1, "more": 2}),
            ),
        ] {
            let result = json!({"content": [text("?")], "structuredContent": structured});
            assert_eq!(mapped(result).unwrap(), expected.into());
        }
    }

    #[test]
    fn text_blocks_are_values_where_they_are_json() {
        for (content, expected) in [
            (json!([]), json!([])),
            (json!([text("Hello")]), json!("Hello")),
            (json!([text("{\"a\": [1, 2]}")]), json!({"a": [1, 2]})),
            (json!([text("[not JSON")]), json!("[not JSON")),
            (json!([text("a"), text("[1]")]), json!(["a", [1]])),
            (
                json!([{"type": "resource_link", "uri": "file:///a", "name": "a"}]),
                json!("file:///a"),
            ),
            (
                json!([{"type": "resource", "resource": {"uri": "x:y", "text": "[1]"}}]),
                json!("[1]"),
            ),
        ] {
            assert_eq!(
                mapped(json!({"content": content})).unwrap(),
                expected.into()
            );
        }
    }

    #[test]
    fn images_sound_and_blobs_are_files() {
        let result = json!({
            "content": [
                text("caption"),
                {"type": "image", "data": "JVBE\r\nRg==\n", "mimeType": "image/png"},
                {"type": "audio", "data": "JVBERg==", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "x:y", "blob": "JVBERg=="}},
            ],
            // Not for a result that is more than text.
            "structuredContent": {"result": 1},
        });
        let output = mapped(result).unwrap();
        let reference = "See file 39b6d7.";
        assert_eq!(
            output.content,
            json!(["caption", reference, reference, reference])
        );
        let types: Vec<_> = output
            .files
            .iter()
            .map(|file| file.media_type.as_str())
            .collect();
        assert_eq!(
            types,
            ["image/png", "audio/wav", "application/octet-stream"]
        );
    }

    #[test]
    fn an_error_is_a_retry_with_its_text() {
        let image = json!({"type": "image", "data": "JVBERg==", "mimeType": "image/png"});
        for (result, expected) in [
            // What pydantic-ai 2.68 makes of them.
            (
                json!({"content": [text("stuck"), image], "isError": true}),
                "stuck",
            ),
            (
                json!({"content": [text("a"), image, text("b")], "isError": true}),
                "[\"a\",\"b\"]",
            ),
            (
                json!({"content": [text("{\"x\": 1}"), image], "isError": true}),
                "{\"x\":1}",
            ),
            (
                json!({"content": [image], "isError": true}),
                "Tool 'x' returned an error",
            ),
            (
                json!({"content": [text("the crane is stuck")], "isError": true}),
                "the crane is stuck",
            ),
            (
                json!({"content": [], "isError": true}),
                "Tool 'x' returned an error",
            ),
            (
                json!({"content": [text("")], "isError": true}),
                "Tool 'x' returned an error",
            ),
            (
                json!({"content": [text("x")], "structuredContent": {"code": 7}, "isError": true}),
                "{\"code\":7}",
            ),
        ] {
            let Err(ToolError::Retry(text)) = mapped(result) else {
                panic!("no retry")
            };
            assert_eq!(text, expected);
        }
    }
}
