//! `updraft run` and `updraft check` as a person starts them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

pub fn updraft(arguments: &[&str]) -> Output {
    updraft_with(arguments, &[])
}

pub fn updraft_with(arguments: &[&str], env: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_updraft"));
    command
        .args(arguments)
        .env("AIRFLOW_HOME", "/nonexistent/airflow");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AIRFLOW_") {
            command.env_remove(name);
        }
    }
    command
        .env("AIRFLOW_HOME", "/nonexistent/airflow")
        .envs(env.iter().copied())
        .output()
        .expect("updraft starts")
}

pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a Dag file; gives the exit status and the one JSON object on stdout.
pub fn run(file: &Path, more: &[&str]) -> (i32, Value) {
    run_with(file, more, &[])
}

/// The same, with more in the environment.
pub fn run_with(file: &Path, more: &[&str], env: &[(&str, &Path)]) -> (i32, Value) {
    let file = file.display().to_string();
    let mut arguments = vec!["run", file.as_str(), "--json"];
    arguments.extend(more);
    let output = updraft_with(&arguments, env);
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let report = serde_json::from_str(&stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {stdout}\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code().expect("an exit status"), report)
}

pub fn dag_file(source: &str, beside: &[(&str, Value)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("made.py");
    std::fs::write(&file, source).expect("written");
    for (name, value) in beside {
        std::fs::write(folder.path().join(name), value.to_string()).expect("written");
    }
    (folder, file)
}

/// A Dag file with one agent, `ask`, that makes these calls, one a turn. `toolsets`: a Python expression after `module`.
pub fn agent_file(
    module: &str,
    toolsets: &str,
    calls: &[(&str, Value)],
    connections: &Value,
) -> (tempfile::TempDir, PathBuf) {
    let source = format!(
        "from airflow.providers.common.ai.operators.agent import AgentOperator\nfrom airflow.sdk import DAG\n{module}\n\
         with DAG(dag_id=\"played\"):\n    AgentOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\",\n        \
         agent_params={{\"retries\": 3}}, toolsets={toolsets})\n"
    );
    let mut turns: Vec<Value> = calls
        .iter()
        .map(|(name, args)| json!({"tool_calls": [{"name": name, "args": args}]}))
        .collect();
    turns.push(json!({"text": "Done."}));
    dag_file(
        &source,
        &[
            ("made.transcript.json", json!({ "turns": turns })),
            ("made.connections.json", connections.clone()),
        ],
    )
}

pub fn task<'a>(report: &'a Value, task_id: &str, map_index: i64) -> &'a Value {
    report["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .find(|task| task["task_id"] == task_id && task["map_index"] == map_index)
        .unwrap_or_else(|| panic!("no {task_id}[{map_index}] in {report:#}"))
}

pub fn events(task: &Value) -> Vec<&str> {
    task["log"]
        .as_array()
        .expect("a log")
        .iter()
        .filter_map(|record| record["event"].as_str())
        .collect()
}

#[test]
fn the_example_answers_from_the_database_without_airflow_network_or_key() {
    let (status, report) = run(
        &repository().join("dags/customer_insights.py"),
        &["--logical-date", "2026-11-01"],
    );
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(report["dag_id"], "customer_insights");
    assert_eq!(report["run_id"], "manual__2026-11-01T00:00:00.000000+00:00");
    let ask = task(&report, "ask", -1);
    assert_eq!(ask["state"], "success");
    assert_eq!(ask["error"], Value::Null);
    assert_eq!(
        ask["xcoms"]
            .as_object()
            .expect("xcoms")
            .keys()
            .collect::<Vec<_>>(),
        [
            "run_id",
            "usage",
            "__AIRFLOW__COMMON_AI_MODEL_NAME__",
            "return_value",
            "_link_HITLReviewLink"
        ]
    );
    assert!(
        ask["xcoms"]["return_value"]
            .as_str()
            .expect("text")
            .contains("Pinewood Hostel")
    );
    assert_eq!(ask["xcoms"]["usage"]["tool_calls"], 5);
    let events = events(ask);
    let outline: Vec<_> = events
        .iter()
        .filter(|event| event.starts_with("::group::"))
        .collect();
    assert_eq!(
        outline,
        [
            &"::group::Pre Execute",
            &"::group::Tool call: list_tables",
            &"::group::Tool call: get_schema",
            &"::group::Tool call: get_schema",
            &"::group::Tool call: get_schema",
            &"::group::Tool call: query",
            &"::group::LLM run complete: model=scripted, requests=4, tool_calls=5, input_tokens=2458, \
              output_tokens=242, total_tokens=2700",
            &"::group::Post Execute",
        ]
    );
    assert_eq!(
        outline.len(),
        events
            .iter()
            .filter(|event| **event == "::endgroup::")
            .count()
    );
    assert!(events.contains(
        &"Tool call sequence: list_tables -> get_schema -> get_schema -> get_schema -> query"
    ));
}

#[test]
fn the_example_with_a_skill_loads_it_reads_of_it_and_runs_its_script() {
    let (status, report) = run(&repository().join("dags/sales_report.py"), &[]);
    assert_eq!(status, 0, "{report:#}");
    let asked = task(&report, "report", -1);
    assert_eq!(asked["xcoms"]["usage"]["tool_calls"], 5);
    let answer = asked["xcoms"]["return_value"].as_str().expect("text");
    assert!(answer.contains("1,934.00"), "{answer}");
    assert!(events(asked).contains(
        &"Tool call sequence: load_skill -> read_skill_resource -> run_skill_script -> query -> query"
    ));
}

#[test]
fn the_example_with_files_looks_through_them() {
    let (status, report) = run(&repository().join("dags/delivery_notes.py"), &[]);
    assert_eq!(status, 0, "{report:#}");
    let asked = task(&report, "explain", -1);
    let answer = asked["xcoms"]["return_value"].as_str().expect("text");
    assert!(answer.contains("P-1043"), "{answer}");
    assert_eq!(asked["xcoms"]["usage"]["tool_calls"], 4);
}

#[test]
fn tasks_run_in_order_are_mapped_over_upstream_results_and_get_their_context() {
    let (_folder, file) = dag_file(
        r#"
from airflow.sdk import dag, task

@dag(schedule=None, params={"factor": 10})
def made():
    @task
    def numbers():
        print("counting")
        return [1, 2, 3]

    @task
    def times(x, by, ds=None, ti=None):
        return {"value": x * by, "ds": ds, "index": ti.map_index}

    @task(multiple_outputs=True)
    def total(items):
        return {"sum": sum(item["value"] for item in items), "pair": (1, 2)}

    @task.agent(llm_conn_id="none", system_prompt="Run {{ run_id }}")
    def ask(sum):
        return f"What about {sum} on {{{{ ds }}}}, {{{{ params.factor }}}}?"

    ask(total(times.partial(by=5).expand(x=numbers()))["sum"])

made()
"#,
        &[(
            "made.transcript.json",
            json!({"ask": {"turns": [{"text": "Sixty."}]}}),
        )],
    );
    let (status, report) = run(
        &file,
        &["--logical-date", "2026-01-02", "--conf", r#"{"factor": 7}"#],
    );
    assert_eq!(status, 0, "{report:#}");
    let order: Vec<_> = report["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["task_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        order,
        ["numbers", "times", "times", "times", "total", "ask"]
    );
    assert!(events(task(&report, "numbers", -1)).contains(&"counting"));
    assert_eq!(
        task(&report, "times", 2)["xcoms"],
        json!({"return_value": {"value": 15, "ds": "2026-01-02", "index": 2}})
    );
    assert_eq!(
        task(&report, "total", -1)["xcoms"],
        json!({
            "sum": 30,
            "pair": {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, 2]},
            "return_value": {
                "sum": 30,
                "pair": {"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, 2]},
            },
        })
    );
    assert_eq!(task(&report, "ask", -1)["xcoms"]["return_value"], "Sixty.");
}

#[test]
fn retries_failures_and_skips_take_the_course_they_take_in_airflow() {
    let (_folder, file) = dag_file(
        r#"
from airflow.sdk import dag, task, get_current_context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

@dag(schedule=None)
def made():
    @task(retries=2)
    def flaky():
        if get_current_context()["ti"].try_number < 3:
            raise ValueError("not yet")
        return "now"

    @task
    def skips():
        raise AirflowSkipException("no reason")

    @task(retries=5)
    def fails():
        raise AirflowFailException("for good")

    @task
    def after_skip(x):
        return x

    @task
    def after_failure(x):
        return x

    @task(trigger_rule="all_done")
    def last(x, y):
        return "done"

    flaky()
    last(after_skip(skips()), after_failure(fails()))

made()
"#,
        &[],
    );
    let (status, report) = run(&file, &[]);
    assert_eq!(status, 1);
    assert_eq!(report["state"], "failed");
    let seen: Vec<_> = report["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| {
            (
                task["task_id"].as_str().unwrap(),
                task["state"].as_str().unwrap(),
                task["try_number"].as_u64().unwrap(),
            )
        })
        .collect();
    let state = |task_id: &str| *seen.iter().find(|(id, ..)| *id == task_id).unwrap();
    assert_eq!(state("flaky"), ("flaky", "success", 3));
    assert_eq!(state("skips"), ("skips", "skipped", 1));
    assert_eq!(state("fails"), ("fails", "failed", 1));
    assert_eq!(state("after_skip"), ("after_skip", "skipped", 0));
    assert_eq!(
        state("after_failure"),
        ("after_failure", "upstream_failed", 0)
    );
    assert_eq!(state("last"), ("last", "success", 1));
    assert_eq!(
        task(&report, "fails", -1)["error"],
        "AirflowFailException: for good"
    );
    let failure = task(&report, "flaky", -1)["log"]
        .as_array()
        .unwrap()
        .iter()
        .find(|record| record["event"] == "Task failed with exception")
        .unwrap();
    let frame = &failure["error_detail"][0]["frames"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert!(
        frame["filename"].as_str().unwrap().ends_with("made.py"),
        "{failure:#}"
    );
    assert_eq!(frame["lineno"], 10);
}

#[test]
fn a_file_that_can_not_be_loaded_says_where_and_why() {
    let (_folder, file) = dag_file("from airflow.sdk import DAG\ndef broken(:\n", &[]);
    let (status, report) = run(&file, &[]);
    assert_eq!(status, 1);
    let error = report["error"].as_str().expect("an error");
    assert!(error.contains("made.py:2: SyntaxError"), "{error}");
}

#[test]
fn wrong_usage_has_an_exit_status_of_its_own() {
    let example = repository()
        .join("dags/customer_insights.py")
        .display()
        .to_string();
    for arguments in [
        vec!["run", &example, "no_such_task"],
        vec!["run", &example, "--dag-id", "no_such_dag"],
        vec!["run", &example, "--conf", "[1]"],
        vec!["run", &example, "--logical-date", "yesterday"],
        vec!["fly"],
        vec![],
    ] {
        let output = updraft(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        // To a program it is said in the form that it asked for.
        let mut arguments = arguments;
        arguments.push("--json");
        let output = updraft(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(said["error"].is_string(), "{said}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_stops_reading_does_not_stop_the_run() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_updraft"))
        .arg("run")
        .arg(repository().join("dags/customer_insights.py"))
        .env("AIRFLOW_HOME", "/nonexistent/airflow")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("updraft starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
}

/// A Dag file whose agent fails in its second tool on the first try. `body`: the Dag's, after the tools.
fn failing_once(body: &str) -> (tempfile::TempDir, PathBuf) {
    let source = format!(
        r#"
from airflow.providers.common.ai.durable import AirflowDurability
from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG, get_current_context, task
from pydantic_ai.toolsets import FunctionToolset

def note(word: str) -> str:
    """Takes a note."""
    print("a note of", word)
    return "noted"

def shake() -> str:
    """Fails once."""
    if get_current_context()["ti"].try_number == 1:
        raise OSError("the table is not steady")
    return "steady"

with DAG("made", schedule=None):
{body}
"#
    );
    let turns = json!([
        {"tool_calls": [{"name": "note", "args": {"word": "tide"}}]},
        {"tool_calls": [{"name": "shake", "args": {}}, {"name": "note", "args": {"word": "ebb"}}]},
        {"text": "All noted."},
    ]);
    dag_file(
        &source,
        &[("made.transcript.json", json!({ "turns": turns }))],
    )
}

#[test]
fn a_durable_agent_takes_up_where_its_first_try_ended() {
    let (_folder, file) = failing_once(
        r#"    AgentOperator(task_id="ask", llm_conn_id="none", prompt="Go.", durable=True, retries=1,
                  toolsets=[FunctionToolset(tools=[note, shake], id="desk")])"#,
    );
    let (status, report) = run(&file, &[]);
    assert_eq!(status, 0, "{report:#}");
    let ask = task(&report, "ask", -1);
    assert_eq!(
        (&ask["try_number"], &ask["xcoms"]["return_value"]),
        (&json!(2), &json!("All noted."))
    );
    assert_eq!(
        (
            &ask["xcoms"]["usage"]["requests"],
            &ask["xcoms"]["usage"]["tool_calls"]
        ),
        (&json!(1), &json!(2))
    );
    let events = events(ask);
    let tides = events
        .iter()
        .filter(|event| **event == "a note of tide")
        .count();
    assert_eq!(tides, 1, "{events:#?}");
    assert!(
        events.iter().any(|event| event
            .starts_with("Durable: replayed 3 steps (2 model, 1 tool, 0 other), recorded ")),
        "{events:#?}"
    );
}

#[test]
fn agents_of_python_tasks_with_airflow_durability_take_up_as_well_and_those_in_their_tools() {
    let (_folder, file) = failing_once(
        r#"
    @task(retries=1)
    def ask() -> list:
        def scribe(name):
            return PydanticAIHook("none").create_agent(
                name=name, instructions="Note.", toolsets=[FunctionToolset(tools=[note, shake], id="desk")], capabilities=[AirflowDurability()]
            )

        def desk() -> str:
            """Has notes taken."""
            return scribe("inner").run_sync("Go.").output

        outer = PydanticAIHook("none").create_agent(
            name="outer", instructions="Ask.", tools=[desk], capabilities=[AirflowDurability()]
        )
        return [outer.run_sync("Go.").output]

    ask()"#,
    );
    let folder = file.parent().unwrap();
    let turns = json!([
        {"tool_calls": [{"name": "desk", "args": {}}]},
        {"tool_calls": [{"name": "note", "args": {"word": "tide"}}]},
        {"tool_calls": [{"name": "shake", "args": {}}]},
        {"text": "All noted."},
        {"text": "They say it is noted."},
    ]);
    std::fs::write(
        folder.join("made.transcript.json"),
        json!({ "turns": turns }).to_string(),
    )
    .unwrap();
    let (status, report) = run(&file, &[]);
    assert_eq!(status, 0, "{report:#}");
    let ask = task(&report, "ask", -1);
    assert_eq!(
        ask["xcoms"]["return_value"],
        json!(["They say it is noted."])
    );
    let events = events(ask);
    let tides = events
        .iter()
        .filter(|event| **event == "a note of tide")
        .count();
    assert_eq!(tides, 1, "{events:#?}");
}

#[test]
fn a_result_that_is_no_json_fails_a_durable_task_for_good() {
    let (_folder, file) = dag_file(
        r#"
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG
from pydantic_ai.toolsets import FunctionToolset

class Tide:
    pass

def tide():
    """Something."""
    return Tide()

with DAG("made", schedule=None):
    AgentOperator(task_id="ask", llm_conn_id="none", prompt="Go.", durable=True, retries=3,
                  toolsets=[FunctionToolset(tools=[tide], id="desk")])
"#,
        &[(
            "made.transcript.json",
            json!([{"tool_calls": [{"name": "tide", "args": {}}]}]),
        )],
    );
    let (status, report) = run(&file, &[]);
    assert_eq!(status, 1);
    let ask = task(&report, "ask", -1);
    assert_eq!(ask["try_number"], 1);
    let error = ask["error"].as_str().unwrap();
    assert!(
        error.contains("durable execution could not record a step's result, because it is not JSON-serializable: Unable to"),
        "{error}"
    );
}

#[test]
fn check_tells_native_tasks_from_others_and_fails_for_those_of_its_queue() {
    let (_folder, file) = dag_file(
        r#"
from airflow.sdk import DAG
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset

with DAG("made", schedule=None):
    AgentOperator(task_id="fine", queue="agents", prompt="?", llm_conn_id="llm",
                  toolsets=[SQLToolset(db_conn_id="{{ params.db }}")])
    AgentOperator(task_id="watched", queue="other", prompt="?", llm_conn_id="llm", agent_params={"instrument": True})
"#,
        &[("made.connections.json", json!({"llm": "pydanticai://"}))],
    );
    let path = file.display().to_string();
    let output = updraft(&["check", &path, "--json", "--queue", "agents"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let tasks = report["files"][0]["dags"][0]["tasks"].clone();
    assert_eq!(tasks[0]["native"], true);
    assert_eq!(
        tasks[0]["connections"],
        json!([
            {"conn_id": "llm", "used_as": "llm_conn_id", "defined_by": "file", "templated": false},
            {"conn_id": "{{ params.db }}", "used_as": "db_conn_id", "defined_by": null, "templated": true},
        ])
    );
    assert_eq!(tasks[1]["native"], false);
    assert_eq!(
        tasks[1]["reason"],
        "agent_params[\"instrument\"] is not run natively yet"
    );
    assert_eq!(tasks[1]["location"], format!("{path}:9"));
    assert_eq!(
        updraft(&["check", &path, "--queue", "other"]).status.code(),
        Some(1)
    );
}

#[test]
fn every_example_dag_answers_from_the_transcript_beside_it() {
    for (file, tasks) in [
        ("region_notes.py", 8),
        ("ticket_digest.py", 2),
        ("weekly_review.py", 3),
    ] {
        let (status, report) = run(
            &repository().join("dags").join(file),
            &["--logical-date", "2026-11-21"],
        );
        assert_eq!(status, 0, "{report:#}");
        assert_eq!(
            report["tasks"].as_array().map(Vec::len),
            Some(tasks),
            "{file}"
        );
    }
}

#[test]
fn one_instance_of_a_mapped_task_is_run_alone() {
    let file = repository().join("dags/region_notes.py");
    let (status, report) = run(&file, &["note[3]"]);
    assert_eq!(status, 0, "{report:#}");
    let tasks = report["tasks"].as_array().expect("tasks");
    let indexes: Vec<_> = tasks.iter().map(|task| &task["map_index"]).collect();
    assert_eq!(indexes, [3]);
    let (status, report) = run(&file, &["note[8]"]);
    assert_eq!(status, 1);
    let error = report["error"].as_str().expect("an error");
    assert_eq!(error, "task note has 8 map indexes, and none is 8");
}

#[test]
fn a_failure_is_shown_with_its_place_in_the_dag_file_and_its_cause() {
    let source = r#"
from airflow.sdk import dag, task


@dag
def made():
    @task
    def outer():
        try:
            {}["z"]
        except KeyError as error:
            raise ValueError("no letter") from error

    outer()


made()
"#;
    let (folder, file) = dag_file(source, &[]);
    let output = updraft(&["run", &file.display().to_string()]);
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    let file = folder.path().canonicalize().expect("there").join("made.py");
    let expected = format!(
        "  at {0}:12 in outer\n  caused by KeyError: 'z'\n  at {0}:10 in outer\n  ValueError: no letter\n",
        file.display()
    );
    assert!(shown.contains(&expected), "{shown}");
}

#[test]
fn a_connection_that_is_not_defined_comes_with_what_to_do_about_it() {
    let source = r#"
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG

with DAG("made"):
    AgentOperator(task_id="ask", prompt="Hello?", llm_conn_id="my_model")
"#;
    let (_folder, file) = dag_file(source, &[]);
    let output = updraft(&["run", &file.display().to_string()]);
    let shown = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        shown.contains(
            "define it as AIRFLOW_CONN_MY_MODEL or in made.connections.json beside the Dag file, \
             or let made.transcript.json answer for the model"
        ),
        "{shown}"
    );
}

#[test]
fn check_reports_files_that_cannot_be_read_and_follows_no_link_in_circles() {
    let (folder, _) = dag_file("# no dag for airflow here\n", &[]);
    let path = folder.path();
    std::os::unix::fs::symlink("nowhere.py", path.join("dangling.py")).expect("linked");
    std::os::unix::fs::symlink(".", path.join("loop")).expect("linked");
    let output = updraft(&["check", &path.display().to_string(), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let files = report["files"].as_array().expect("files");
    let seen: Vec<_> = files
        .iter()
        .map(|file| {
            (
                file["file"].as_str().unwrap_or_default(),
                file["error"].is_string(),
            )
        })
        .collect();
    let (dangling, made) = (path.join("dangling.py"), path.join("made.py"));
    assert_eq!(
        seen,
        [
            (dangling.to_str().expect("UTF-8"), true),
            (made.to_str().expect("UTF-8"), false)
        ]
    );
}
