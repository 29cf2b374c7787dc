//! What the Task Execution API (version 2026-06-30) says about a task instance and its Dag run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The task instance of a workload (`command.ti`) and of `StartupDetails`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskInstance {
    /// UUID; changes with every retry.
    pub id: String,
    pub task_id: String,
    pub dag_id: String,
    pub run_id: String,
    pub try_number: u32,
    #[serde(default)]
    pub dag_version_id: Option<String>,
    /// -1 for a task that is not mapped.
    #[serde(default = "unmapped")]
    pub map_index: i64,
    #[serde(default)]
    pub hostname: Option<String>,
    /// W3C trace context: `traceparent`, perhaps `tracestate`.
    #[serde(default)]
    pub context_carrier: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub queue: Option<String>,
}

fn unmapped() -> i64 {
    -1
}

/// Which Dag bundle holds the Dag file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleInfo {
    pub name: String,
    #[serde(default)]
    pub version: Option<String>,
}

/// The Dag run of a task instance. Datetimes are RFC 3339 text, as on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DagRun {
    pub dag_id: String,
    pub run_id: String,
    #[serde(default)]
    pub logical_date: Option<String>,
    #[serde(default)]
    pub data_interval_start: Option<String>,
    #[serde(default)]
    pub data_interval_end: Option<String>,
    pub run_after: String,
    #[serde(default)]
    pub start_date: Option<String>,
    #[serde(default)]
    pub end_date: Option<String>,
    #[serde(default)]
    pub clear_number: i64,
    pub run_type: String,
    pub state: String,
    #[serde(default)]
    pub conf: Option<Map<String, Value>>,
    #[serde(default)]
    pub triggering_user_name: Option<String>,
    #[serde(default)]
    pub consumed_asset_events: Vec<Value>,
    #[serde(default)]
    pub partition_key: Option<String>,
    #[serde(default)]
    pub partition_date: Option<String>,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(default)]
    pub team_name: Option<String>,
}

/// `TIRunContext`: the answer to `PATCH /task-instances/{id}/run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TiRunContext {
    pub dag_run: DagRun,
    #[serde(default)]
    pub task_reschedule_count: i64,
    #[serde(default)]
    pub max_tries: i64,
    #[serde(default)]
    pub variables: Vec<Value>,
    #[serde(default)]
    pub connections: Vec<Value>,
    /// Set only when a deferred or parked task resumes.
    #[serde(default)]
    pub next_method: Option<String>,
    #[serde(default)]
    pub next_kwargs: Option<Value>,
    /// XComs that an earlier try left; the worker deletes them.
    #[serde(default)]
    pub xcom_keys_to_clear: Vec<String>,
    /// The server's verdict: does a failure now become `up_for_retry`?
    #[serde(default)]
    pub should_retry: bool,
    #[serde(default)]
    pub start_date: Option<String>,
}
