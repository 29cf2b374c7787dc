//! From the supervisor's word to a task of a loaded Dag file.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::failure::Failure;
use super::log::{LogLevel, TaskLogger};
use super::support;
use crate::airflow::bundle::{BundleError, DagBundles};
use crate::airflow::config::Config;
use crate::airflow::supervisor::StartupDetails;
use crate::dag::definitions::{Dag, Task};
use crate::dag::host::Host;
use crate::dag::{Interpreter, LoadError, LoadOptions};

/// A task that can run.
pub struct Started {
    pub dag: Dag,
    pub task: Task,
    pub interpreter: Interpreter,
    /// The folder of the Dag file.
    pub dag_folder: PathBuf,
}

/// Why there is nothing to run.
#[derive(Debug)]
pub enum StartupError {
    /// The Dag file, the Dag or the task is not there (yet): Airflow tries again later without counting a try.
    Missing(Failure),
    /// It can't be loaded or can't run here.
    Failed(Failure),
}

/// Loads the Dag file and finds the task. Blocks.
///
/// # Errors
/// See [`StartupError`].
pub fn start(
    details: &StartupDetails,
    config: &Config,
    host: Arc<dyn Host>,
    log: &TaskLogger,
) -> Result<Started, StartupError> {
    let begin = Instant::now();
    let failed = |error: &(dyn std::error::Error + 'static)| {
        StartupError::Failed(Failure::of("ValueError", error))
    };
    let bundles = DagBundles::from_config(config).map_err(|error| failed(&error))?;
    let bundle = bundles
        .find(&details.bundle_info.name)
        .map_err(|error| failed(&error))?;
    let root = bundle.root().map_err(|error| failed(&error))?.to_owned();
    let file = bundle
        .dag_file(&details.dag_rel_path)
        .map_err(|error| match error {
            BundleError::NoFile { .. } => {
                StartupError::Missing(Failure::of("FileNotFoundError", &error))
            }
            other => failed(&other),
        })?;
    let bundle_prepare_ms = begin.elapsed().as_millis();

    let begin = Instant::now();
    let mut options = LoadOptions::new(root);
    if let Ok(seconds) = config.get_float("core", "dagbag_import_timeout")
        && seconds > 0.0
    {
        options.timeout = Duration::from_secs_f64(seconds);
    }
    let (dags, interpreter) =
        Interpreter::load(&file, options, host).map_err(|error| load_failure(&error))?;
    let dag_file_parse_ms = begin.elapsed().as_millis();

    let ti = &details.ti;
    let place = format!(
        "{} of bundle {}",
        details.dag_rel_path, details.bundle_info.name
    );
    let known: Vec<_> = dags.dags.iter().map(|dag| dag.dag_id.as_str()).collect();
    let missing = |text: String| {
        StartupError::Missing(Failure::new(
            "airflow.sdk.exceptions.AirflowNotFoundException",
            text,
        ))
    };
    let known = if known.is_empty() {
        "no Dag".to_owned()
    } else {
        known.join(", ")
    };
    let Some(dag) = dags.dags.into_iter().find(|dag| dag.dag_id == ti.dag_id) else {
        return Err(missing(format!(
            "Dag {} is not in {place}, which defines {known}. Does the worker have the same Dag files as the Dag processor?",
            ti.dag_id
        )));
    };
    let Some(task) = dag
        .tasks
        .iter()
        .find(|task| task.task_id == ti.task_id)
        .cloned()
    else {
        let known: Vec<_> = dag.tasks.iter().map(|task| task.task_id.as_str()).collect();
        return Err(missing(format!(
            "Task {} is not in Dag {} of {place}, which has {}. Does the worker have the same Dag files as the Dag \
             processor?",
            ti.task_id,
            ti.dag_id,
            if known.is_empty() {
                "no tasks".to_owned()
            } else {
                known.join(", ")
            }
        )));
    };
    let fields = json!({
        "bundle_name": details.bundle_info.name,
        "bundle_version": details.bundle_info.version,
        "dag_file": details.dag_rel_path,
        "dag_id": ti.dag_id,
        "bundle_prepare_ms": u64::try_from(bundle_prepare_ms).unwrap_or(u64::MAX),
        "dag_file_parse_ms": u64::try_from(dag_file_parse_ms).unwrap_or(u64::MAX),
    });
    let fields = fields.as_object().cloned().unwrap_or_else(Map::new);
    log.write(
        "task",
        LogLevel::Info,
        "Worker startup parse complete",
        fields,
    );
    if let Some(obstacle) = support::obstacle(&task) {
        let text = support::sentence(&task, &obstacle);
        // Another try on this worker would end in the same way, but one on another worker of the queue need not.
        return Err(StartupError::Failed(Failure::new(
            "NotImplementedError",
            text,
        )));
    }
    if !task.ignored.is_empty() {
        let text = format!(
            "This task sets {}, which only a Python worker acts on",
            task.ignored.join(", ")
        );
        log.write("task", LogLevel::Warning, &text, Map::new());
    }
    let dag_folder = file.parent().map(PathBuf::from).unwrap_or_default();
    Ok(Started {
        dag,
        task,
        interpreter,
        dag_folder,
    })
}

fn load_failure(error: &LoadError) -> StartupError {
    match error {
        LoadError::NotThere { .. } => {
            StartupError::Missing(Failure::of("FileNotFoundError", error))
        }
        LoadError::Exception {
            error: exception, ..
        }
        | LoadError::Recursion {
            error: exception, ..
        } => {
            // The exception's own class and traceback, under the sentence that says which file.
            let mut failure = Failure::of_python(exception);
            failure.message = error.to_string();
            failure.meaning = super::failure::Meaning::Failed;
            StartupError::Failed(failure)
        }
        LoadError::Syntax { class, .. } => StartupError::Failed(Failure::of(class, error)),
        LoadError::TimedOut { .. } => StartupError::Failed(Failure::of(
            "airflow.sdk.exceptions.AirflowTaskTimeout",
            error,
        )),
        _ => StartupError::Failed(Failure::of("ImportError", error)),
    }
}
