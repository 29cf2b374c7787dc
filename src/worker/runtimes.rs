//! What runs a task on this worker: an executable bundle that names it, Python when Updraft can't, Updraft otherwise.
//!
//! Decided before the server is told that the task runs: Airflow's own supervisor tells it that itself, with the token of
//! the job, which is good for that alone.

use std::path::PathBuf;

use super::dag_index::{DagIndex, Verdict};
use super::executables::{Executables, UnusableBundles};
use super::python::PythonRuntime;
use crate::airflow::bundle::DagBundles;
use crate::airflow::edge::ExecuteTask;

/// What runs a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// A task process of this program.
    Native,
    /// This executable, which speaks the supervisor protocol.
    Executable(PathBuf),
    /// The Python beside this worker.
    Python {
        /// Why not this program.
        reason: String,
    },
}

/// The runtimes that this worker has beside its own.
#[derive(Clone, Debug, Default)]
pub struct Runtimes {
    pub executables: Executables,
    /// With what tells which tasks need it.
    pub python: Option<(PythonRuntime, DagIndex)>,
}

impl Runtimes {
    /// What is to run this task.
    ///
    /// # Errors
    /// An executable bundle names the task and can't be used.
    pub async fn choose(
        &self,
        bundles: &DagBundles,
        task: &ExecuteTask,
    ) -> Result<Runtime, UnusableBundles> {
        let ti = &task.ti;
        if !self.executables.is_empty() {
            let executables = self.executables.clone();
            let (dag_id, task_id) = (ti.dag_id.clone(), ti.task_id.clone());
            let found =
                tokio::task::spawn_blocking(move || executables.find(&dag_id, &task_id)).await;
            // A search that panicked has found nothing.
            if let Ok(found) = found
                && let Some(path) = found?
            {
                return Ok(Runtime::Executable(path));
            }
        }
        let Some((_, index)) = &self.python else {
            return Ok(Runtime::Native);
        };
        // The task process says best what is wrong with a bundle or a file that is not there.
        let place = bundles.find(&task.bundle_info.name).and_then(|bundle| {
            Ok((
                bundle.root()?.to_owned(),
                bundle.dag_file(&task.dag_rel_path)?,
            ))
        });
        let Ok((root, file)) = place else {
            return Ok(Runtime::Native);
        };
        Ok(
            match index.verdict(&root, &file, &ti.dag_id, &ti.task_id).await {
                Verdict::Foreign(reason) => Runtime::Python { reason },
                // It may be a task that only Airflow's variables bring about: the task process can ask for them.
                Verdict::Native | Verdict::Unknown => Runtime::Native,
            },
        )
    }
}
