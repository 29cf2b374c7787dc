//! What a worker is doing at the moment: printed by `updraft worker status`, counted by the metrics.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::airflow::edge::{JobKey, WorkerState};

/// What a worker is doing. `job_count` to `drain` are the fields that `airflow edge status` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub job_count: usize,
    pub jobs: Vec<JobStatus>,
    /// The state that was or will be reported to the server.
    pub state: WorkerState,
    pub maintenance: bool,
    pub maintenance_comments: Option<String>,
    /// Ends when its jobs have ended.
    pub drain: bool,
    pub worker_name: String,
    pub pid: u32,
    /// When the worker started: UTC, without an offset.
    pub started: String,
    /// Does the server know this worker?
    pub registered: bool,
    /// Queues it serves; `None` is every queue.
    pub queues: Option<Vec<String>>,
    /// Slots.
    pub concurrency: u32,
    pub free_concurrency: u32,
    /// Seconds since the server last took a heartbeat; `None` before the first.
    pub heartbeat_age: Option<f64>,
}

/// One running job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobStatus {
    pub dag_id: String,
    pub task_id: String,
    pub run_id: String,
    pub map_index: i64,
    pub try_number: i64,
    /// Slots it takes.
    pub slots: u32,
    /// For how many seconds it has been running.
    pub seconds: f64,
}

/// A running job, with the time of its arrival.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub key: JobKey,
    pub slots: u32,
    pub since: Instant,
}

/// [`Status`] with the moments that its durations count from.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub status: Status,
    pub running: Vec<Running>,
    pub last_heartbeat: Option<Instant>,
    /// How many wishes the worker has followed.
    pub wishes_followed: u64,
}

impl Snapshot {
    /// Of a worker that is about to start.
    pub fn new(name: &str, started: &str) -> Self {
        Self {
            status: Status {
                job_count: 0,
                jobs: Vec::new(),
                state: WorkerState::Starting,
                maintenance: false,
                maintenance_comments: None,
                drain: false,
                worker_name: name.to_owned(),
                pid: std::process::id(),
                started: started.to_owned(),
                registered: false,
                queues: None,
                concurrency: 0,
                free_concurrency: 0,
                heartbeat_age: None,
            },
            running: Vec::new(),
            last_heartbeat: None,
            wishes_followed: 0,
        }
    }

    /// The status as of now.
    pub fn now(&self) -> Status {
        let mut status = self.status.clone();
        status.heartbeat_age = self.heartbeat_age().map(|age| age.as_secs_f64());
        status.jobs = self
            .running
            .iter()
            .map(|job| JobStatus {
                dag_id: job.key.dag_id.clone(),
                task_id: job.key.task_id.clone(),
                run_id: job.key.run_id.clone(),
                map_index: job.key.map_index,
                try_number: job.key.try_number,
                slots: job.slots,
                seconds: job.since.elapsed().as_secs_f64(),
            })
            .collect();
        status.job_count = status.jobs.len();
        status
    }

    /// Since the server last took a heartbeat.
    pub fn heartbeat_age(&self) -> Option<Duration> {
        self.last_heartbeat.map(|moment| moment.elapsed())
    }
}
