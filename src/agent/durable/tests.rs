//! Attempts of one task, one after the other, over one storage: what is made again, and what is not.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::storage::memory::Memory;
use super::*;
use crate::agent::message::{Message, ModelResponse, ResponsePart, ToolCall, UserContent};
use crate::agent::model::{Model, RequestParameters};
use crate::agent::usage::RequestUsage;
use crate::agent::{
    Agent, AgentError, EndStrategy, ModelError, Output, OutputSpec, Retries, RunInput, RunOutcome,
    RunUsage, ToolDefinition, ToolError, Toolset, UsageLimits,
};

/// Answers by how many responses the conversation holds; `None` fails.
struct Script {
    turns: Vec<Option<ModelResponse>>,
    asked: Mutex<u64>,
}

#[async_trait]
impl Model for Script {
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
        *self.asked.lock().unwrap() += 1;
        let is_response = |message: &&Message| matches!(message, Message::Response(_));
        let turn = messages.iter().filter(is_response).count();
        let answer = self.turns.get(turn).cloned().flatten();
        answer.ok_or_else(|| ModelError::Connection("the line is dead".to_owned()))
    }
}

/// `note` says what it is told; `how` may be `badly`, `refused` or `fatally`, or `stop`, which cancels the run.
struct Notes {
    made: Mutex<Vec<String>>,
    cancel: CancellationToken,
}

#[async_trait]
impl Toolset for Notes {
    fn id(&self) -> String {
        "notes".to_owned()
    }

    fn label(&self) -> &str {
        "Notes"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        Ok(vec![ToolDefinition {
            name: "note".to_owned(),
            description: None,
            parameters: json!({"type": "object", "properties": {"text": {}, "how": {}}}),
            sequential: false,
            max_retries: None,
        }])
    }

    async fn call(&self, _: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let text = args["text"].as_str().unwrap().to_owned();
        self.made.lock().unwrap().push(text.clone());
        tokio::task::yield_now().await;
        match args.get("how").and_then(Value::as_str) {
            None => Ok(format!("noted {text}").into()),
            Some("badly") => Err(ToolError::Retry("write better".to_owned())),
            Some("refused") => Err(ToolError::Failed("not today".to_owned())),
            Some("stop") => {
                self.cancel.cancel();
                std::future::pending().await
            }
            Some("not json") => {
                current_step()
                    .unwrap()
                    .refuse_result("Unable to serialize unknown type: <class 'x.Y'>");
                Err(ToolError::Fatal("?".to_owned()))
            }
            Some(other) => {
                // Late enough for the calls beside it to end.
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                Err(ToolError::Fatal(other.to_owned()))
            }
        }
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

fn says(text: &str) -> Option<ModelResponse> {
    Some(response(vec![ResponsePart::text(text)]))
}

/// Calls of `note` with ids `a0`, `a1` ..., after `prefix`.
fn notes(prefix: &str, calls: &[(&str, Option<&str>)]) -> Option<ModelResponse> {
    let parts = calls.iter().enumerate().map(|(i, (text, how))| {
        let args = match how {
            Some(how) => json!({ "text": text, "how": how }),
            None => json!({ "text": text }),
        };
        ResponsePart::ToolCall(ToolCall {
            tool_name: "note".to_owned(),
            args: args.to_string(),
            tool_call_id: format!("{prefix}{i}"),
            ..ToolCall::default()
        })
    });
    Some(response(parts.collect()))
}

/// What an attempt came to.
struct Attempt {
    outcome: RunOutcome,
    /// Model requests that were made.
    asked: u64,
    /// Tool calls that were made.
    made: Vec<String>,
}

impl Attempt {
    fn answer(&self) -> Option<&str> {
        match &self.outcome.output {
            Ok(Output::Text(text)) => Some(text),
            _ => None,
        }
    }
}

fn journal(storage: &Arc<Memory>) -> Arc<DurableJournal> {
    let storage = Arc::clone(storage) as Arc<dyn JournalStorage>;
    DurableJournal::new(storage, Arc::new(|request| request), false)
}

#[derive(Default)]
struct Setting {
    prompt: &'static str,
    limits: UsageLimits,
    spent: RunUsage,
}

async fn attempt(storage: &Arc<Memory>, turns: Vec<Option<ModelResponse>>) -> Attempt {
    attempt_in(storage, &journal(storage), turns, Setting::default()).await
}

async fn attempt_in(
    _storage: &Arc<Memory>,
    journal: &Arc<DurableJournal>,
    turns: Vec<Option<ModelResponse>>,
    setting: Setting,
) -> Attempt {
    let cancel = CancellationToken::new();
    let model = Arc::new(Script {
        turns,
        asked: Mutex::default(),
    });
    let notes = Arc::new(Notes {
        made: Mutex::default(),
        cancel: cancel.clone(),
    });
    let recorded = RecordedToolset::new(Arc::clone(&notes) as Arc<dyn Toolset>, "airflow_toolset");
    let agent = Agent {
        name: "agent".to_owned(),
        model: Arc::clone(&model) as Arc<dyn Model>,
        toolsets: vec![Arc::new(recorded)],
        instructions: String::new(),
        native_tools: Vec::new(),
        settings: Map::new(),
        retries: Retries::default(),
        limits: setting.limits,
        output: OutputSpec::default(),
        end_strategy: EndStrategy::default(),
    };
    let run = journal.start_run("ask", None).await.unwrap();
    let outcome = agent
        .run(RunInput {
            system_prompts: Vec::new(),
            prompt: Some(UserContent::Text(format!("Take notes. {}", setting.prompt))),
            history: Vec::new(),
            run_id: "run".to_owned(),
            conversation_id: "conversation".to_owned(),
            usage: setting.spent,
            cancel,
            telemetry: None,
            durable: Some(run),
        })
        .await;
    let (asked, made) = (
        *model.asked.lock().unwrap(),
        notes.made.lock().unwrap().clone(),
    );
    Attempt {
        outcome,
        asked,
        made,
    }
}

const STEP: &str = "__commonai_durable__run_0_step_";
const META: &str = "__commonai_durable__run_0_meta";

#[tokio::test]
async fn a_retry_makes_nothing_again_that_was_recorded() {
    let storage = Arc::new(Memory::default());
    let first = notes("a", &[("one", None), ("two", Some("refused"))]);
    let failed = attempt(&storage, vec![first.clone(), None]).await;
    assert_eq!(
        failed.outcome.output.unwrap_err().to_string(),
        "the line is dead"
    );
    assert_eq!(failed.made, ["one", "two"]);
    assert_eq!(
        storage.keys(),
        [
            META,
            "__commonai_durable__run_0_step_0",
            "__commonai_durable__run_0_step_1",
            "__commonai_durable__run_0_step_2",
            "__commonai_durable__runs",
        ]
    );
    assert_eq!(
        storage.record(&format!("{STEP}2")),
        json!({
            "name": "ask__airflow_toolset__notes.call_tool:note",
            "kind": "tool",
            "fingerprint": storage.record(&format!("{STEP}2"))["fingerprint"],
            "payload": {"kind": "tool_failed", "message": "not today"},
        })
    );
    assert_eq!(
        storage.record(&format!("{STEP}0"))["name"],
        "ask__model.request"
    );
    assert_eq!(
        storage.record(META),
        json!({"diverge_from": null, "high_water": 4, "model_at_fault": false})
    );

    let own = journal(&storage);
    let again = attempt_in(
        &storage,
        &own,
        vec![first, says("done")],
        Setting::default(),
    )
    .await;
    assert_eq!(again.answer(), Some("done"));
    assert_eq!((again.asked, again.made.len()), (1, 0));
    // Only what this attempt did counts.
    let usage = &again.outcome.usage;
    assert_eq!(
        (usage.requests, usage.tool_calls, usage.input_tokens),
        (1, 0, 10)
    );
    own.clean_up().await;
    assert_eq!(storage.keys(), Vec::<String>::new());
}

#[tokio::test]
async fn an_attempt_that_was_killed_is_replayed_and_cleaned_up_as_well() {
    let storage = Arc::new(Memory::default());
    let turns = || {
        vec![
            notes("a", &[("one", None)]),
            notes("b", &[("two", None)]),
            says("done"),
        ]
    };
    attempt(&storage, turns()).await;
    let own = journal(&storage);
    let shorter = vec![says("nothing to do")];
    let setting = Setting {
        prompt: "Or not.",
        ..Setting::default()
    };
    let again = attempt_in(&storage, &own, shorter, setting).await;
    assert_eq!((again.answer(), again.asked), (Some("nothing to do"), 1));
    own.clean_up().await;
    assert_eq!(storage.keys(), Vec::<String>::new());
}

#[tokio::test]
async fn from_the_first_step_that_asks_otherwise_everything_is_made_anew() {
    let storage = Arc::new(Memory::default());
    let turns = || vec![notes("a", &[("one", None)]), says("done")];
    attempt(&storage, turns()).await;
    let setting = Setting {
        prompt: "In German.",
        ..Setting::default()
    };
    let again = attempt_in(&storage, &journal(&storage), turns(), setting).await;
    assert_eq!((again.asked, again.made), (2, vec!["one".to_owned()]));
}

#[tokio::test]
async fn what_another_implementation_recorded_is_passed_over() {
    let storage = Arc::new(Memory::default());
    let turns = || vec![notes("a", &[("one", None)]), says("done")];
    attempt(&storage, turns()).await;
    {
        let mut records = storage.records.lock().unwrap();
        let step = records.get_mut(&format!("{STEP}1")).unwrap();
        step.insert(
            "payload".to_owned(),
            json!({"kind": "tool_return", "tool_return": {}}),
        );
    }
    let again = attempt(&storage, turns()).await;
    // The tool is called again, and so is the model after it.
    assert_eq!((again.asked, again.made.len()), (1, 1));
    for step in 0..3 {
        let foreign = json!({"name": "ask__model.request", "kind": "model", "fingerprint": null, "payload": {}});
        let mut records = storage.records.lock().unwrap();
        records.insert(
            format!("{STEP}{step}"),
            foreign.as_object().cloned().unwrap(),
        );
    }
    let again = attempt(&storage, turns()).await;
    assert_eq!((again.asked, again.made.len()), (2, 1));
}

#[tokio::test]
async fn steps_that_a_failing_one_ran_beside_are_kept_and_it_is_made_again() {
    let storage = Arc::new(Memory::default());
    let first = |how| notes("a", &[("one", None), ("two", how), ("three", None)]);
    let failed = attempt(&storage, vec![first(Some("no disk"))]).await;
    assert_eq!(failed.outcome.output.unwrap_err().to_string(), "no disk");
    let again = attempt(&storage, vec![first(Some("no disk"))]).await;
    assert_eq!((again.asked, again.made), (0, vec!["two".to_owned()]));
}

#[tokio::test]
async fn a_model_whose_answers_failed_the_run_is_asked_again() {
    let storage = Arc::new(Memory::default());
    let bad = || notes("b", &[("x", Some("badly"))]);
    let turns = vec![
        notes("a", &[("one", None)]),
        bad(),
        notes("c", &[("y", Some("badly"))]),
    ];
    let failed = attempt(&storage, turns).await;
    assert!(matches!(
        failed.outcome.output,
        Err(AgentError::ToolRetriesExceeded { max_retries: 1, .. })
    ));
    assert_eq!(
        storage.record(META),
        json!({"diverge_from": 4, "high_water": 6, "model_at_fault": true})
    );
    let turns = vec![notes("a", &[("one", None)]), bad(), says("then not")];
    let again = attempt(&storage, turns).await;
    assert_eq!(again.answer(), Some("then not"));
    assert_eq!((again.asked, again.made.len()), (1, 0));
}

#[tokio::test]
async fn a_run_that_was_stopped_goes_on_with_the_call_it_was_at() {
    let storage = Arc::new(Memory::default());
    let turns = || {
        vec![
            notes("a", &[("one", None)]),
            notes("b", &[("two", Some("stop"))]),
        ]
    };
    let stopped = attempt(&storage, turns()).await;
    assert!(matches!(stopped.outcome.output, Err(AgentError::Cancelled)));
    let again = attempt(&storage, turns()).await;
    assert_eq!((again.asked, again.made), (0, vec!["two".to_owned()]));
}

#[tokio::test]
async fn a_record_that_can_not_be_kept_fails_nothing_and_is_made_again() {
    let storage = Arc::new(Memory::default());
    storage.refused.lock().unwrap().push(format!("{STEP}1"));
    let turns = |last| vec![notes("a", &[("one", None)]), last];
    let failed = attempt(&storage, turns(None)).await;
    assert_eq!(failed.made, ["one"]);
    storage.refused.lock().unwrap().clear();
    let again = attempt(&storage, turns(says("done"))).await;
    assert_eq!(
        (again.answer(), again.asked, again.made.len()),
        (Some("done"), 1, 1)
    );
}

#[tokio::test]
async fn what_is_no_json_ends_the_run_and_would_end_the_next_one() {
    let storage = Arc::new(Memory::default());
    let failed = attempt(&storage, vec![notes("a", &[("one", Some("not json"))])]).await;
    assert_eq!(
        failed.outcome.output.unwrap_err().to_string(),
        "durable execution could not record a step's result, because it is not JSON-serializable: Unable to serialize \
         unknown type: <class 'x.Y'>. Have the tool return plain data: text, numbers, lists, dicts"
    );
}

#[tokio::test]
async fn replayed_steps_count_against_no_limit_and_live_ones_do() {
    let storage = Arc::new(Memory::default());
    let turns = |last| {
        vec![
            notes("a", &[("one", None), ("two", None)]),
            notes("b", &[("three", None)]),
            last,
        ]
    };
    let failed = attempt(&storage, turns(None)).await;
    let spent = failed.outcome.usage;
    assert_eq!((spent.requests, spent.tool_calls), (2, 3));
    let setting = |requests, tool_calls| Setting {
        limits: UsageLimits {
            request_limit: Some(requests),
            tool_calls_limit: Some(tool_calls),
            ..UsageLimits::default()
        },
        spent: spent.clone(),
        ..Setting::default()
    };
    let too_few = attempt_in(
        &storage,
        &journal(&storage),
        turns(says("done")),
        setting(2, 3),
    )
    .await;
    assert!(
        too_few
            .outcome
            .output
            .unwrap_err()
            .to_string()
            .starts_with("The next request would exceed the request_limit of 2"),
        "the third request is the first that is made"
    );
    assert_eq!(too_few.asked, 0);
    let again = attempt_in(
        &storage,
        &journal(&storage),
        turns(says("done")),
        setting(3, 3),
    )
    .await;
    assert_eq!(again.answer(), Some("done"));
    let total = &again.outcome.usage;
    assert_eq!((total.requests, total.tool_calls), (3, 3));
}

#[tokio::test]
async fn a_first_attempt_looks_for_no_steps() {
    let storage = Arc::new(Memory::default());
    attempt(&storage, vec![notes("a", &[("one", None)]), says("done")]).await;
    assert_eq!(*storage.loads.lock().unwrap(), ["__commonai_durable__runs"]);
}

#[tokio::test]
async fn runs_within_a_step_are_numbered_under_it_and_go_with_the_rest() {
    let storage = Arc::new(Memory::default());
    let own = journal(&storage);
    own.start_run("outer", None).await.unwrap();
    own.start_run("inner", Some("0.3")).await.unwrap();
    own.start_run("inner", Some("0.3")).await.unwrap();
    own.start_run("outer", None).await.unwrap();
    assert_eq!(
        storage.record("__commonai_durable__runs"),
        json!({"runs": ["0", "0.3.1", "0.3.2", "1"]})
    );
    let key = "__commonai_durable__run_0.3.2_step_0".to_owned();
    storage.records.lock().unwrap().insert(key, Map::new());
    // The next attempt replays the step, and so does not come to the runs within.
    let next = journal(&storage);
    next.start_run("outer", None).await.unwrap();
    next.clean_up().await;
    assert_eq!(storage.keys(), Vec::<String>::new());
}

#[tokio::test]
async fn a_run_of_dag_code_leaves_nothing_once_it_has_succeeded() {
    let storage = Arc::new(Memory::default());
    let shared = Arc::clone(&storage) as Arc<dyn JournalStorage>;
    let own = DurableJournal::new(shared, Arc::new(|request| request), true);
    let turns = || vec![notes("a", &[("one", None)]), says("done")];
    attempt_in(&storage, &own, turns(), Setting::default()).await;
    assert_eq!(storage.keys(), Vec::<String>::new());
    attempt_in(
        &storage,
        &own,
        vec![notes("a", &[("one", None)]), None],
        Setting::default(),
    )
    .await;
    assert_eq!(
        storage.record("__commonai_durable__runs"),
        json!({"runs": ["1"]})
    );
}
