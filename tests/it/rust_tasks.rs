//! `examples/harbour.rs`: tasks, a toolset and an agent in Rust, in a program of their own.

use std::path::PathBuf;
use std::process::Command;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::local_run::{repository, task};

/// A program of `examples/`, which cargo builds with the tests.
fn example(name: &str) -> Command {
    let updraft = PathBuf::from(env!("CARGO_BIN_EXE_updraft"));
    Command::new(updraft.with_file_name("examples").join(name))
}

fn harbour() -> Command {
    let mut command = example("harbour");
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

#[tokio::test]
async fn an_agent_runs_in_a_plain_program_with_connections_in_its_environment() {
    let server = MockServer::start().await;
    let call = |name: &str, arguments: Value| {
        let call = json!({
            "id": "c", "type": "function", "function": {"name": name, "arguments": arguments.to_string()}
        });
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        ResponseTemplate::new(200).set_body_json(json!({
            "id": "r", "object": "chat.completion", "created": 1, "model": "shopkeeper",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }))
    };
    let sql = "SELECT count(*) FROM customers";
    let found = json!({"answer": "Sixteen customers.", "sql": sql});
    let asked = |messages: Value| {
        Mock::given(method("POST")).and(body_partial_json(json!({"messages": messages})))
    };
    let query = call("query", json!({ "sql": sql }));
    let prompt = json!([{"role": "system"}, {"role": "user", "content": "How many?"}]);
    asked(prompt.clone())
        .respond_with(query)
        .up_to_n_times(1)
        .mount(&server)
        .await;
    asked(prompt)
        .respond_with(call("final_result", found))
        .mount(&server)
        .await;
    let llm = json!({
        "conn_type": "pydanticai", "password": "sk-made-up", "host": format!("{}/v1", server.uri()),
        "extra": {"model": "openai-chat:shopkeeper"},
    });
    let shop = json!({"conn_type": "sqlite", "host": "dags/data/shop.db"});
    let mut program = example("ask_shop");
    program
        .arg("How many?")
        .current_dir(repository())
        .env("AIRFLOW_HOME", "/nonexistent/airflow")
        .env("AIRFLOW_CONN_LLM", llm.to_string())
        .env("AIRFLOW_CONN_SHOP", shop.to_string());
    let output = tokio::task::spawn_blocking(move || program.output()).await;
    let output = output.unwrap().expect("the example, built by `cargo test`");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("Sixteen customers.\n\n{sql}\n"),
        "{stderr}"
    );
    let last = server.received_requests().await.unwrap().pop().unwrap();
    let last: Value = last.body_json().unwrap();
    let result = last["messages"].as_array().unwrap().last().unwrap();
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .starts_with("{\"columns\""),
        "{result}"
    );
}
