//! What the tests of several wires need: a tool, settings, and a conversation.

use serde_json::{Map, Value, json};

use crate::agent::message::{
    Message, ModelRequest, ModelResponse, RequestPart, ResponsePart, ToolCall, ToolOutcome,
    ToolReturn, UserContent, UserPart,
};
use crate::agent::model::{NativeTool, RequestParameters, WebSearch};
use crate::agent::output::{ObjectMode, OutputObject};
use crate::agent::{BinaryContent, ToolDefinition};

/// One tool, text allowed, and these settings.
pub(super) fn parameters(settings: Value) -> RequestParameters {
    let Value::Object(settings) = settings else {
        panic!("settings are an object");
    };
    RequestParameters {
        tools: vec![ToolDefinition {
            name: "query".to_owned(),
            description: Some("Execute a SQL query.".to_owned()),
            parameters: json!({
                "type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"],
            }),
            sequential: true,
            max_retries: None,
        }],
        allow_text_output: true,
        settings,
        ..RequestParameters::default()
    }
}

pub(super) fn without_tools(settings: Value) -> RequestParameters {
    RequestParameters {
        tools: Vec::new(),
        ..parameters(settings)
    }
}

/// No tools, but an answer in JSON that the provider sees to.
pub(super) fn native_output() -> RequestParameters {
    RequestParameters {
        output_object: Some(OutputObject {
            mode: ObjectMode::Native,
            name: Some("Found".to_owned()),
            description: None,
            schema: json!({
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
            }),
            strict: None,
            template: None,
        }),
        ..without_tools(json!({}))
    }
}

/// No tools, but the provider's own search.
pub(super) fn web_search() -> RequestParameters {
    RequestParameters {
        native_tools: vec![NativeTool::WebSearch(WebSearch {
            search_context_size: Some("low".to_owned()),
            user_location: Some(json!({"country": "NO"})),
            allowed_domains: Some(vec!["example.org".to_owned()]),
            max_uses: Some(2),
            ..WebSearch::default()
        })],
        ..without_tools(json!({}))
    }
}

pub(super) fn request(parts: Vec<RequestPart>) -> Message {
    Message::Request(ModelRequest {
        parts,
        ..ModelRequest::default()
    })
}

pub(super) fn prompt(text: &str) -> Message {
    request(vec![RequestPart::UserPrompt(UserContent::Text(
        text.to_owned(),
    ))])
}

/// A question with an image and a PDF file.
pub(super) fn prompt_with_files() -> Message {
    let file = |data: &str, media_type: &str| {
        UserPart::File(BinaryContent {
            data: data.into(),
            media_type: media_type.to_owned(),
        })
    };
    request(vec![RequestPart::UserPrompt(UserContent::Parts(vec![
        UserPart::Text("What is this?".to_owned()),
        file("PNG", "image/png"),
        file("PDF", "application/pdf"),
    ]))])
}

/// A response of `provider`.
pub(super) fn response(provider: &str, parts: Vec<ResponsePart>) -> Message {
    Message::Response(Box::new(ModelResponse {
        parts,
        provider_name: provider.to_owned(),
        ..ModelResponse::default()
    }))
}

pub(super) fn call(args: &str) -> ResponsePart {
    ResponsePart::ToolCall(ToolCall {
        tool_name: "query".to_owned(),
        args: args.to_owned(),
        tool_call_id: "c1".to_owned(),
        ..ToolCall::default()
    })
}

pub(super) fn result(content: Value) -> ToolReturn {
    ToolReturn {
        tool_name: "query".to_owned(),
        tool_call_id: "c1".to_owned(),
        content,
        files: Vec::new(),
        outcome: ToolOutcome::Success,
        retry: None,
    }
}

pub(super) fn details(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}
