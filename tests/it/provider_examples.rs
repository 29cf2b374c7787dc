//! The example Dags of the installed common-ai provider: real Dag files that nobody wrote for Updraft.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use pretty_assertions::assert_eq;
use serde_json::Value;

/// How many Dag files version 1.0.0 ships.
const EXAMPLES: usize = 49;

/// Files whose Dags stand behind `if Package is not None`, for packages that are not there: they make none in Airflow
/// either.
const WITHOUT_DAGS: [&str; 3] = [
    "example_agent_memory.py",
    "example_hook_toolset.py",
    "example_progressive_tool_disclosure.py",
];

/// The examples' folder in the Python environment that `tests/run.sh` makes.
fn examples() -> Vec<PathBuf> {
    let environment = std::env::var_os("UPDRAFT_TEST_VENV").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/updraft/venv"),
        PathBuf::from,
    );
    let folder = std::fs::read_dir(environment.join("lib"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|python| {
            python
                .path()
                .join("site-packages/airflow/providers/common/ai/example_dags")
        })
        .find(|folder| folder.is_dir())
        .unwrap_or_else(|| {
            panic!(
                "there is no common-ai provider in {}: tests/run.sh installs it",
                environment.display()
            )
        });
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "py"))
        .filter(|path| !path.ends_with("__init__.py"))
        .collect();
    files.sort();
    files
}

/// Why a file does not load or what it lacks; `None` when all is well.
fn complaint(file: &Path) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_updraft"))
        .args(["check", "--json"])
        .arg(file)
        .env("AIRFLOW_HOME", "/nonexistent/airflow")
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: {}",
            file.display(),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    let loaded = &report["files"][0];
    let name = file.file_name().unwrap().to_string_lossy();
    if let Some(error) = loaded["error"].as_str() {
        return Some(format!("{name}: {error}"));
    }
    let dags = loaded["dags"].as_array().unwrap();
    let empty = |dag: &Value| dag["tasks"].as_array().is_none_or(Vec::is_empty);
    if dags.iter().any(empty) {
        return Some(format!("{name}: a Dag without tasks: {dags:?}"));
    }
    (dags.is_empty() != WITHOUT_DAGS.contains(&&*name))
        .then(|| format!("{name}: {} Dags", dags.len()))
}

#[test]
fn every_example_of_the_provider_loads_and_lists_its_tasks() {
    let files = examples();
    assert_eq!(files.len(), EXAMPLES);
    let (left, complaints) = (Mutex::new(files), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(file) = left.lock().unwrap().pop() else {
                        return;
                    };
                    let found = complaint(&file);
                    complaints.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut complaints = complaints.into_inner().unwrap();
    complaints.sort();
    assert_eq!(complaints, Vec::<String>::new());
}
