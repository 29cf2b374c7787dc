//! The supervisor protocol: what a task process and its supervisor say to each other
//! (Airflow's coordinator wire schema, api_version 2026-06-16).
//!
//! Datetimes and durations are text here; the frame codec turns msgpack timestamps into RFC 3339.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::connection::Connection;
use super::execution::{BundleInfo, TaskInstance, TiRunContext};

/// The version of the schema that these types follow.
pub const SCHEMA_VERSION: &str = "2026-06-16";

/// The first frame that a supervisor sends, unprompted, as frame 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartupDetails {
    pub ti: TaskInstance,
    /// Path of the Dag file, relative to its bundle.
    pub dag_rel_path: String,
    pub bundle_info: BundleInfo,
    pub start_date: String,
    pub ti_context: TiRunContext,
    #[serde(default)]
    pub sentry_integration: String,
}

/// Everything a task may ask of its supervisor, and the messages that end a task.
///
/// Optional fields that the Python supervisor insists on are always written, as `null` if need be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum TaskRequest {
    GetConnection {
        conn_id: String,
    },
    GetVariable {
        key: String,
    },
    GetVariableKeys {
        prefix: Option<String>,
        limit: Option<u32>,
        offset: Option<u32>,
    },
    PutVariable {
        key: String,
        value: Option<String>,
        description: Option<String>,
    },
    DeleteVariable {
        key: String,
    },
    GetXCom {
        key: String,
        dag_id: String,
        run_id: String,
        task_id: String,
        #[serde(default)]
        map_index: Option<i64>,
        #[serde(default)]
        include_prior_dates: bool,
    },
    GetXComCount {
        key: String,
        dag_id: String,
        run_id: String,
        task_id: String,
    },
    GetXComSequenceItem {
        key: String,
        dag_id: String,
        run_id: String,
        task_id: String,
        offset: i64,
    },
    GetXComSequenceSlice {
        key: String,
        dag_id: String,
        run_id: String,
        task_id: String,
        start: Option<i64>,
        stop: Option<i64>,
        step: Option<i64>,
        #[serde(default)]
        include_prior_dates: bool,
    },
    SetXCom {
        key: String,
        value: Value,
        dag_id: String,
        run_id: String,
        task_id: String,
        #[serde(default)]
        map_index: Option<i64>,
        #[serde(default)]
        dag_result: bool,
        #[serde(default)]
        mapped_length: Option<u64>,
    },
    DeleteXCom {
        key: String,
        dag_id: String,
        run_id: String,
        task_id: String,
        #[serde(default)]
        map_index: Option<i64>,
    },
    SetRenderedFields {
        rendered_fields: Map<String, Value>,
    },
    SetRenderedMapIndex {
        rendered_map_index: String,
    },
    GetTaskStateStore {
        ti_id: String,
        key: String,
    },
    SetTaskStateStore {
        ti_id: String,
        key: String,
        value: Value,
        expires_at: Option<String>,
    },
    DeleteTaskStateStore {
        ti_id: String,
        key: String,
    },
    ClearTaskStateStore {
        ti_id: String,
    },
    GetPrevSuccessfulDagRun {
        ti_id: String,
    },
    GetDagRunState {
        dag_id: String,
        run_id: String,
    },
    SkipDownstreamTasks {
        tasks: Vec<Value>,
    },
    MaskSecret {
        value: Value,
        #[serde(default)]
        name: Option<String>,
    },
    /// The task succeeded. The two collections must not be null on the wire.
    SucceedTask {
        end_date: String,
        task_outlets: Vec<Value>,
        outlet_events: Vec<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered_map_index: Option<String>,
    },
    /// The try failed and the server said that a failure is retried.
    RetryTask {
        end_date: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered_map_index: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_delay_seconds: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_reason: Option<String>,
    },
    RescheduleTask {
        reschedule_date: String,
        end_date: String,
    },
    /// `failed`, `skipped` or `removed`; forwarded after the task process has exited.
    TaskState {
        state: String,
        #[serde(default)]
        end_date: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered_map_index: Option<String>,
    },
}

/// What a supervisor answers. A request without data is answered with `Done` (`nil` on the wire).
#[derive(Clone, Debug, PartialEq)]
pub enum TaskReply {
    /// `nil`, or `OKResponse`.
    Done,
    Connection(Connection),
    Variable {
        key: String,
        value: Option<String>,
    },
    VariableKeys {
        keys: Vec<String>,
        total_entries: u64,
    },
    /// `value` is null when there is no such XCom.
    XCom {
        key: String,
        value: Value,
    },
    XComCount(u64),
    XComItem(Value),
    XComSlice(Vec<Value>),
    TaskState(Value),
    /// Any other result, as its message body including `type`.
    Other(Value),
}

/// `ErrorResponse`: why a request could not be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{kind:?}: {detail}")]
pub struct ErrorResponse {
    #[serde(rename = "error")]
    pub kind: ErrorKind,
    /// A JSON object, or null.
    #[serde(default)]
    pub detail: Value,
}

/// `ErrorType` of the supervisor schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorKind {
    ConnectionNotFound,
    VariableNotFound,
    #[serde(rename = "XCOM_NOT_FOUND")]
    XComNotFound,
    AssetNotFound,
    TaskStoreNotFound,
    AssetStoreNotFound,
    #[serde(rename = "DAGRUN_ALREADY_EXISTS")]
    DagRunAlreadyExists,
    PermissionDenied,
    GenericError,
    ApiServerError,
}
