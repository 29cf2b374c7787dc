//! `examples/harbour.rs`: tasks, a toolset and an agent in Rust, in a program of their own.

use std::path::PathBuf;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::local_run::{repository, task};

/// The example's program, which cargo builds with the tests.
fn harbour() -> Command {
    let updraft = PathBuf::from(env!("CARGO_BIN_EXE_updraft"));
    let mut command = Command::new(updraft.with_file_name("examples/harbour"));
    command.env("AIRFLOW_HOME", "/nonexistent/airflow");
    command
}

fn run(arguments: &[&str]) -> Value {
    let dag = repository().join("examples/harbour.py");
    let output = harbour()
        .arg("run")
        .arg(dag)
        .arg("--json")
        .args(arguments)
        .output()
        .expect("the example, built by `cargo test` or `cargo build --examples`");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_dag_of_stubs_and_an_agent_with_a_rust_toolset_runs() {
    let report = run(&[]);
    let xcoms = |id: &str, index: i64| task(&report, id, index)["xcoms"].clone();
    assert_eq!(
        xcoms("berth", 1)["return_value"],
        json!({"ship": "Borealis", "quay": "B", "price": 40}),
        "{report:#}"
    );
    assert_eq!(xcoms("berth", 0)["quay"], "B");
    assert_eq!(xcoms("invoice", -1)["return_value"], 80);
    let pilot = task(&report, "pilot", -1);
    assert_eq!(
        pilot["xcoms"]["return_value"],
        "High water at quay B is at 10 o'clock."
    );
    let log = pilot["log"].to_string();
    assert!(log.contains("::group::Tool call: high_water"), "{log}");
    assert!(log.contains("the table ends with day 30"), "{log}");
}

#[test]
fn an_agent_of_a_rust_task_takes_up_where_its_first_try_ended() {
    let report = run(&["survey"]);
    let survey = task(&report, "survey", -1);
    assert_eq!(survey["state"], "success", "{report:#}");
    assert_eq!(
        survey["xcoms"]["return_value"],
        json!({"depths": [11, 12, 13]})
    );
    let log = survey["log"].to_string();
    assert!(log.contains("the line broke"), "{log}");
    assert!(
        log.contains("Durable: replayed 4 steps (2 model, 2 tool, 0 other)"),
        "{log}"
    );
}

#[test]
fn check_knows_what_the_program_has() {
    let dag = repository().join("examples/harbour.py");
    let of = |mut command: Command| {
        let output = command.arg("check").arg(&dag).arg("--json").output();
        let report: Value = serde_json::from_slice(&output.unwrap().stdout).expect("JSON");
        let tasks = report["files"][0]["dags"][0]["tasks"].clone();
        let tasks = tasks.as_array().unwrap().clone();
        tasks
            .iter()
            .map(|task| (task["task_id"].clone(), task["reason"].clone()))
            .collect::<Vec<_>>()
    };
    for (task_id, reason) in of(harbour()) {
        assert_eq!(reason, Value::Null, "{task_id}");
    }
    let reasons = of(Command::new(env!("CARGO_BIN_EXE_updraft")));
    assert!(reasons.contains(&(
        json!("pilot"),
        json!("there is no toolset \"tides\": this build of Updraft has none in Rust")
    )));
    assert!(reasons.contains(&(
        json!("berth"),
        json!(
            "it stands for a task of another language, and this build of Updraft has no Rust function for it"
        )
    )));
}
