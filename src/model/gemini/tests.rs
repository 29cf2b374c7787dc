//! What the recorded runs in `tests/corpus/parity` don't show.

use pretty_assertions::assert_eq;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::agent::message::Thinking;
use crate::model::wire_tests::{
    call, details, native_output, parameters, prompt, prompt_with_files, request, response, result,
    web_search, without_tools,
};

fn model(name: &str, base_url: &str) -> Gemini {
    let endpoint = Endpoint::with_key(base_url, "x-goog-api-key", "made-up-key").unwrap();
    Gemini::new(name, "google", "v1beta/models", endpoint).unwrap()
}

fn body(name: &str, parameters: &RequestParameters) -> Value {
    model(name, "http://x")
        .body(&[prompt("Go.")], parameters)
        .unwrap()
}

#[test]
fn thinking_is_a_budget_for_early_models_and_a_level_for_modern_ones() {
    for (name, wanted, config) in [
        (
            "gemini-2.5-flash",
            json!("low"),
            json!({"includeThoughts": true, "thinkingBudget": 2_048}),
        ),
        (
            "gemini-2.5-flash",
            json!(false),
            json!({"thinkingBudget": 0}),
        ),
        (
            "gemini-2.5-pro",
            json!(false),
            json!({"thinkingBudget": 128}),
        ),
        (
            "gemini-3.5-flash",
            json!("xhigh"),
            json!({"includeThoughts": true, "thinkingLevel": "HIGH"}),
        ),
        (
            "gemini-3.1-pro-preview",
            json!("minimal"),
            json!({"includeThoughts": true, "thinkingLevel": "LOW"}),
        ),
        ("gemini-2.0-flash", json!(true), Value::Null),
    ] {
        let sent = body(name, &without_tools(json!({"thinking": wanted})));
        assert_eq!(sent["generationConfig"]["thinkingConfig"], config, "{name}");
    }
    let explicit = json!({"google_thinking_config": {"thinking_budget": 7}});
    let sent = body("gemini-2.5-flash", &without_tools(explicit));
    assert_eq!(
        sent["generationConfig"]["thinkingConfig"],
        json!({"thinkingBudget": 7})
    );
}

#[test]
fn what_a_generation_can_not_combine_is_refused() {
    let mut both = parameters(json!({}));
    both.native_tools = web_search().native_tools;
    let error = model("gemini-2.5-flash", "http://x")
        .body(&[prompt("Go.")], &both)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "This model does not support function tools and built-in tools at the same time."
    );
    let sent = body("gemini-3.5-flash", &both);
    assert_eq!(sent["tools"][1], json!({"googleSearch": {}}));
    assert_eq!(
        sent["toolConfig"]["includeServerSideToolInvocations"],
        json!(true)
    );
    let sent = body("gemini-2.5-flash", &web_search());
    assert_eq!(sent["tools"], json!([{"googleSearch": {}}]));
    assert_eq!(sent.get("toolConfig"), None);
}

#[test]
fn an_answer_in_json_is_a_schema_of_the_generation() {
    let sent = body("gemini-2.5-flash", &native_output());
    let generation = &sent["generationConfig"];
    assert_eq!(generation["responseMimeType"], "application/json");
    assert_eq!(generation["responseJsonSchema"]["title"], "Found");
}

#[test]
fn signatures_go_back_only_to_who_gave_them_and_a_first_call_has_one() {
    let origin = || Origin {
        id: None,
        provider_name: Some("google".to_owned()),
        provider_details: details("thought_signature", json!("c2ln")),
    };
    let parts = vec![
        ResponsePart::Thinking(Thinking {
            content: "Hm.".to_owned(),
            signature: None,
            origin: origin(),
        }),
        call("{}"),
        call("{}"),
    ];
    let Message::Response(own) = response("google", parts) else {
        unreachable!();
    };
    let signatures = |provider: &'static str| {
        let endpoint = Endpoint::bearer("http://x", "made-up").unwrap();
        let model = Gemini::new("gemini-3.5-flash", provider, "v1/models", endpoint).unwrap();
        let sent = model.response_parts(&own);
        sent.iter()
            .map(|part| part.get("thoughtSignature").cloned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        signatures("google"),
        [Some(json!("c2ln")), Some(json!(NO_SIGNATURE)), None]
    );
    assert_eq!(
        signatures("google-cloud"),
        [None, Some(json!(NO_SIGNATURE)), None]
    );
}

#[test]
fn files_go_into_results_of_modern_models_and_behind_those_of_early_ones() {
    let mut picture = result(json!(null));
    picture.files = vec![BinaryContent {
        data: b"some text"[..].into(),
        media_type: "image/png".to_owned(),
    }];
    let id = picture.files[0].identifier();
    picture.content = json!(["The chart:", format!("See file {id}.")]);
    let messages = [
        prompt("Draw."),
        response("google", vec![call("{}")]),
        request(vec![RequestPart::ToolReturn(picture)]),
    ];
    let sent = |name: &str| {
        let (_, contents) = model(name, "http://x").contents(&messages, &without_tools(json!({})));
        contents[2..].to_vec()
    };
    let inline = json!({"inlineData": {"data": "c29tZSB0ZXh0", "mimeType": "image/png"}});
    assert_eq!(
        sent("gemini-3.5-flash"),
        [json!({"role": "user", "parts": [{"functionResponse": {
            "id": "c1", "name": "query", "response": {"return_value": "The chart:"}, "parts": [inline],
        }}]})]
    );
    let early = sent("gemini-2.5-flash");
    assert_eq!(
        early[0]["parts"][0]["functionResponse"]["response"],
        json!({"output": [{"return_value": "The chart:"}, format!("See file {id}.")]})
    );
    assert_eq!(early[1]["parts"][1], inline);
}

#[tokio::test]
async fn google_is_asked_once_and_its_whole_refusal_is_shown() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(
            ResponseTemplate::new(429)
                .set_body_json(json!({"error": {"code": 429, "message": "slow down"}})),
        )
        .mount(&server)
        .await;
    let error = model("gemini-x", &server.uri())
        .request(&[prompt("Go.")], &parameters(json!({})))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "status_code: 429, model_name: gemini-x, body: {'error': {'code': 429, 'message': 'slow down'}}"
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

/// As pydantic-ai 2.68 sends them.
#[test]
fn files_of_a_prompt_are_sent_with_it() {
    let sent = model("gemini-2.5-flash", "http://x")
        .body(&[prompt_with_files()], &without_tools(json!({})))
        .unwrap();
    assert_eq!(
        sent["contents"],
        json!([{"role": "user", "parts": [
            {"text": "What is this?"},
            {"inlineData": {"data": "UE5H", "mimeType": "image/png"}},
            {"inlineData": {"data": "UERG", "mimeType": "application/pdf"}},
        ]}])
    );
}
