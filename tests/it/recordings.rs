//! `updraft run --record` and `--replay`.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::local_run::{dag_file, repository, run, task, updraft};

const TWO_AGENTS: &str = r#"
from pathlib import Path

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import dag, task

@dag
def made():
    first = AgentOperator(task_id="first", llm_conn_id="nowhere", prompt=(Path(__file__).parent / "question.txt").read_text())

    @task.agent(llm_conn_id="nowhere")
    def second(word):
        return f"What does {word} mean?"

    second.expand(word=["fetch", "reach"]) << first

made()
"#;

fn xcoms(report: &Value) -> Vec<(String, Value)> {
    let tasks = report["tasks"].as_array().expect("tasks");
    tasks
        .iter()
        .map(|task| {
            let mut xcoms = task["xcoms"].clone();
            if let Some(xcoms) = xcoms.as_object_mut() {
                // The id of the task instance.
                xcoms.remove("run_id");
            }
            (format!("{}[{}]", task["task_id"], task["map_index"]), xcoms)
        })
        .collect()
}

fn made(question: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let turns = |text: &str| json!({"turns": [{"text": text, "usage": {"input_tokens": 9}}]});
    let transcript = json!({"first": turns("Hello."), "second[0]": turns("To get."), "second[1]": turns("To come to.")});
    let (folder, file) = dag_file(TWO_AGENTS, &[("made.transcript.json", transcript)]);
    std::fs::write(folder.path().join("question.txt"), question).expect("written");
    (folder, file)
}

fn record(file: &Path, recording: &str) -> Value {
    let (status, report) = run(file, &["--record", recording]);
    assert_eq!(status, 0, "{report:#}");
    report
}

#[test]
fn a_replayed_run_ends_as_the_recorded_one_without_model_or_transcript() {
    let (folder, file) = made("Hello?");
    let recording = folder.path().join("run.jsonl").display().to_string();
    let recorded = record(&file, &recording);
    let lines = std::fs::read_to_string(&recording).expect("a recording");
    assert_eq!(lines.lines().count(), 3, "{lines}");

    std::fs::remove_file(folder.path().join("made.transcript.json")).expect("gone");
    let (status, replayed) = run(&file, &["--replay", &recording]);
    assert_eq!(status, 0, "{replayed:#}");
    assert_eq!(xcoms(&replayed), xcoms(&recorded));
    assert_eq!(
        task(&replayed, "second", 1)["xcoms"]["return_value"],
        "To come to."
    );
}

#[test]
fn an_agent_that_asks_otherwise_than_recorded_fails_and_says_where() {
    let (folder, file) = made("Hello?");
    let recording = folder.path().join("run.jsonl").display().to_string();
    record(&file, &recording);
    std::fs::write(folder.path().join("question.txt"), "Hello there?").expect("written");
    let (status, report) = run(&file, &["--replay", &recording]);
    assert_eq!(status, 1);
    let error = task(&report, "first", -1)["error"]
        .as_str()
        .expect("an error");
    assert!(
        error.contains("request 1 differs from the recording")
            && error.contains("messages[0].request.parts[0].user_prompt")
            && error.contains("recorded: \"Hello?\"")
            && error.contains("now:      \"Hello there?\""),
        "{error}"
    );
}

#[test]
fn a_run_that_ends_before_its_recording_fails() {
    let (folder, file) = made("Hello?");
    let recording = folder.path().join("run.jsonl");
    record(&file, &recording.display().to_string());
    let text = std::fs::read_to_string(&recording).expect("a recording");
    let first = text.lines().next().expect("a line");
    std::fs::write(&recording, format!("{first}\n{text}")).expect("written");
    let (status, report) = run(
        &file,
        &["first", "--replay", &recording.display().to_string()],
    );
    assert_eq!(status, 1);
    let error = task(&report, "first", -1)["error"]
        .as_str()
        .expect("an error");
    assert!(error.contains("has 1 more of task first, try 1"), "{error}");
}

#[test]
fn every_example_dag_can_be_recorded_and_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    for example in ["customer_insights", "sales_report"] {
        let file = repository().join("dags").join(format!("{example}.py"));
        let recording = folder.path().join(format!("{example}.jsonl"));
        let recording = recording.display().to_string();
        let recorded = record(&file, &recording);
        let (status, replayed) = run(&file, &["--replay", &recording]);
        assert_eq!(status, 0, "{replayed:#}");
        assert_eq!(xcoms(&replayed), xcoms(&recorded), "{example}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (_folder, file) = made("Hello?");
    let file = file.display().to_string();
    for (option, said) in [
        ("--record", "/nonexistent/run.jsonl can't be written"),
        (
            "--replay",
            "the recording /nonexistent/run.jsonl can't be opened",
        ),
    ] {
        let output = updraft(&["run", &file, option, "/nonexistent/run.jsonl"]);
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(said), "{stderr}");
    }
}
