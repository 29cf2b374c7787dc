//! The life of a worker: register, then heartbeats and jobs until it is told to end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use chrono::Utc;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::edge_api::EdgeError;
use super::job::run_job;
use super::settings::Settings;
use super::state::Mode;
use crate::airflow::edge::{EdgeJobFetched, WorkerQueuesBody, WorkerState, WorkerStateBody};
use crate::supervisor::heartbeat::stop_task;
use crate::supervisor::{StopReason, StopSender, stop_channel};

/// How long the worker tries to say goodbye.
const GOODBYE: Duration = Duration::from_secs(10);

/// Between a job's arrival and the question for the next: the server shall not be busy with that while the new task
/// waits for its leave to start.
const HEAD_START: Duration = Duration::from_millis(50);

/// A wish that the worker ends, such as SIGTERM. The first drains, the second terminates the running tasks.
pub type Shutdown = mpsc::UnboundedReceiver<()>;

/// Why a worker ended otherwise than by request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The server does not take this worker.
    #[error(transparent)]
    Refused(#[from] EdgeError),
    /// Tasks had to be given up.
    #[error("{0} tasks did not end in time and were killed")]
    Abandoned(usize),
}

struct Job {
    name: String,
    slots: u32,
    stop: StopSender,
}

struct Worker {
    settings: Arc<Settings>,
    mode: Mode,
    jobs: JoinSet<()>,
    running: HashMap<Id, Job>,
    started: String,
    versions_match: bool,
}

/// Runs a worker until `shutdown` and the end of its jobs.
///
/// # Errors
/// [`WorkerError::Refused`] when the server will never take this worker as it is; the text says what to change.
pub async fn run(settings: Settings, mut shutdown: Shutdown) -> Result<(), WorkerError> {
    let mode = Mode::new(settings.queues.clone(), settings.concurrency);
    let mut worker = Worker {
        settings: Arc::new(settings),
        mode,
        jobs: JoinSet::new(),
        running: HashMap::new(),
        started: Utc::now()
            .naive_utc()
            .format("%Y-%m-%dT%H:%M:%S%.6f")
            .to_string(),
        versions_match: true,
    };
    if !worker.register(&mut shutdown).await? {
        return Ok(());
    }
    let end = worker.serve(&mut shutdown).await;
    worker.say_goodbye().await;
    end
}

fn patience() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_jitter()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(8))
        .without_max_times()
        .build()
}

/// Waits that grow to 8 to 16 s: an administrator who restarts a server does not wait a minute for its workers.
fn next_wait(patience: &mut ExponentialBackoff) -> Duration {
    patience.next().unwrap_or(Duration::from_secs(8))
}

impl Worker {
    /// Registers, however long it takes until the server is there. `false`: told to end meanwhile.
    async fn register(&mut self, shutdown: &mut Shutdown) -> Result<bool, WorkerError> {
        let mut patience = patience();
        loop {
            let body = self.body(WorkerState::Starting);
            let attempt = self.settings.edge.register(&self.settings.name, &body);
            let result = tokio::select! {
                result = attempt => result,
                _ = shutdown.recv() => return Ok(false),
            };
            match result {
                Ok(()) => break,
                Err(error) if error.is_transient() => {
                    let wait = next_wait(&mut patience);
                    tracing::warn!(%error, "not registered yet; trying again in {:.1} s", wait.as_secs_f64());
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        _ = shutdown.recv() => return Ok(false),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        let queues = self
            .mode
            .queues
            .as_ref()
            .map_or_else(|| "every queue".to_owned(), |queues| queues.join(", "));
        tracing::info!(
            "worker {:?} is registered and serves {queues} with {} slots",
            self.settings.name,
            self.mode.concurrency
        );
        Ok(true)
    }

    async fn serve(&mut self, shutdown: &mut Shutdown) -> Result<(), WorkerError> {
        let mut patience_left = patience();
        let mut heartbeat_at = Instant::now();
        let mut fetch_at = Instant::now();
        let mut terminate_at: Option<Instant> = None;
        let mut give_up_at: Option<Instant> = None;
        let mut told = 0;
        loop {
            // The server is asked first, and told about the end of jobs in between.
            if self.mode.draining && self.running.is_empty() {
                return Ok(());
            }
            let now = Instant::now();
            let round = async {
                if heartbeat_at <= now {
                    return Some(self.heartbeat().await.map(Round::Beaten));
                }
                if fetch_at <= now && self.may_fetch() {
                    return Some(self.fetch().await.map(Round::Fetched));
                }
                None
            };
            // Never dropped half-way: the server has given the job away by the time its answer is on the way.
            let round = round.await;
            while shutdown.try_recv().is_ok() {
                told += 1;
                self.drain(told, &mut terminate_at, &mut give_up_at);
                heartbeat_at = Instant::now();
            }
            match round {
                Some(Ok(Round::Beaten(changes))) => {
                    patience_left = patience();
                    let soon = if changes.disagreement {
                        self.settings.poll_interval.min(Duration::from_secs(1))
                    } else {
                        self.settings.heartbeat_interval
                    };
                    heartbeat_at = Instant::now() + soon;
                    if changes.shutdown && told == 0 {
                        tracing::info!("the server asks this worker to shut down");
                        told = 1;
                        self.drain(told, &mut terminate_at, &mut give_up_at);
                        heartbeat_at = Instant::now();
                    }
                    continue;
                }
                Some(Ok(Round::Fetched(Some(job)))) => {
                    patience_left = patience();
                    self.start(job);
                    // The server likes to know that this worker is busy now. More jobs may be waiting.
                    heartbeat_at = heartbeat_at.min(Instant::now() + Duration::from_millis(500));
                    fetch_at = Instant::now() + HEAD_START;
                    continue;
                }
                Some(Ok(Round::Fetched(None))) => {
                    patience_left = patience();
                    fetch_at = Instant::now() + self.settings.poll_interval;
                }
                Some(Err(EdgeError::UnknownWorker)) => {
                    tracing::warn!("the server has forgotten this worker; registering again");
                    if self.mode.draining {
                        return Ok(());
                    }
                    if !self.register(shutdown).await? {
                        told += 1;
                        self.drain(told, &mut terminate_at, &mut give_up_at);
                    }
                    heartbeat_at = Instant::now();
                    continue;
                }
                Some(Err(error @ EdgeError::Versions { .. })) => {
                    tracing::error!(%error, "the server has been upgraded; draining");
                    if told == 0 {
                        told = 1;
                        self.drain(told, &mut terminate_at, &mut give_up_at);
                    }
                    heartbeat_at = Instant::now() + self.settings.heartbeat_interval;
                    fetch_at = heartbeat_at;
                }
                Some(Err(error)) => {
                    let wait = next_wait(&mut patience_left);
                    tracing::warn!(%error, "asking the server again in {:.1} s; running tasks go on", wait.as_secs_f64());
                    heartbeat_at = heartbeat_at.max(Instant::now() + wait);
                    fetch_at = fetch_at.max(Instant::now() + wait);
                }
                None => {}
            }
            self.wait(
                &mut heartbeat_at,
                &mut fetch_at,
                &mut terminate_at,
                &mut give_up_at,
                &mut told,
                shutdown,
            )
            .await?;
        }
    }

    /// Sleeps until there is something to do.
    async fn wait(
        &mut self,
        heartbeat_at: &mut Instant,
        fetch_at: &mut Instant,
        terminate_at: &mut Option<Instant>,
        give_up_at: &mut Option<Instant>,
        told: &mut u32,
        shutdown: &mut Shutdown,
    ) -> Result<(), WorkerError> {
        let next = if self.may_fetch() {
            (*heartbeat_at).min(*fetch_at)
        } else {
            *heartbeat_at
        };
        let far = Instant::now() + Duration::from_secs(86_400);
        tokio::select! {
            _ = shutdown.recv() => {
                *told += 1;
                self.drain(*told, terminate_at, give_up_at);
                *heartbeat_at = Instant::now();
            }
            Some(ended) = self.jobs.join_next_with_id(), if !self.jobs.is_empty() => {
                let id = match &ended {
                    Ok((id, ())) => *id,
                    Err(error) => {
                        tracing::error!(%error, "a job's supervisor failed");
                        error.id()
                    }
                };
                self.running.remove(&id);
                // A slot is free, and the next task may be waiting for just that.
                *fetch_at = Instant::now();
                *heartbeat_at = (*heartbeat_at).min(Instant::now() + Duration::from_millis(500));
            }
            () = sleep_until(terminate_at.unwrap_or(far)), if terminate_at.is_some() => {
                *terminate_at = None;
                self.terminate("The worker's drain timeout ([edge] drain_timeout_sec) has expired; terminating the task");
                *give_up_at = Some(Instant::now() + self.settings.drain_kill_grace);
            }
            () = sleep_until(give_up_at.unwrap_or(far)), if give_up_at.is_some() => {
                let left = self.running.len();
                self.jobs.shutdown().await;
                self.running.clear();
                return Err(WorkerError::Abandoned(left));
            }
            () = sleep_until(next) => {}
        }
        Ok(())
    }

    /// The `told`-th wish to end.
    fn drain(
        &mut self,
        told: u32,
        terminate_at: &mut Option<Instant>,
        give_up_at: &mut Option<Instant>,
    ) {
        self.mode.draining = true;
        if told >= 2 && give_up_at.is_none() {
            *terminate_at = None;
            self.terminate("The worker was told to end at once; terminating the task");
            *give_up_at = Some(Instant::now() + self.settings.drain_kill_grace);
            return;
        }
        let jobs = self.running.len();
        if told == 1 && jobs > 0 {
            let policy = match self.settings.drain_timeout {
                Some(limit) => format!("for {} s", limit.as_secs_f64()),
                None => "as long as it takes".to_owned(),
            };
            tracing::info!(
                "ending: no new jobs; waiting for {jobs} running tasks {policy} (once more: terminate them)"
            );
            *terminate_at = self
                .settings
                .drain_timeout
                .map(|limit| Instant::now() + limit);
        }
    }

    fn terminate(&self, message: &str) {
        tracing::warn!("terminating {} running tasks", self.running.len());
        for job in self.running.values() {
            tracing::info!(job = job.name, "terminating");
            stop_task(
                &job.stop,
                StopReason::Shutdown {
                    message: message.to_owned(),
                },
            );
        }
    }

    fn start(&mut self, job: EdgeJobFetched) {
        let (stop, _) = stop_channel();
        let (name, slots) = (job.key.to_string(), job.concurrency_slots);
        let handle = self
            .jobs
            .spawn(run_job(self.settings.clone(), job, stop.clone()));
        self.running.insert(handle.id(), Job { name, slots, stop });
    }

    fn free_slots(&self) -> u32 {
        let used = self
            .running
            .values()
            .map(|job| job.slots)
            .fold(0, u32::saturating_add);
        self.mode.concurrency.saturating_sub(used)
    }

    fn may_fetch(&self) -> bool {
        self.mode.takes_jobs() && self.free_slots() > 0
    }

    async fn heartbeat(&mut self) -> Result<super::state::Changes, EdgeError> {
        let state = self.mode.state(self.running.len());
        let answer = self
            .settings
            .edge
            .heartbeat(&self.settings.name, &self.body(state))
            .await?;
        if let Some(versions_match) = answer.versions_match {
            self.versions_match = versions_match;
        }
        let before = self.mode.clone();
        let changes = self.mode.follow(state, &answer);
        if before.maintenance != self.mode.maintenance {
            let what = if self.mode.maintenance {
                "entered"
            } else {
                "left"
            };
            tracing::info!(
                comments = self.mode.maintenance_comments,
                "maintenance mode {what}"
            );
        }
        if before.queues != self.mode.queues || before.concurrency != self.mode.concurrency {
            tracing::info!(queues = ?self.mode.queues, concurrency = self.mode.concurrency, "the server has set queues or slots");
        }
        Ok(changes)
    }

    async fn fetch(&self) -> Result<Option<EdgeJobFetched>, EdgeError> {
        let body = WorkerQueuesBody {
            queues: self.mode.queues.clone(),
            team_name: self.settings.team_name.clone(),
            free_concurrency: self.free_slots(),
            supports_task_instance_uuid: true,
        };
        self.settings.edge.fetch(&self.settings.name, &body).await
    }

    fn body(&self, state: WorkerState) -> WorkerStateBody {
        let offline = matches!(
            state,
            WorkerState::Offline | WorkerState::OfflineMaintenance
        );
        let status = match (offline, self.versions_match) {
            (true, _) => 0,
            (false, true) => 20,
            (false, false) => 30,
        };
        let mut sysinfo = Map::new();
        let mut put = |name: &str, value: Value| sysinfo.insert(name.to_owned(), value);
        put("status", status.into());
        if status == 30 {
            put("status_text", "Healthy but version mismatch".into());
        }
        put(
            "airflow_version",
            self.settings.airflow_version.clone().into(),
        );
        put(
            "edge_provider_version",
            self.settings.edge_provider_version.clone().into(),
        );
        put("python_version", "none".into());
        put(
            "runtime",
            concat!("updraft ", env!("CARGO_PKG_VERSION")).into(),
        );
        put("worker_start_time", self.started.clone().into());
        put("concurrency", self.mode.concurrency.into());
        put("free_concurrency", self.free_slots().into());
        WorkerStateBody {
            state,
            jobs_active: self.running.len(),
            queues: self.mode.queues.clone(),
            team_name: self.settings.team_name.clone(),
            maintenance_comments: self.mode.maintenance_comments.clone(),
            sysinfo,
        }
    }

    /// Reports `offline`, so that the name is free at once.
    async fn say_goodbye(&mut self) {
        self.mode.draining = true;
        self.running.clear();
        let body = self.body(self.mode.state(0));
        let goodbye = async {
            loop {
                match self
                    .settings
                    .edge
                    .heartbeat(&self.settings.name, &body)
                    .await
                {
                    Err(error) if error.is_transient() => {
                        tokio::time::sleep(Duration::from_secs(1)).await
                    }
                    other => return other,
                }
            }
        };
        match timeout(GOODBYE, goodbye).await {
            Ok(Ok(_)) => tracing::info!("offline"),
            Ok(Err(error)) => tracing::warn!(%error, "could not go offline in good order"),
            Err(_) => {
                tracing::warn!("could not go offline in good order: the server can't be reached")
            }
        }
    }
}

enum Round {
    Beaten(super::state::Changes),
    Fetched(Option<EdgeJobFetched>),
}

#[cfg(test)]
mod tests;
