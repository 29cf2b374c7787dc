//! What the recorded runs in `tests/corpus/parity` don't show: other providers' dialects and odd responses.

use pretty_assertions::assert_eq;
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::agent::message::ModelRequest;
use crate::model::openai::chat_providers::chat_provider;

fn model(prefix: &str, base_url: &str) -> OpenAiChat {
    let endpoint = Endpoint::bearer(base_url, "made-up-key").unwrap();
    OpenAiChat::new("mock-model", *chat_provider(prefix).unwrap(), endpoint).unwrap()
}

fn read(prefix: &str, message: &Value) -> Vec<ResponsePart> {
    let body = json!({"id": "1", "model": "m", "choices": [{"message": message, "finish_reason": "stop"}]});
    model(prefix, "http://localhost").read(&body).unwrap().parts
}

fn thinking(content: &str, id: &str) -> ResponsePart {
    ResponsePart::Thinking(Thinking {
        content: content.to_owned(),
        signature: None,
        origin: Origin {
            id: Some(id.to_owned()),
            provider_name: Some("openai".to_owned()),
            provider_details: Map::new(),
        },
    })
}

#[tokio::test]
async fn azure_has_the_deployment_in_the_path_and_its_own_header() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/openai/deployments/mock-model/chat/completions"))
        .and(query_param("api-version", "2026-01-01"))
        .and(header("api-key", "made-up-key"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "id": "1", "model": "mock-model", "choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}],
        })))
        .mount(&server)
        .await;
    let base_url = format!("{}/openai/deployments/mock-model", server.uri());
    let endpoint = Endpoint {
        query: "?api-version=2026-01-01".to_owned(),
        ..Endpoint::with_key(&base_url, "api-key", "made-up-key").unwrap()
    };
    let model = OpenAiChat::new("mock-model", *chat_provider("azure").unwrap(), endpoint).unwrap();
    let messages = [Message::Request(ModelRequest {
        parts: vec![RequestPart::UserPrompt(UserContent::Text(
            "Hello?".to_owned(),
        ))],
        ..ModelRequest::default()
    })];
    let response = model
        .request(&messages, &RequestParameters::default())
        .await
        .unwrap();
    assert_eq!(response.parts, vec![ResponsePart::text("Hi.")]);
    assert_eq!(response.provider_name, "azure");
    assert!(response.usage.unmeasured);
}

#[test]
fn the_length_limit_has_the_name_that_the_provider_knows() {
    let settings = Map::from_iter([("max_tokens".to_owned(), json!(9))]);
    let parameters = RequestParameters {
        settings,
        ..RequestParameters::default()
    };
    assert_eq!(
        model("openai-chat", "http://x").body(&[], &parameters)["max_completion_tokens"],
        9
    );
    assert_eq!(
        model("deepseek", "http://x").body(&[], &parameters)["max_tokens"],
        9
    );
}

#[test]
fn thinking_is_found_in_its_own_field_or_between_tags() {
    let text = ResponsePart::text;
    assert_eq!(
        read(
            "openai-chat",
            &json!({"content": "A.", "reasoning": "Hm.", "reasoning_content": "Hm."})
        ),
        vec![thinking("Hm.", "reasoning"), text("A.")]
    );
    assert_eq!(
        read(
            "openai-chat",
            &json!({"content": "<think>Hm.</think>\n\nA."})
        ),
        vec![thinking("Hm.", "content"), text("\n\nA.")]
    );
    assert_eq!(
        read("openai-chat", &json!({"content": "a<think>b"})),
        vec![text("a"), text("b")]
    );
}

#[test]
fn thinking_goes_back_as_it_came_only_where_it_came_from() {
    let said = |part: ResponsePart| ModelResponse {
        parts: vec![part, ResponsePart::text("A.")],
        ..ModelResponse::default()
    };
    let openai = model("openai-chat", "http://x");
    assert_eq!(
        openai.assistant(&said(thinking("Hm.", "reasoning"))),
        Some(json!({"role": "assistant", "reasoning": "Hm.", "content": "A."}))
    );
    assert_eq!(
        openai.assistant(&said(thinking("Hm.", "content"))),
        Some(json!({"role": "assistant", "content": "<think>\nHm.\n</think>\n\nA."}))
    );
    let foreign = ResponsePart::Thinking(Thinking {
        content: "Hm.".to_owned(),
        ..Thinking::default()
    });
    assert_eq!(
        model("deepseek", "http://x").assistant(&said(foreign)),
        Some(json!({"role": "assistant", "reasoning_content": "Hm.", "content": "A."}))
    );
}

#[test]
fn content_in_parts_and_arguments_in_objects_are_understood() {
    assert_eq!(
        read(
            "openai-chat",
            &json!({"content": [{"type": "text", "text": "A"}, "B", {"type": "reference"}]})
        ),
        vec![ResponsePart::text("AB")]
    );
    let call = json!({"tool_calls": [{"id": "c", "function": {"name": "query", "arguments": {"sql": "x"}}}]});
    assert_eq!(
        read("openai-chat", &call),
        vec![ResponsePart::ToolCall(ToolCall {
            tool_name: "query".to_owned(),
            args: "{\"sql\":\"x\"}".to_owned(),
            tool_call_id: "c".to_owned(),
            ..ToolCall::default()
        })]
    );
}

#[test]
fn a_key_with_a_line_break_is_refused_without_being_shown() {
    let error = Endpoint::bearer("http://x", "made-up\nkey")
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("can't be sent in an HTTP header") && !error.contains("made-up"),
        "{error}"
    );
}

#[test]
fn files_of_a_tool_come_in_a_user_message_that_is_announced_once() {
    use crate::agent::BinaryContent;
    use crate::agent::message::ToolReturn;

    let photo = |id: &str| {
        Message::Request(ModelRequest {
            parts: vec![RequestPart::ToolReturn(ToolReturn {
                tool_name: "photo".to_owned(),
                tool_call_id: id.to_owned(),
                content: json!("See file 39b6d7."),
                files: vec![BinaryContent {
                    data: b"%PDF".to_vec(),
                    media_type: "image/png".to_owned(),
                }],
                outcome: ToolOutcome::Success,
                retry: None,
            })],
            ..ModelRequest::default()
        })
    };
    let framed = |id: &str| {
        let open = format!(
            "<pyai:tool_result tool_name=\"photo\" tool_call_id=\"{id}\" file_id=\"39b6d7\">"
        );
        json!({"role": "user", "content": [
            {"text": open, "type": "text"},
            {"image_url": {"url": "data:image/png;base64,JVBERg=="}, "type": "image_url"},
            {"text": "</pyai:tool_result>", "type": "text"},
        ]})
    };
    let tool =
        |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "See file 39b6d7."});
    // The order of pydantic-ai 2.68.
    assert_eq!(
        model("openai-chat", "http://localhost").messages(&[photo("c1"), photo("c2")], None),
        [
            tool("c1"),
            json!({"role": "system", "content": tool_files::ANNOUNCEMENT}),
            framed("c1"),
            tool("c2"),
            framed("c2"),
        ]
    );
}
