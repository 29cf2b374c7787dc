//! Runs one task process from its start to its final state.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use nix::sys::signal::Signal;
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::lines::read_line;
use super::serve::{Ending, Shared, serve};
use super::task_log::TaskLog;
use super::task_process::TaskProcess;
use crate::airflow::frame::FrameError;
use crate::airflow::supervisor::{StartupDetails, TaskRequest};
use crate::control_plane::ControlPlane;
use crate::secrets::Masker;

/// The longest line kept whole, of the logs socket and of stdout and stderr, in bytes.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// One try of one task, about to begin.
pub struct SupervisedTask {
    /// The started process.
    pub process: TaskProcess,
    /// What the process is told first. `ti_context.should_retry` also decides how a failure is reported.
    pub startup: StartupDetails,
    /// Answers the task's requests and takes its final state.
    pub control_plane: Arc<dyn ControlPlane>,
    /// Takes the task's log.
    pub log: TaskLog,
    /// Time limits.
    pub limits: Limits,
    /// Ends the task early.
    pub stop: StopSignal,
    /// Cancelled as soon as the task has said how it ended: from then on the server expects no heartbeat.
    pub ended: CancellationToken,
}

/// Time limits of a task process that are not the task's own. (`execution_timeout` is the task's.)
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the start of the process until both sockets are connected.
    pub startup: Duration,
    /// Between SIGTERM and SIGKILL. Airflow: 5 s.
    pub kill_grace: Duration,
    /// What a task may still do after its final message. `[core] task_success_overtime`.
    pub overtime: Duration,
    /// How long to wait for the ends of sockets and pipes once the process is gone.
    /// `[workers] socket_cleanup_timeout`.
    pub cleanup: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            startup: Duration::from_secs(30),
            kill_grace: Duration::from_secs(5),
            overtime: Duration::from_secs(20),
            cleanup: Duration::from_secs(60),
        }
    }
}

/// Why a task is ended before it has ended itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The server does not want the task to run any more (404, 409 or 410 to a heartbeat). No state is reported.
    ServerTerminated {
        /// The server's words, for the task log.
        detail: String,
        /// Does the same try run somewhere else?
        elsewhere: bool,
    },
    /// Heartbeats failed for too long. The try has failed.
    HeartbeatsFailed,
    /// The worker shuts down and waits no longer. The try has failed.
    Shutdown {
        /// What to say in the task log.
        message: String,
    },
}

/// Asks a running task to stop.
pub type StopSender = watch::Sender<Option<StopReason>>;
/// Hears of it.
pub type StopSignal = watch::Receiver<Option<StopReason>>;

/// The two ends of the wish that a task stops.
#[must_use]
pub fn stop_channel() -> (StopSender, StopSignal) {
    watch::channel(None)
}

/// How a try ended, in Airflow's words for task instance states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalState {
    Success,
    Failed,
    Skipped,
    Removed,
    UpForRetry,
    UpForReschedule,
    Deferred,
    AwaitingInput,
    /// Stopped because the server said so.
    ServerTerminated,
}

impl FinalState {
    /// The state as the Execution API writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Removed => "removed",
            Self::UpForRetry => "up_for_retry",
            Self::UpForReschedule => "up_for_reschedule",
            Self::Deferred => "deferred",
            Self::AwaitingInput => "awaiting_input",
            Self::ServerTerminated => "server_terminated",
        }
    }

    fn of(message: &TaskRequest) -> Self {
        match message {
            TaskRequest::SucceedTask { .. } => Self::Success,
            TaskRequest::RetryTask { .. } => Self::UpForRetry,
            TaskRequest::RescheduleTask { .. } => Self::UpForReschedule,
            TaskRequest::DeferTask { .. } => Self::Deferred,
            TaskRequest::AwaitInputTask { .. } => Self::AwaitingInput,
            TaskRequest::TaskState { state, .. } if state == "skipped" => Self::Skipped,
            TaskRequest::TaskState { state, .. } if state == "removed" => Self::Removed,
            _ => Self::Failed,
        }
    }
}

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the try ended.
    pub state: FinalState,
    /// Does the control plane know? (True as well when it must not be told.)
    pub delivered: bool,
}

/// Runs a task process to its end and delivers its final state.
///
/// Never fails: whatever goes wrong with the process is a failed try, said in the task log.
pub async fn run_task(task: SupervisedTask) -> Outcome {
    let SupervisedTask {
        mut process,
        startup,
        control_plane,
        log,
        limits,
        mut stop,
        ended,
    } = task;
    let should_retry = startup.ti_context.should_retry;
    let mut readers = JoinSet::new();
    let (stdout, stderr) = process.take_output();
    if let Some(stdout) = stdout {
        let log = log.clone();
        readers.spawn(read_lines(stdout, log.masker().clone(), move |line| {
            log.captured("task.stdout", "info", line)
        }));
    }
    if let Some(stderr) = stderr {
        let log = log.clone();
        readers.spawn(read_lines(stderr, log.masker().clone(), move |line| {
            log.captured("task.stderr", "error", line)
        }));
    }

    let shared = Arc::new(Shared::new(ended.clone()));
    let mut server = JoinSet::new();
    match process.connect(limits.startup).await {
        Ok((comm, logs)) => {
            let to_log = log.clone();
            readers.spawn(read_lines(logs, log.masker().clone(), move |line| {
                to_log.forward(line)
            }));
            server.spawn(serve(
                comm,
                startup,
                control_plane.clone(),
                log.clone(),
                shared.clone(),
            ));
        }
        Err(error) => {
            log.say("error", &error.to_string(), json!({}));
            process.signal(Signal::SIGKILL);
        }
    }

    let (status, stopped) =
        watch_process(&mut process, &mut server, &mut stop, &shared, &log, limits).await;
    if let Some(limit) = process.ran_out_of_memory() {
        let text = format!(
            "The task used more memory than the {limit} bytes that [updraft] task_memory_max allows, and was killed for it"
        );
        log.say("error", &text, json!({}));
    }
    // Nothing that the task has started outlives it, and nobody keeps its pipes open.
    process.clear().await;

    let deadline = Instant::now() + limits.cleanup;
    if matches!(stopped, Some(StopReason::ServerTerminated { .. })) {
        // The server wants to hear nothing more of this try.
        server.shutdown().await;
    }
    while let Ok(Some(served)) = timeout_at(deadline, server.join_next()).await {
        if let Ok(Err(error)) = served {
            say_broken(&log, &error);
        }
    }
    server.shutdown().await;
    let _ = timeout_at(deadline, async {
        while readers.join_next().await.is_some() {}
    })
    .await;
    readers.shutdown().await;
    ended.cancel();

    let ending = shared.ending();
    if matches!(stopped, Some(StopReason::ServerTerminated { .. }))
        && !matches!(ending, Ending::Delivered(_))
    {
        log.say("error", "Task killed!", json!({}));
        return Outcome {
            state: FinalState::ServerTerminated,
            delivered: true,
        };
    }
    finish(
        &*control_plane,
        &log,
        ending,
        status,
        stopped.is_some(),
        should_retry,
    )
    .await
}

/// Waits for the process to end; ends it when it must. Returns its exit status and why it was stopped.
async fn watch_process(
    process: &mut TaskProcess,
    server: &mut JoinSet<Result<(), FrameError>>,
    stop: &mut StopSignal,
    shared: &Shared,
    log: &TaskLog,
    limits: Limits,
) -> (Option<ExitStatus>, Option<StopReason>) {
    let mut stopped = None;
    let mut stop_open = true;
    let mut kill_at: Option<Instant> = None;
    let mut overtime_at: Option<Instant> = None;
    let far = || Instant::now() + Duration::from_secs(86_400);
    loop {
        let mut terminate = false;
        tokio::select! {
            status = process.wait() => match status {
                Ok(status) => return (Some(status), stopped),
                Err(error) => {
                    log.say("error", &format!("the end of the task process can't be awaited: {error}"), json!({}));
                    process.signal(Signal::SIGKILL);
                    return (None, stopped);
                }
            },
            changed = stop.changed(), if stop_open => {
                stop_open = changed.is_ok();
                let reason = stop.borrow_and_update().clone();
                if let (Some(reason), None) = (reason, &stopped) {
                    say_why(log, &reason);
                    stopped = Some(reason);
                    terminate = true;
                }
            }
            () = shared.answered.notified() => {
                overtime_at.get_or_insert(Instant::now() + limits.overtime);
            }
            Some(served) = server.join_next() => match served {
                // The task has closed its side: it has nothing to say any more.
                Ok(Ok(())) => {
                    overtime_at.get_or_insert(Instant::now() + limits.overtime);
                }
                Ok(Err(error)) => {
                    if say_broken(log, &error) {
                        terminate = true;
                    } else {
                        overtime_at.get_or_insert(Instant::now() + limits.kill_grace);
                    }
                }
                Err(error) => {
                    log.say("error", &format!("The supervisor of this task failed: {error}"), json!({}));
                    terminate = true;
                }
            },
            () = sleep_until(kill_at.unwrap_or_else(far)), if kill_at.is_some() => {
                kill_at = None;
                log.say("warning", "The task process did not end on SIGTERM; sending SIGKILL", json!({}));
                process.signal(Signal::SIGKILL);
            }
            () = sleep_until(overtime_at.unwrap_or_else(far)), if overtime_at.is_some() && kill_at.is_none() => {
                overtime_at = None;
                log.say(
                    "warning",
                    "The task process is still running though the task has ended; terminating it. \
                     [core] task_success_overtime sets how long it may",
                    json!({}),
                );
                terminate = true;
            }
        }
        if terminate && kill_at.is_none() {
            process.signal(Signal::SIGTERM);
            kill_at = Some(Instant::now() + limits.kill_grace);
        }
    }
}

/// Says that the task process does not keep to the protocol. Not so for a connection that broke: then the process is
/// about to be reaped, and its exit status says more.
fn say_broken(log: &TaskLog, error: &FrameError) -> bool {
    if matches!(error, FrameError::Io(_)) {
        tracing::debug!(%error, "the conversation with the task process broke");
        return false;
    }
    log.say(
        "error",
        &format!("The task process broke the supervisor protocol: {error}"),
        json!({}),
    );
    true
}

fn say_why(log: &TaskLog, reason: &StopReason) {
    match reason {
        StopReason::ServerTerminated { detail, .. } => log.say(
            "error",
            "Server indicated the task shouldn't be running anymore. Terminating process",
            json!({ "detail": detail }),
        ),
        StopReason::HeartbeatsFailed => {
            log.say(
                "error",
                "Too many failed heartbeats; terminating process",
                json!({}),
            );
        }
        StopReason::Shutdown { message } => log.say("error", message, json!({})),
    }
}

/// Delivers what is not delivered yet; decides the state of a process that died without a word.
async fn finish(
    control_plane: &dyn ControlPlane,
    log: &TaskLog,
    ending: Ending,
    status: Option<ExitStatus>,
    stopped: bool,
    should_retry: bool,
) -> Outcome {
    let message = match ending {
        Ending::Delivered(message) => {
            if status.is_none_or(|status| !status.success()) {
                say_how_it_died(log, status, "warning");
            }
            return Outcome {
                state: FinalState::of(&message),
                delivered: true,
            };
        }
        Ending::Undelivered(message) => message,
        Ending::Open => {
            if !stopped || status.is_none_or(|status| status.code() == Some(0)) {
                say_how_it_died(log, status, "error");
            }
            let end_date = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
            if should_retry {
                TaskRequest::RetryTask {
                    end_date,
                    rendered_map_index: None,
                    retry_delay_seconds: None,
                    retry_reason: None,
                }
            } else {
                TaskRequest::TaskState {
                    state: "failed".into(),
                    end_date: Some(end_date),
                    rendered_map_index: None,
                }
            }
        }
    };
    let state = FinalState::of(&message);
    match control_plane.handle(message).await {
        Ok(_) => Outcome {
            state,
            delivered: true,
        },
        Err(error) => {
            let text = format!(
                "The state \"{}\" of this try could not be delivered: {error}",
                state.as_str()
            );
            log.say("error", &text, json!({}));
            Outcome {
                state,
                delivered: false,
            }
        }
    }
}

fn say_how_it_died(log: &TaskLog, status: Option<ExitStatus>, level: &str) {
    let Some(status) = status else { return };
    if let Some(signal) = status.signal() {
        let name = Signal::try_from(signal)
            .map_or_else(|_| signal.to_string(), |signal| signal.to_string());
        let hint = if signal == Signal::SIGKILL as i32 {
            " Likely out of memory, or killed by hand."
        } else {
            ""
        };
        log.say(
            if level == "error" { "critical" } else { level },
            &format!("The task process was ended by signal {name}.{hint}"),
            json!({"signal": signal, "signal_name": name}),
        );
    } else if let Some(code) = status.code() {
        log.say(
            level,
            &format!("The task process ended with exit status {code} and without a final state"),
            json!({ "exit_code": code }),
        );
    }
}

async fn read_lines<R, F>(reader: R, masker: Masker, take: F)
where
    R: AsyncRead + Unpin,
    F: Fn(&[u8]),
{
    let mut reader = BufReader::new(reader);
    loop {
        match read_line(&mut reader, MAX_LINE).await {
            Ok(Some(line)) if line.cut == 0 => take(&line.bytes),
            Ok(Some(line)) => {
                // No JSON any more: it goes into the log as text. Masked first: of a secret that is cut in two nothing
                // may be left.
                let text = String::from_utf8_lossy(&line.bytes);
                let text = masker.mask_str(&text);
                let (head, _) = text.split_at(text.floor_char_boundary(64 * 1024));
                let left_out = line.bytes.len().saturating_sub(head.len()) + line.cut;
                take(format!("{head} ... ({left_out} bytes of this line are left out)").as_bytes());
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "a log stream of a task process broke");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
