//! A host for Dag code: a few XComs, variables and connections, and a memory of what it was told.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use updraft::dag::definitions::{Dag, DagFile, Task};
use updraft::dag::host::{Host, HostError, LogRecord, XComQuery};
use updraft::dag::{Interpreter, LoadError, LoadOptions};

#[derive(Default)]
pub struct TestHost {
    /// Rows by task id and key, in the order of the map indexes.
    pub xcoms: HashMap<(&'static str, &'static str), Vec<Value>>,
    pub variables: HashMap<&'static str, &'static str>,
    pub pushed: Mutex<Vec<(String, Value)>>,
    pub logged: Mutex<Vec<LogRecord>>,
}

impl TestHost {
    pub fn with_xcom(task_id: &'static str, key: &'static str, rows: Vec<Value>) -> Self {
        Self {
            xcoms: HashMap::from([((task_id, key), rows)]),
            ..Self::default()
        }
    }

    /// The messages that a logger got.
    pub fn messages(&self, logger: &str) -> Vec<String> {
        let logged = self.logged.lock().unwrap();
        logged
            .iter()
            .filter(|record| record.logger == logger)
            .map(|record| record.message.clone())
            .collect()
    }
}

impl Host for TestHost {
    fn connection(&self, conn_id: &str) -> Result<Value, HostError> {
        if conn_id == "shop" {
            return Ok(json!({
                "conn_id": "shop", "conn_type": "postgres", "host": "db", "login": "reader",
                "password": "made-up-password", "extra": "{\"sslmode\": \"require\"}"
            }));
        }
        Err(HostError::NotFound(format!(
            "The conn_id `{conn_id}` isn't defined"
        )))
    }

    fn variable(&self, key: &str) -> Result<Option<String>, HostError> {
        Ok(self.variables.get(key).map(|&value| value.to_owned()))
    }

    fn set_variable(&self, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), HostError> {
        Ok(())
    }

    fn xcom_pull(&self, query: XComQuery) -> Result<Value, HostError> {
        let mut rows = Vec::new();
        for task_id in &query.task_ids {
            let found = self
                .xcoms
                .iter()
                .find(|((task, key), _)| task == task_id && *key == query.key)
                .map(|(_, rows)| rows.clone());
            match (found, &query.map_indexes) {
                (None, _) => rows.push(Value::Null),
                (Some(found), None) => rows.extend(found),
                (Some(found), Some(indexes)) => rows.extend(indexes.iter().map(|&index| {
                    let index = usize::try_from(index).unwrap_or(0);
                    found.get(index).cloned().unwrap_or_default()
                })),
            }
        }
        Ok(rows.into())
    }

    fn xcom_push(&self, key: &str, value: Value) -> Result<(), HostError> {
        self.pushed.lock().unwrap().push((key.to_owned(), value));
        Ok(())
    }

    fn config(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn mask_secret(&self, _: &Value, _: Option<&str>) {}

    fn log(&self, record: LogRecord) {
        self.logged.lock().unwrap().push(record);
    }
}

/// Loads a file whose folder is the bundle.
pub fn load(file: &Path, host: Arc<TestHost>) -> Result<(DagFile, Interpreter), LoadError> {
    let mut options = LoadOptions::new(file.parent().expect("a folder"));
    // An unoptimised interpreter on a busy machine.
    options.timeout = Duration::from_secs(600);
    Interpreter::load(file, options, host)
}

/// Loads a text as `made.py`.
pub fn load_source(source: &str, host: Arc<TestHost>) -> Result<(DagFile, Interpreter), LoadError> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("made.py");
    std::fs::write(&file, source).expect("written");
    load(&file, host)
}

pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(path)
}

pub fn fixture_json(path: &str) -> Value {
    let text = std::fs::read_to_string(fixture(path)).expect("the fixture");
    serde_json::from_str(&text).expect("JSON")
}

pub fn task<'a>(file: &'a DagFile, dag_id: &str, task_id: &str) -> &'a Task {
    let dag: &Dag = file
        .dags
        .iter()
        .find(|dag| dag.dag_id == dag_id)
        .unwrap_or_else(|| panic!("no Dag {dag_id}"));
    dag.tasks
        .iter()
        .find(|task| task.task_id == task_id)
        .unwrap_or_else(|| panic!("no task {task_id}"))
}
