use pretty_assertions::assert_eq;

use super::*;
use crate::model::wire_tests::{
    call, parameters, prompt, prompt_with_files, request, response, result, without_tools,
};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

fn model(name: &str) -> Bedrock {
    Bedrock::new(name, Endpoint::bearer("http://x", "made-up-key").unwrap()).unwrap()
}

fn body(name: &str, messages: &[Message], parameters: &RequestParameters) -> Value {
    model(name).body(messages, parameters).unwrap()
}

#[test]
fn a_conversation_with_a_call_is_sent_whole_with_its_marks() {
    let messages = [
        prompt("Go."),
        response(
            "bedrock",
            vec![ResponsePart::text("Well."), call("{\"sql\": \"x\"}")],
        ),
        request(vec![RequestPart::ToolReturn(result(json!({"n": 1})))]),
    ];
    let settings = json!({
        "bedrock_cache_tool_definitions": true, "bedrock_cache_instructions": true,
        "bedrock_cache_messages": true, "temperature": 0.5,
        "bedrock_guardrail_config": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
    });
    let mut forced = parameters(settings);
    forced.allow_text_output = false;
    let point = json!({"cachePoint": {"type": "default"}});
    assert_eq!(
        body(CLAUDE, &messages, &forced),
        json!({
            "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
            "messages": [
                {"role": "user", "content": [{"text": "Go."}]},
                {"role": "assistant", "content": [
                    {"text": "Well."}, {"toolUse": {"toolUseId": "c1", "name": "query", "input": {"sql": "x"}}},
                ]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "c1", "content": [{"text": "{\"n\":1}"}], "status": "success"}},
                    point,
                ]},
            ],
            "inferenceConfig": {"temperature": 0.5, "maxTokens": 64_000},
            "toolConfig": {
                "tools": [
                    {"toolSpec": {"name": "query", "description": "Execute a SQL query.", "inputSchema": {"json": {
                        "type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"],
                    }}}},
                    point,
                ],
                "toolChoice": {"any": {}},
            },
        })
    );
}

#[test]
fn thinking_is_asked_for_as_anthropics_models_want_it() {
    let additional = |name: &str, wanted: Value| {
        let sent = body(
            name,
            &[prompt("Go.")],
            &without_tools(json!({"thinking": wanted})),
        );
        sent["additionalModelRequestFields"].clone()
    };
    assert_eq!(
        additional(CLAUDE, json!("low")),
        json!({"thinking": {"type": "enabled", "budget_tokens": 2_048}})
    );
    assert_eq!(
        additional("anthropic.claude-opus-5-v1:0", json!("high")),
        json!({"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}})
    );
    assert_eq!(
        additional("amazon.nova-lite-v1:0", json!("high")),
        Value::Null
    );
}

#[test]
fn a_model_that_wants_results_alone_hears_a_full_stop_between() {
    let messages = [
        prompt("Go."),
        response("bedrock", vec![call("{}")]),
        request(vec![RequestPart::ToolReturn(result(json!("x")))]),
        prompt("And?"),
    ];
    let roles = |name: &str| {
        let sent = body(name, &messages, &parameters(json!({})));
        let turns = sent["messages"].as_array().unwrap().clone();
        turns
            .iter()
            .map(|turn| turn["role"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(roles(CLAUDE), ["user", "assistant", "user"]);
    assert_eq!(
        roles("us.meta.llama4-maverick-17b-instruct-v1:0"),
        ["user", "assistant", "user", "assistant", "user"]
    );
}

#[test]
fn an_answer_is_read_with_its_thinking_to_go_back() {
    let body = json!({
        "output": {"message": {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
            {"text": "Let me look."},
            {"toolUse": {"toolUseId": "t1", "name": "query", "input": {"sql": "x"}}},
        ]}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 10, "outputTokens": 4, "cacheReadInputTokens": 3, "totalTokens": 17},
    });
    let answer = model(CLAUDE).read(&body.to_string()).unwrap();
    assert_eq!(answer.finish_reason.as_deref(), Some("tool_call"));
    assert_eq!(
        (answer.usage.input_tokens, answer.usage.cache_read_tokens),
        (13, 3)
    );
    let (content, carried) = model(CLAUDE).response_content(&answer);
    assert_eq!(
        content[0],
        json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}})
    );
    assert_eq!((content.len(), carried), (3, Vec::new()));
    assert!(model(CLAUDE).read("{}").is_err());
}

#[test]
fn the_vendor_is_found_behind_an_area_and_in_an_arn() {
    for (name, vendor) in [
        (CLAUDE, "anthropic"),
        ("amazon.nova-lite-v1:0", "amazon"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-5-v1:0",
            "anthropic",
        ),
    ] {
        assert_eq!(vendor_and_name(name).0, vendor, "{name}");
    }
}

/// As pydantic-ai 2.68 sends them.
#[test]
fn files_of_a_prompt_are_sent_with_it() {
    let messages = [
        prompt_with_files(),
        response("bedrock", vec![ResponsePart::text("A map.")]),
        prompt_with_files(),
    ];
    let sent = body(CLAUDE, &messages, &without_tools(json!({})));
    let question = |name: &str| {
        json!({"role": "user", "content": [
            {"text": "What is this?"},
            {"image": {"format": "png", "source": {"bytes": "UE5H"}}},
            {"document": {"format": "pdf", "name": name, "source": {"bytes": "UERG"}}},
        ]})
    };
    assert_eq!(sent["messages"][0], question("Document 1"));
    assert_eq!(sent["messages"][2], question("Document 2"));
}
