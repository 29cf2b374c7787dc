//! What the interpreter says about Dag files, against what a real Airflow says (`fixtures/dag_truth`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use updraft::dag::definitions::{DagFile, Task};

use crate::dag_host::{TestHost, fixture, fixture_json, load};

fn task_as_truth(task: &Task) -> Value {
    json!({
        "operator": task.operator,
        "upstream": task.upstream_task_ids,
        "downstream": task.downstream_task_ids,
        "is_mapped": task.is_mapped,
        "mapped_task_group": task.mapped_task_group,
        "queue": task.queue,
        "retries": task.retries,
        "retry_delay": task.retry_delay,
        "execution_timeout": task.execution_timeout,
        "trigger_rule": task.trigger_rule,
        "multiple_outputs": task.multiple_outputs,
        "template_fields": task.template_fields,
        "params": task.params,
        "outlets": task.outlets.iter().map(|outlet| &outlet["name"]).collect::<Vec<_>>(),
    })
}

/// Airflow's description, with the innermost mapped group only.
fn comparable(mut truth: Value) -> Value {
    let groups = truth["mapped_task_groups"].take();
    let object = truth.as_object_mut().expect("an object");
    object.remove("mapped_task_groups");
    object.insert("mapped_task_group".to_owned(), groups[0].clone());
    truth
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(k, v)| (k.clone(), sorted(v))).collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn assert_says_what_airflow_says(file: &Path, loaded: &DagFile, truth: &Value) {
    let name = file.display();
    let truth = truth.as_object().expect("Dags");
    let found: BTreeSet<_> = loaded.dags.iter().map(|dag| dag.dag_id.as_str()).collect();
    let wanted: BTreeSet<_> = truth.keys().map(String::as_str).collect();
    assert_eq!(found, wanted, "the Dags of {name}");
    for dag in &loaded.dags {
        let truth = &truth[&dag.dag_id];
        assert_eq!(
            sorted(&Value::Object(dag.params.clone())),
            sorted(&truth["params"]),
            "the params of {name}, {}",
            dag.dag_id
        );
        let tasks = truth["tasks"].as_object().expect("tasks");
        let found: BTreeSet<_> = dag.tasks.iter().map(|task| task.task_id.as_str()).collect();
        let wanted: BTreeSet<_> = tasks.keys().map(String::as_str).collect();
        assert_eq!(found, wanted, "the tasks of {name}, {}", dag.dag_id);
        for task in &dag.tasks {
            assert_eq!(
                sorted(&task_as_truth(task)),
                sorted(&comparable(tasks[&task.task_id].clone())),
                "{name}, {}.{}",
                dag.dag_id,
                task.task_id
            );
            assert!(
                task.location
                    .file
                    .starts_with(&*file.parent().expect("a folder").to_string_lossy()),
                "{} is said to be made at {}",
                task.task_id,
                task.location
            );
        }
    }
}

fn assert_folder_says_what_airflow_says(folder: &Path, truth: &Value) {
    for (name, truth) in truth.as_object().expect("files") {
        let file = folder.join(name);
        let (loaded, _) = load(&file, Arc::default())
            .unwrap_or_else(|error| panic!("{} does not load: {error}", file.display()));
        assert_says_what_airflow_says(&file, &loaded, truth);
    }
}

/// The example Dags of the provider that is installed in the test environment.
pub fn example_dags() -> PathBuf {
    let venv = std::env::var_os("UPDRAFT_TEST_VENV").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/updraft/venv"),
        PathBuf::from,
    );
    let libraries = std::fs::read_dir(venv.join("lib")).unwrap_or_else(|error| {
        panic!(
            "no Python environment with Airflow at {}: {error}. Run tests/run.sh, which makes it, or name one with \
             UPDRAFT_TEST_VENV",
            venv.display()
        )
    });
    libraries
        .filter_map(Result::ok)
        .map(|entry| {
            entry
                .path()
                .join("site-packages/airflow/providers/common/ai/example_dags")
        })
        .find(|folder| folder.is_dir())
        .unwrap_or_else(|| {
            panic!(
                "the environment {} lacks apache-airflow-providers-common-ai 1.0.0: run tests/run.sh",
                venv.display()
            )
        })
}

/// Names the file that a process of its own is to load.
const EXAMPLE: &str = "UPDRAFT_TEST_EXAMPLE";

/// A task process loads one file and ends. In one process the interpreters of 49 files would leave memory to each other
/// and slow each other down.
#[test]
fn all_49_example_dag_files_of_the_provider_say_what_airflow_says() {
    let truth = fixture_json("dag_truth/example_dags.json");
    let names: Vec<_> = truth.as_object().expect("files").keys().cloned().collect();
    assert_eq!(names.len(), 49);
    let (left, complaints) = (Mutex::new(names), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(name) = left.lock().expect("sound").pop() else {
                        return;
                    };
                    let output = Command::new(std::env::current_exe().expect("this program"))
                        .args([
                            "--exact",
                            "--ignored",
                            "dag_files::the_named_example_says_what_airflow_says",
                        ])
                        .env(EXAMPLE, &name)
                        .output()
                        .expect("the process starts");
                    let told = String::from_utf8_lossy(&output.stdout);
                    if !output.status.success() || !told.contains("1 passed") {
                        complaints
                            .lock()
                            .expect("sound")
                            .push(format!("{name}: {told}"));
                    }
                }
            });
        }
    });
    let complaints = complaints.into_inner().expect("sound");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
#[ignore = "run by the test of all 49 files, once for each"]
fn the_named_example_says_what_airflow_says() {
    let name = std::env::var(EXAMPLE).expect("the name of an example");
    let truth = fixture_json("dag_truth/example_dags.json");
    assert_folder_says_what_airflow_says(&example_dags(), &json!({&name: truth[&name]}));
}

#[test]
fn our_own_dag_files_of_every_feature_say_what_airflow_says() {
    let truth = fixture_json("dag_truth/own_dags.json");
    assert_folder_says_what_airflow_says(&fixture("dags"), &truth);
}

#[test]
fn a_dag_file_of_the_fixtures_is_never_forgotten_in_the_truth() {
    let truth = fixture_json("dag_truth/own_dags.json");
    for entry in std::fs::read_dir(fixture("dags")).expect("the folder") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".py") {
            assert!(
                truth.get(&*name).is_some(),
                "{name} is not in own_dags.json: see generate.py"
            );
        }
    }
}

#[test]
fn a_task_that_can_not_run_natively_says_why() {
    let file = fixture("dags/airflow_branches.py");
    let (loaded, _) = load(&file, Arc::new(TestHost::default())).expect("it loads");
    let unsupported: Vec<_> = loaded.dags[0]
        .tasks
        .iter()
        .filter_map(|task| match &task.kind {
            updraft::dag::definitions::TaskKind::Unsupported { reason } => {
                Some((task.task_id.as_str(), reason.as_str()))
            }
            _ => None,
        })
        .collect();
    assert!(unsupported.contains(&(
        "bash",
        "shell commands are off on this worker: [updraft] allow_bash turns them on"
    )));
    assert!(unsupported.iter().all(|(_, reason)| !reason.is_empty()));
    let native: Vec<_> = loaded.dags[0]
        .tasks
        .iter()
        .map(|task| task.task_id.as_str())
        .filter(|id| unsupported.iter().all(|(task_id, _)| task_id != id))
        .collect();
    assert_eq!(
        native,
        [
            "left",
            "right",
            "join",
            "route",
            "model_choice",
            "branch_operator",
            "summary",
            "llm",
            "python",
            "branch_python",
            "short",
            "go_on",
            "always"
        ]
    );
}
