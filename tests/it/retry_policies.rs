//! Retry policies that ask a model: what they ask, and what they make of the answer.

use std::sync::Mutex;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::local_run::{dag_file, run, task};
use crate::native_hooks::go;

/// Answers one after the other; null is an error.
struct Answers(Mutex<Vec<Value>>);

impl Respond for Answers {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let answer = self.0.lock().unwrap().remove(0);
        if answer.is_null() {
            return ResponseTemplate::new(400).set_body_json(json!({"error": {"message": "no"}}));
        }
        let call = json!({
            "id": "c", "type": "function", "function": {"name": "final_result", "arguments": answer.to_string()}
        });
        ResponseTemplate::new(200).set_body_json(json!({
            "id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{
                "index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": null, "tool_calls": [call]},
            }],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }))
    }
}

#[tokio::test]
async fn policies_decide_as_the_python_providers_do_on_the_same_answers() {
    let server = MockServer::start().await;
    let network = json!({"category": "network", "should_retry": true, "reasoning": "r"});
    let answers = [
        json!({"category": "auth", "should_retry": false, "reasoning": "no key"}),
        json!({"category": "rate_limit", "should_retry": true, "suggested_delay_seconds": 60, "reasoning": "429"}),
        Value::Null,
        Value::Null,
        json!({"response": "network"}),
        json!({"response": "data"}),
        json!({"response": "network"}),
        json!({"response": "network"}),
        network,
        Value::Null,
        Value::Null,
        json!({"response": "b"}),
    ];
    Mock::given(method("POST"))
        .respond_with(Answers(Mutex::new(answers.to_vec())))
        .mount(&server)
        .await;
    let llm = json!({
        "conn_type": "pydanticai", "password": "sk-made-up", "host": format!("{}/v1", server.uri()),
        "extra": {"model": "openai-chat:m"},
    });
    let imports = "from datetime import timedelta\n\
         from airflow.providers.common.ai.policies.retry import ClassifierRetryPolicy, ErrorCategory, LLMRetryPolicy\n\
         from airflow.sdk.definitions.retry_policy import RetryAction, RetryRule";
    let ran = tokio::task::spawn_blocking(move || {
        let body = include_str!("../fixtures/retry_policies.py");
        go(imports, body, json!({ "llm": llm }), &[])
    });
    let ran = ran.await.unwrap();
    // What the provider's classes of version 1.0.0 decided on the same answers.
    assert_eq!(
        ran.value(),
        &json!([
            ["fail", null, "auth: no key"],
            ["retry", 60.0, "rate_limit: 429"],
            ["retry", 10.0, "Matched rule for ConnectionError"],
            ["default", null, null],
            [
                "retry",
                10.0,
                "category=network confidence=n/a threshold=n/a action=retry delay=10s"
            ],
            [
                "fail",
                null,
                "category=data confidence=n/a threshold=n/a action=fail"
            ],
            [
                "default",
                null,
                "classifier answer not applied (missing_confidence); task retry settings apply"
            ],
            ["retry", null, "escalated (missing_confidence); network: r"],
            [
                "retry",
                10.0,
                "classifier answer not applied (model_error); Matched rule for ConnectionError"
            ],
            [
                "retry",
                1.5,
                "category=b confidence=n/a threshold=n/a action=retry delay=1.5s"
            ],
        ])
    );
    let requests = server.received_requests().await.unwrap();
    let bodies: Vec<Value> = requests
        .iter()
        .map(|request| request.body_json().unwrap())
        .collect();
    let prompt = |index: usize| bodies[index]["messages"][1]["content"].as_str().unwrap();
    let parameters = |index: usize| &bodies[index]["tools"][0]["function"]["parameters"];
    assert_eq!(
        prompt(0),
        "Classify this error from a data pipeline task (attempt 1 of 4):\n\nPermissionError: 403 made-up"
    );
    assert!(prompt(1).ends_with("\n\nRuntimeError: 429 ... (truncated)"));
    assert_eq!(
        parameters(0),
        &json!({
            "properties": {
                "category": {"type": "string"}, "should_retry": {"type": "boolean"},
                "suggested_delay_seconds": {"default": 0, "type": "integer"}, "reasoning": {"type": "string"},
            },
            "required": ["category", "should_retry", "reasoning"], "type": "object", "additionalProperties": false,
        })
    );
    assert_eq!(
        parameters(11),
        &json!({
            "properties": {"response": {
                "anyOf": [
                    {"const": "a", "description": "The letter a."}, {"const": "b", "description": "The letter b."},
                ],
                "type": "string",
            }},
            "required": ["response"], "type": "object", "additionalProperties": false,
        })
    );
}

#[test]
fn a_task_is_retried_or_not_as_the_model_says() {
    let said = |category: &str, retry: bool| {
        let arguments =
            json!({"category": category, "should_retry": retry, "reasoning": "it says so"});
        json!({"turns": [{"tool_calls": [{"name": "final_result", "args": arguments}]}]})
    };
    let (_folder, file) = dag_file(
        r#"
from airflow.providers.common.ai.policies.retry import LLMRetryPolicy
from airflow.sdk import dag, task

policy = LLMRetryPolicy("llm")

@dag(schedule=None)
def made():
    @task(retries=2, retry_policy=policy)
    def hopeless():
        raise PermissionError("the key has run out")

    @task(retries=1, retry_policy=policy)
    def passing(ti=None):
        if ti.try_number == 1:
            raise ConnectionError("reset")
        return ti.try_number

    hopeless()
    passing()

made()
"#,
        &[(
            "made.transcript.json",
            json!({"hopeless": said("auth", false), "passing": said("network", true)}),
        )],
    );
    let (_, report) = run(&file, &[]);
    let hopeless = task(&report, "hopeless", -1);
    assert_eq!(hopeless["state"], "failed", "{report:#}");
    let log = hopeless["log"].to_string();
    assert!(
        log.contains("LLM error classification: category=auth, should_retry=False"),
        "{log}"
    );
    assert_eq!(log.matches("LLM error classification").count(), 1, "{log}");
    assert_eq!(task(&report, "passing", -1)["xcoms"]["return_value"], 2);
}
