//! Runs a scenario's Dag file with `updraft run`, as a person would.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::scenario::Scenario;

/// Longer than any scenario takes, waits between tries included.
const LIMIT: Duration = Duration::from_secs(120);

/// What `updraft run --json` says of the task `ask`.
pub struct Run {
    pub xcoms: Map<String, Value>,
    pub error: Option<String>,
    /// Tasks that were skipped.
    pub skipped: BTreeSet<String>,
    /// Messages of operators, hooks and toolsets, from INFO on.
    pub log: Vec<String>,
}

/// # Panics
/// When the program does not end in time or prints something else than one JSON object.
pub fn run(scenario: &Scenario, folder: &Path, connections: Vec<(String, String)>) -> Run {
    let dag_file = folder.join("parity_dag.py");
    let source = scenario
        .dag_source()
        .replace("<path>", &folder.to_string_lossy());
    fs::write(&dag_file, source).expect("a written file");
    scenario.leave_task_state(&dag_file);
    let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_updraft"))
        .arg("run")
        .arg(&dag_file)
        .args(["--json", "--logical-date", "2026-01-01"])
        .env_clear()
        .env("HOME", folder)
        .env("AIRFLOW_HOME", folder.join("airflow"))
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .envs(connections)
        .stdin(Stdio::null())
        .stdout(File::create(&stdout).expect("a file"))
        .stderr(File::create(&stderr).expect("a file"))
        .spawn()
        .expect("the updraft binary");
    let started = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > LIMIT {
            child.kill().expect("a child to end");
            panic!(
                "{}: updraft run did not end within {LIMIT:?}",
                scenario.name
            );
        }
        thread::sleep(Duration::from_millis(10));
    }
    let said = fs::read_to_string(&stdout).expect("UTF-8");
    let report: Value = serde_json::from_str(&said).unwrap_or_else(|error| {
        let complaint = fs::read_to_string(&stderr).unwrap_or_default();
        panic!("{}: not JSON ({error}): {said}\n{complaint}", scenario.name)
    });
    let tasks = report["tasks"].as_array().expect("a list of tasks");
    let task = tasks
        .iter()
        .find(|task| task["task_id"] == "ask")
        .unwrap_or_else(|| panic!("{}: the task did not run: {said}", scenario.name));
    let skipped = tasks.iter().filter(|task| task["state"] == "skipped");
    let log = task["log"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|record| is_compared(record));
    Run {
        xcoms: task["xcoms"].as_object().cloned().unwrap_or_default(),
        error: task["error"].as_str().map(str::to_owned),
        skipped: skipped
            .filter_map(|task| task["task_id"].as_str().map(str::to_owned))
            .collect(),
        log: log
            .map(|record| record["event"].as_str().unwrap_or_default().to_owned())
            .collect(),
    }
}

/// The recordings hold the lines of operators, hooks and toolsets, not those of the task runner.
fn is_compared(record: &Value) -> bool {
    let logger = record["logger"].as_str().unwrap_or_default();
    let from_operator = [
        "airflow.task.operators.",
        "airflow.task.hooks.",
        "airflow.providers.",
    ];
    from_operator
        .iter()
        .any(|prefix| logger.starts_with(prefix))
        && record["level"] != "debug"
}
