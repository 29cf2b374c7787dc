//! Task processes under the supervisor, with the control plane in memory: what they tell Airflow.

use std::path::Path;
use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use updraft::airflow::supervisor::{StartupDetails, TaskRequest};
use updraft::control_plane::ControlPlane;
use updraft::control_plane::local::{LocalControlPlane, XComPlace};
use updraft::secrets::Masker;
use updraft::supervisor::{
    FinalState, Limits, LogSink, StopReason, SupervisedTask, TaskCommand, TaskLog, TaskProcess,
    run_task, stop_channel,
};

#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<Map<String, Value>>>>);

impl LogSink for Lines {
    fn write(&mut self, record: &Map<String, Value>) {
        self.0.lock().unwrap().push(record.clone());
    }
}

impl Lines {
    pub fn events(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap()
            .iter()
            .map(|record| record["event"].as_str().unwrap().to_owned())
            .collect()
    }

    pub fn text(&self) -> String {
        serde_json::to_string(&*self.0.lock().unwrap()).unwrap()
    }

    pub async fn wait_for(&self, part: &str) {
        for _ in 0..600 {
            if self.events().iter().any(|event| event.contains(part)) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("no {part:?} in {:#?}", self.events());
    }
}

/// Changes of the details that a supervisor sends.
pub struct Change {
    task_id: &'static str,
    map_index: i64,
    context: Value,
}

pub fn details(change: &Change) -> StartupDetails {
    let mut context = json!({
        "dag_run": {"dag_id": "made", "run_id": "r", "logical_date": "2026-01-02T00:00:00Z",
            "run_after": "2026-01-02T00:00:00Z", "run_type": "manual", "state": "running"},
        "max_tries": 0,
    });
    context
        .as_object_mut()
        .unwrap()
        .extend(change.context.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "ti": {"id": "0199c9a0-0000-7000-8000-00000000000a", "dag_id": "made", "task_id": change.task_id, "run_id": "r",
            "try_number": 1, "map_index": change.map_index, "dag_version_id": "0199c9a0-0000-7000-8000-00000000000b"},
        "dag_rel_path": "made.py",
        "bundle_info": {"name": "here"},
        "start_date": "2026-01-02T00:00:01Z",
        "ti_context": context,
    }))
    .unwrap()
}

struct Ran {
    state: FinalState,
    plane: Arc<LocalControlPlane>,
    lines: Lines,
}

impl Ran {
    fn xcoms(&self, task_id: &str, map_index: i64) -> Map<String, Value> {
        self.plane.xcoms(&XComPlace {
            dag_id: "made".to_owned(),
            run_id: "r".to_owned(),
            task_id: task_id.to_owned(),
            map_index,
        })
    }
}

async fn spawn(folder: &Path) -> TaskProcess {
    spawn_with(folder, &[]).await
}

/// A task process for the Dag file `made.py` and the model's `transcript.json` in the folder.
pub async fn spawn_with(folder: &Path, environment: &[(&str, String)]) -> TaskProcess {
    let bundles = json!([{"name": "here", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": folder.display().to_string()}}]);
    let mut command = TaskCommand::this_program().unwrap();
    command.program = env!("CARGO_BIN_EXE_updraft").into();
    command.environment = [
        (
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST",
            bundles.to_string(),
        ),
        ("AIRFLOW_HOME", folder.display().to_string()),
        (
            "UPDRAFT_TRANSCRIPT",
            folder.join("transcript.json").display().to_string(),
        ),
    ]
    .into_iter()
    .chain(environment.iter().cloned())
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    TaskProcess::spawn(&command).await.unwrap()
}

async fn run(source: &str, change: Change, plane: LocalControlPlane) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.py"), source).unwrap();
    std::fs::write(
        folder.path().join("transcript.json"),
        r#"[{"text": "Forty-two."}]"#,
    )
    .unwrap();
    let (plane, lines) = (Arc::new(plane), Lines::default());
    let (_stop, signal) = stop_channel();
    let outcome = run_task(SupervisedTask {
        process: spawn(folder.path()).await,
        startup: details(&change),
        control_plane: Arc::clone(&plane) as Arc<dyn ControlPlane>,
        log: TaskLog::new(Box::new(lines.clone()), Masker::new()),
        limits: Limits::default(),
        stop: signal,
        ended: CancellationToken::new(),
    })
    .await;
    assert!(outcome.delivered);
    Ran {
        state: outcome.state,
        plane,
        lines,
    }
}

const AGENTS: &str = r#"
import time
from datetime import timedelta
from airflow.sdk import DAG, BaseOperator, task
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.standard.operators.bash import BashOperator

with DAG("made", schedule=None, params={"topic": "trees"}):
    AgentOperator(task_id="ask", prompt="Tell me of {{ params.topic }}.", llm_conn_id="model",
                  usage_limits={"request_limit": "{{ 2 + 1 }}"})
    AgentOperator(task_id="quiet", prompt="?", llm_conn_id="model", do_xcom_push=False)
    AgentOperator.partial(task_id="mapped", llm_conn_id="model", map_index_template="{{ task.prompt }}") \
        .expand(prompt=["one {{ ds }}", "two"])
    BashOperator(task_id="shell", bash_command="true")

    @task
    def listing():
        return [1, 2]

    @task
    def waits():
        print("waiting")
        while True:
            pass

    @task(execution_timeout=timedelta(seconds=1))
    def tidy():
        print("working")
        try:
            while True:
                pass
        finally:
            print("tidied up")

    @task
    def over(x):
        return x

    over.expand(x=listing())
    waits()
    tidy()

    class Tool(BaseOperator):
        def execute(self, context):
            print("working")
            while True:
                time.sleep(0.01)

        def on_kill(self):
            print("killed")

    Tool(task_id="tool", on_failure_callback=lambda context: print("told of", type(context["exception"]).__name__))
"#;

pub fn plain(task_id: &'static str) -> Change {
    Change {
        task_id,
        map_index: -1,
        context: json!({}),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_task_leaves_what_the_python_operator_leaves() {
    let ran = run(AGENTS, plain("ask"), LocalControlPlane::new()).await;
    assert_eq!(ran.state, FinalState::Success, "{:#?}", ran.lines.events());
    let xcoms = ran.xcoms("ask", -1);
    assert_eq!(xcoms["return_value"], "Forty-two.");
    assert_eq!(xcoms["run_id"], "0199c9a0-0000-7000-8000-00000000000a");
    assert_eq!(xcoms["_link_HITLReviewLink"], "");
    let messages = ran.plane.messages();
    let Some(TaskRequest::SetRenderedFields { rendered_fields }) = messages.first() else {
        panic!("{messages:#?}")
    };
    assert_eq!(
        Value::Object(rendered_fields.clone()).to_string(),
        json!({
            "prompt": "Tell me of trees.", "llm_conn_id": "model", "model_id": null, "fallback_conn_ids": null,
            "system_prompt": "", "agent_params": {}, "message_history": null,
            "usage_limits": {"request_limit": "3"},
        })
        .to_string()
    );
    assert!(
        matches!(messages.last(), Some(TaskRequest::SucceedTask { .. })),
        "{messages:#?}"
    );
    let events = ran.lines.events();
    assert!(
        events
            .iter()
            .any(|event| event.starts_with("Cumulative usage across attempts: requests=1")),
        "{events:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_xcom_push_only_the_link_is_pushed() {
    let ran = run(AGENTS, plain("quiet"), LocalControlPlane::new()).await;
    assert_eq!(ran.state, FinalState::Success);
    assert_eq!(
        ran.xcoms("quiet", -1).keys().collect::<Vec<_>>(),
        ["_link_HITLReviewLink"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapped_task_instance_takes_its_own_arguments_and_tells_its_label() {
    let change = Change {
        task_id: "mapped",
        map_index: 0,
        context: json!({}),
    };
    let ran = run(AGENTS, change, LocalControlPlane::new()).await;
    assert_eq!(ran.state, FinalState::Success);
    let labels: Vec<_> = ran
        .plane
        .messages()
        .into_iter()
        .filter_map(|message| match message {
            TaskRequest::SetRenderedMapIndex { rendered_map_index } => Some(rendered_map_index),
            _ => None,
        })
        .collect();
    assert_eq!(labels, ["one 2026-01-02"]);
    assert_eq!(ran.xcoms("mapped", 0)["return_value"], "Forty-two.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_length_of_a_result_that_others_are_mapped_over_goes_with_it() {
    #[derive(Default)]
    struct Lengths(LocalControlPlane, Mutex<Vec<Option<u64>>>);
    #[async_trait::async_trait]
    impl ControlPlane for Lengths {
        async fn handle(
            &self,
            request: TaskRequest,
        ) -> Result<
            updraft::airflow::supervisor::TaskReply,
            updraft::airflow::supervisor::ErrorResponse,
        > {
            if let TaskRequest::SetXCom { mapped_length, .. } = &request {
                self.1.lock().unwrap().push(*mapped_length);
            }
            self.0.handle(request).await
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.py"), AGENTS).unwrap();
    let plane = Arc::new(Lengths::default());
    let (_stop, signal) = stop_channel();
    let outcome = run_task(SupervisedTask {
        process: spawn(folder.path()).await,
        startup: details(&plain("listing")),
        control_plane: Arc::clone(&plane) as Arc<dyn ControlPlane>,
        log: TaskLog::new(Box::new(Lines::default()), Masker::new()),
        limits: Limits::default(),
        stop: signal,
        ended: CancellationToken::new(),
    })
    .await;
    assert_eq!(outcome.state, FinalState::Success);
    assert_eq!(*plane.1.lock().unwrap(), [Some(2)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_not_there_is_rescheduled_three_times_and_then_fails() {
    let change = |count: i64| Change {
        task_id: "gone",
        map_index: -1,
        context: json!({"task_reschedule_count": count}),
    };
    let ran = run(AGENTS, change(2), LocalControlPlane::new()).await;
    assert_eq!(
        ran.state,
        FinalState::UpForReschedule,
        "{:#?}",
        ran.lines.events()
    );
    let ran = run(AGENTS, change(3), LocalControlPlane::new()).await;
    assert_eq!(ran.state, FinalState::Failed);
    let events = ran.lines.events();
    assert!(
        events.iter().any(
            |event| event.starts_with("Task gone is not in Dag made of made.py of bundle here")
        ),
        "{events:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_no_native_counterpart_fails_with_one_sentence() {
    let ran = run(AGENTS, plain("shell"), LocalControlPlane::new()).await;
    assert_eq!(ran.state, FinalState::Failed);
    let events = ran.lines.events();
    let sentence = events
        .iter()
        .find(|event| event.starts_with("Task shell is a BashOperator"))
        .unwrap();
    assert!(
        sentence.contains("(airflow.providers.standard.operators.bash) at ")
            && sentence.contains("made.py:14"),
        "{sentence}"
    );
    assert!(
        sentence.ends_with("Send it to a queue that a Python worker serves."),
        "{sentence}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_try_is_retried_when_the_server_says_so() {
    let change = Change {
        task_id: "shell",
        map_index: -1,
        context: json!({"should_retry": true}),
    };
    assert_eq!(
        run(AGENTS, change, LocalControlPlane::new()).await.state,
        FinalState::UpForRetry
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn xcoms_of_an_earlier_try_are_cleared_first() {
    let plane = LocalControlPlane::new();
    for key in ["stale", "kept"] {
        let set = TaskRequest::SetXCom {
            key: key.to_owned(),
            value: 1.into(),
            dag_id: "made".to_owned(),
            run_id: "r".to_owned(),
            task_id: "listing".to_owned(),
            map_index: None,
            dag_result: false,
            mapped_length: None,
        };
        plane.handle(set).await.unwrap();
    }
    let change = Change {
        task_id: "listing",
        map_index: -1,
        context: json!({"xcom_keys_to_clear": ["stale"]}),
    };
    let ran = run(AGENTS, change, plane).await;
    assert_eq!(
        ran.xcoms("listing", -1).keys().collect::<Vec<_>>(),
        ["kept", "return_value"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_takes_too_long_runs_its_finally_blocks() {
    let ran = run(AGENTS, plain("tidy"), LocalControlPlane::new()).await;
    assert_eq!(ran.state, FinalState::Failed);
    let events = ran.lines.events();
    let at = |event: &str| {
        events
            .iter()
            .position(|known| known == event)
            .unwrap_or_else(|| panic!("no {event:?} in {events:#?}"))
    };
    assert!(at("Process timed out") < at("tidied up"), "{events:#?}");
    assert!(at("tidied up") < at("Task failed with exception"));
    assert!(ran.lines.text().contains("AirflowTaskTimeout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_terminated_cleans_up_and_calls_its_callbacks() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.py"), AGENTS).unwrap();
    let (plane, lines) = (Arc::new(LocalControlPlane::new()), Lines::default());
    let (stop, signal) = stop_channel();
    let running = tokio::spawn(run_task(SupervisedTask {
        process: spawn(folder.path()).await,
        startup: details(&plain("tool")),
        control_plane: Arc::clone(&plane) as Arc<dyn ControlPlane>,
        log: TaskLog::new(Box::new(lines.clone()), Masker::new()),
        limits: Limits::default(),
        stop: signal,
        ended: CancellationToken::new(),
    }));
    lines.wait_for("working").await;
    let reason = StopReason::Shutdown {
        message: "made up".to_owned(),
    };
    stop.send(Some(reason)).unwrap();
    assert_eq!(running.await.unwrap().state, FinalState::Failed);
    let events = lines.events();
    assert!(events.iter().any(|event| event == "killed"), "{events:#?}");
    assert!(
        events
            .iter()
            .any(|event| event == "told of AirflowTaskTerminated"),
        "{events:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn python_code_that_does_not_end_is_cut_off_when_the_task_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.py"), AGENTS).unwrap();
    let (plane, lines) = (Arc::new(LocalControlPlane::new()), Lines::default());
    let (stop, signal) = stop_channel();
    let running = tokio::spawn(run_task(SupervisedTask {
        process: spawn(folder.path()).await,
        startup: details(&plain("waits")),
        control_plane: Arc::clone(&plane) as Arc<dyn ControlPlane>,
        log: TaskLog::new(Box::new(lines.clone()), Masker::new()),
        limits: Limits::default(),
        stop: signal,
        ended: CancellationToken::new(),
    }));
    lines.wait_for("waiting").await;
    stop.send(Some(StopReason::HeartbeatsFailed)).unwrap();
    assert_eq!(running.await.unwrap().state, FinalState::Failed);
    lines.wait_for("Task failed with exception").await;
}
