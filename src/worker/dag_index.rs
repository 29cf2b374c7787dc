//! Which tasks of a Dag file run natively: what `updraft check` says of it, kept until the file changes.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::process::Command;

use crate::supervisor::is_withheld;

/// Files that are remembered at a time. Of each a few hundred bytes a task.
const MAX_FILES: usize = 2_000;

/// What is known of a task before it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Native,
    /// It does not run natively, for this reason.
    Foreign(String),
    /// The file makes no such task, as far as can be seen without Airflow.
    Unknown,
}

/// Modification time and size of a file.
type Identity = (i64, i64, u64);

/// Of each task of a file, by Dag and task: why it does not run natively, if so. Or why the file can't be loaded.
type Tasks = Result<HashMap<(String, String), Option<String>>, String>;

type Slot = Arc<tokio::sync::Mutex<Option<(Identity, Arc<Tasks>)>>>;

/// Asks `updraft check`, in a process of its own: a Dag file that hangs, crashes or eats memory takes only that along.
#[derive(Clone, Debug)]
pub struct DagIndex {
    program: PathBuf,
    /// For one file.
    timeout: Duration,
    files: Arc<Mutex<HashMap<PathBuf, Slot>>>,
}

impl DagIndex {
    /// An index that starts this program. `load_timeout` is what a Dag file may take, in the program's own opinion.
    #[must_use]
    pub fn new(program: PathBuf, load_timeout: Duration) -> Self {
        Self {
            program,
            timeout: load_timeout + Duration::from_secs(30),
            files: Arc::default(),
        }
    }

    /// Does this task of this file run natively? `root` is the folder of the Dag bundle.
    pub async fn verdict(&self, root: &Path, file: &Path, dag_id: &str, task_id: &str) -> Verdict {
        let tasks = self.tasks(root, file).await;
        match &*tasks {
            Ok(tasks) => match tasks.get(&(dag_id.to_owned(), task_id.to_owned())) {
                Some(None) => Verdict::Native,
                Some(Some(reason)) => Verdict::Foreign(reason.clone()),
                None => Verdict::Unknown,
            },
            Err(error) => Verdict::Foreign(format!("its Dag file can't be loaded: {error}")),
        }
    }

    async fn tasks(&self, root: &Path, file: &Path) -> Arc<Tasks> {
        let slot = {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            if files.len() >= MAX_FILES && !files.contains_key(file) {
                files.clear();
            }
            Arc::clone(files.entry(file.to_owned()).or_default())
        };
        // Of many tasks of one file that come together, one asks.
        let mut slot = slot.lock().await;
        let identity = match std::fs::metadata(file) {
            Ok(metadata) => (metadata.mtime(), metadata.mtime_nsec(), metadata.size()),
            Err(error) => return Arc::new(Err(error.to_string())),
        };
        match &*slot {
            Some((known, tasks)) if *known == identity => Arc::clone(tasks),
            _ => {
                let tasks = Arc::new(self.check(root, file).await);
                *slot = Some((identity, Arc::clone(&tasks)));
                tasks
            }
        }
    }

    async fn check(&self, root: &Path, file: &Path) -> Tasks {
        let mut command = Command::new(&self.program);
        command
            .args(["check", "--json", "--"])
            .arg(file)
            .env("AIRFLOW__CORE__DAGS_FOLDER", root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_withheld) {
                command.env_remove(name);
            }
        }
        let output = tokio::time::timeout(self.timeout, command.output())
            .await
            .map_err(|_| format!("it took longer than {} s", self.timeout.as_secs()))?
            .map_err(|error| format!("{} can't be started: {error}", self.program.display()))?;
        read_report(&output.stdout)
            .unwrap_or_else(|| Err(format!("`updraft check` ended with {}", output.status)))
    }
}

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    files: Vec<FileReport>,
}

#[derive(Deserialize)]
struct FileReport {
    error: Option<String>,
    dags: Vec<DagReport>,
}

#[derive(Deserialize)]
struct DagReport {
    dag_id: String,
    tasks: Vec<TaskReport>,
}

#[derive(Deserialize)]
struct TaskReport {
    task_id: String,
    reason: Option<String>,
}

/// What `updraft check --json` prints; `None` when it printed something else.
fn read_report(text: &[u8]) -> Option<Tasks> {
    let report: Report = serde_json::from_slice(text).ok()?;
    if let Some(error) = report
        .error
        .or_else(|| report.files.iter().find_map(|file| file.error.clone()))
    {
        return Some(Err(error));
    }
    let dags = report.files.into_iter().flat_map(|file| file.dags);
    let tasks = dags.flat_map(|dag| {
        let dag_id = dag.dag_id;
        dag.tasks
            .into_iter()
            .map(move |task| ((dag_id.clone(), task.task_id), task.reason))
    });
    Some(Ok(tasks.collect()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    /// A stand-in for the program that prints `text`, and counts in `calls` how often it was asked.
    fn program(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("updraft");
        std::fs::write(folder.join("answer"), text).unwrap();
        let script = format!(
            "#!/bin/sh\necho x >> {0}/calls\n[ \"$AIRFLOW__CORE__DAGS_FOLDER\" = {0} ] || exit 3\ncat {0}/answer\n",
            folder.display()
        );
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    fn report(reason: Option<&str>) -> String {
        let task = |task_id: &str, reason: Option<&str>| json!({"task_id": task_id, "native": reason.is_none(), "reason": reason, "connections": []});
        json!({"ok": true, "files": [{"file": "d.py", "error": null, "unavailable_modules": [], "dags": [
            {"dag_id": "d", "tasks": [task("here", None), task("there", reason)]}]}]})
        .to_string()
    }

    #[tokio::test]
    async fn a_file_is_checked_once_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let file = root.join("d.py");
        std::fs::write(&file, "one").unwrap();
        let index = DagIndex::new(
            program(root, &report(Some("needs numpy"))),
            Duration::from_secs(5),
        );
        let (here, there, other) = tokio::join!(
            index.verdict(root, &file, "d", "here"),
            index.verdict(root, &file, "d", "there"),
            index.verdict(root, &file, "d", "other"),
        );
        assert_eq!(
            (here, there, other),
            (
                Verdict::Native,
                Verdict::Foreign("needs numpy".to_owned()),
                Verdict::Unknown
            )
        );
        let calls = || std::fs::read_to_string(root.join("calls")).unwrap().len() / 2;
        assert_eq!(calls(), 1);
        std::fs::write(&file, "another").unwrap();
        program(root, &report(None));
        assert_eq!(
            index.verdict(root, &file, "d", "there").await,
            Verdict::Native
        );
        assert_eq!(calls(), 2);
    }

    #[tokio::test]
    async fn a_file_that_can_not_be_loaded_runs_nothing_natively_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let file = root.join("d.py");
        std::fs::write(&file, "one").unwrap();
        let broken = json!({"files": [{"error": "line 3 is bad", "dags": []}]}).to_string();
        for (answer, said) in [
            (broken.as_str(), "line 3 is bad"),
            (r#"{"error": "no such option"}"#, "no such option"),
            ("Segmentation fault", "ended with exit status: 0"),
        ] {
            let index = DagIndex::new(program(root, answer), Duration::from_secs(5));
            let Verdict::Foreign(reason) = index.verdict(root, &file, "d", "here").await else {
                panic!("{answer}")
            };
            assert!(reason.contains(said), "{reason}");
        }
    }
}
