//! Which call of the Execution API answers which request of a task, and how its answer is read.

use percent_encoding::utf8_percent_encode;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Answer as HttpAnswer, ApiError, ApiVersion};
use crate::airflow::supervisor::{ErrorKind, ErrorResponse, TaskReply, TaskRequest};
use crate::airflow::url_text::SEGMENT;

/// One HTTP call, below the base URL.
#[derive(Debug)]
pub(super) struct Call {
    pub method: Method,
    /// Percent-encoded.
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    pub body: Option<Value>,
}

impl Call {
    pub fn new(method: Method) -> Self {
        Self {
            method,
            path: String::new(),
            query: Vec::new(),
            body: None,
        }
    }

    /// Sets the path from segments; none of them may be one that URLs resolve away.
    pub fn path(mut self, segments: &[&str]) -> Result<Self, ApiError> {
        let mut encoded = Vec::with_capacity(segments.len());
        for segment in segments {
            if matches!(*segment, "" | "." | "..") {
                return Err(ApiError::Unaddressable((*segment).to_owned()));
            }
            encoded.push(utf8_percent_encode(segment, SEGMENT).to_string());
        }
        self.path = encoded.join("/");
        Ok(self)
    }

    /// Adds a key that may hold slashes of its own.
    fn key(mut self, key: &str) -> Result<Self, ApiError> {
        for part in key.split('/') {
            if matches!(part, "" | "." | "..") {
                return Err(ApiError::Unaddressable(key.to_owned()));
            }
            self.path.push('/');
            self.path.extend(utf8_percent_encode(part, SEGMENT));
        }
        Ok(self)
    }

    fn suffix(mut self, suffix: &str) -> Self {
        self.path.push_str(suffix);
        self
    }

    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    fn query(mut self, name: &'static str, value: impl ToString) -> Self {
        self.query.push((name, value.to_string()));
        self
    }

    fn maybe(self, name: &'static str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// A parameter taken from a message: a list repeats it, null leaves it out.
    fn field(self, name: &'static str, value: &Value) -> Self {
        match value {
            Value::Null => self,
            Value::Array(items) => items.iter().fold(self, |call, item| match item {
                // The API's word for "no state".
                Value::Null => call.query(name, "null"),
                item => call.query(name, text(item)),
            }),
            other => self.query(name, text(other)),
        }
    }

    fn answered(self, answer: Answer) -> Route {
        Route {
            call: self,
            answer,
            refusal: Refusal::default(),
        }
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A call, and how its answer is to be read.
pub(super) struct Route {
    pub call: Call,
    pub answer: Answer,
    pub refusal: Refusal,
}

impl Route {
    /// What a 404 means here.
    fn not_found(mut self, kind: ErrorKind, detail: Value) -> Self {
        self.refusal.not_found = Some((kind, detail));
        self
    }

    /// 401 and 403 mean that this task may not see it.
    fn guarded(mut self) -> Self {
        self.refusal.guarded = true;
        self
    }

    fn accepts(mut self, statuses: &'static [u16]) -> Self {
        self.refusal.accepted = statuses;
        self
    }
}

/// How a successful answer is read.
pub(super) enum Answer {
    Done,
    Connection,
    Variable,
    VariableKeys,
    XCom,
    XComCount,
    XComItem,
    XComSlice,
    TaskState,
    /// The answer's object, with this `type`.
    Tagged(&'static str),
    /// The answer as the named field of an object with this `type`.
    Wrapped(&'static str, &'static str),
}

impl Answer {
    pub fn read(self, answer: &HttpAnswer) -> Result<TaskReply, String> {
        let json =
            || serde_json::from_slice::<Value>(&answer.body).map_err(|error| error.to_string());
        let take = |body: &mut Value, name: &str| body.get_mut(name).map(Value::take);
        fn parse<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
            serde_json::from_value(value).map_err(|error| error.to_string())
        }
        Ok(match self {
            Self::Done => TaskReply::Done,
            Self::Connection => TaskReply::Connection(parse(json()?)?),
            Self::Variable => {
                let mut body = json()?;
                TaskReply::Variable {
                    key: parse(take(&mut body, "key").unwrap_or_default())?,
                    value: parse(take(&mut body, "value").unwrap_or_default())?,
                }
            }
            Self::VariableKeys => {
                let mut body = json()?;
                TaskReply::VariableKeys {
                    keys: parse(take(&mut body, "keys").unwrap_or_default())?,
                    total_entries: parse(take(&mut body, "total_entries").unwrap_or_default())?,
                }
            }
            Self::XCom => {
                let mut body = json()?;
                TaskReply::XCom {
                    key: parse(take(&mut body, "key").unwrap_or_default())?,
                    value: take(&mut body, "value").unwrap_or_default(),
                }
            }
            Self::XComCount => {
                let range = answer
                    .headers
                    .get("Content-Range")
                    .and_then(|value| value.to_str().ok());
                let count =
                    range.and_then(|range| range.strip_prefix("map_indexes ")?.trim().parse().ok());
                TaskReply::XComCount(count.ok_or("no Content-Range: map_indexes header")?)
            }
            Self::XComItem => TaskReply::XComItem(json()?),
            Self::XComSlice => TaskReply::XComSlice(parse(json()?)?),
            Self::TaskState => {
                TaskReply::TaskState(take(&mut json()?, "value").unwrap_or_default())
            }
            Self::Tagged(kind) => match json()? {
                Value::Object(mut body) => {
                    body.insert("type".into(), kind.into());
                    TaskReply::Other(Value::Object(body))
                }
                _ => return Err("not an object".into()),
            },
            Self::Wrapped(kind, field) => TaskReply::Other(json!({field: json()?, "type": kind})),
        })
    }
}

/// How a refusal is read.
#[derive(Default)]
pub(super) struct Refusal {
    not_found: Option<(ErrorKind, Value)>,
    guarded: bool,
    /// A missing XCom is a null XCom.
    null_xcom: Option<String>,
    /// Statuses that are as good as success.
    accepted: &'static [u16],
    conflict: Option<ErrorKind>,
    /// A repeated PATCH to `up_for_retry`, whose first answer was lost, finds no such try any more: the server has given
    /// the task a new id.
    already: bool,
}

impl Refusal {
    pub fn read(self, error: &ApiError) -> Result<TaskReply, ErrorResponse> {
        let response = error.to_response();
        let Some(status) = error.status() else {
            return Err(response);
        };
        if self.accepted.contains(&status)
            || (self.already && error.attempts() > 1 && matches!(status, 404 | 410))
        {
            return Ok(TaskReply::Done);
        }
        match (status, self.not_found, self.null_xcom) {
            (404, _, Some(key)) => Ok(TaskReply::XCom {
                key,
                value: Value::Null,
            }),
            (404, Some((kind, detail)), _) => Err(ErrorResponse { kind, detail }),
            (401 | 403, ..) if self.guarded => Err(ErrorResponse {
                kind: ErrorKind::PermissionDenied,
                detail: response.detail,
            }),
            (409, ..) if self.conflict.is_some() => Err(ErrorResponse {
                kind: self.conflict.unwrap_or_default(),
                detail: response.detail,
            }),
            _ => Err(response),
        }
    }
}

/// The call for a request; `None` when there is nothing to ask the server.
///
/// # Errors
/// A request that the protocol has and the server, in this version, has not.
pub(super) fn route(
    ti_id: &str,
    request: TaskRequest,
    version: ApiVersion,
) -> Result<Option<Route>, ErrorResponse> {
    if let Some(lacking) = version.lacks(&request) {
        return Err(lacking);
    }
    let unaddressable =
        |error: ApiError| ErrorResponse::new(ErrorKind::GenericError, error.to_string());
    build(ti_id, request, version)
        .map_err(unaddressable)
        .and_then(|routed| match routed {
            Routed::Call(route) => Ok(Some(*route)),
            Routed::Nothing => Ok(None),
            Routed::Unhandled => Err(ErrorResponse {
                kind: ErrorKind::ApiServerError,
                detail: json!({"status_code": 400, "message": "Unhandled request"}),
            }),
        })
}

enum Routed {
    Call(Box<Route>),
    Nothing,
    Unhandled,
}

fn build(ti_id: &str, request: TaskRequest, version: ApiVersion) -> Result<Routed, ApiError> {
    let get = || Call::new(Method::GET);
    let put = || Call::new(Method::PUT);
    let delete = || Call::new(Method::DELETE);
    let own = |method: Method, what: &str| Call::new(method).path(&["task-instances", ti_id, what]);
    let xcom = |method: Method, dag_id: &str, run_id: &str, task_id: &str, key: &str| {
        Call::new(method)
            .path(&["xcoms", dag_id, run_id, task_id])?
            .key(key)
    };
    // Absent and negative alike mean "not mapped", which is the API's default.
    let mapped = |map_index: Option<i64>| map_index.filter(|index| *index >= 0);
    let route = match request {
        TaskRequest::GetConnection { conn_id } => get()
            .path(&["connections", &conn_id])?
            .answered(Answer::Connection)
            .guarded()
            .not_found(ErrorKind::ConnectionNotFound, json!({ "conn_id": conn_id })),
        TaskRequest::GetVariable { key } => get()
            .path(&["variables"])?
            .key(&key)?
            .answered(Answer::Variable)
            .guarded()
            .not_found(ErrorKind::VariableNotFound, json!({ "key": key })),
        TaskRequest::GetVariableKeys { prefix, limit, offset } => get()
            .path(&["variables", "keys"])?
            .maybe("prefix", prefix)
            .maybe("limit", limit)
            .maybe("offset", offset)
            .answered(Answer::VariableKeys)
            .guarded(),
        TaskRequest::PutVariable { key, value, description } => put()
            .path(&["variables"])?
            .key(&key)?
            .body(json!({"val": value, "description": description}))
            .answered(Answer::Done)
            .guarded(),
        TaskRequest::DeleteVariable { key } => {
            delete().path(&["variables"])?.key(&key)?.answered(Answer::Done).guarded()
        }
        TaskRequest::GetXCom { key, dag_id, run_id, task_id, map_index, include_prior_dates } => {
            let mut route = xcom(Method::GET, &dag_id, &run_id, &task_id, &key)?
                .maybe("map_index", mapped(map_index))
                .maybe("include_prior_dates", include_prior_dates.then_some(true))
                .answered(Answer::XCom);
            route.refusal.null_xcom = Some(key);
            route
        }
        TaskRequest::GetXComCount { key, dag_id, run_id, task_id } => {
            xcom(Method::HEAD, &dag_id, &run_id, &task_id, &key)?.answered(Answer::XComCount)
        }
        TaskRequest::GetXComSequenceItem { key, dag_id, run_id, task_id, offset } => {
            xcom(Method::GET, &dag_id, &run_id, &task_id, &key)?
                .suffix(&format!("/item/{offset}"))
                .answered(Answer::XComItem)
                .not_found(
                    ErrorKind::XComNotFound,
                    json!({"dag_id": dag_id, "run_id": run_id, "task_id": task_id, "key": key, "offset": offset}),
                )
        }
        TaskRequest::GetXComSequenceSlice {
            key,
            dag_id,
            run_id,
            task_id,
            start,
            stop,
            step,
            include_prior_dates,
        } => xcom(Method::GET, &dag_id, &run_id, &task_id, &key)?
            .suffix("/slice")
            .maybe("start", start)
            .maybe("stop", stop)
            .maybe("step", step)
            .maybe("include_prior_dates", include_prior_dates.then_some(true))
            .answered(Answer::XComSlice),
        TaskRequest::SetXCom { key, value, dag_id, run_id, task_id, map_index, dag_result, mapped_length } => {
            xcom(Method::POST, &dag_id, &run_id, &task_id, &key)?
                .maybe("map_index", mapped(map_index))
                .maybe("dag_result", dag_result.then_some(true))
                .maybe("mapped_length", mapped_length)
                .body(value)
                .answered(Answer::Done)
        }
        TaskRequest::DeleteXCom { key, dag_id, run_id, task_id, map_index } => {
            xcom(Method::DELETE, &dag_id, &run_id, &task_id, &key)?
                .maybe("map_index", mapped(map_index))
                .answered(Answer::Done)
        }
        TaskRequest::SetRenderedFields { rendered_fields } => own(Method::PUT, "rtif")?
            .body(Value::Object(rendered_fields))
            .answered(Answer::Done)
            // The try was cleared or retried meanwhile; the heartbeat ends it.
            .accepts(&[410]),
        // The final state brings it too.
        TaskRequest::SetRenderedMapIndex { .. } if version < ApiVersion::V2026_04_06 => {
            return Ok(Routed::Nothing);
        }
        TaskRequest::SetRenderedMapIndex { rendered_map_index } => {
            own(Method::PATCH, "rendered-map-index")?.body(rendered_map_index.into()).answered(Answer::Done)
        }
        TaskRequest::GetTaskStateStore { ti_id, key } => get()
            .path(&["store", "ti", &ti_id])?
            .key(&key)?
            .answered(Answer::TaskState)
            .not_found(ErrorKind::TaskStoreNotFound, json!({"ti_id": ti_id, "key": key})),
        TaskRequest::SetTaskStateStore { ti_id, key, value, expires_at } => put()
            .path(&["store", "ti", &ti_id])?
            .key(&key)?
            .body(json!({"value": value, "expires_at": expires_at}))
            .answered(Answer::Done),
        TaskRequest::DeleteTaskStateStore { ti_id, key } => {
            delete().path(&["store", "ti", &ti_id])?.key(&key)?.answered(Answer::Done)
        }
        TaskRequest::ClearTaskStateStore { ti_id } => {
            delete().path(&["store", "ti", &ti_id])?.answered(Answer::Done)
        }
        TaskRequest::GetPrevSuccessfulDagRun { .. } => own(Method::GET, "previous-successful-dagrun")?
            .answered(Answer::Tagged("PrevSuccessfulDagRunResult")),
        TaskRequest::GetDagRunState { dag_id, run_id } => get()
            .path(&["dag-runs", &dag_id, &run_id, "state"])?
            .answered(Answer::Tagged("DagRunStateResult")),
        TaskRequest::SkipDownstreamTasks { tasks } => own(Method::PATCH, "skip-downstream")?
            .body(json!({ "tasks": tasks }))
            .answered(Answer::Done),
        // The supervisor's own affair.
        TaskRequest::MaskSecret { .. } => return Ok(Routed::Nothing),
        TaskRequest::SucceedTask { .. }
        | TaskRequest::RetryTask { .. }
        | TaskRequest::RescheduleTask { .. }
        | TaskRequest::DeferTask { .. }
        | TaskRequest::AwaitInputTask { .. }
        | TaskRequest::TaskState { .. } => {
            let retry = matches!(request, TaskRequest::RetryTask { .. });
            let mut route = own(Method::PATCH, "state")?.body(state_payload(request, version)).answered(Answer::Done);
            route.refusal.already = retry;
            route
        }
        TaskRequest::Other(message) => return other(ti_id, &message, version),
    };
    Ok(Routed::Call(Box::new(route)))
}

/// The payload of `PATCH /task-instances/{id}/state`. Optional fields are left out, never null: a null
/// `rendered_map_index` would erase the label, and null collections are refused.
fn state_payload(request: TaskRequest, version: ApiVersion) -> Value {
    let state = match &request {
        TaskRequest::SucceedTask { .. } => "success",
        TaskRequest::RetryTask { .. } => "up_for_retry",
        TaskRequest::RescheduleTask { .. } => "up_for_reschedule",
        TaskRequest::DeferTask { .. } => "deferred",
        TaskRequest::AwaitInputTask { .. } => "awaiting_input",
        _ => "",
    };
    let mut payload = match request.to_body() {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    payload.shift_remove("type");
    payload.retain(|_, value| !value.is_null());
    version.fit_state(&mut payload);
    if !state.is_empty() {
        payload.insert("state".into(), state.into());
    } else if !payload.contains_key("end_date") {
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        payload.insert("end_date".into(), now.into());
    }
    if let Some(Value::String(reason)) = payload.get_mut("retry_reason") {
        // The server's column; it would cut it too.
        *reason = reason.chars().take(500).collect();
    }
    Value::Object(payload)
}

/// The requests that have no variant of their own.
fn other(
    ti_id: &str,
    message: &Map<String, Value>,
    version: ApiVersion,
) -> Result<Routed, ApiError> {
    let field = |name: &str| message.get(name).unwrap_or(&Value::Null);
    let word = |name: &str| {
        message
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let get = || Call::new(Method::GET);
    let kind = word("type");
    let (by, name) = if kind.ends_with("ByUri") {
        ("by-uri", "uri")
    } else {
        ("by-name", "name")
    };
    let asset_missing = |key: &str| json!({name: word(name), "key": key});
    let route = match kind {
        "GetAssetByName" | "GetAssetByUri" => get()
            .path(&["assets", by])?
            .query(name, word(name))
            .answered(Answer::Tagged("AssetResult"))
            .not_found(ErrorKind::AssetNotFound, json!({name: word(name)})),
        "GetAssetsByAlias" => get()
            .path(&["assets", "by-alias"])?
            .query("alias_name", word("alias_name"))
            .answered(Answer::Wrapped("AssetsByAliasResult", "assets")),
        "GetAssetEventByAsset" | "GetAssetEventByAssetAlias" => {
            let call = if kind == "GetAssetEventByAsset" {
                get()
                    .path(&["asset-events", "by-asset"])?
                    .query("name", word("name"))
                    .query("uri", word("uri"))
            } else {
                get()
                    .path(&["asset-events", "by-asset-alias"])?
                    .query("name", word("alias_name"))
            };
            ["after", "before", "ascending", "limit"]
                .into_iter()
                .fold(call, |call, name| call.field(name, field(name)))
                .answered(Answer::Tagged("AssetEventsResult"))
                .not_found(ErrorKind::AssetNotFound, Value::Null)
        }
        "GetAssetStateStoreByName" | "GetAssetStateStoreByUri" => get()
            .path(&["store", "asset", by, "value"])?
            .query(name, word(name))
            .query("key", word("key"))
            .answered(Answer::Tagged("AssetStateStoreResult"))
            .not_found(ErrorKind::AssetStoreNotFound, asset_missing(word("key"))),
        "SetAssetStateStoreByName" | "SetAssetStateStoreByUri" => Call::new(Method::PUT)
            .path(&["store", "asset", by, "value"])?
            .query(name, word(name))
            .query("key", word("key"))
            .body(json!({"value": field("value")}))
            .answered(Answer::Done),
        "DeleteAssetStateStoreByName" | "DeleteAssetStateStoreByUri" => Call::new(Method::DELETE)
            .path(&["store", "asset", by, "value"])?
            .query(name, word(name))
            .query("key", word("key"))
            .answered(Answer::Done),
        "ClearAssetStateStoreByName" | "ClearAssetStateStoreByUri" => Call::new(Method::DELETE)
            .path(&["store", "asset", by, "clear"])?
            .query(name, word(name))
            .answered(Answer::Done),
        "ValidateInletsAndOutlets" => get()
            .path(&["task-instances", ti_id, "validate-inlets-and-outlets"])?
            .answered(Answer::Tagged("InactiveAssetsResult")),
        "GetDagRun" => get()
            .path(&["dag-runs", word("dag_id"), word("run_id")])?
            .answered(Answer::Tagged("DagRunResult")),
        "GetPreviousDagRun" => {
            let call = if version < ApiVersion::V2026_04_06 {
                get().path(&["dag-runs", word("dag_id"), "previous"])?
            } else {
                get()
                    .path(&["dag-runs", "previous"])?
                    .query("dag_id", word("dag_id"))
            };
            call.query("logical_date", word("logical_date"))
                .field("state", field("state"))
                .answered(Answer::Wrapped("PreviousDagRunResult", "dag_run"))
        }
        "GetPreviousTI" => get()
            .path(&[
                "task-instances",
                "previous",
                word("dag_id"),
                word("task_id"),
            ])?
            .field("logical_date", field("logical_date"))
            .field("map_index", field("map_index"))
            .field("state", field("state"))
            .answered(Answer::Wrapped("PreviousTIResult", "task_instance")),
        "GetTICount" | "GetTaskStates" => {
            let counting = kind == "GetTICount";
            let call =
                get().path(&["task-instances", if counting { "count" } else { "states" }])?;
            [
                "dag_id",
                "map_index",
                "task_ids",
                "task_group_id",
                "logical_dates",
                "run_ids",
                "states",
            ]
            .into_iter()
            .filter(|name| counting || *name != "states")
            .fold(call, |call, name| call.field(name, field(name)))
            .answered(if counting {
                Answer::Wrapped("TICount", "count")
            } else {
                Answer::Tagged("TaskStatesResult")
            })
        }
        "GetDRCount" => ["dag_id", "logical_dates", "run_ids", "states"]
            .into_iter()
            .fold(get().path(&["dag-runs", "count"])?, |call, name| {
                call.field(name, field(name))
            })
            .answered(Answer::Wrapped("DRCount", "count")),
        "GetTaskBreadcrumbs" => get()
            .path(&["task-instances", "breadcrumbs"])?
            .query("dag_id", word("dag_id"))
            .query("run_id", word("run_id"))
            .answered(Answer::Tagged("TaskBreadcrumbsResult")),
        "GetDag" => get()
            .path(&["dags", word("dag_id")])?
            .answered(Answer::Tagged("DagResult")),
        "GetTaskRescheduleStartDate" => get()
            .path(&["task-reschedules", word("ti_id"), "start_date"])?
            .answered(Answer::Wrapped("TaskRescheduleStartDate", "start_date")),
        "CreateHITLDetailPayload" => Call::new(Method::POST)
            .path(&["hitlDetails", word("ti_id")])?
            .body(without(message, &["type"]))
            .answered(Answer::Tagged("HITLDetailRequestResult")),
        "TriggerDagRun" => {
            let mut route = Call::new(Method::POST)
                .path(&["dag-runs", word("dag_id"), word("run_id")])?
                .body(without(message, &["type", "dag_id", "run_id"]))
                .answered(Answer::Done);
            route.refusal.conflict = Some(ErrorKind::DagRunAlreadyExists);
            route
        }
        _ => return Ok(Routed::Unhandled),
    };
    Ok(Routed::Call(Box::new(route)))
}

/// A message as a request body: without some fields and without nulls, which the API refuses for collections.
fn without(message: &Map<String, Value>, names: &[&str]) -> Value {
    let kept = message
        .iter()
        .filter(|(name, value)| !names.contains(&name.as_str()) && !value.is_null());
    Value::Object(
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}
