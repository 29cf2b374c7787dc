//! Dag code beside a task's own work, and operators that are Dag code: local runs of them.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::local_run::{dag_file, events, run, task};

#[test]
fn callbacks_see_what_happened_and_a_broken_one_is_only_logged() {
    let (_folder, file) = dag_file(
        r#"
from airflow.sdk import DAG, BaseNotifier, task
from airflow.providers.common.ai.operators.agent import AgentOperator

def tell(kind):
    def callback(context):
        error = context.get("exception")
        print(kind, context["ti"].state, context["ti"].try_number, type(error).__name__, error)
    return callback

def broken(context):
    raise ValueError("broken")

class Notice(BaseNotifier):
    template_fields = ("message",)
    def __init__(self, message):
        super().__init__()
        self.message = message
    def notify(self, context):
        print(self.message, context["task"].task_id)

callbacks = {f"on_{kind}_callback": [broken, tell(kind)] for kind in ("success", "failure", "retry")}

with DAG("made", schedule=None, default_args=callbacks):
    @task(on_execute_callback=Notice("{{ dag.dag_id }} begins"))
    def good():
        return 1

    @task(retries=1)
    def bad(x, ti=None):
        raise RuntimeError(f"try {ti.try_number}")

    bad(good())
    AgentOperator(task_id="agent", llm_conn_id="model", prompt="?", usage_limits={"request_limit": 0})
"#,
        &[(
            "made.connections.json",
            json!({"model": {"conn_type": "pydanticai", "password": "sk-made-up", "host": "http://127.0.0.1:9/v1",
                "extra": {"model": "openai-chat:m"}}}),
        )],
    );
    let (status, report) = run(&file, &[]);
    assert_eq!(status, 1);
    let said = |task_id: &str, start: &str| -> Vec<String> {
        events(task(&report, task_id, -1))
            .into_iter()
            .filter(|event| event.starts_with(start))
            .map(ToOwned::to_owned)
            .collect()
    };
    assert_eq!(said("good", "made"), ["made begins good"]);
    assert_eq!(said("good", "success"), ["success success 1 NoneType None"]);
    assert_eq!(
        said("good", "Failed to run task callback"),
        ["Failed to run task callback"]
    );
    let broken = task(&report, "good", -1)["log"]
        .as_array()
        .expect("a log")
        .iter()
        .find(|record| record["event"] == "Failed to run task callback")
        .expect("the record of the broken callback");
    assert_eq!(broken["error_detail"][0]["exc_value"], "broken");
    assert_eq!(
        said("bad", "retry"),
        ["retry up_for_retry 1 RuntimeError try 1"]
    );
    assert_eq!(
        said("bad", "failure"),
        ["failure failed 2 RuntimeError try 2"]
    );
    let agent = said("agent", "failure");
    assert!(
        agent.len() == 1 && agent[0].starts_with("failure failed 1 UsageLimitExceeded The next"),
        "{agent:?}"
    );
}

#[test]
fn a_retry_policy_can_end_the_retries() {
    let (_folder, file) = dag_file(
        r#"
from airflow.sdk import DAG, task
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule

policy = ExceptionRetryPolicy([RetryRule([ValueError, "builtins.OSError"], RetryAction.FAIL, reason="hopeless")])

with DAG("made", schedule=None):
    @task(retries=5, retry_policy=policy)
    def flaky(ti=None):
        raise RuntimeError("again") if ti.try_number == 1 else OSError("over")
    flaky()
"#,
        &[],
    );
    let (_, report) = run(&file, &[]);
    let flaky = task(&report, "flaky", -1);
    assert_eq!(
        (&flaky["state"], &flaky["try_number"]),
        (&json!("failed"), &json!(2))
    );
    assert!(events(flaky).contains(&"Retry policy decision"));
}

#[test]
fn operators_of_the_author_branches_sensors_and_hooks_run() {
    let (_folder, file) = dag_file(
        r#"
from airflow.sdk import DAG, BaseOperator, BaseSensorOperator, TaskGroup, get_current_context, task

class Greeting(BaseOperator):
    template_fields = ("greeting", "options")
    def __init__(self, *, greeting, times=1, options=None, **kwargs):
        super().__init__(**kwargs)
        self.greeting = greeting
        self.times = times
        self.options = options or {}
    def execute(self, context):
        return context["task"].greeting * self.times + self.options.get("end", "")

class Patient(BaseSensorOperator):
    def poke(self, context):
        return context["task_reschedule_count"] >= 1

with DAG("made", schedule=None):
    Greeting(task_id="one", greeting="{{ '%s-%02d ' % (ds[:4], 7) }}", times=2, queue="agents")
    Greeting.partial(task_id="mapped", greeting="{{ ti.map_index }}").expand(times=[1, 2])
    Patient(task_id="patient", poke_interval=0.1, mode="reschedule")

    @task(map_index_template="{{ label }}")
    def labelled(x):
        import os
        get_current_context()["label"] = f"number {x}"
        return [os.environ["AIRFLOW_CTX_TASK_ID"], os.environ["AIRFLOW_CTX_LOGICAL_DATE"]]

    labelled.expand(x=[7])

    @task.branch
    def choose():
        return "group"

    @task
    def left(): return "left"

    @task
    def right(): return "right"

    @task.short_circuit
    def gate(): return []

    @task
    def behind(): return "never"

    @task.skip_if(lambda context: context["ds"] < "2000-01-01", "too early")
    @task
    def old(): return "never"

    with TaskGroup("group"):
        inner = left()
    choose() >> [inner, right()]
    gate() >> behind()
    old()
"#,
        &[],
    );
    let (status, report) = run(&file, &["--logical-date", "1999-05-05"]);
    assert_eq!(status, 0, "{report:#}");
    let value = |task_id: &str, map_index: i64| {
        let task = task(&report, task_id, map_index);
        (task["state"].clone(), task["xcoms"]["return_value"].clone())
    };
    let success = |value: Value| (json!("success"), value);
    let skipped = || (json!("skipped"), Value::Null);
    assert_eq!(value("one", -1), success(json!("1999-07 1999-07 ")));
    assert_eq!(value("mapped", 1), success(json!("11")));
    assert_eq!(value("patient", -1), success(Value::Null));
    assert_eq!(
        value("labelled", 0),
        success(json!(["labelled", "1999-05-05T00:00:00+00:00"]))
    );
    assert_eq!(value("choose", -1), success(Value::Null));
    assert_eq!(value("group.left", -1), success(json!("left")));
    for task_id in ["right", "behind", "old"] {
        assert_eq!(value(task_id, -1), skipped(), "{task_id}");
    }
}

#[test]
fn generator_functions_run_to_their_end_and_generators_are_no_results() {
    let (_folder, file) = dag_file(
        r#"
from airflow.sdk import DAG, Asset, Metadata, task

PLACE = Asset("place")

with DAG("made", schedule=None):
    @task(outlets=[PLACE])
    def steps():
        yield Metadata(PLACE, extra={"n": 1})
        yield 2
        return "done"

    @task
    def numbers():
        return (n for n in range(3))

    steps()
    numbers()
"#,
        &[],
    );
    let (_, report) = run(&file, &[]);
    let steps = task(&report, "steps", -1);
    assert_eq!(steps["xcoms"]["return_value"], "done");
    assert!(
        events(steps)
            .iter()
            .any(|event| event.starts_with("Ignoring unknown data of <class 'int'>"))
    );
    let error = task(&report, "numbers", -1)["error"]
        .as_str()
        .expect("an error")
        .to_owned();
    assert!(
        error.starts_with("TypeError: Cannot serialize object of type <class 'generator'>"),
        "{error}"
    );
}
