//! What the recorded runs in `tests/corpus/parity` don't show.

use pretty_assertions::assert_eq;

use super::*;
use crate::agent::message::Origin;
use crate::model::wire_tests::{
    details, native_output, parameters, prompt, prompt_with_files, response, web_search,
    without_tools,
};

fn model(name: &str) -> OpenAiResponses {
    let endpoint = Endpoint::bearer("http://x/v1", "made-up-key").unwrap();
    OpenAiResponses::new(name, "openai", endpoint).unwrap()
}

#[test]
fn settings_have_the_names_of_the_api_and_a_reasoning_model_gets_no_sampling() {
    let settings = json!({
        "max_tokens": 9, "temperature": 0.5, "openai_user": "u", "openai_store": false, "seed": 3,
        "openai_reasoning_summary": "auto", "thinking": "max", "openai_text_verbosity": "low",
        "parallel_tool_calls": false, "extra_body": {"safety_identifier": "s"},
    });
    let sent = model("gpt-5").body(&[prompt("Go.")], &without_tools(settings));
    assert_eq!(
        sent,
        json!({
            "model": "gpt-5", "stream": false, "include": ["reasoning.encrypted_content"], "max_output_tokens": 9,
            "user": "u", "store": false, "reasoning": {"effort": "high", "summary": "auto"},
            "text": {"verbosity": "low"}, "safety_identifier": "s", "input": [{"role": "user", "content": "Go."}],
        })
    );
}

#[test]
fn an_answer_in_json_is_a_named_format() {
    let sent = model("gpt-4o").body(&[prompt("Go.")], &native_output());
    assert_eq!(
        sent["text"],
        json!({"format": {"type": "json_schema", "name": "Found", "strict": true, "schema": {
            "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
            "additionalProperties": false,
        }}})
    );
    let mut prompted = native_output();
    if let Some(object) = &mut prompted.output_object {
        object.mode = ObjectMode::Prompted;
        object.template = Some("As JSON: {schema}".to_owned());
    }
    let sent = model("gpt-4o").body(&[prompt("Go.")], &prompted);
    assert_eq!(sent["text"], json!({"format": {"type": "json_object"}}));
    assert_eq!(sent.get("instructions"), None);
    assert_eq!(sent["input"][0]["role"], "system");
}

#[test]
fn ids_of_items_go_back_only_to_who_gave_them() {
    let thinking = |provider: &str, id: &str, signature: Option<&str>| {
        ResponsePart::Thinking(Thinking {
            content: "Hm.".to_owned(),
            signature: signature.map(str::to_owned),
            origin: Origin {
                id: Some(id.to_owned()),
                provider_name: Some(provider.to_owned()),
                provider_details: details("raw_content", json!(["Raw."])),
            },
        })
    };
    let messages = [
        prompt("Go."),
        response("openai", vec![thinking("openai", "rs_1", Some("ZW5j"))]),
        response(
            "deepseek",
            vec![thinking("deepseek", "reasoning_content", None)],
        ),
    ];
    let input = |name: &str| model(name).input(&messages, &Map::new());
    let tagged = json!({"role": "assistant", "content": "<think>\nHm.\n</think>"});
    assert_eq!(
        input("gpt-5")[1..],
        [
            json!({
                "id": "rs_1", "type": "reasoning", "encrypted_content": "ZW5j",
                "summary": [{"type": "summary_text", "text": "Hm."}],
                "content": [{"type": "reasoning_text", "text": "Raw."}],
            }),
            tagged.clone(),
        ]
    );
    assert_eq!(input("gpt-4o")[1..], [tagged.clone(), tagged]);
}

#[test]
fn a_search_of_the_web_stands_before_the_functions_and_goes_back_by_its_id() {
    let mut with_both = parameters(json!({}));
    with_both.native_tools = web_search().native_tools;
    let sent = model("gpt-5").body(&[prompt("Go.")], &with_both);
    assert_eq!(
        sent["tools"][0],
        json!({
            "type": "web_search", "search_context_size": "low", "filters": {"allowed_domains": ["example.org"]},
            "user_location": {"type": "approximate", "country": "NO"},
        })
    );
    assert_eq!(sent["tools"][1]["name"], "query");
    let answer = json!({
        "id": "resp_1", "model": "gpt-5", "status": "completed", "output": [{
            "type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": {"type": "search", "query": "tides", "sources": [{"url": "http://example.org"}]},
        }],
    });
    let answer =
        responses_answer::read(&answer.to_string(), "openai", "gpt-5", "http://x/").unwrap();
    let messages = [prompt("Go."), Message::Response(Box::new(answer))];
    assert_eq!(
        model("gpt-5").input(&messages, &Map::new())[1..],
        [json!({
            "id": "ws_1", "type": "web_search_call", "status": "completed",
            "action": {"type": "search", "query": "tides"},
        })]
    );
}

/// As pydantic-ai 2.68 sends them.
#[test]
fn files_of_a_prompt_are_sent_with_it() {
    let sent = model("gpt-5").body(&[prompt_with_files()], &without_tools(json!({})));
    assert_eq!(
        sent["input"],
        json!([{"role": "user", "content": [
            {"type": "input_text", "text": "What is this?"},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,UE5H"},
            {"type": "input_file", "filename": "filename.pdf", "file_data": "data:application/pdf;base64,UERG"},
        ]}])
    );
}
