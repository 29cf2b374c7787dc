//! What templates, Dag code and agents ask of the world around a task, in one place.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::airflow::config::Config;
use crate::airflow::connection::Connection;
use crate::airflow::execution::{DagRun, TaskInstance};
use crate::airflow::supervisor::{ErrorKind, ErrorResponse, TaskReply, TaskRequest};
use crate::control_plane::ControlPlane;
use crate::control_plane::resolve::{ResolveError, Resolver};
use crate::dag::host::XComQuery;

/// The key under which a task's result is pushed.
pub const RETURN_VALUE: &str = "return_value";

/// The control plane as one task instance sees it.
///
/// The blocking methods are for threads that are not the runtime's own: the interpreter's, and those that render
/// templates.
#[derive(Clone)]
pub struct Services {
    control_plane: Arc<dyn ControlPlane>,
    runtime: Handle,
    /// Finds connections and variables, and tells the masker of them.
    pub resolver: Resolver,
    pub config: Arc<Config>,
    pub ti: Arc<TaskInstance>,
    /// For what Dag code waits for.
    stop: Arc<Mutex<CancellationToken>>,
}

/// Why something could not be looked up.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookupError {
    /// No connection or variable, or it can't be had.
    #[error(transparent)]
    Secret(#[from] ResolveError),
    /// There is no such variable.
    #[error("Variable {0} does not exist: define it in Airflow, or as AIRFLOW_VAR_{upper} on the worker", upper = .0.to_uppercase())]
    NoVariable(String),
    /// The server refused or could not answer.
    #[error("{what}: {source}")]
    Refused {
        /// What was asked, as a sentence's beginning.
        what: String,
        source: ErrorResponse,
    },
    /// An answer of another kind than was asked for.
    #[error("{0}: the supervisor answered with something else")]
    Unexpected(String),
}

impl Services {
    /// Must be called on the runtime.
    pub fn new(
        control_plane: Arc<dyn ControlPlane>,
        config: Arc<Config>,
        resolver: Resolver,
        ti: Arc<TaskInstance>,
    ) -> Self {
        Self {
            control_plane,
            runtime: Handle::current(),
            resolver,
            config,
            ti,
            stop: Arc::default(),
        }
    }

    /// Is cancelled when what Dag code waits for now is not wanted any more.
    #[must_use]
    pub fn stop_token(&self) -> CancellationToken {
        let stop = self.stop.lock();
        stop.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends what Dag code waits for. What it asks for after that, on its way out and in `on_kill`, is done.
    pub fn stop_waiting(&self) {
        let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *stop).cancel();
    }

    /// Waits for `work` on a thread of Dag code; `None` when it is stopped. Blocks.
    pub fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.runtime
            .block_on(self.stop_token().run_until_cancelled_owned(work))
    }

    /// The control plane itself, for toolsets and models.
    #[must_use]
    pub fn control_plane(&self) -> Arc<dyn ControlPlane> {
        Arc::clone(&self.control_plane)
    }

    /// The runtime that requests run on.
    #[must_use]
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// One request.
    ///
    /// # Errors
    /// What the control plane says.
    pub async fn request(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse> {
        self.control_plane.handle(request).await
    }

    fn ask(&self, what: &str, request: TaskRequest) -> Result<TaskReply, LookupError> {
        self.runtime
            .block_on(self.control_plane.handle(request))
            .map_err(|source| LookupError::Refused {
                what: what.to_owned(),
                source,
            })
    }

    /// A request that Dag code puts in the words of the supervisor protocol; the answer is a message body, an
    /// `ErrorResponse` among them. Blocks.
    ///
    /// # Errors
    /// It is malformed, or it would end the task.
    pub fn dag_code_request(&self, body: Value) -> Result<Value, String> {
        let request = TaskRequest::from_body(body).map_err(|error| error.to_string())?;
        if request.is_terminal() {
            return Err("a task ends when its function ends, not by a request".to_owned());
        }
        Ok(
            match self.runtime.block_on(self.control_plane.handle(request)) {
                Ok(reply) => reply.to_body(),
                Err(refusal) => refusal.to_body(),
            },
        )
    }

    /// A connection: from the worker's own places, else from the control plane. Blocks.
    ///
    /// # Errors
    /// There is none, or it can't be had.
    pub fn connection(&self, conn_id: &str) -> Result<Connection, LookupError> {
        Ok(self.runtime.block_on(self.resolver.connection(conn_id))?)
    }

    /// A variable's text; `None` when there is none. Blocks.
    ///
    /// # Errors
    /// It can't be had.
    pub fn variable(&self, key: &str) -> Result<Option<String>, LookupError> {
        Ok(self.runtime.block_on(self.resolver.variable(key))?)
    }

    /// Sets or, with `None`, deletes a variable. Blocks.
    ///
    /// # Errors
    /// The server refused.
    pub fn set_variable(
        &self,
        key: &str,
        value: Option<&str>,
        description: Option<&str>,
    ) -> Result<(), LookupError> {
        let request = match value {
            Some(value) => TaskRequest::PutVariable {
                key: key.to_owned(),
                value: Some(value.to_owned()),
                description: description.map(ToOwned::to_owned),
            },
            None => TaskRequest::DeleteVariable {
                key: key.to_owned(),
            },
        };
        self.ask(&format!("Variable {key}"), request).map(|_| ())
    }

    /// `ti.xcom_pull`, less `default`. Blocks. A value that is not there is null.
    ///
    /// # Errors
    /// It can't be had.
    pub fn xcom_pull(&self, query: &XComQuery) -> Result<Value, LookupError> {
        let mut rows = self.xcom_rows(query)?;
        if (query.single || query.task_ids.is_empty()) && rows.len() == 1 {
            return Ok(rows.pop().unwrap_or_default());
        }
        Ok(rows.into())
    }

    /// The values that `ti.xcom_pull` chooses from: with map indexes one for each task and index, else all of each task.
    ///
    /// # Errors
    /// They can't be had.
    pub fn xcom_rows(&self, query: &XComQuery) -> Result<Vec<Value>, LookupError> {
        let own = [self.ti.task_id.clone()];
        let task_ids = if query.task_ids.is_empty() {
            own.as_slice()
        } else {
            query.task_ids.as_slice()
        };
        let mut values = Vec::new();
        for task_id in task_ids {
            match &query.map_indexes {
                None => match self.xcom_slice(query, task_id)? {
                    rows if rows.is_empty() => values.push(Value::Null),
                    rows => values.extend(rows),
                },
                Some(indexes) => {
                    for index in indexes {
                        values.push(self.xcom_at(query, task_id, *index)?);
                    }
                }
            }
        }
        Ok(values)
    }

    fn xcom_slice(&self, query: &XComQuery, task_id: &str) -> Result<Vec<Value>, LookupError> {
        let what = format!("XCom {} of task {task_id}", query.key);
        let request = TaskRequest::GetXComSequenceSlice {
            key: query.key.clone(),
            dag_id: query
                .dag_id
                .clone()
                .unwrap_or_else(|| self.ti.dag_id.clone()),
            run_id: query
                .run_id
                .clone()
                .unwrap_or_else(|| self.ti.run_id.clone()),
            task_id: task_id.to_owned(),
            start: None,
            stop: None,
            step: None,
            include_prior_dates: query.include_prior_dates,
        };
        match self.ask(&what, request)? {
            TaskReply::XComSlice(rows) => Ok(rows),
            _ => Err(LookupError::Unexpected(what)),
        }
    }

    fn xcom_at(
        &self,
        query: &XComQuery,
        task_id: &str,
        map_index: i64,
    ) -> Result<Value, LookupError> {
        let what = format!("XCom {} of task {task_id}[{map_index}]", query.key);
        let request = TaskRequest::GetXCom {
            key: query.key.clone(),
            dag_id: query
                .dag_id
                .clone()
                .unwrap_or_else(|| self.ti.dag_id.clone()),
            run_id: query
                .run_id
                .clone()
                .unwrap_or_else(|| self.ti.run_id.clone()),
            task_id: task_id.to_owned(),
            map_index: (map_index >= 0).then_some(map_index),
            include_prior_dates: query.include_prior_dates,
        };
        match self.ask(&what, request) {
            Ok(TaskReply::XCom { value, .. }) => Ok(value),
            Ok(_) => Err(LookupError::Unexpected(what)),
            Err(LookupError::Refused { source, .. }) if source.kind == ErrorKind::XComNotFound => {
                Ok(Value::Null)
            }
            Err(error) => Err(error),
        }
    }

    /// The XCom of one upstream task as an argument sees it. Blocks.
    ///
    /// A mapped upstream task gives a list, whatever its length, unless one map index is wanted.
    ///
    /// # Errors
    /// It can't be had.
    pub fn xcom_argument(
        &self,
        task_id: &str,
        key: &str,
        mapped: bool,
        map_index: Option<i64>,
    ) -> Result<Value, LookupError> {
        let query = XComQuery {
            task_ids: vec![task_id.to_owned()],
            single: true,
            key: key.to_owned(),
            ..XComQuery::default()
        };
        if mapped && map_index.is_none() {
            return Ok(self.xcom_slice(&query, task_id)?.into());
        }
        self.xcom_at(&query, task_id, map_index.unwrap_or(-1))
    }

    /// `ti.xcom_push`, with the value in wire form. Blocks.
    ///
    /// # Errors
    /// The server refused.
    pub fn xcom_push(&self, key: &str, value: Value) -> Result<(), LookupError> {
        self.ask(&format!("XCom {key}"), self.set_xcom(key, value, None))
            .map(|_| ())
    }

    /// The request that pushes an XCom of this task instance.
    #[must_use]
    pub fn set_xcom(&self, key: &str, value: Value, mapped_length: Option<u64>) -> TaskRequest {
        TaskRequest::SetXCom {
            key: key.to_owned(),
            value,
            dag_id: self.ti.dag_id.clone(),
            run_id: self.ti.run_id.clone(),
            task_id: self.ti.task_id.clone(),
            map_index: (self.ti.map_index >= 0).then_some(self.ti.map_index),
            dag_result: false,
            mapped_length,
        }
    }

    /// The last successful run of the Dag. Blocks.
    ///
    /// # Errors
    /// It can't be had.
    pub fn previous_successful_run(&self) -> Result<Value, LookupError> {
        let what = "the previous successful Dag run".to_owned();
        match self.ask(
            &what,
            TaskRequest::GetPrevSuccessfulDagRun {
                ti_id: self.ti.id.clone(),
            },
        )? {
            TaskReply::Other(body) => Ok(body),
            _ => Err(LookupError::Unexpected(what)),
        }
    }
}

/// `dag_run` as Dag code and templates see it.
#[must_use]
pub fn dag_run_fields(dag_run: &DagRun) -> serde_json::Map<String, Value> {
    match serde_json::to_value(dag_run) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    }
}
