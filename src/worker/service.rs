//! The life of a worker: register, then heartbeats and jobs until it is told to end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use chrono::Utc;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use super::control::{ControlSocket, Wish, Wishes};
use super::edge_api::EdgeError;
use super::http::Endpoint;
use super::job::run_job;
use super::settings::Settings;
use super::state::{Changes, Mode};
use super::status::{Running, Snapshot, Status};
use super::systemd::Systemd;
use crate::airflow::edge::{
    EdgeJobFetched, WorkerQueuesBody, WorkerSetStateReturn, WorkerState, WorkerStateBody,
};
use crate::supervisor::cgroup::Cgroups;
use crate::supervisor::heartbeat::stop_task;
use crate::supervisor::{StopReason, StopSender, stop_channel};
use crate::task::confine;
use crate::toolset::work_folder;

/// How long the worker tries to say goodbye.
const GOODBYE: Duration = Duration::from_secs(10);

/// Between a job's arrival and the question for the next: the server shall not be busy with that while the new task
/// waits for its leave to start.
const HEAD_START: Duration = Duration::from_millis(50);

/// How long systemd shall wait on for a worker that waits for its server.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// Why a worker ended otherwise than by request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The server does not take this worker.
    #[error(transparent)]
    Refused(#[from] EdgeError),
    /// Health and metrics can't be served.
    #[error("[updraft] metrics_address is {address}, where nothing can be served: {source}")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Tasks had to be given up.
    #[error("{0} tasks did not end in time and were killed")]
    Abandoned(usize),
}

struct Job {
    running: Running,
    stop: StopSender,
}

struct Worker {
    settings: Arc<Settings>,
    mode: Mode,
    jobs: JoinSet<()>,
    running: HashMap<Id, Job>,
    started: String,
    versions_match: bool,
    drain: Drain,
    systemd: Systemd,
    status: watch::Sender<Snapshot>,
    /// When the server last took a heartbeat.
    last_heartbeat: Option<Instant>,
    /// When systemd's watchdog wants to hear from the worker.
    alive_at: Option<Instant>,
    /// How many wishes were followed.
    wishes_followed: u64,
    /// Does the server know this worker?
    registered: bool,
    /// Why the server takes this worker no longer. It ends when its jobs have ended.
    refused: Option<EdgeError>,
    heartbeat_at: Instant,
    fetch_at: Instant,
    patience: ExponentialBackoff,
}

/// How far the end of the worker has come.
#[derive(Default)]
struct Drain {
    /// How often it was told to end.
    told: u32,
    /// When running tasks are asked to end.
    terminate_at: Option<Instant>,
    /// When they are killed.
    give_up_at: Option<Instant>,
}

/// What the server said.
enum Answer {
    Registered(Result<(), EdgeError>),
    /// To a heartbeat that reported this state.
    Beaten(WorkerState, Result<WorkerSetStateReturn, EdgeError>),
    Fetched(Result<Option<EdgeJobFetched>, EdgeError>),
}

/// A request on its way.
struct Request {
    answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
    /// By the time the answer to such a one travels, the server has given a job away: it is never dropped.
    is_fetch: bool,
}

/// Runs a worker until a wish that it ends and the end of its jobs. `tell` is where commands on this machine are passed
/// on to `wishes`.
///
/// # Errors
/// [`WorkerError::Refused`] when the server will never take this worker as it is; the text says what to change.
pub async fn run(
    mut settings: Settings,
    tell: mpsc::UnboundedSender<Wish>,
    mut wishes: Wishes,
) -> Result<(), WorkerError> {
    let mode = Mode::new(settings.queues.clone(), settings.concurrency);
    // Dag files may come later, from a mount or a copy: no reason to end.
    for bundle in settings.bundles.all() {
        if let Err(error) = bundle.root() {
            tracing::warn!("{error}. Its tasks will fail");
        }
    }
    say_what_confines(&mut settings);
    let now = Instant::now();
    let started = Utc::now()
        .naive_utc()
        .format("%Y-%m-%dT%H:%M:%S%.6f")
        .to_string();
    let settings = Arc::new(settings);
    let (status, watched) = watch::channel(Snapshot::new(&settings.name, &started));
    let _endpoint = endpoint(&settings, &watched).await?;
    let _control = control(&settings, tell, watched);
    let mut worker = Worker {
        settings,
        mode,
        jobs: JoinSet::new(),
        running: HashMap::new(),
        started,
        versions_match: true,
        drain: Drain::default(),
        systemd: Systemd::from_env(),
        status,
        last_heartbeat: None,
        alive_at: None,
        wishes_followed: 0,
        registered: false,
        refused: None,
        heartbeat_at: now,
        fetch_at: now,
        patience: patience(),
    };
    sweep_leftovers();
    if !worker.register(&mut wishes).await? {
        return Ok(());
    }
    let end = worker.serve(&mut wishes).await;
    if let Some(error) = worker.refused.take() {
        // The name may be another worker's by now: nothing is said about it.
        return end.and(Err(error.into()));
    }
    worker.say_goodbye().await;
    end
}

async fn endpoint(
    settings: &Settings,
    status: &watch::Receiver<Snapshot>,
) -> Result<Option<Endpoint>, WorkerError> {
    let Some(address) = settings.metrics_address else {
        return Ok(None);
    };
    let metrics = Arc::clone(&settings.metrics);
    let endpoint = Endpoint::start(
        address,
        settings.heartbeat_interval,
        metrics,
        status.clone(),
    )
    .await
    .map_err(|source| WorkerError::Metrics { address, source })?;
    tracing::info!(
        "/health and /metrics are served at http://{}",
        endpoint.address()
    );
    Ok(Some(endpoint))
}

/// Makes ready what bounds task processes, and says once what the kernel does not do.
fn say_what_confines(settings: &mut Settings) {
    match Cgroups::prepare(settings.allowance) {
        Ok(cgroups) => settings.command.cgroups = cgroups.map(Arc::new),
        Err(error) => tracing::warn!(
            "[updraft] task_memory_max and task_cpu_max have no effect: the worker may not limit its tasks ({error}). \
             A systemd unit needs Delegate=yes for it"
        ),
    }
    match confine::kernel() {
        confine::Kernel::Full => {}
        confine::Kernel::FilesOnly => tracing::info!(
            "this kernel keeps tasks from files ([updraft] task_folders) and not from other processes: Linux 6.12 does both"
        ),
        confine::Kernel::Nothing => tracing::warn!(
            "this kernel has no Landlock: task processes are kept from nothing that the worker's user may do"
        ),
    }
}

/// Without its socket a worker works all the same.
fn control(
    settings: &Settings,
    tell: mpsc::UnboundedSender<Wish>,
    status: watch::Receiver<Snapshot>,
) -> Option<ControlSocket> {
    let home = settings.home.as_ref()?;
    match ControlSocket::listen(home, &settings.name, tell, status) {
        Ok(socket) => Some(socket),
        Err(error) => {
            tracing::warn!(
                "`updraft worker status`, drain and maintenance won't reach this worker: no socket in {}: {error}",
                home.display()
            );
            None
        }
    }
}

/// Removes what killed task processes have left, beside everything else.
fn sweep_leftovers() {
    drop(tokio::task::spawn_blocking(work_folder::sweep));
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
    async fn register(&mut self, wishes: &mut Wishes) -> Result<bool, WorkerError> {
        let mut patience = patience();
        let begun = Instant::now();
        loop {
            self.publish();
            let body = self.body(self.first_state());
            let settings = Arc::clone(&self.settings);
            let attempt = settings.edge.register(&settings.name, &body);
            tokio::pin!(attempt);
            let result = loop {
                tokio::select! {
                    result = &mut attempt => break result,
                    Some(wish) = wishes.recv() => self.follow_wish(wish),
                }
                if self.mode.draining {
                    return Ok(false);
                }
            };
            match result {
                Ok(()) => break,
                Err(error)
                    if error.is_transient()
                        || error.is_a_proxys()
                            && begun.elapsed() < self.settings.proxy_patience =>
                {
                    let wait = next_wait(&mut patience);
                    tracing::warn!(%error, "not registered yet; trying again in {:.1} s", wait.as_secs_f64());
                    self.settings.metrics.request_failed();
                    self.systemd.waits(START_PATIENCE);
                    let again_at = Instant::now() + wait;
                    loop {
                        tokio::select! {
                            () = sleep_until(again_at) => break,
                            Some(wish) = wishes.recv() => self.follow_wish(wish),
                        }
                        if self.mode.draining {
                            return Ok(false);
                        }
                    }
                }
                Err(EdgeError::Versions { detail }) if self.adopt_versions(&detail).await => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.say_registered();
        Ok(true)
    }

    /// Reports the server's versions from now on, where that helps: `false` when it does not.
    async fn adopt_versions(&mut self, refusal: &str) -> bool {
        let release = self.settings.edge.airflow_release().await;
        let settings = Arc::make_mut(&mut self.settings);
        if !settings.versions.adopt(refusal, release.as_deref()) {
            return false;
        }
        settings.execution.version = settings.versions.api();
        tracing::info!(
            "this worker goes by Airflow {} and edge provider {}, as the server does, and asks for version {} of the \
             Execution API",
            settings.versions.airflow(),
            settings.versions.edge_provider(),
            settings.execution.version.header()
        );
        true
    }

    /// The state to register with.
    fn first_state(&self) -> WorkerState {
        if self.mode.maintenance {
            WorkerState::MaintenanceMode
        } else {
            WorkerState::Starting
        }
    }

    fn say_registered(&mut self) {
        self.registered = true;
        self.last_heartbeat = Some(Instant::now());
        self.systemd.ready();
        self.alive_at = self
            .systemd
            .watchdog_interval()
            .map(|interval| Instant::now() + interval);
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
    }

    /// Heartbeats and jobs until the end. Signals, deadlines and the ends of jobs are seen to while a request is on its
    /// way, however long that takes.
    async fn serve(&mut self, wishes: &mut Wishes) -> Result<(), WorkerError> {
        let mut request: Option<Request> = None;
        let far = Instant::now() + Duration::from_secs(86_400 * 365);
        loop {
            self.publish();
            if self.mode.draining && self.running.is_empty() {
                let droppable = |request: &Request| self.drain.told >= 2 && !request.is_fetch;
                if request.as_ref().is_none_or(droppable) {
                    return Ok(());
                }
            }
            if request.is_none() {
                request = self.next_request();
            }
            let next = match &request {
                Some(_) => far,
                None if self.may_fetch() => self.heartbeat_at.min(self.fetch_at),
                None if self.refused.is_some() => far,
                None => self.heartbeat_at,
            };
            let Drain {
                terminate_at,
                give_up_at,
                ..
            } = self.drain;
            tokio::select! {
                answer = answer(&mut request) => {
                    request = None;
                    self.take(answer);
                }
                Some(wish) = wishes.recv() => self.follow_wish(wish),
                () = sleep_until(self.alive_at.unwrap_or(far)), if self.alive_at.is_some() => {
                    self.systemd.alive();
                    let interval = self.systemd.watchdog_interval();
                    self.alive_at = interval.map(|interval| Instant::now() + interval);
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
                    self.fetch_at = Instant::now();
                    self.report_soon();
                }
                () = sleep_until(terminate_at.unwrap_or(far)), if terminate_at.is_some() => {
                    self.terminate("The worker's drain timeout ([edge] drain_timeout_sec) has expired; terminating the task");
                }
                () = sleep_until(give_up_at.unwrap_or(far)), if give_up_at.is_some() => {
                    let left = self.running.len();
                    self.jobs.shutdown().await;
                    self.running.clear();
                    return if left == 0 { Ok(()) } else { Err(WorkerError::Abandoned(left)) };
                }
                () = sleep_until(next) => {}
            }
        }
    }

    /// What the server is to be asked or told now. Heartbeats come before jobs.
    fn next_request(&self) -> Option<Request> {
        let now = Instant::now();
        if self.refused.is_some() {
            return None;
        }
        let settings = Arc::clone(&self.settings);
        if self.heartbeat_at <= now && !self.registered {
            let body = self.body(self.first_state());
            return Some(Request {
                answer: Box::pin(async move {
                    Answer::Registered(settings.edge.register(&settings.name, &body).await)
                }),
                is_fetch: false,
            });
        }
        if self.heartbeat_at <= now {
            let state = self.mode.state(self.running.len());
            let body = self.body(state);
            return Some(Request {
                answer: Box::pin(async move {
                    let answer = settings.edge.heartbeat(&settings.name, &body).await;
                    Answer::Beaten(state, answer)
                }),
                is_fetch: false,
            });
        }
        if self.fetch_at <= now && self.may_fetch() {
            let body = WorkerQueuesBody {
                queues: self.mode.queues.clone(),
                team_name: self.settings.team_name.clone(),
                free_concurrency: self.free_slots(),
                supports_task_instance_uuid: true,
            };
            return Some(Request {
                answer: Box::pin(async move {
                    Answer::Fetched(settings.edge.fetch(&settings.name, &body).await)
                }),
                is_fetch: true,
            });
        }
        None
    }

    /// Follows an answer of the server.
    fn take(&mut self, answer: Answer) {
        let now = Instant::now();
        let error = match answer {
            Answer::Registered(Ok(())) => {
                self.patience = patience();
                self.heartbeat_at = now + self.settings.poll_interval.min(Duration::from_secs(1));
                self.say_registered();
                return;
            }
            Answer::Beaten(sent, Ok(answer)) => {
                self.patience = patience();
                self.last_heartbeat = Some(now);
                let changes = self.follow(sent, &answer);
                self.heartbeat_at = now
                    + if changes.disagreement {
                        self.settings.poll_interval.min(Duration::from_secs(1))
                    } else {
                        self.settings.heartbeat_interval
                    };
                if changes.shutdown && self.drain.told == 0 {
                    tracing::info!("the server asks this worker to shut down");
                    self.told_to_end();
                }
                return;
            }
            Answer::Fetched(Ok(job)) => {
                self.patience = patience();
                match job {
                    Some(job) => {
                        self.start(job);
                        // The server likes to know that this worker is busy now. More jobs may be waiting.
                        self.report_soon();
                        self.fetch_at = now + HEAD_START;
                    }
                    None => self.fetch_at = now + self.settings.poll_interval,
                }
                return;
            }
            Answer::Registered(Err(error)) if !error.is_transient() && !error.is_a_proxys() => {
                tracing::error!(%error, "the server takes this worker no longer; draining");
                self.refused = Some(error);
                self.drain_once();
                return;
            }
            Answer::Registered(Err(error))
            | Answer::Beaten(_, Err(error))
            | Answer::Fetched(Err(error)) => error,
        };
        self.settings.metrics.request_failed();
        match error {
            EdgeError::UnknownWorker => {
                tracing::warn!("the server has forgotten this worker; registering again");
                self.registered = false;
                self.heartbeat_at = now;
            }
            EdgeError::Versions { .. } => {
                tracing::error!(%error, "the server has been upgraded; draining");
                self.drain_once();
                self.heartbeat_at = now + self.settings.heartbeat_interval;
            }
            error => {
                let wait = next_wait(&mut self.patience);
                tracing::warn!(%error, "asking the server again in {:.1} s; running tasks go on", wait.as_secs_f64());
                self.heartbeat_at = self.heartbeat_at.max(now + wait);
                self.fetch_at = self.fetch_at.max(now + wait);
            }
        }
    }

    fn report_soon(&mut self) {
        self.heartbeat_at = self
            .heartbeat_at
            .min(Instant::now() + Duration::from_millis(500));
    }

    fn follow_wish(&mut self, wish: Wish) {
        match wish {
            Wish::End => self.told_to_end(),
            Wish::Drain => self.drain_once(),
            Wish::Terminate => {
                self.drain_once();
                if self.drain.told < 2 {
                    self.told_to_end();
                }
            }
            Wish::EnterMaintenance(comments) => {
                tracing::info!(comments, "maintenance mode entered");
                self.mode.maintenance = true;
                self.mode.maintenance_comments = Some(comments);
            }
            Wish::LeaveMaintenance => {
                tracing::info!("maintenance mode left");
                self.mode.maintenance = false;
                self.mode.maintenance_comments = None;
                self.fetch_at = Instant::now();
            }
        }
        self.heartbeat_at = Instant::now();
        self.wishes_followed += 1;
        self.publish();
    }

    /// Shows what the worker does to those on this machine who ask.
    fn publish(&self) {
        self.status.send_replace(Snapshot {
            status: Status {
                job_count: self.running.len(),
                jobs: Vec::new(),
                state: if self.registered {
                    self.mode.state(self.running.len())
                } else {
                    self.first_state()
                },
                maintenance: self.mode.maintenance,
                maintenance_comments: self.mode.maintenance_comments.clone(),
                drain: self.mode.draining,
                worker_name: self.settings.name.clone(),
                pid: std::process::id(),
                started: self.started.clone(),
                registered: self.registered,
                queues: self.mode.queues.clone(),
                concurrency: self.mode.concurrency,
                free_concurrency: self.free_slots(),
                heartbeat_age: None,
            },
            running: self
                .running
                .values()
                .map(|job| job.running.clone())
                .collect(),
            last_heartbeat: self.last_heartbeat,
            wishes_followed: self.wishes_followed,
        });
    }

    /// Drains, unless that has begun already.
    fn drain_once(&mut self) {
        if self.drain.told == 0 {
            self.told_to_end();
        }
    }

    /// The first wish to end drains, the second terminates what runs.
    fn told_to_end(&mut self) {
        self.drain.told += 1;
        self.mode.draining = true;
        self.heartbeat_at = Instant::now();
        if self.drain.told == 1 {
            self.systemd.stopping();
            let limit = self.settings.drain_timeout;
            let policy = match limit {
                Some(limit) => format!("for {} s", limit.as_secs_f64()),
                None => "as long as it takes".to_owned(),
            };
            tracing::info!(
                "ending: no new jobs; waiting for {} running tasks {policy} (once more: terminate them)",
                self.running.len()
            );
            self.drain.terminate_at = limit.map(|limit| Instant::now() + limit);
        } else if self.drain.give_up_at.is_none() {
            self.terminate("The worker was told to end at once; terminating the task");
        }
    }

    fn terminate(&mut self, message: &str) {
        tracing::warn!("terminating {} running tasks", self.running.len());
        for job in self.running.values() {
            tracing::info!(job = %job.running.key, "terminating");
            terminate(job, message);
        }
        self.drain.terminate_at = None;
        self.drain.give_up_at = Some(Instant::now() + self.settings.drain_kill_grace);
    }

    fn start(&mut self, fetched: EdgeJobFetched) {
        sweep_leftovers();
        let (stop, _) = stop_channel();
        let job = Job {
            running: Running {
                key: fetched.key.clone(),
                slots: fetched.concurrency_slots,
                since: Instant::now(),
            },
            stop: stop.clone(),
        };
        if self.drain.give_up_at.is_some() {
            terminate(&job, "The worker ends; terminating the task");
        }
        let handle = self
            .jobs
            .spawn(run_job(self.settings.clone(), fetched, stop));
        self.running.insert(handle.id(), job);
    }

    fn free_slots(&self) -> u32 {
        let used = self
            .running
            .values()
            .map(|job| job.running.slots)
            .fold(0, u32::saturating_add);
        self.mode.concurrency.saturating_sub(used)
    }

    fn may_fetch(&self) -> bool {
        self.registered && self.mode.takes_jobs() && self.free_slots() > 0
    }

    fn follow(&mut self, sent: WorkerState, answer: &WorkerSetStateReturn) -> Changes {
        if let Some(versions_match) = answer.versions_match {
            self.versions_match = versions_match;
        }
        let before = self.mode.clone();
        let changes = self.mode.follow(sent, answer);
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
        changes
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
        put("airflow_version", self.settings.versions.airflow().into());
        put(
            "edge_provider_version",
            self.settings.versions.edge_provider().into(),
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

fn terminate(job: &Job, message: &str) {
    stop_task(
        &job.stop,
        StopReason::Shutdown {
            message: message.to_owned(),
        },
    );
}

/// The answer to the request; never, when there is none.
async fn answer(request: &mut Option<Request>) -> Answer {
    match request {
        Some(request) => request.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
