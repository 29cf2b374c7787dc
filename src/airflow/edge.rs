//! The Edge Worker API (edge3 provider 5.1.0): what a worker and the API server say to each other.

use std::fmt;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::execution::{BundleInfo, TaskInstance};

/// State of a worker (`EdgeWorkerState`). The wire names hold spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerState {
    #[serde(rename = "starting")]
    Starting,
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "idle")]
    Idle,
    #[serde(rename = "shutdown request")]
    ShutdownRequest,
    #[serde(rename = "terminating")]
    Terminating,
    #[serde(rename = "offline")]
    Offline,
    #[serde(rename = "unknown")]
    Unknown,
    #[serde(rename = "maintenance request")]
    MaintenanceRequest,
    #[serde(rename = "maintenance pending")]
    MaintenancePending,
    #[serde(rename = "maintenance mode")]
    MaintenanceMode,
    #[serde(rename = "maintenance exit")]
    MaintenanceExit,
    #[serde(rename = "offline maintenance")]
    OfflineMaintenance,
}

impl fmt::Display for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// `WorkerStateBody`: registration and heartbeat.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerStateBody {
    pub state: WorkerState,
    pub jobs_active: usize,
    /// `None`: every queue.
    pub queues: Option<Vec<String>>,
    pub team_name: Option<String>,
    pub maintenance_comments: Option<String>,
    /// Flat; `airflow_version` and `edge_provider_version` are mandatory.
    pub sysinfo: Map<String, Value>,
}

/// `WorkerSetStateReturn`: the answer to a heartbeat. Queues and concurrency are orders, not echoes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct WorkerSetStateReturn {
    pub state: WorkerState,
    #[serde(default)]
    pub queues: Option<Vec<String>>,
    #[serde(default)]
    pub maintenance_comments: Option<String>,
    /// An administrator's number of slots; `None` leaves the worker its own.
    #[serde(default)]
    pub concurrency: Option<u32>,
    #[serde(default)]
    pub versions_match: Option<bool>,
}

/// `WorkerQueuesBody`: asks for a job.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerQueuesBody {
    pub queues: Option<Vec<String>>,
    pub team_name: Option<String>,
    pub free_concurrency: u32,
    pub supports_task_instance_uuid: bool,
}

/// `EdgeJobFetched`: a job for this worker. Of a malformed one as much is read as a report about it takes.
#[derive(Clone, Deserialize)]
pub struct EdgeJobFetched {
    #[serde(flatten)]
    pub key: JobKey,
    /// The workload, as it came; [`Workload::read`] understands it. Holds a token.
    #[serde(default)]
    pub command: Value,
    /// Slots it takes (`pool_slots` of the task).
    #[serde(default = "one", deserialize_with = "slots")]
    pub concurrency_slots: u32,
}

impl fmt::Debug for EdgeJobFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeJobFetched")
            .field("key", &self.key)
            .field("concurrency_slots", &self.concurrency_slots)
            .finish_non_exhaustive()
    }
}

fn one() -> u32 {
    1
}

/// A number of slots that makes no sense is one slot.
fn slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value
        .as_u64()
        .and_then(|slots| u32::try_from(slots).ok())
        .unwrap_or(1))
}

/// What the server calls a job by.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct JobKey {
    pub dag_id: String,
    pub task_id: String,
    pub run_id: String,
    pub map_index: i64,
    pub try_number: i64,
    /// Echoed in every report about the job when the server gives one.
    #[serde(default)]
    pub task_instance_id: Option<String>,
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} {}", self.dag_id, self.task_id, self.run_id)?;
        if self.map_index >= 0 {
            write!(f, " [{}]", self.map_index)?;
        }
        write!(f, " try {}", self.try_number)
    }
}

/// `PushLogsBody`: a piece of a task log.
#[derive(Clone, Debug, Serialize)]
pub struct PushLogsBody<'a> {
    /// RFC 3339; no two pushes of one job may have the same microsecond.
    pub log_chunk_time: String,
    pub log_chunk_data: &'a str,
    pub task_instance_id: Option<&'a str>,
}

/// `ExecuteTask`: run one try of one task.
#[derive(Clone, Debug, Deserialize)]
pub struct ExecuteTask {
    /// For `PATCH run` alone; its answer brings the next one.
    pub token: SecretString,
    /// Path of the Dag file in its bundle.
    pub dag_rel_path: String,
    pub bundle_info: BundleInfo,
    /// Relative to `[logging] base_log_folder`.
    #[serde(default)]
    pub log_path: Option<String>,
    pub ti: TaskInstance,
    #[serde(default)]
    pub sentry_integration: String,
}

/// What a job asks for.
#[derive(Clone, Debug)]
pub enum Workload {
    ExecuteTask(Box<ExecuteTask>),
    /// Something only a Python worker can do, by its `type`.
    Unsupported(String),
}

/// A workload that is not what the Edge API's description says.
#[derive(Debug, thiserror::Error)]
#[error("the job's workload can't be read: {0}")]
pub struct MalformedWorkload(#[from] serde_json::Error);

impl Workload {
    /// Reads the `command` of a job.
    ///
    /// # Errors
    /// When an `ExecuteTask` misses fields.
    pub fn read(command: Value) -> Result<Self, MalformedWorkload> {
        match command.get("type").and_then(Value::as_str) {
            None | Some("ExecuteTask") => Ok(Self::ExecuteTask(Box::new(serde_json::from_value(
                command,
            )?))),
            Some(other) => Ok(Self::Unsupported(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    /// As the EdgeExecutor of Airflow 3.3.2 sends it.
    const FETCHED: &str = r#"{"dag_id":"agents","task_id":"summarize","run_id":"manual__2026-01-02T03:04:05.678901+00:00",
      "map_index":-1,"try_number":1,"concurrency_slots":1,"task_instance_id":null,
      "command":{"token":"made-up","dag_rel_path":"team/agents.py","bundle_info":{"name":"git-main","version":"9f2c"},
      "log_path":"dag_id=agents/attempt=1.log","ti":{"id":"0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f","task_id":"summarize",
      "dag_id":"agents","run_id":"manual__2026-01-02T03:04:05.678901+00:00","try_number":1,
      "dag_version_id":"0199a0c1-0000-7000-8000-000000000001","map_index":-1,"hostname":null,
      "context_carrier":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},"queue":"agents",
      "pool_slots":1,"priority_weight":3},"sentry_integration":"","type":"ExecuteTask"}}"#;

    #[test]
    fn a_fetched_job_is_read_and_its_token_does_not_show() {
        let job: EdgeJobFetched =
            serde_json::from_value(serde_json::from_str(FETCHED).unwrap()).unwrap();
        assert_eq!(
            job.key.to_string(),
            "agents.summarize manual__2026-01-02T03:04:05.678901+00:00 try 1"
        );
        let Workload::ExecuteTask(task) = Workload::read(job.command).unwrap() else {
            panic!("not a task")
        };
        assert_eq!(task.ti.queue.as_deref(), Some("agents"));
        assert!(!format!("{task:?}").contains("made-up"));
        let job: EdgeJobFetched =
            serde_json::from_value(serde_json::from_str(FETCHED).unwrap()).unwrap();
        assert!(!format!("{job:?}").contains("made-up"));
    }

    #[test]
    fn a_malformed_job_is_read_as_far_as_its_key() {
        let mut job: Value = serde_json::from_str(FETCHED).unwrap();
        job.as_object_mut().unwrap().remove("command");
        for slots in [json!(-1), json!("2"), json!(1e300), Value::Null] {
            job["concurrency_slots"] = slots;
            let job: EdgeJobFetched = serde_json::from_value(job.clone()).unwrap();
            assert_eq!(
                (job.key.dag_id.as_str(), job.concurrency_slots),
                ("agents", 1)
            );
            assert!(Workload::read(job.command).is_err());
        }
    }

    #[test]
    fn workloads_for_python_are_told_by_their_type() {
        let workload = Workload::read(json!({"type": "ExecuteCallback", "callback": {}})).unwrap();
        assert!(matches!(workload, Workload::Unsupported(kind) if kind == "ExecuteCallback"));
        assert!(Workload::read(json!({"type": "ExecuteTask", "token": "x"})).is_err());
    }

    #[test]
    fn states_have_their_wire_names() {
        assert_eq!(
            WorkerState::MaintenancePending.to_string(),
            "maintenance pending"
        );
        let read: WorkerState = serde_json::from_value(json!("shutdown request")).unwrap();
        assert_eq!(read, WorkerState::ShutdownRequest);
    }
}
