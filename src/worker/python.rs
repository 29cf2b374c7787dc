//! A Python with Airflow beside this worker (`[updraft] python`): it runs the workloads that Updraft does not.
//!
//! Started as Airflow's own edge worker starts a new interpreter for a job (edge3 5.1.0): its supervisor tells the server
//! that the task runs, keeps the log file and reports the state of the task. This worker reports the job.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use super::process_tree::descendants;
use crate::supervisor::{StopReason, StopSignal, TaskLog, is_withheld};

/// How much of what Python says on stderr is kept for the task log, in lines.
const KEPT_LINES: usize = 200;

/// How long the question what is installed may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

/// Prints the versions of Airflow and of the edge provider, null for what is not there. Imports neither.
const PROBE: &str = "
import importlib.metadata as metadata, json

def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None

print(json.dumps({'airflow': version('apache-airflow-core'), 'edge': version('apache-airflow-providers-edge3')}))
";

/// Why `[updraft] python` is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PythonError {
    #[error("[updraft] python is {}, which can't be started: {source}", program.display())]
    Start {
        program: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "[updraft] python is {}, which did not say what is installed: {said}",
        program.display()
    )]
    Probe { program: PathBuf, said: String },
    #[error(
        "[updraft] python is {}, which has no Airflow 3: name the python of an environment with apache-airflow, such as \
         /opt/airflow/bin/python",
        program.display()
    )]
    NoAirflow { program: PathBuf },
    #[error("the workload can't be handed to Python: {0}")]
    Workload(std::io::Error),
}

/// The Python beside this worker.
#[derive(Clone, Debug)]
pub struct PythonRuntime {
    program: PathBuf,
    environment: Vec<(&'static str, String)>,
}

#[derive(Deserialize)]
struct Installed {
    airflow: Option<String>,
    edge: Option<String>,
}

impl PythonRuntime {
    /// This Python, with what its supervisor must agree on with the worker: the server and the folder of the logs.
    #[must_use]
    pub fn new(program: PathBuf, execution_api: &str, log_folder: &Path) -> Self {
        Self {
            program,
            environment: vec![
                (
                    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
                    execution_api.to_owned(),
                ),
                (
                    "AIRFLOW__LOGGING__BASE_LOG_FOLDER",
                    log_folder.display().to_string(),
                ),
            ],
        }
    }

    /// The interpreter.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Sees that Airflow is there, and with its edge provider lets tasks report the worker's name as their host, as they
    /// do on an edge worker. Returns Airflow's version.
    ///
    /// # Errors
    /// See [`PythonError`].
    pub async fn probe(&mut self, worker: &str) -> Result<String, PythonError> {
        let mut command = Command::new(&self.program);
        command
            .args(["-c", PROBE])
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let failed = |said: String| PythonError::Probe {
            program: self.program.clone(),
            said,
        };
        let output = tokio::time::timeout(PROBE_TIMEOUT, command.output())
            .await
            .map_err(|_| failed(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())))?
            .map_err(|source| PythonError::Start {
                program: self.program.clone(),
                source,
            })?;
        let installed: Installed = serde_json::from_slice(&output.stdout).map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr);
            failed(said.trim().lines().last().unwrap_or("nothing").to_owned())
        })?;
        let Some(airflow) = installed.airflow else {
            return Err(PythonError::NoAirflow {
                program: self.program.clone(),
            });
        };
        if installed.edge.is_some() {
            self.environment.push(("HOSTNAME", worker.to_owned()));
            self.environment.push((
                "AIRFLOW__CORE__HOSTNAME_CALLABLE",
                "airflow.providers.edge3.cli.worker._edge_hostname".to_owned(),
            ));
        }
        Ok(airflow)
    }

    /// Runs a workload to its end; `true` when it came to an end in good order, whatever became of the task.
    ///
    /// # Errors
    /// Python can't be started.
    pub async fn run(
        &self,
        workload: &Value,
        log: &TaskLog,
        mut stop: StopSignal,
    ) -> Result<bool, PythonError> {
        // A file only this user may read: everybody may read the arguments of a process, and a token is among this.
        let mut file = tempfile::Builder::new()
            .prefix("updraft-workload-")
            .suffix(".json")
            .tempfile()
            .map_err(PythonError::Workload)?;
        file.write_all(workload.to_string().as_bytes())
            .map_err(PythonError::Workload)?;
        let mut process = self.start(file.path())?;
        let said = process.child.stderr.take();
        let said = tokio::spawn(async move {
            match said {
                Some(said) => last_lines(said).await,
                None => VecDeque::new(),
            }
        });
        let mut stop_open = true;
        let status = loop {
            tokio::select! {
                status = process.child.wait() => break status,
                changed = stop.changed(), if stop_open => {
                    stop_open = changed.is_ok();
                    if let Some(StopReason::Shutdown { message }) = stop.borrow_and_update().clone() {
                        log.say("error", &message, json!({}));
                        process.terminate();
                    }
                }
            }
        };
        process.ended = true;
        // A process that the task left behind may hold the pipe open.
        let said = match tokio::time::timeout(Duration::from_secs(2), said).await {
            Ok(Ok(lines)) => Vec::from(lines).join("\n"),
            _ => String::new(),
        };
        let status = match status {
            Ok(status) if status.success() => return Ok(true),
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        log.say(
            "error",
            &format!("Error executing job: Python ended with {status}\n{said}"),
            json!({}),
        );
        Ok(false)
    }

    fn start(&self, workload: &Path) -> Result<PythonProcess, PythonError> {
        let mut command = Command::new(&self.program);
        command
            .args([
                "-m",
                "airflow.sdk.execution_time.execute_workload",
                "--json-path",
            ])
            .arg(workload)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            // The task log once more.
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            // Python encrypts what a deferred task keeps with the Fernet key.
            let withheld = |name: &str| is_withheld(name) && !name.contains("FERNET_KEY");
            if name.to_str().is_some_and(withheld) {
                command.env_remove(name);
            }
        }
        let child = command.spawn().map_err(|source| PythonError::Start {
            program: self.program.clone(),
            source,
        })?;
        Ok(PythonProcess {
            child,
            ended: false,
        })
    }
}

/// A running interpreter. Dropping it kills it and everything below it.
struct PythonProcess {
    child: Child,
    ended: bool,
}

impl PythonProcess {
    fn pid(&self) -> Option<Pid> {
        Some(Pid::from_raw(i32::try_from(self.child.id()?).ok()?))
    }

    /// Airflow's supervisor passes the signal on to the task, and reports how it ended.
    fn terminate(&self) {
        if let Some(pid) = self.pid()
            && let Err(error) = kill(pid, Signal::SIGTERM)
        {
            tracing::warn!(%pid, %error, "Python can't be told to end");
        }
    }
}

impl Drop for PythonProcess {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // The task has a process group of its own.
        if let Some(pid) = self.pid() {
            for below in descendants(pid.as_raw()) {
                // It may have ended meanwhile.
                let _ = kill(Pid::from_raw(below), Signal::SIGKILL);
            }
        }
    }
}

async fn last_lines(stream: impl AsyncRead + Unpin) -> VecDeque<String> {
    let mut kept = VecDeque::new();
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return kept,
            Ok(_) => {}
        }
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        let text: String = String::from_utf8_lossy(&line)
            .trim_end()
            .chars()
            .take(2_000)
            .collect();
        kept.push_back(text);
    }
}
