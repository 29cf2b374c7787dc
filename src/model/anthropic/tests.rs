//! What the recorded runs in `tests/corpus/parity` don't show.

use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::agent::message::{Origin, Thinking};
use crate::agent::{
    Agent, AgentError, EndStrategy, OutputSpec, Retries, RunInput, RunUsage, UsageLimits,
};
use crate::model::wire_tests::{
    call, native_output, parameters, prompt, prompt_with_files, request, response, result,
    web_search, without_tools,
};

fn model(name: &str, base_url: &str) -> Anthropic {
    let endpoint = Endpoint::bearer(base_url, "made-up-key").unwrap();
    Anthropic::new(name, "anthropic", endpoint).unwrap()
}

fn body(name: &str, settings: Value) -> Value {
    model(name, "http://x").body(&[prompt("Go.")], &without_tools(settings))
}

#[tokio::test]
async fn a_short_answer_comes_in_one_piece() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("authorization", "Bearer made-up-key"))
        .and(header("anthropic-version", VERSION))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "query", "input": {"sql": "SELECT 2"}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 20, "output_tokens": 7, "cache_read_input_tokens": 5},
        })))
        .mount(&server)
        .await;
    let answer = model("claude-sonnet-4-5", &server.uri())
        .request(&[prompt("Go.")], &parameters(json!({"max_tokens": 100})))
        .await
        .unwrap();
    let [ResponsePart::Text(text), ResponsePart::ToolCall(call)] = answer.parts.as_slice() else {
        panic!("{:?}", answer.parts);
    };
    assert_eq!(
        (text.content.as_str(), call.args.as_str()),
        ("Let me look.", "{\"sql\":\"SELECT 2\"}")
    );
    assert_eq!(
        (answer.usage.input_tokens, answer.usage.cache_read_tokens),
        (25, 5)
    );
    let sent = server.received_requests().await.unwrap();
    let sent: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(
        (&sent["stream"], &sent["max_tokens"]),
        (&json!(false), &json!(100))
    );
}

#[test]
fn settings_have_the_names_and_limits_of_the_api() {
    let sent = body(
        "claude-sonnet-4-5",
        json!({
            "max_tokens": 200_000, "temperature": 0.5, "stop_sequences": ["END"], "service_tier": "default",
            "anthropic_metadata": {"user_id": "u"}, "seed": 3, "extra_body": {"inference_geo": "eu"},
        }),
    );
    assert_eq!(
        sent,
        json!({
            "model": "claude-sonnet-4-5", "max_tokens": 64_000, "stream": true, "temperature": 0.5,
            "stop_sequences": ["END"], "service_tier": "standard_only", "metadata": {"user_id": "u"},
            "inference_geo": "eu", "messages": [{"role": "user", "content": [{"type": "text", "text": "Go."}]}],
        })
    );
    let sent = body("claude-opus-5", json!({"temperature": 0.5, "top_k": 3}));
    assert_eq!((sent.get("temperature"), sent.get("top_k")), (None, None));
}

#[test]
fn thinking_is_asked_for_in_the_way_that_the_model_knows() {
    let asked = |name: &str, thinking: Value| {
        let sent = body(name, json!({"thinking": thinking}));
        (sent["thinking"].clone(), sent["output_config"].clone())
    };
    let nothing = Value::Null;
    for (name, wanted, thinking, config) in [
        (
            "claude-sonnet-4-5",
            json!("high"),
            json!({"type": "enabled", "budget_tokens": 16_384}),
            nothing.clone(),
        ),
        (
            "claude-sonnet-4-6",
            json!("xhigh"),
            json!({"type": "adaptive"}),
            json!({"effort": "max"}),
        ),
        (
            "claude-opus-5",
            json!("xhigh"),
            json!({"type": "adaptive"}),
            json!({"effort": "xhigh"}),
        ),
        (
            "claude-opus-5",
            json!(false),
            json!({"type": "disabled"}),
            nothing.clone(),
        ),
        (
            "claude-opus-5-5",
            json!(false),
            json!({"type": "adaptive"}),
            json!({"effort": "low"}),
        ),
        (
            "claude-sonnet-4-5",
            json!(false),
            nothing.clone(),
            nothing.clone(),
        ),
    ] {
        assert_eq!(
            asked(name, wanted.clone()),
            (thinking, config),
            "{name} {wanted}"
        );
    }
}

#[test]
fn a_model_that_thinks_is_not_made_to_call_an_output_tool() {
    let mut forced = parameters(json!({"thinking": true}));
    forced.allow_text_output = false;
    let choice = |name: &str, parameters: &RequestParameters| {
        model(name, "http://x").body(&[prompt("Go.")], parameters)["tool_choice"].clone()
    };
    assert_eq!(
        choice("claude-sonnet-4-5", &forced),
        json!({"type": "auto"})
    );
    forced.settings.clear();
    assert_eq!(choice("claude-sonnet-4-5", &forced), json!({"type": "any"}));
    assert_eq!(choice("claude-opus-5", &forced), json!({"type": "auto"}));
}

#[test]
fn thinking_of_another_provider_is_told_as_the_assistants() {
    let thinking = |signature: Option<&str>| {
        ResponsePart::Thinking(Thinking {
            content: "Hm.".to_owned(),
            signature: signature.map(str::to_owned),
            origin: Origin::default(),
        })
    };
    let sent = model("claude-sonnet-4-5", "http://x").messages(&[
        prompt("Go."),
        response(
            "openai",
            vec![thinking(Some("c2ln")), ResponsePart::text("Yes.")],
        ),
        prompt("On."),
        response("anthropic", vec![thinking(Some("c2ln"))]),
    ]);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(
        sent,
        [
            json!({"role": "user", "content": text("Go.")}),
            json!({"role": "user", "content": text("<assistant_thinking>\nHm.\n</assistant_thinking>")}),
            json!({"role": "assistant", "content": text("Yes.")}),
            json!({"role": "user", "content": text("On.")}),
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            ]}),
        ]
    );
}

#[test]
fn files_stand_in_the_result_that_brings_them() {
    let mut picture = result(json!(["The chart:", "See file 37aa63."]));
    picture.files = vec![crate::agent::BinaryContent {
        data: b"some text"[..].into(),
        media_type: "image/png".to_owned(),
    }];
    let id = picture.files[0].identifier();
    picture.content = json!(["The chart:", format!("See file {id}.")]);
    let sent = model("claude-sonnet-4-5", "http://x").messages(&[
        prompt("Draw."),
        response("anthropic", vec![call("{}")]),
        request(vec![RequestPart::ToolReturn(picture)]),
    ]);
    assert_eq!(
        sent[2]["content"][0]["content"],
        json!([
            {"type": "text", "text": "The chart:"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "c29tZSB0ZXh0"}},
        ])
    );
}

#[test]
fn a_search_of_the_web_is_asked_for_in_the_version_that_the_model_knows() {
    let tools =
        |name: &str| model(name, "http://x").body(&[prompt("Go.")], &web_search())["tools"].clone();
    assert_eq!(
        tools("claude-sonnet-4-5"),
        json!([{
            "name": "web_search", "type": "web_search_20250305", "max_uses": 2, "allowed_domains": ["example.org"],
            "user_location": {"type": "approximate", "country": "NO"},
        }])
    );
    assert_eq!(tools("claude-opus-5")[0]["type"], "web_search_20260209");
}

#[test]
fn an_answer_in_json_is_a_closed_schema() {
    let sent = model("claude-sonnet-4-5", "http://x").body(&[prompt("Go.")], &native_output());
    assert_eq!(
        sent["output_config"],
        json!({"format": {"type": "json_schema", "schema": {
            "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
            "additionalProperties": false,
        }}})
    );
}

#[tokio::test]
async fn an_overloaded_server_is_asked_three_times_and_waited_for() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(
            ResponseTemplate::new(529)
                .insert_header("retry-after-ms", "1")
                .set_body_string("overloaded"),
        )
        .mount(&server)
        .await;
    let error = model("claude-x", &server.uri())
        .request(&[prompt("Go.")], &parameters(json!({})))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "status_code: 529, model_name: claude-x, body: overloaded"
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_silent_stream_ends_at_the_time_out_of_the_settings() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_delay(Duration::from_secs(30)))
        .mount(&server)
        .await;
    let started = Instant::now();
    let settings = json!({"timeout": 0.2, "max_retries": 0});
    let error = model("claude-sonnet-4-5", &server.uri())
        .request(&[prompt("Go.")], &parameters(settings))
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("Request timed out."),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_cancelled_run_hangs_up_within_a_second() {
    use tokio::io::AsyncReadExt as _;
    use tokio_util::sync::CancellationToken;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let cancel = CancellationToken::new();
    let cancelled = cancel.clone();
    // Never answers; how long after the cancellation the connection is gone.
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0);
        cancelled.cancel();
        let since = Instant::now();
        while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
        since.elapsed()
    });
    let agent = Agent {
        name: "agent".to_owned(),
        model: std::sync::Arc::new(model("claude-sonnet-4-5", &url)),
        toolsets: Vec::new(),
        instructions: String::new(),
        native_tools: Vec::new(),
        settings: Map::new(),
        retries: Retries::default(),
        limits: UsageLimits::default(),
        output: OutputSpec::default(),
        end_strategy: EndStrategy::default(),
    };
    let outcome = agent
        .run(RunInput {
            system_prompts: Vec::new(),
            prompt: Some(UserContent::Text("Go.".to_owned())),
            history: Vec::new(),
            run_id: "run".to_owned(),
            conversation_id: "conversation".to_owned(),
            usage: RunUsage::default(),
            cancel,
            telemetry: None,
            durable: None,
        })
        .await;
    assert!(matches!(outcome.output, Err(AgentError::Cancelled)));
    let took = tokio::time::timeout(Duration::from_secs(5), server).await;
    assert!(took.unwrap().unwrap() < Duration::from_secs(1));
}

/// As pydantic-ai 2.68 sends them.
#[test]
fn files_of_a_prompt_are_sent_with_it() {
    let source = |media_type: &str, data: &str| json!({"type": "base64", "media_type": media_type, "data": data});
    let sent = model("claude-sonnet-4-5", "http://x")
        .body(&[prompt_with_files()], &without_tools(json!({})));
    assert_eq!(
        sent["messages"],
        json!([{"role": "user", "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image", "source": source("image/png", "UE5H")},
            {"type": "document", "source": source("application/pdf", "UERG")},
        ]}])
    );
}
