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
        #[serde(default)]
        prefix: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
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
        #[serde(default, deserialize_with = "null_as_default")]
        task_outlets: Vec<Value>,
        #[serde(default, deserialize_with = "null_as_default")]
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
    /// Hands the rest of the task to a trigger. The two collections must not be null on the wire.
    DeferTask {
        classpath: String,
        #[serde(default, deserialize_with = "null_as_default")]
        trigger_kwargs: JsonObjectOrText,
        /// ISO 8601 duration.
        #[serde(default)]
        trigger_timeout: Option<Value>,
        #[serde(default)]
        queue: Option<String>,
        next_method: String,
        #[serde(default, deserialize_with = "null_as_default")]
        next_kwargs: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered_map_index: Option<String>,
    },
    /// Parks the task until a human has answered.
    AwaitInputTask {
        /// ISO 8601 duration.
        #[serde(default)]
        timeout: Option<Value>,
        next_method: String,
        #[serde(default, deserialize_with = "null_as_default")]
        next_kwargs: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered_map_index: Option<String>,
    },
    /// `failed`, `skipped` or `removed`; forwarded after the task process has exited.
    TaskState {
        state: String,
        #[serde(default)]
        end_date: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rendered_map_index: Option<String>,
    },
    /// Any other message of the schema, with its `type`: assets, Dag runs, counts, human input ...
    #[serde(skip)]
    Other(Map<String, Value>),
}

/// A JSON object, or the text of an encrypted one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JsonObjectOrText {
    Object(Map<String, Value>),
    Text(String),
}

impl Default for JsonObjectOrText {
    fn default() -> Self {
        Self::Object(Map::new())
    }
}

fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// The messages that have a variant of their own in [`TaskRequest`].
const TYPED_REQUESTS: &[&str] = &[
    "GetConnection",
    "GetVariable",
    "GetVariableKeys",
    "PutVariable",
    "DeleteVariable",
    "GetXCom",
    "GetXComCount",
    "GetXComSequenceItem",
    "GetXComSequenceSlice",
    "SetXCom",
    "DeleteXCom",
    "SetRenderedFields",
    "SetRenderedMapIndex",
    "GetTaskStateStore",
    "SetTaskStateStore",
    "DeleteTaskStateStore",
    "ClearTaskStateStore",
    "GetPrevSuccessfulDagRun",
    "GetDagRunState",
    "SkipDownstreamTasks",
    "MaskSecret",
    "SucceedTask",
    "RetryTask",
    "RescheduleTask",
    "DeferTask",
    "AwaitInputTask",
    "TaskState",
];

/// Why a message is not one of the protocol's.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    #[error("the message is not an object with a \"type\"")]
    NoType,
    #[error(
        "the {kind} message is not what the supervisor schema {SCHEMA_VERSION} says it is: {source}"
    )]
    Invalid {
        kind: String,
        #[source]
        source: serde_json::Error,
    },
}

fn message_type(body: &Value) -> Result<&str, MessageError> {
    body.get("type")
        .and_then(Value::as_str)
        .ok_or(MessageError::NoType)
}

fn parse<T: serde::de::DeserializeOwned>(kind: &str, body: Value) -> Result<T, MessageError> {
    serde_json::from_value(body).map_err(|source| MessageError::Invalid {
        kind: kind.to_owned(),
        source,
    })
}

fn encode<T: Serialize>(message: &T, kind: Option<&str>) -> Value {
    // Plain structs of strings, numbers and JSON values cannot fail to serialise.
    let mut body = serde_json::to_value(message).unwrap_or_default();
    if let (Some(kind), Value::Object(map)) = (kind, &mut body) {
        map.insert("type".into(), kind.into());
    }
    body
}

impl StartupDetails {
    /// The message body, including `type`.
    #[must_use]
    pub fn to_body(&self) -> Value {
        let mut body = encode(self, Some("StartupDetails"));
        if let Some(ti) = body.get_mut("ti").and_then(Value::as_object_mut) {
            // Both are plain strings in the schema: not nullable, but one has a default.
            if ti.get("queue").is_some_and(Value::is_null) {
                ti.remove("queue");
            }
            if ti.get("dag_version_id").is_some_and(Value::is_null) {
                ti.insert(
                    "dag_version_id".into(),
                    uuid::Uuid::nil().to_string().into(),
                );
            }
        }
        body
    }

    /// Reads frame 0.
    ///
    /// # Errors
    /// When the body is another message, or misses fields.
    pub fn from_body(body: Value) -> Result<Self, MessageError> {
        match message_type(&body)?.to_owned() {
            kind if kind == "StartupDetails" => parse(&kind, body),
            kind => Err(MessageError::Invalid {
                kind,
                source: serde::de::Error::custom("expected StartupDetails as the first message"),
            }),
        }
    }
}

impl TaskRequest {
    /// The message body, including `type`.
    #[must_use]
    pub fn to_body(&self) -> Value {
        match self {
            Self::Other(map) => Value::Object(map.clone()),
            typed => encode(typed, None),
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// When there is no `type`, or a message that has its own variant misses fields.
    pub fn from_body(body: Value) -> Result<Self, MessageError> {
        let kind = message_type(&body)?.to_owned();
        if TYPED_REQUESTS.contains(&kind.as_str()) {
            return parse(&kind, body);
        }
        match body {
            Value::Object(map) => Ok(Self::Other(map)),
            _ => Err(MessageError::NoType),
        }
    }

    /// Does this message end the task?
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::SucceedTask { .. }
                | Self::RetryTask { .. }
                | Self::RescheduleTask { .. }
                | Self::DeferTask { .. }
                | Self::AwaitInputTask { .. }
                | Self::TaskState { .. }
        )
    }

    /// How Airflow's supervisor says [`TaskReply::Done`] to this request: `OKResponse` to some, nothing to others.
    #[must_use]
    pub fn done_body(&self) -> Value {
        match self {
            Self::DeleteVariable { .. }
            | Self::SetTaskStateStore { .. }
            | Self::DeleteTaskStateStore { .. }
            | Self::ClearTaskStateStore { .. } => {
                serde_json::json!({"ok": true, "type": "OKResponse"})
            }
            Self::Other(map)
                if map.get("type").and_then(Value::as_str).is_some_and(|kind| {
                    kind == "TriggerDagRun" || kind.contains("AssetStateStore")
                }) =>
            {
                serde_json::json!({"ok": true, "type": "OKResponse"})
            }
            _ => Value::Null,
        }
    }
}

impl TaskReply {
    /// The message body, including `type`; null for [`TaskReply::Done`] (but see [`TaskRequest::done_body`]).
    #[must_use]
    pub fn to_body(&self) -> Value {
        use serde_json::json;
        match self {
            Self::Done => Value::Null,
            Self::Connection(connection) => encode(connection, Some("ConnectionResult")),
            Self::Variable { key, value } => {
                json!({"key": key, "value": value, "type": "VariableResult"})
            }
            Self::VariableKeys {
                keys,
                total_entries,
            } => {
                json!({"keys": keys, "total_entries": total_entries, "type": "VariableKeysResult"})
            }
            Self::XCom { key, value } => json!({"key": key, "value": value, "type": "XComResult"}),
            Self::XComCount(len) => json!({"len": len, "type": "XComCountResponse"}),
            Self::XComItem(root) => json!({"root": root, "type": "XComSequenceIndexResult"}),
            Self::XComSlice(root) => json!({"root": root, "type": "XComSequenceSliceResult"}),
            Self::TaskState(value) => json!({"value": value, "type": "TaskStateStoreResult"}),
            Self::Other(body) => body.clone(),
        }
    }

    /// Reads the answer out of a reply frame: errors may stand in its body or in its error slot.
    ///
    /// # Errors
    /// [`MessageError`] when the frame holds no message of the protocol. The inner `Err` is the supervisor's refusal.
    pub fn from_frame(
        body: Value,
        error: Value,
    ) -> Result<Result<Self, ErrorResponse>, MessageError> {
        if !error.is_null() {
            return parse("ErrorResponse", error).map(Err);
        }
        if body.is_null() {
            return Ok(Ok(Self::Done));
        }
        let kind = message_type(&body)?.to_owned();
        let field =
            |body: &mut Value, name: &str| body.get_mut(name).map(Value::take).unwrap_or_default();
        let mut body = body;
        let text = |value: Value| parse::<String>(&kind, value);
        Ok(Ok(match kind.as_str() {
            "ErrorResponse" => return parse(&kind, body).map(Err),
            "OKResponse" => Self::Done,
            "ConnectionResult" => Self::Connection(parse(&kind, body)?),
            "VariableResult" => Self::Variable {
                key: text(field(&mut body, "key"))?,
                value: parse(&kind, field(&mut body, "value"))?,
            },
            "VariableKeysResult" => Self::VariableKeys {
                keys: parse(&kind, field(&mut body, "keys"))?,
                total_entries: parse(&kind, field(&mut body, "total_entries"))?,
            },
            "XComResult" => Self::XCom {
                key: text(field(&mut body, "key"))?,
                value: field(&mut body, "value"),
            },
            "XComCountResponse" => Self::XComCount(parse(&kind, field(&mut body, "len"))?),
            "XComSequenceIndexResult" => Self::XComItem(field(&mut body, "root")),
            "XComSequenceSliceResult" => Self::XComSlice(parse(&kind, field(&mut body, "root"))?),
            "TaskStateStoreResult" => Self::TaskState(field(&mut body, "value")),
            _ => Self::Other(body),
        }))
    }
}

impl ErrorResponse {
    /// The message body, including `type`.
    #[must_use]
    pub fn to_body(&self) -> Value {
        encode(self, Some("ErrorResponse"))
    }

    /// An error with a `message` in its detail.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            detail: serde_json::json!({ "message": message.into() }),
        }
    }
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
    #[serde(rename = "error", default)]
    pub kind: ErrorKind,
    /// A JSON object, or null.
    #[serde(default)]
    pub detail: Value,
}

/// `ErrorType` of the supervisor schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    #[default]
    GenericError,
    ApiServerError,
}

#[cfg(test)]
mod tests;
