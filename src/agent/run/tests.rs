//! The loop's rules, against a model that plays prepared responses and a toolset that does as its arguments say.

mod outputs;
mod spans;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::agent::message::{ToolOutcome, ToolReturn};
use crate::agent::output::{OutputTool, OutputValidator, ValidOutput};
use crate::agent::usage::RequestUsage;
use crate::agent::{ModelError, ToolDefinition, ToolError};

/// Plays responses in order, and checks on every request that calls and results match.
struct Playback {
    responses: Mutex<Vec<ModelResponse>>,
    requests: Mutex<Vec<Vec<Message>>>,
}

impl Playback {
    fn new(responses: Vec<ModelResponse>) -> Arc<Self> {
        let mut responses = responses;
        responses.reverse();
        Arc::new(Self {
            responses: Mutex::new(responses),
            requests: Mutex::default(),
        })
    }
}

#[async_trait]
impl Model for Playback {
    fn name(&self) -> &str {
        "mock-model"
    }

    fn provider(&self) -> &str {
        "mock"
    }

    async fn request(
        &self,
        messages: &[Message],
        _: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        assert_every_call_has_one_result(messages);
        self.requests.lock().unwrap().push(messages.to_vec());
        Ok(self
            .responses
            .lock()
            .unwrap()
            .pop()
            .expect("a request more than there are responses"))
    }
}

fn assert_every_call_has_one_result(messages: &[Message]) {
    let mut calls: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Response(response) => {
                assert!(calls.is_empty(), "calls without a result: {calls:?}");
                calls.extend(response.parts.iter().filter_map(|part| match part {
                    ResponsePart::ToolCall(call) => Some(call.tool_call_id.as_str()),
                    _ => None,
                }));
            }
            Message::Request(request) => {
                let results: Vec<&str> = request
                    .parts
                    .iter()
                    .filter_map(|part| match part {
                        RequestPart::ToolReturn(result) => Some(result.tool_call_id.as_str()),
                        _ => None,
                    })
                    .collect();
                assert_eq!(results, std::mem::take(&mut calls));
            }
        }
    }
    assert!(calls.is_empty(), "calls without a result: {calls:?}");
}

/// `work` runs in parallel, `alone` is a barrier; both do what `how` says.
#[derive(Default)]
struct Workshop {
    running: AtomicUsize,
    most_at_once: AtomicUsize,
    order: Mutex<Vec<String>>,
    closed: AtomicUsize,
}

struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Toolset for Workshop {
    fn id(&self) -> String {
        "workshop".to_owned()
    }

    fn label(&self) -> &'static str {
        "Workshop"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let tool = |name: &str, sequential| ToolDefinition {
            name: name.to_owned(),
            description: None,
            parameters: json!({
                "type": "object",
                "properties": {"how": {"type": "string"}, "tag": {"type": "string"}},
                "required": ["how"],
            }),
            sequential,
            max_retries: None,
        };
        Ok(vec![tool("work", false), tool("alone", true)])
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(&self.running);
        if name == "alone" {
            assert_eq!(now, 1, "a sequential tool ran beside another");
        }
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.order
            .lock()
            .unwrap()
            .push(args.get("tag").map_or(String::new(), Value::to_string));
        match args["how"].as_str().unwrap() {
            "well" => Ok(json!("done")),
            "slowly" => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(json!({"took": "long"}))
            }
            "never" => {
                std::future::pending::<()>().await;
                Ok(Value::Null)
            }
            "badly" => Err(ToolError::Retry("try another way".to_owned())),
            "refused" => Err(ToolError::Failed("not today".to_owned())),
            other => Err(ToolError::Fatal(format!("broken: {other}"))),
        }
    }

    async fn close(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

fn response(parts: Vec<ResponsePart>) -> ModelResponse {
    ModelResponse {
        parts,
        usage: RequestUsage {
            input_tokens: 10,
            output_tokens: 5,
            ..RequestUsage::default()
        },
        model_name: "mock-model".to_owned(),
        finish_reason: Some("stop".to_owned()),
        ..ModelResponse::default()
    }
}

fn text(text: &str) -> ModelResponse {
    response(vec![ResponsePart::text(text)])
}

/// Calls of `(tool, arguments)`, with ids `a0`, `a1` ... that begin with `prefix`.
fn calls(prefix: &str, calls: &[(&str, &str)]) -> ModelResponse {
    response(
        calls
            .iter()
            .enumerate()
            .map(|(i, (name, args))| {
                ResponsePart::ToolCall(ToolCall {
                    tool_name: (*name).to_owned(),
                    args: (*args).to_owned(),
                    tool_call_id: format!("{prefix}{i}"),
                    ..ToolCall::default()
                })
            })
            .collect(),
    )
}

fn how(how: &str) -> String {
    json!({ "how": how }).to_string()
}

fn agent(model: &Arc<Playback>, toolsets: Vec<Arc<dyn Toolset>>) -> Agent {
    Agent {
        name: "agent".to_owned(),
        model: model.clone(),
        toolsets,
        instructions: "  Be brief. \n".to_owned(),
        native_tools: Vec::new(),
        settings: Map::new(),
        retries: Retries::default(),
        limits: UsageLimits::default(),
        output: OutputSpec::default(),
        end_strategy: EndStrategy::default(),
    }
}

fn input() -> RunInput {
    RunInput {
        system_prompts: Vec::new(),
        prompt: Some(UserContent::Text("Do the task.".to_owned())),
        history: Vec::new(),
        run_id: "run".to_owned(),
        conversation_id: "conversation".to_owned(),
        usage: RunUsage::default(),
        cancel: CancellationToken::new(),
        telemetry: None,
        durable: None,
    }
}

fn said(text: &str) -> Output {
    Output::Text(text.to_owned())
}

fn results(outcome: &RunOutcome) -> Vec<ToolReturn> {
    outcome
        .messages
        .iter()
        .flat_map(|message| match message {
            Message::Request(request) => request.parts.clone(),
            Message::Response(_) => Vec::new(),
        })
        .filter_map(|part| match part {
            RequestPart::ToolReturn(result) => Some(result),
            _ => None,
        })
        .collect()
}

async fn fails_with(responses: Vec<ModelResponse>) -> String {
    let model = Playback::new(responses);
    let outcome = agent(&model, vec![Arc::new(Workshop::default())])
        .run(input())
        .await;
    outcome.output.unwrap_err().to_string()
}

#[tokio::test]
async fn results_come_in_call_order_whatever_ended_first() {
    let model = Playback::new(vec![
        calls(
            "a",
            &[
                ("work", &how("slowly")),
                ("work", &how("well")),
                ("work", &how("refused")),
            ],
        ),
        text("Done."),
    ]);
    let workshop = Arc::new(Workshop::default());
    let outcome = agent(&model, vec![workshop.clone()]).run(input()).await;
    assert_eq!(outcome.output.as_ref().unwrap(), &said("Done."));
    let results: Vec<_> = results(&outcome)
        .into_iter()
        .map(|r| (r.tool_call_id, r.outcome, r.content))
        .collect();
    assert_eq!(
        results,
        vec![
            (
                "a0".to_owned(),
                ToolOutcome::Success,
                json!({"took": "long"})
            ),
            ("a1".to_owned(), ToolOutcome::Success, json!("done")),
            ("a2".to_owned(), ToolOutcome::Failed, json!("not today")),
        ]
    );
    assert_eq!(workshop.most_at_once.load(Ordering::SeqCst), 3);
    assert_eq!(workshop.closed.load(Ordering::SeqCst), 1);
    assert_eq!(
        outcome.usage,
        RunUsage {
            requests: 2,
            tool_calls: 2,
            input_tokens: 20,
            output_tokens: 10,
            ..RunUsage::default()
        }
    );
    assert_eq!(outcome.model_name.as_deref(), Some("mock-model"));
    assert_eq!(
        outcome.tool_call_sequence().collect::<Vec<_>>(),
        ["work", "work", "work"]
    );
}

#[tokio::test]
async fn a_sequential_tool_is_a_barrier_among_parallel_ones() {
    let tagged = |tag: &str| json!({"how": "well", "tag": tag}).to_string();
    let slow = json!({"how": "slowly", "tag": "1"}).to_string();
    let model = Playback::new(vec![
        calls(
            "a",
            &[
                ("work", &slow),
                ("work", &tagged("2")),
                ("alone", &tagged("3")),
                ("work", &tagged("4")),
            ],
        ),
        text("Done."),
    ]);
    let workshop = Arc::new(Workshop::default());
    agent(&model, vec![workshop.clone()])
        .run(input())
        .await
        .output
        .unwrap();
    let order = workshop.order.lock().unwrap().clone();
    assert_eq!(order[2..], ["\"3\"".to_owned(), "\"4\"".to_owned()]);
}

#[tokio::test]
async fn the_system_prompt_is_trimmed_and_goes_with_every_request() {
    let model = Playback::new(vec![calls("a", &[("work", &how("well"))]), text("Done.")]);
    agent(&model, vec![Arc::new(Workshop::default())])
        .run(input())
        .await
        .output
        .unwrap();
    for messages in model.requests.lock().unwrap().iter() {
        let Some(Message::Request(newest)) = messages.last() else {
            panic!("a request ends with a request")
        };
        assert_eq!(newest.instructions, ["Be brief."]);
    }
}

#[tokio::test]
async fn a_second_failing_turn_of_one_tool_ends_the_run() {
    let bad = how("badly");
    let text = fails_with(vec![
        calls("a", &[("work", &bad), ("work", &bad)]),
        calls("b", &[("alone", &how("well"))]),
        calls("c", &[("work", &bad)]),
    ])
    .await;
    assert_eq!(
        text,
        "Tool 'work' exceeded max retries count of 1. Consider raising the retry limit, or see the docs on tool \
         retries: https://pydantic.dev/docs/ai/tools-toolsets/tools-advanced/#tool-retries"
    );
}

#[tokio::test]
async fn a_call_that_is_wrong_once_too_often_keeps_the_calls_beside_it_from_being_made() {
    let model = Playback::new(vec![
        calls("a", &[("nope", "{}")]),
        calls("b", &[("work", &how("well")), ("nope", "{}")]),
    ]);
    let outcome = agent(&model, vec![Arc::new(Workshop::default())])
        .run(input())
        .await;
    assert!(
        outcome
            .output
            .unwrap_err()
            .to_string()
            .starts_with("Tool 'nope' exceeded max retries count of 1.")
    );
    assert_eq!(outcome.usage.tool_calls, 0);
}

#[tokio::test]
async fn a_response_cut_off_within_a_call_says_so_when_no_correction_is_left() {
    let cut = |prefix: &str| ModelResponse {
        finish_reason: Some("length".to_owned()),
        ..calls(prefix, &[("work", "{\"how\": \"we")])
    };
    let text = fails_with(vec![cut("a"), cut("b")]).await;
    assert!(
        text.starts_with(
            "Model token limit (provider default) exceeded while generating a tool call, resulting in incomplete \
             arguments."
        ),
        "{text}"
    );
}

#[tokio::test]
async fn a_success_between_two_failures_resets_the_count() {
    let model = Playback::new(vec![
        calls("a", &[("work", &how("badly"))]),
        calls("b", &[("work", &how("well"))]),
        calls("c", &[("work", &how("badly"))]),
        text("Done."),
    ]);
    let outcome = agent(&model, vec![Arc::new(Workshop::default())])
        .run(input())
        .await;
    assert_eq!(outcome.output.unwrap(), said("Done."));
}

#[tokio::test]
async fn unknown_tools_and_bad_arguments_are_told_to_the_model() {
    let model = Playback::new(vec![
        calls(
            "a",
            &[
                ("nope", "{}"),
                ("work", "{\"how\": 1}"),
                ("work", "{not json"),
            ],
        ),
        text("Done."),
    ]);
    let outcome = agent(&model, vec![Arc::new(Workshop::default())])
        .run(input())
        .await;
    let contents: Vec<_> = results(&outcome)
        .into_iter()
        .map(|r| (r.outcome, r.content))
        .collect();
    assert_eq!(
        contents,
        vec![
            (
                ToolOutcome::Retried,
                json!("Unknown tool name: 'nope'. Available tools: 'alone', 'work'")
            ),
            (
                ToolOutcome::Retried,
                json!([{"type": "string_type", "loc": ["how"], "msg": "Input should be a valid string", "input": 1}])
            ),
            (
                ToolOutcome::Retried,
                json!([{
                    "type": "json_invalid", "loc": [],
                    "msg": "Invalid JSON: key must be a string at line 1 column 2", "input": "{not json",
                }])
            ),
        ]
    );
    assert_eq!(outcome.usage.tool_calls, 0);
}

#[tokio::test]
async fn an_empty_response_is_asked_again_once() {
    let model = Playback::new(vec![response(vec![ResponsePart::text("")]), text(" \n")]);
    let outcome = agent(&model, Vec::new()).run(input()).await;
    assert_eq!(outcome.output.unwrap(), said(" \n"));
    let Some(Message::Request(again)) = outcome.messages.get(2) else {
        panic!("the model is asked again");
    };
    assert_eq!(
        again.parts,
        vec![RequestPart::RetryFeedback(RetryFeedback {
            content: json!("Please return text."),
            retry: RetryInfo {
                cause: "no_output".to_owned(),
                attempt: 1,
                max_retries: 1,
            },
        })]
    );
    assert_eq!(again.instructions, vec!["Be brief.".to_owned()]);
    assert_eq!(
        fails_with(vec![response(Vec::new()), response(Vec::new())]).await,
        "Exceeded maximum output retries (1)"
    );
}

#[tokio::test]
async fn a_response_cut_before_it_began_and_a_filtered_one_end_the_run() {
    let cut = ModelResponse {
        finish_reason: Some("length".to_owned()),
        ..response(Vec::new())
    };
    assert!(
        fails_with(vec![cut]).await.starts_with(
            "Model token limit (provider default) exceeded before any response was generated. Increase the \
             `max_tokens` model setting, or simplify"
        )
    );
    let mut filtered = ModelResponse {
        finish_reason: Some("content_filter".to_owned()),
        ..response(Vec::new())
    };
    filtered
        .provider_details
        .insert("refusal".to_owned(), json!("I won't."));
    assert!(
        fails_with(vec![filtered])
            .await
            .starts_with("Content filter triggered. Refusal: \"I won't.\", body:\n[\n  {")
    );
}

#[tokio::test]
async fn two_calls_with_one_id_end_the_run_before_any_tool_runs() {
    let mut twice = calls("a", &[("work", &how("well")), ("work", &how("well"))]);
    for part in &mut twice.parts {
        if let ResponsePart::ToolCall(call) = part {
            call.tool_call_id = "call_1".to_owned();
        }
    }
    assert_eq!(
        fails_with(vec![twice]).await,
        "Function tool calls must have unique `tool_call_id` values; duplicate `tool_call_id`s: ['call_1']"
    );
}

#[tokio::test]
async fn any_other_failure_of_a_tool_ends_the_run_with_its_text() {
    assert_eq!(
        fails_with(vec![calls("a", &[("work", &how("glue"))])]).await,
        "broken: glue"
    );
}

#[tokio::test]
async fn the_fifty_first_request_is_refused_without_any_limit_set() {
    let responses = (0..50)
        .map(|i| calls(&format!("t{i}_"), &[("work", &how("well"))]))
        .collect();
    let model = Playback::new(responses);
    let outcome = agent(&model, vec![Arc::new(Workshop::default())])
        .run(input())
        .await;
    assert!(
        outcome
            .output
            .unwrap_err()
            .to_string()
            .starts_with("The next request would exceed the request_limit of 50. Consider")
    );
    assert_eq!(outcome.usage.requests, 50);
}

#[tokio::test]
async fn usage_of_earlier_attempts_counts_towards_the_limits() {
    let model = Playback::new(Vec::new());
    let mut agent = agent(&model, Vec::new());
    agent.limits.request_limit = Some(3);
    let earlier = RunUsage {
        requests: 3,
        ..RunUsage::default()
    };
    let outcome = agent
        .run(RunInput {
            usage: earlier,
            ..input()
        })
        .await;
    assert!(
        outcome
            .output
            .unwrap_err()
            .to_string()
            .contains("request_limit of 3")
    );
}

#[tokio::test]
async fn two_toolsets_with_a_tool_of_one_name_are_refused() {
    let model = Playback::new(Vec::new());
    let workshop: Arc<dyn Toolset> = Arc::new(Workshop::default());
    let outcome = agent(&model, vec![workshop.clone(), workshop])
        .run(input())
        .await;
    assert_eq!(
        outcome.output.unwrap_err().to_string(),
        "Workshop 'workshop' defines a tool whose name conflicts with existing tool from Workshop 'workshop': 'work'. \
         Rename the tool or wrap the toolset in a `PrefixedToolset` to avoid name conflicts."
    );
}

#[tokio::test]
async fn cancelling_stops_a_tool_that_never_ends() {
    let model = Playback::new(vec![calls(
        "a",
        &[("work", &how("never")), ("work", &how("well"))],
    )]);
    let workshop = Arc::new(Workshop::default());
    let cancel = CancellationToken::new();
    let agent = agent(&model, vec![workshop.clone()]);
    let run = agent.run(RunInput {
        cancel: cancel.clone(),
        ..input()
    });
    let watch = async {
        while workshop.running.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(run, watch);
    assert!(matches!(outcome.output, Err(AgentError::Cancelled)));
    assert_eq!(workshop.running.load(Ordering::SeqCst), 0);
    assert_eq!(outcome.usage.requests, 1);
}
