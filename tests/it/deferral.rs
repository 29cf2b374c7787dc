//! Tasks that leave their slot to wait for a trigger: what they ask for, and how they go on.

use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use updraft::airflow::supervisor::{ErrorResponse, StartupDetails, TaskReply, TaskRequest};
use updraft::control_plane::ControlPlane;
use updraft::control_plane::local::LocalControlPlane;
use updraft::secrets::Masker;
use updraft::supervisor::{FinalState, Limits, SupervisedTask, TaskLog, run_task, stop_channel};

use crate::task_process::{Lines, details, plain, spawn_with};

const DAG: &str = r#"
from datetime import datetime, timedelta, timezone
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.providers.somewhere.triggers.tides import TideTrigger
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.bases.sensor import BaseSensorOperator
from airflow.triggers.base import BaseTrigger

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)

class OwnTrigger(BaseTrigger):
    def __init__(self, port):
        self.port = port
    def serialize(self):
        return "harbour.triggers.OwnTrigger", {"port": self.port.upper()}

class Waits(BaseOperator):
    def __init__(self, trigger, **kwargs):
        super().__init__(**kwargs)
        self.make = trigger
    def execute(self, context):
        self.defer(trigger=self.make(), method_name="go_on", kwargs={"since": MOMENT, "n": (1,)},
                   timeout=timedelta(minutes=2))
    def go_on(self, context, event=None, since=None, n=None):
        return [event, since.isoformat(), list(n)]

class Sensor(BaseSensorOperator):
    def poke(self, context):
        return True

with DAG("made", schedule=None):
    Waits(task_id="moment", trigger=lambda: DateTimeTrigger(moment=MOMENT))
    Waits(task_id="named", trigger=lambda: TideTrigger(port="x", hours=2))
    Waits(task_id="positional", trigger=lambda: TideTrigger("x"))
    Waits(task_id="own", trigger=lambda: OwnTrigger("x"))
    Waits(task_id="unfit", trigger=lambda: TideTrigger(port=object()))
    Sensor(task_id="soft", soft_fail=True)
    Sensor(task_id="hard")
"#;

/// A control plane that keeps final messages.
struct Kept {
    plane: LocalControlPlane,
    ends: Mutex<Vec<TaskRequest>>,
}

#[async_trait::async_trait]
impl ControlPlane for Kept {
    async fn handle(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse> {
        if request.is_terminal() {
            self.ends.lock().unwrap().push(request.clone());
        }
        self.plane.handle(request).await
    }
}

struct Ran {
    state: FinalState,
    /// The final message.
    end: Value,
    lines: Lines,
    returned: Value,
}

async fn run(task_id: &'static str, resume: Value) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.py"), DAG).unwrap();
    let mut startup: StartupDetails = details(&plain(task_id));
    if let Some(method) = resume["method"].as_str() {
        startup.ti_context.next_method = Some(method.to_owned());
        startup.ti_context.next_kwargs = Some(resume["kwargs"].clone());
    }
    let kept = Arc::new(Kept {
        plane: LocalControlPlane::default(),
        ends: Mutex::default(),
    });
    let lines = Lines::default();
    let (_stop, signal) = stop_channel();
    let outcome = run_task(SupervisedTask {
        process: spawn_with(folder.path(), &[]).await,
        startup,
        control_plane: Arc::clone(&kept) as Arc<dyn ControlPlane>,
        log: TaskLog::new(Box::new(lines.clone()), Masker::new()),
        limits: Limits::default(),
        stop: signal,
        ended: CancellationToken::new(),
    })
    .await;
    let place = updraft::control_plane::local::XComPlace {
        dag_id: "made".to_owned(),
        run_id: "r".to_owned(),
        task_id: task_id.to_owned(),
        map_index: -1,
    };
    let end = kept.ends.lock().unwrap().pop().unwrap();
    Ran {
        state: outcome.state,
        end: serde_json::to_value(end).unwrap(),
        lines,
        returned: kept
            .plane
            .xcoms(&place)
            .get("return_value")
            .cloned()
            .unwrap_or_default(),
    }
}

fn moment() -> Value {
    let zone = json!({"__classname__": "builtins.tuple", "__version__": 1,
        "__data__": ["UTC", "pendulum.tz.timezone.FixedTimezone", 1, true]});
    json!({"__classname__": "datetime.datetime", "__version__": 2,
        "__data__": {"timestamp": 1_767_323_045.0, "tz": zone}})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferral_carries_the_trigger_and_the_rest_of_the_task_as_airflow_encodes_them() {
    let ran = run("moment", Value::Null).await;
    assert_eq!(ran.state, FinalState::Deferred, "{:?}", ran.lines.events());
    let mut end = ran.end;
    end.as_object_mut().unwrap().remove("rendered_map_index");
    assert_eq!(
        end,
        json!({
            "type": "DeferTask",
            "classpath": "airflow.providers.standard.triggers.temporal.DateTimeTrigger",
            "trigger_kwargs": {"moment": moment(), "end_from_trigger": false},
            "trigger_timeout": "PT120S",
            "queue": null,
            "next_method": "go_on",
            "next_kwargs": {"since": moment(), "n": {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1]}},
        })
    );
    assert!(
        ran.lines
            .events()
            .contains(&"Pausing task as DEFERRED. ".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_whose_class_is_elsewhere_goes_by_its_name_and_keywords() {
    let ran = run("named", Value::Null).await;
    assert_eq!(
        (&ran.end["classpath"], &ran.end["trigger_kwargs"]),
        (
            &json!("airflow.providers.somewhere.triggers.tides.TideTrigger"),
            &json!({"port": "x", "hours": 2})
        ),
        "{:?}",
        ran.lines.events()
    );
    let ran = run("own", Value::Null).await;
    assert_eq!(
        (&ran.end["classpath"], &ran.end["trigger_kwargs"]),
        (&json!("harbour.triggers.OwnTrigger"), &json!({"port": "X"}))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_cannot_be_handed_over_fails_the_task() {
    for (task_id, told) in [("positional", "by keyword"), ("unfit", "TypeError")] {
        let ran = run(task_id, Value::Null).await;
        assert_eq!(ran.state, FinalState::Failed);
        assert!(ran.lines.text().contains(told), "{}", ran.lines.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_on_with_what_the_trigger_and_it_left() {
    let tuple = json!({"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1]});
    let kwargs = json!({"since": moment(), "n": tuple, "event": "high tide"});
    let ran = run("moment", json!({"method": "go_on", "kwargs": kwargs})).await;
    assert_eq!(ran.state, FinalState::Success, "{}", ran.lines.text());
    assert_eq!(
        ran.returned,
        json!(["high tide", "2026-01-02T03:04:05+00:00", [1]])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_failed_or_took_too_long_ends_the_task_in_airflows_words() {
    let fail = |error: &str| json!({"method": "__fail__", "kwargs": {"error": error, "traceback": ["line one", "line two"]}});
    let ran = run("moment", fail("Trigger failure")).await;
    assert_eq!(ran.state, FinalState::Failed);
    let text = ran.lines.text();
    assert!(
        text.contains("TaskDeferralError") && text.contains("line two"),
        "{text}"
    );
    let ran = run("hard", fail("Trigger timeout")).await;
    assert_eq!(ran.state, FinalState::Failed);
    assert!(
        ran.lines.text().contains("AirflowSensorTimeout"),
        "{}",
        ran.lines.text()
    );
    let ran = run("soft", fail("Trigger timeout")).await;
    assert_eq!(ran.state, FinalState::Skipped, "{}", ran.lines.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_encrypted_for_python_workers_is_refused_with_a_sentence() {
    let ran = run(
        "moment",
        json!({"method": "go_on", "kwargs": "gAAAAABmade-up"}),
    )
    .await;
    assert_eq!(ran.state, FinalState::Failed);
    assert!(
        ran.lines.text().contains("fernet_key"),
        "{}",
        ran.lines.text()
    );
}
