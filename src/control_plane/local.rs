//! An in-memory control plane, for local runs and tests: one Dag run, its XComs, variables and task state.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::ControlPlane;
use crate::airflow::connection::Connection;
use crate::airflow::supervisor::{ErrorKind, ErrorResponse, TaskReply, TaskRequest};

/// Where an XCom belongs: Dag, run, task, map index (-1: not mapped).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct XComPlace {
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub map_index: i64,
}

#[derive(Debug, Default)]
struct State {
    connections: BTreeMap<String, Connection>,
    variables: BTreeMap<String, String>,
    /// In order of their first push, as Airflow lists them by id.
    xcoms: BTreeMap<XComPlace, Map<String, Value>>,
    task_state: BTreeMap<(String, String), Value>,
    /// When task instances began, by id.
    started: BTreeMap<String, String>,
    rendered_fields: BTreeMap<String, Map<String, Value>>,
    /// Terminal messages and others that only matter to the caller, in order.
    messages: Vec<TaskRequest>,
}

/// Answers requests from memory, and remembers what it was told.
#[derive(Debug, Default)]
pub struct LocalControlPlane {
    state: Mutex<State>,
}

impl LocalControlPlane {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one insertion, so a poisoned state is still sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Defines a connection.
    pub fn set_connection(&self, connection: Connection) {
        self.state()
            .connections
            .insert(connection.conn_id.clone(), connection);
    }

    /// Is there a connection of this id?
    #[must_use]
    pub fn has_connection(&self, conn_id: &str) -> bool {
        self.state().connections.contains_key(conn_id)
    }

    /// Defines a variable.
    pub fn set_variable(&self, key: &str, value: &str) {
        self.state()
            .variables
            .insert(key.to_owned(), value.to_owned());
    }

    /// Puts a value into the task state store, as an earlier try would have.
    pub fn set_task_state(&self, ti_id: &str, key: &str, value: Value) {
        self.state()
            .task_state
            .insert((ti_id.to_owned(), key.to_owned()), value);
    }

    /// Notes when a task instance began, for sensors that leave their slot between pokes.
    pub fn set_started(&self, ti_id: &str, at: &str) {
        self.state().started.insert(ti_id.to_owned(), at.to_owned());
    }

    /// All XComs of one task instance.
    #[must_use]
    pub fn xcoms(&self, place: &XComPlace) -> Map<String, Value> {
        self.state().xcoms.get(place).cloned().unwrap_or_default()
    }

    /// Values of one key over all map indexes of a task, in the order of their indexes.
    #[must_use]
    pub fn xcom_rows(&self, dag_id: &str, run_id: &str, task_id: &str, key: &str) -> Vec<Value> {
        rows(&self.state(), dag_id, run_id, task_id, key)
    }

    /// Forgets the XComs of a task instance, as Airflow does before a try.
    pub fn clear_xcoms(&self, place: &XComPlace) {
        self.state().xcoms.remove(place);
    }

    /// The rendered template fields that were sent last for a task (`task_id`, or `task_id[map_index]`).
    #[must_use]
    pub fn rendered_fields(&self) -> BTreeMap<String, Map<String, Value>> {
        self.state().rendered_fields.clone()
    }

    /// Everything that was sent and has no answer: terminal messages, rendered fields and map indexes.
    #[must_use]
    pub fn messages(&self) -> Vec<TaskRequest> {
        self.state().messages.clone()
    }
}

fn rows(state: &State, dag_id: &str, run_id: &str, task_id: &str, key: &str) -> Vec<Value> {
    state
        .xcoms
        .iter()
        .filter(|(place, _)| {
            place.dag_id == dag_id && place.run_id == run_id && place.task_id == task_id
        })
        .filter_map(|(_, values)| values.get(key).cloned())
        .collect()
}

fn not_found(kind: ErrorKind, name: &str, value: &str) -> ErrorResponse {
    ErrorResponse {
        kind,
        detail: json!({ name: value }),
    }
}

/// Python's `list[start:stop:step]`.
fn slice(rows: &[Value], start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> Vec<Value> {
    let len = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let step = step.filter(|step| *step != 0).unwrap_or(1);
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let place = |index: i64| (if index < 0 { index + len } else { index }).clamp(low, high);
    let mut at = start.map_or(if step > 0 { 0 } else { len - 1 }, place);
    let end = stop.map_or(if step > 0 { len } else { -1 }, place);
    let mut out = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        out.extend(
            usize::try_from(at)
                .ok()
                .and_then(|at| rows.get(at))
                .cloned(),
        );
        at += step;
    }
    out
}

#[async_trait]
impl ControlPlane for LocalControlPlane {
    async fn handle(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse> {
        let mut state = self.state();
        let place = |dag_id: &str, run_id: &str, task_id: &str, map_index: Option<i64>| XComPlace {
            dag_id: dag_id.to_owned(),
            run_id: run_id.to_owned(),
            task_id: task_id.to_owned(),
            map_index: map_index.unwrap_or(-1),
        };
        Ok(match request {
            TaskRequest::GetConnection { conn_id } => match state.connections.get(&conn_id) {
                Some(connection) => TaskReply::Connection(connection.clone()),
                None => {
                    return Err(not_found(
                        ErrorKind::ConnectionNotFound,
                        "conn_id",
                        &conn_id,
                    ));
                }
            },
            TaskRequest::GetVariable { key } => match state.variables.get(&key) {
                Some(value) => TaskReply::Variable {
                    value: Some(value.clone()),
                    key,
                },
                None => return Err(not_found(ErrorKind::VariableNotFound, "key", &key)),
            },
            TaskRequest::GetVariableKeys {
                prefix,
                limit,
                offset,
            } => {
                let prefix = prefix.unwrap_or_default();
                let keys: Vec<_> = state
                    .variables
                    .keys()
                    .filter(|key| key.starts_with(&prefix))
                    .cloned()
                    .collect();
                TaskReply::VariableKeys {
                    total_entries: keys.len() as u64,
                    keys: keys
                        .into_iter()
                        .skip(offset.unwrap_or(0) as usize)
                        .take(limit.map_or(usize::MAX, |limit| limit as usize))
                        .collect(),
                }
            }
            TaskRequest::PutVariable { key, value, .. } => {
                state.variables.insert(key, value.unwrap_or_default());
                TaskReply::Done
            }
            TaskRequest::DeleteVariable { key } => {
                state.variables.remove(&key);
                TaskReply::Done
            }
            TaskRequest::GetXCom {
                key,
                dag_id,
                run_id,
                task_id,
                map_index,
                ..
            } => {
                let found = state
                    .xcoms
                    .get(&place(&dag_id, &run_id, &task_id, map_index));
                let value = found
                    .and_then(|values| values.get(&key))
                    .cloned()
                    .unwrap_or_default();
                TaskReply::XCom { key, value }
            }
            TaskRequest::GetXComCount {
                key,
                dag_id,
                run_id,
                task_id,
            } => TaskReply::XComCount(rows(&state, &dag_id, &run_id, &task_id, &key).len() as u64),
            TaskRequest::GetXComSequenceItem {
                key,
                dag_id,
                run_id,
                task_id,
                offset,
            } => {
                let rows = rows(&state, &dag_id, &run_id, &task_id, &key);
                let from_end = i64::try_from(rows.len()).unwrap_or(i64::MAX);
                let at = usize::try_from(if offset < 0 {
                    offset + from_end
                } else {
                    offset
                });
                match at.ok().and_then(|at| rows.get(at)) {
                    Some(value) => TaskReply::XComItem(value.clone()),
                    None => return Err(not_found(ErrorKind::XComNotFound, "key", &key)),
                }
            }
            TaskRequest::GetXComSequenceSlice {
                key,
                dag_id,
                run_id,
                task_id,
                start,
                stop,
                step,
                ..
            } => TaskReply::XComSlice(slice(
                &rows(&state, &dag_id, &run_id, &task_id, &key),
                start,
                stop,
                step,
            )),
            TaskRequest::SetXCom {
                key,
                value,
                dag_id,
                run_id,
                task_id,
                map_index,
                ..
            } => {
                state
                    .xcoms
                    .entry(place(&dag_id, &run_id, &task_id, map_index))
                    .or_default()
                    .insert(key, value);
                TaskReply::Done
            }
            TaskRequest::DeleteXCom {
                key,
                dag_id,
                run_id,
                task_id,
                map_index,
            } => {
                if let Some(values) = state
                    .xcoms
                    .get_mut(&place(&dag_id, &run_id, &task_id, map_index))
                {
                    values.shift_remove(&key);
                }
                TaskReply::Done
            }
            TaskRequest::GetTaskStateStore { ti_id, key } => {
                match state.task_state.get(&(ti_id, key.clone())) {
                    Some(value) => TaskReply::TaskState(value.clone()),
                    None => return Err(not_found(ErrorKind::TaskStoreNotFound, "key", &key)),
                }
            }
            TaskRequest::SetTaskStateStore {
                ti_id, key, value, ..
            } => {
                state.task_state.insert((ti_id, key), value);
                TaskReply::Done
            }
            TaskRequest::DeleteTaskStateStore { ti_id, key } => {
                state.task_state.remove(&(ti_id, key));
                TaskReply::Done
            }
            TaskRequest::ClearTaskStateStore { ti_id } => {
                state.task_state.retain(|(owner, _), _| *owner != ti_id);
                TaskReply::Done
            }
            TaskRequest::GetPrevSuccessfulDagRun { .. } => TaskReply::Other(json!({
                "type": "PrevSuccessfulDagRunResult",
                "data_interval_start": null, "data_interval_end": null, "start_date": null, "end_date": null,
            })),
            TaskRequest::GetDagRunState { .. } => {
                TaskReply::Other(json!({ "type": "DagRunStateResult", "state": "running" }))
            }
            TaskRequest::MaskSecret { .. } => TaskReply::Done,
            TaskRequest::Other(body)
                if body.get("type").and_then(Value::as_str)
                    == Some("GetTaskRescheduleStartDate") =>
            {
                let ti_id = body.get("ti_id").and_then(Value::as_str);
                TaskReply::Other(json!({
                    "type": "TaskRescheduleStartDate",
                    "start_date": ti_id.and_then(|ti_id| state.started.get(ti_id)),
                }))
            }
            TaskRequest::Other(body)
                if body.get("type").and_then(Value::as_str) == Some("TriggerDagRun") =>
            {
                return Err(ErrorResponse::new(
                    ErrorKind::GenericError,
                    "a local run starts no runs of other Dags",
                ));
            }
            message => {
                state.messages.push(message);
                TaskReply::Done
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn slices_are_pythons() {
        let rows: Vec<_> = (0..5).map(Value::from).collect();
        let cases = [
            ((None, None, None), json!([0, 1, 2, 3, 4])),
            ((Some(-2), None, None), json!([3, 4])),
            ((None, None, Some(-2)), json!([4, 2, 0])),
            ((Some(1), Some(-1), Some(2)), json!([1, 3])),
            ((Some(9), None, None), json!([])),
        ];
        for ((start, stop, step), expected) in cases {
            assert_eq!(Value::from(slice(&rows, start, stop, step)), expected);
        }
    }

    #[tokio::test]
    async fn xcoms_of_mapped_tasks_come_in_the_order_of_their_map_indexes() {
        let plane = LocalControlPlane::new();
        for index in [2, 0, 1] {
            let set = TaskRequest::SetXCom {
                key: "return_value".into(),
                value: index.into(),
                dag_id: "d".into(),
                run_id: "r".into(),
                task_id: "t".into(),
                map_index: Some(index),
                dag_result: false,
                mapped_length: None,
            };
            plane.handle(set).await.unwrap();
        }
        assert_eq!(
            plane.xcom_rows("d", "r", "t", "return_value"),
            [json!(0), json!(1), json!(2)]
        );
    }
}
