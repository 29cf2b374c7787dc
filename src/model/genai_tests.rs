use pretty_assertions::assert_eq;
use serde_json::json;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::agent::message::ToolReturn;
use crate::agent::toolset::ToolDefinition;

fn model(prefix: &str, name: &str, server: &MockServer) -> GenaiModel {
    let provider = genai_provider(prefix).unwrap();
    let base_url = format!("{}{}", server.uri(), provider.host_suffix);
    GenaiModel::new(name, *provider, &base_url, "made-up-key").unwrap()
}

fn parameters() -> RequestParameters {
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
        settings: Map::from_iter([("temperature".to_owned(), json!(0.5))]),
        ..RequestParameters::default()
    }
}

/// A prompt, a call with broken arguments, its error, a good call and its result.
fn conversation() -> Vec<Message> {
    let instructions = vec!["Be brief.".to_owned()];
    let request = |parts| {
        Message::Request(ModelRequest {
            parts,
            instructions: instructions.clone(),
            ..ModelRequest::default()
        })
    };
    let call = |args: &str, id: &str| {
        Message::Response(Box::new(ModelResponse {
            parts: vec![ResponsePart::ToolCall(ToolCall {
                tool_name: "query".to_owned(),
                args: args.to_owned(),
                tool_call_id: id.to_owned(),
                ..ToolCall::default()
            })],
            ..ModelResponse::default()
        }))
    };
    let result = |id: &str, content: Value, outcome| {
        RequestPart::ToolReturn(ToolReturn {
            tool_name: "query".to_owned(),
            tool_call_id: id.to_owned(),
            content,
            files: Vec::new(),
            outcome,
            retry: None,
        })
    };
    vec![
        request(vec![RequestPart::UserPrompt(UserContent::Text(
            "How many?".to_owned(),
        ))]),
        call("{oops", "c1"),
        request(vec![result("c1", json!("not JSON"), ToolOutcome::Retried)]),
        call("{\"sql\": \"SELECT 1\"}", "c2"),
        request(vec![result("c2", json!("[[1]]"), ToolOutcome::Success)]),
    ]
}

async fn sent(server: &MockServer) -> Value {
    let requests = server.received_requests().await.unwrap();
    serde_json::from_slice(&requests.last().unwrap().body).unwrap()
}

#[tokio::test]
async fn anthropic_gets_the_whole_conversation_and_its_answer_is_read() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", "made-up-key"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-made-up-1",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "query", "input": {"sql": "SELECT 2"}},
            ],
            "stop_reason": "tool_use", "usage": {"input_tokens": 20, "output_tokens": 7},
        })))
        .mount(&server)
        .await;
    let response = model("anthropic", "claude-made-up", &server)
        .request(&conversation(), &parameters())
        .await
        .unwrap();
    assert_eq!(
        response.parts,
        vec![
            ResponsePart::Text("Let me look.".to_owned()),
            ResponsePart::ToolCall(ToolCall {
                tool_name: "query".to_owned(),
                args: "{\"sql\":\"SELECT 2\"}".to_owned(),
                tool_call_id: "toolu_1".to_owned(),
                ..ToolCall::default()
            }),
        ]
    );
    assert_eq!(
        (response.usage.input_tokens, response.usage.output_tokens),
        (20, 7)
    );
    assert_eq!(response.finish_reason.as_deref(), Some("tool_call"));
    assert_eq!(response.provider_name, "anthropic");

    let body = sent(&server).await;
    assert_eq!(body["model"], "claude-made-up");
    assert_eq!(body["tools"][0]["name"], "query");
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    let text = body.to_string();
    assert!(
        text.contains("Be brief.") && text.contains("tool_use_id") && text.contains("INVALID_JSON"),
        "{text}"
    );
}

#[tokio::test]
async fn gemini_gets_the_whole_conversation_and_its_answer_is_read() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1beta/models/gemini-made-up:generateContent"))
        .and(header("x-goog-api-key", "made-up-key"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "candidates": [{
                "content": {"role": "model", "parts": [{"text": "One."}]}, "finishReason": "STOP",
            }],
            "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14},
            "modelVersion": "gemini-made-up-001",
        })))
        .mount(&server)
        .await;
    let response = model("google", "gemini-made-up", &server)
        .request(&conversation(), &parameters())
        .await
        .unwrap();
    assert_eq!(response.parts, vec![ResponsePart::Text("One.".to_owned())]);
    assert_eq!(response.model_name, "gemini-made-up-001");
    assert_eq!(
        (response.usage.input_tokens, response.usage.output_tokens),
        (11, 3)
    );
    let text = sent(&server).await.to_string();
    assert!(
        text.contains("functionResponse") && text.contains("\"name\":\"query\""),
        "{text}"
    );
}

#[tokio::test]
async fn responses_gets_the_whole_conversation_and_its_answer_is_read() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/responses"))
        .and(header("authorization", "Bearer made-up-key"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-made-up",
            "output": [
                {"type": "function_call", "id": "fc_1", "call_id": "c3", "name": "query", "arguments": "{\"sql\": \"SELECT 2\"}"},
            ],
            "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13},
        })))
        .mount(&server)
        .await;
    let response = model("openai", "gpt-made-up", &server)
        .request(&conversation(), &parameters())
        .await
        .unwrap();
    let [ResponsePart::ToolCall(call)] = response.parts.as_slice() else {
        panic!("{:?}", response.parts)
    };
    assert_eq!(
        (call.tool_call_id.as_str(), call.args.as_str()),
        ("c3", "{\"sql\":\"SELECT 2\"}")
    );
    let text = sent(&server).await.to_string();
    assert!(
        text.contains("function_call_output") && text.contains("Be brief."),
        "{text}"
    );
}

#[tokio::test]
async fn an_error_reads_as_the_python_providers_do_and_google_is_asked_once() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(
            ResponseTemplate::new(429)
                .set_body_json(json!({"error": {"code": 429, "message": "slow down"}})),
        )
        .mount(&server)
        .await;
    let error = model("google", "gemini-made-up", &server)
        .request(&conversation(), &parameters())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "status_code: 429, model_name: gemini-made-up, body: {'code': 429, 'message': 'slow down'}"
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_error_is_tried_again_where_the_python_client_does() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(
            ResponseTemplate::new(529)
                .insert_header("retry-after-ms", "1")
                .set_body_string("overloaded"),
        )
        .mount(&server)
        .await;
    let error = model("anthropic", "claude-made-up", &server)
        .request(&conversation(), &parameters())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "status_code: 529, model_name: claude-made-up, body: overloaded"
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}
