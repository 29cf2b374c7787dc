//! One job, from its arrival to its final state.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use chrono::{SecondsFormat, Utc};
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio_util::sync::CancellationToken;

use super::edge_api::EdgeApi;
use super::log_file::LogFile;
use super::log_push::LogPush;
use super::python::PythonRuntime;
use super::runtimes::Runtime;
use super::settings::Settings;
use crate::airflow::edge::{EdgeJobFetched, ExecuteTask, JobKey, Workload};
use crate::airflow::supervisor::StartupDetails;
use crate::control_plane::execution_api::{ApiError, ExecutionApi, Runner};
use crate::supervisor::heartbeat::keep_alive;
use crate::supervisor::{
    FinalState, LogSink, Outcome, StopReason, StopSender, StopSignal, SupervisedTask, TaskCommand,
    TaskLog, TaskProcess, run_task,
};

/// How often a running task's log is pushed, at most.
const LONGEST_PUSH_INTERVAL: Duration = Duration::from_secs(5);

/// How long a job that has ended waits for the server's answer to the news of its start.
const ANNOUNCEMENT: Duration = Duration::from_secs(5);

/// What the Edge API is told about a job in the end. This is the executor's affair: a task that failed in an orderly
/// way is a job that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobEnd {
    Success,
    Failed,
    /// The same try runs elsewhere: a word about this job would end that one.
    Unsaid,
}

/// How far a job has come.
#[derive(Default)]
struct Progress {
    /// The server knows that the task runs.
    begun: CancellationToken,
    /// How the try ended, and how long its process took for it; what a Python has run, it has ended itself.
    ran: OnceLock<(&'static str, Option<Duration>)>,
}

/// Runs a job to its end. Everything that goes wrong is reported; nothing is returned.
pub async fn run_job(settings: Arc<Settings>, job: EdgeJobFetched, stop: StopSender) {
    let arrived = Instant::now();
    let progress = Progress::default();
    let EdgeJobFetched { key, command, .. } = job;
    // Python reads the workload itself.
    let workload = match settings.runtimes.python {
        Some(_) => command.clone(),
        None => Value::Null,
    };
    let end = match Workload::read(command) {
        Ok(Workload::ExecuteTask(task)) => {
            tracing::info!(job = %key, "started");
            run_execute_task(&settings, &key, *task, workload, stop, &progress).await
        }
        Ok(Workload::Unsupported(kind)) => match &settings.runtimes.python {
            Some((python, _)) => {
                tracing::info!(job = %key, "started: a {kind}, on Python");
                announce_running(settings.edge.clone(), key.clone()).await;
                run_python_workload(&settings, &key, python, &workload, &stop).await
            }
            None => {
                tracing::error!(
                    job = %key,
                    "the job is a {kind}, which names Python code: Updraft can't run it. Name a Python with Airflow in \
                     [updraft] python, or let this worker serve queues of its own (--queues), not the default queue"
                );
                JobEnd::Failed
            }
        },
        Err(error) => {
            tracing::error!(job = %key, %error, "the job is refused");
            JobEnd::Failed
        }
    };
    let state = match end {
        JobEnd::Success => Some("success"),
        JobEnd::Failed => Some("failed"),
        JobEnd::Unsaid => None,
    };
    if let Some(state) = state
        && let Err(error) = settings.edge.set_job_state(&key, state).await
    {
        tracing::error!(job = %key, %error, "the job's end ({state}) could not be reported");
    }
    let ran = progress.ran.get();
    settings.metrics.job_ended(
        ran.map_or("not_started", |(state, _)| state),
        arrived.elapsed(),
        ran.and_then(|(_, took)| *took),
    );
}

async fn run_execute_task(
    settings: &Arc<Settings>,
    key: &JobKey,
    task: ExecuteTask,
    workload: Value,
    stop: StopSender,
    progress: &Progress,
) -> JobEnd {
    // "running" is a courtesy to the UI. It must not delay the task, and never arrive after the end.
    let announce = async {
        progress.begun.cancelled().await;
        announce_running(settings.edge.clone(), key.clone()).await;
    };
    tokio::pin!(announce);
    let work = supervise(settings, key, task, workload, stop, progress);
    tokio::pin!(work);
    tokio::select! {
        end = &mut work => {
            // A request that is on its way can't be called back: the server may take it after the one that follows.
            if progress.begun.is_cancelled() && tokio::time::timeout(ANNOUNCEMENT, announce).await.is_err() {
                tracing::warn!(job = %key, "the job has ended before the server had heard of its start");
            }
            return end;
        }
        () = &mut announce => {}
    }
    work.await
}

async fn announce_running(edge: EdgeApi, key: JobKey) {
    if let Err(error) = edge.set_job_state(&key, "running").await {
        tracing::warn!(job = %key, %error, "the job's start could not be reported");
    }
}

/// A sink for a task whose log can't be kept: the worker's own log has said why.
struct NoLog;

impl LogSink for NoLog {
    fn write(&mut self, record: &serde_json::Map<String, Value>) {
        tracing::debug!(event = ?record.get("event"), "task log");
    }
}

/// The log file of a job. Where the log folder can't be written, a temporary file takes its place, so that the API
/// server gets the log all the same; it is deleted with the returned guard.
fn open_log(
    settings: &Settings,
    key: &JobKey,
    log_path: &str,
) -> Option<(LogFile, PathBuf, Option<NamedTempFile>)> {
    let opened = settings
        .logs
        .path(log_path)
        .and_then(|path| Ok((settings.logs.open(&path)?, path)));
    let error = match opened {
        Ok((file, path)) => return Some((file, path, None)),
        Err(error) => error,
    };
    let temporary = NamedTempFile::with_prefix("updraft-task-log-")
        .ok()
        .and_then(|guard| {
            let path = guard.path().to_owned();
            Some((settings.logs.open(&path).ok()?, path, Some(guard)))
        });
    if temporary.is_some() {
        tracing::warn!(job = %key, %error, "the task log goes to the API server only");
    } else {
        tracing::error!(job = %key, %error, "the task runs without a log");
    }
    temporary
}

async fn supervise(
    settings: &Arc<Settings>,
    key: &JobKey,
    task: ExecuteTask,
    workload: Value,
    stop: StopSender,
    progress: &Progress,
) -> JobEnd {
    let log_path = task
        .log_path
        .clone()
        .unwrap_or_else(|| default_log_path(key));
    let pushed = CancellationToken::new();
    let mut pusher = None;
    let mut temporary = None;
    let sink: Box<dyn LogSink> = match open_log(settings, key, &log_path) {
        Some((mut file, path, guard)) => {
            temporary = guard;
            if let Some(chunk) = settings.push_logs {
                let push = LogPush::new(
                    settings.edge.clone(),
                    key.clone(),
                    path,
                    chunk,
                    file.spill(),
                );
                let interval = settings.poll_interval.min(LONGEST_PUSH_INTERVAL);
                pusher = Some(tokio::spawn(push.follow(interval, pushed.clone())));
            }
            Box::new(file)
        }
        None => Box::new(NoLog),
    };
    let log = TaskLog::new(sink, settings.masker.fork());
    let end = match settings.runtimes.choose(&settings.bundles, &task).await {
        Ok(Runtime::Native) => {
            run_try(settings, key, task, &settings.command, &log, stop, progress).await
        }
        Ok(Runtime::Executable(program)) => {
            tracing::info!(job = %key, executable = %program.display(), "runs in an executable bundle");
            let command = TaskCommand {
                program,
                arguments: Vec::new(),
                environment: settings.command.environment.clone(),
                cgroups: settings.command.cgroups.clone(),
            };
            run_try(settings, key, task, &command, &log, stop, progress).await
        }
        Ok(Runtime::Python { reason }) => {
            progress.begun.cancel();
            let _ = progress.ran.set(("on_python", None));
            run_on_python(settings, key, &reason, &workload, &log, &stop).await
        }
        Err(error) => {
            tracing::error!(job = %key, %error, "not started");
            log.say("error", &error.to_string(), json!({}));
            JobEnd::Failed
        }
    };
    drop(log);
    pushed.cancel();
    if let Some(pusher) = pusher
        && let Err(error) = pusher.await
    {
        tracing::error!(job = %key, %error, "pushing a task log failed");
    }
    drop(temporary);
    end
}

/// As `[logging] log_filename_template` has it by default; servers send the rendered path with the job.
fn default_log_path(key: &JobKey) -> String {
    let mapped = if key.map_index >= 0 {
        format!("map_index={}/", key.map_index)
    } else {
        String::new()
    };
    format!(
        "dag_id={}/run_id={}/task_id={}/{mapped}attempt={}.log",
        key.dag_id, key.run_id, key.task_id, key.try_number
    )
}

async fn run_try(
    settings: &Arc<Settings>,
    key: &JobKey,
    task: ExecuteTask,
    command: &TaskCommand,
    log: &TaskLog,
    stop: StopSender,
    progress: &Progress,
) -> JobEnd {
    // The process starts while the server is told: it waits for its StartupDetails anyway, and its id is the one that
    // the server compares heartbeats with.
    let process = match TaskProcess::spawn(command).await {
        Ok(process) => process,
        Err(error) => {
            tracing::error!(job = %key, %error, "no task process");
            log.say("error", &error.to_string(), json!({}));
            return JobEnd::Failed;
        }
    };
    let runner = Runner {
        hostname: settings.name.clone(),
        unixname: settings.unixname.clone(),
        pid: process.pid(),
    };
    let api = Arc::new(ExecutionApi::new(
        settings.execution.clone(),
        task.ti.id.clone(),
        runner,
        task.token,
    ));
    let context = match api.run().await {
        Ok(context) => context,
        Err(error) => return not_started(key, log, &error),
    };
    progress.begun.cancel();
    let start_date = context
        .start_date
        .clone()
        .unwrap_or_else(|| Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true));
    let startup = StartupDetails {
        ti: task.ti,
        dag_rel_path: task.dag_rel_path,
        bundle_info: task.bundle_info,
        start_date,
        ti_context: context,
        sentry_integration: task.sentry_integration,
    };
    let ended = CancellationToken::new();
    let signal: StopSignal = stop.subscribe();
    let heart = tokio::spawn({
        let (api, ended, stop) = (api.clone(), ended.clone(), stop.clone());
        let limits = settings.task_heartbeats;
        async move { keep_alive(&api, limits, &stop, ended).await }
    });
    let told = Instant::now();
    let outcome = run_task(SupervisedTask {
        process,
        startup,
        control_plane: api,
        log: log.clone(),
        limits: settings.limits,
        stop: signal,
        ended,
    })
    .await;
    heart.abort();
    let _ = progress
        .ran
        .set((outcome.state.as_str(), Some(told.elapsed())));
    tracing::info!(job = %key, state = outcome.state.as_str(), "ended");
    job_end(&outcome, stop.borrow().as_ref())
}

/// Airflow's own supervisor sees to everything but the end of the job.
async fn run_on_python(
    settings: &Settings,
    key: &JobKey,
    reason: &str,
    workload: &Value,
    log: &TaskLog,
    stop: &StopSender,
) -> JobEnd {
    let Some((python, _)) = &settings.runtimes.python else {
        return JobEnd::Failed;
    };
    log.say(
        "info",
        &format!(
            "Updraft does not run this task natively: {}. It runs on {}",
            reason.trim_end_matches('.'),
            python.program().display()
        ),
        json!({}),
    );
    let end = match python.run(workload, log, stop.subscribe()).await {
        Ok(true) => JobEnd::Success,
        Ok(false) => JobEnd::Failed,
        Err(error) => {
            tracing::error!(job = %key, %error, "not started");
            log.say("error", &error.to_string(), json!({}));
            JobEnd::Failed
        }
    };
    tracing::info!(job = %key, "ended on Python");
    end
}

/// A workload that is no task, such as the callback of a deadline. Its log stays here: the server takes logs of tasks
/// only.
async fn run_python_workload(
    settings: &Settings,
    key: &JobKey,
    python: &PythonRuntime,
    workload: &Value,
    stop: &StopSender,
) -> JobEnd {
    let log_path = workload.get("log_path").and_then(Value::as_str);
    let file = log_path.and_then(|path| open_log(settings, key, path));
    let (sink, _temporary): (Box<dyn LogSink>, _) = match file {
        Some((file, _, temporary)) => (Box::new(file), temporary),
        None => (Box::new(NoLog), None),
    };
    let log = TaskLog::new(sink, settings.masker.fork());
    match python.run(workload, &log, stop.subscribe()).await {
        Ok(true) => JobEnd::Success,
        Ok(false) => {
            tracing::error!(job = %key, log = log_path, "failed on Python");
            JobEnd::Failed
        }
        Err(error) => {
            tracing::error!(job = %key, %error, "not started");
            JobEnd::Failed
        }
    }
}

fn job_end(outcome: &Outcome, stopped: Option<&StopReason>) -> JobEnd {
    match (outcome.state, stopped) {
        (
            FinalState::ServerTerminated,
            Some(StopReason::ServerTerminated {
                elsewhere: true, ..
            }),
        ) => JobEnd::Unsaid,
        // Moves on a task instance that was cleared while it ran.
        (FinalState::ServerTerminated, _) => JobEnd::Failed,
        _ if outcome.delivered => JobEnd::Success,
        _ => JobEnd::Failed,
    }
}

/// The server did not let the task begin.
fn not_started(key: &JobKey, log: &TaskLog, error: &ApiError) -> JobEnd {
    let previous = match error {
        ApiError::Refused { detail, .. } => detail
            .get("previous_state")
            .and_then(|state| state.as_str()),
        _ => None,
    };
    let (text, end) = match (error.status(), previous) {
        (Some(409), Some("running")) => {
            ("the same try runs somewhere else already", JobEnd::Unsaid)
        }
        (Some(409), _) => ("the task instance is not to run any more", JobEnd::Failed),
        (Some(404), _) => ("the server knows no such try any more", JobEnd::Failed),
        (Some(401 | 403), _) => (
            "the job's token is not accepted: it waited longer than [scheduler] task_queued_timeout for a worker, or \
             the API servers do not share one [api_auth] jwt_secret",
            JobEnd::Failed,
        ),
        _ => (
            "the server could not be told that the task runs",
            JobEnd::Failed,
        ),
    };
    tracing::error!(job = %key, %error, "not started: {text}");
    log.say(
        "error",
        &format!("The task was not started: {text}"),
        json!({"detail": error.to_string()}),
    );
    end
}
