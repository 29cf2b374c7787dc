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
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    const SCHEMA: &str = include_str!("../../tests/fixtures/supervisor-schema.json");

    /// Every message that we send must be what the schema says about its `type`.
    fn assert_valid(body: &Value) {
        let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let kind = body["type"].as_str().unwrap();
        assert!(
            schema["$defs"].get(kind).is_some(),
            "no {kind} in the schema"
        );
        schema["$ref"] = format!("#/$defs/{kind}").into();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(body)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{body}: {errors:#?}");
    }

    const TI_ID: &str = "0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f";
    const WHEN: &str = "2026-01-02T03:04:05.678901Z";

    pub(crate) fn startup_details() -> StartupDetails {
        serde_json::from_value(json!({
            "type": "StartupDetails",
            "ti": {"id": TI_ID, "task_id": "t", "dag_id": "d", "run_id": "r", "try_number": 1},
            "dag_rel_path": "d.py", "bundle_info": {"name": "dags-folder"}, "start_date": WHEN,
            "ti_context": {"dag_run": {"dag_id": "d", "run_id": "r", "run_after": WHEN, "run_type": "manual",
                "state": "running", "logical_date": null}, "max_tries": 2, "should_retry": true},
        }))
        .unwrap()
    }

    fn requests() -> Vec<TaskRequest> {
        let xcom = || {
            (
                "k".to_owned(),
                "d".to_owned(),
                "r".to_owned(),
                "t".to_owned(),
            )
        };
        let (key, dag_id, run_id, task_id) = xcom();
        vec![
            TaskRequest::GetConnection {
                conn_id: "c".into(),
            },
            TaskRequest::GetVariable { key: "k".into() },
            TaskRequest::GetVariableKeys {
                prefix: None,
                limit: None,
                offset: None,
            },
            TaskRequest::PutVariable {
                key: "k".into(),
                value: None,
                description: None,
            },
            TaskRequest::DeleteVariable { key: "k".into() },
            TaskRequest::GetXCom {
                key: key.clone(),
                dag_id: dag_id.clone(),
                run_id: run_id.clone(),
                task_id: task_id.clone(),
                map_index: None,
                include_prior_dates: false,
            },
            TaskRequest::GetXComCount {
                key: key.clone(),
                dag_id: dag_id.clone(),
                run_id: run_id.clone(),
                task_id: task_id.clone(),
            },
            TaskRequest::GetXComSequenceItem {
                key: key.clone(),
                dag_id: dag_id.clone(),
                run_id: run_id.clone(),
                task_id: task_id.clone(),
                offset: -1,
            },
            TaskRequest::GetXComSequenceSlice {
                key: key.clone(),
                dag_id: dag_id.clone(),
                run_id: run_id.clone(),
                task_id: task_id.clone(),
                start: None,
                stop: None,
                step: None,
                include_prior_dates: false,
            },
            TaskRequest::SetXCom {
                key: key.clone(),
                value: json!({"a": [1, null]}),
                dag_id: dag_id.clone(),
                run_id: run_id.clone(),
                task_id: task_id.clone(),
                map_index: Some(3),
                dag_result: false,
                mapped_length: None,
            },
            TaskRequest::DeleteXCom {
                key,
                dag_id,
                run_id,
                task_id,
                map_index: None,
            },
            TaskRequest::SetRenderedFields {
                rendered_fields: Map::new(),
            },
            TaskRequest::SetRenderedMapIndex {
                rendered_map_index: "x".into(),
            },
            TaskRequest::GetTaskStateStore {
                ti_id: TI_ID.into(),
                key: "k".into(),
            },
            TaskRequest::SetTaskStateStore {
                ti_id: TI_ID.into(),
                key: "k".into(),
                value: json!(1),
                expires_at: None,
            },
            TaskRequest::DeleteTaskStateStore {
                ti_id: TI_ID.into(),
                key: "k".into(),
            },
            TaskRequest::ClearTaskStateStore {
                ti_id: TI_ID.into(),
            },
            TaskRequest::GetPrevSuccessfulDagRun {
                ti_id: TI_ID.into(),
            },
            TaskRequest::GetDagRunState {
                dag_id: "d".into(),
                run_id: "r".into(),
            },
            TaskRequest::SkipDownstreamTasks {
                tasks: vec![json!("a"), json!(["b", 1])],
            },
            TaskRequest::MaskSecret {
                value: json!("s3cr3t"),
                name: None,
            },
            TaskRequest::SucceedTask {
                end_date: WHEN.into(),
                task_outlets: vec![],
                outlet_events: vec![],
                rendered_map_index: None,
            },
            TaskRequest::RetryTask {
                end_date: WHEN.into(),
                rendered_map_index: None,
                retry_delay_seconds: Some(1.5),
                retry_reason: None,
            },
            TaskRequest::RescheduleTask {
                reschedule_date: WHEN.into(),
                end_date: WHEN.into(),
            },
            TaskRequest::DeferTask {
                classpath: "a.B".into(),
                trigger_kwargs: JsonObjectOrText::default(),
                trigger_timeout: Some(json!("PT1H")),
                queue: None,
                next_method: "resume".into(),
                next_kwargs: Map::new(),
                rendered_map_index: None,
            },
            TaskRequest::AwaitInputTask {
                timeout: None,
                next_method: "resume".into(),
                next_kwargs: Map::new(),
                rendered_map_index: None,
            },
            TaskRequest::TaskState {
                state: "failed".into(),
                end_date: Some(WHEN.into()),
                rendered_map_index: None,
            },
        ]
    }

    #[test]
    fn every_request_is_valid_and_comes_back_as_it_was() {
        let mut types = Vec::new();
        for request in requests() {
            let body = request.to_body();
            assert_valid(&body);
            types.push(body["type"].as_str().unwrap().to_owned());
            assert_eq!(TaskRequest::from_body(body).unwrap(), request);
        }
        assert_eq!(types, TYPED_REQUESTS);
    }

    #[test]
    fn every_reply_is_valid_and_comes_back_as_it_was() {
        let connection = Connection {
            conn_id: "c".into(),
            conn_type: "sqlite".into(),
            ..Connection::default()
        };
        let replies = [
            TaskReply::Connection(Connection {
                port: Some(5432),
                ..connection
            }),
            TaskReply::Variable {
                key: "k".into(),
                value: None,
            },
            TaskReply::VariableKeys {
                keys: vec!["k".into()],
                total_entries: 1,
            },
            TaskReply::XCom {
                key: "k".into(),
                value: json!({"a": 1.5}),
            },
            TaskReply::XComCount(3),
            TaskReply::XComItem(json!([1])),
            TaskReply::XComSlice(vec![json!(1), json!(null)]),
            TaskReply::TaskState(json!("x")),
            TaskReply::Other(json!({"type": "DagRunStateResult", "state": "running"})),
        ];
        for reply in replies {
            let body = reply.to_body();
            assert_valid(&body);
            assert_eq!(
                TaskReply::from_frame(body, Value::Null).unwrap().unwrap(),
                reply
            );
        }
        assert_eq!(
            TaskReply::from_frame(Value::Null, Value::Null).unwrap(),
            Ok(TaskReply::Done)
        );
        let ok = TaskRequest::DeleteVariable { key: "k".into() }.done_body();
        assert_valid(&ok);
        assert_eq!(
            TaskReply::from_frame(ok, Value::Null).unwrap(),
            Ok(TaskReply::Done)
        );
    }

    #[test]
    fn an_error_is_found_in_either_slot() {
        let error = ErrorResponse::new(ErrorKind::XComNotFound, "no such XCom");
        assert_valid(&error.to_body());
        assert_eq!(
            TaskReply::from_frame(error.to_body(), Value::Null).unwrap(),
            Err(error.clone())
        );
        assert_eq!(
            TaskReply::from_frame(Value::Null, error.to_body()).unwrap(),
            Err(error)
        );
    }

    #[test]
    fn startup_details_are_valid_even_without_dag_version_and_queue() {
        let details = startup_details();
        let body = details.to_body();
        assert_valid(&body);
        let read = StartupDetails::from_body(body).unwrap();
        assert_eq!(read.ti_context, details.ti_context);
    }

    #[test]
    fn null_collections_of_other_runtimes_are_read_as_empty() {
        let body = json!({"type": "SucceedTask", "end_date": WHEN, "task_outlets": null, "outlet_events": null});
        let read = TaskRequest::from_body(body).unwrap().to_body();
        assert_eq!(read["task_outlets"], json!([]));
        assert_eq!(read["outlet_events"], json!([]));
    }

    #[test]
    fn a_known_message_with_a_missing_field_names_message_and_field() {
        let error = TaskRequest::from_body(json!({"type": "GetXCom", "key": "k"}))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("GetXCom") && error.contains("dag_id"),
            "{error}"
        );
        assert!(TaskRequest::from_body(json!([1])).is_err());
    }
}
