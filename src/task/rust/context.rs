//! What a task written in Rust knows of its run, and may ask Airflow for.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{TaskError, plain};
use crate::agent::Model;
use crate::agent::Telemetry;
use crate::agent::durable::DurableJournal;
use crate::airflow::connection::Connection;
use crate::airflow::supervisor::{ErrorKind, TaskReply, TaskRequest};
use crate::airflow::xcom::check_wire;
use crate::hook::ConnectionSource;
use crate::secrets::Masker;
use crate::task::agent_model;
use crate::task::attempt::{Attempt, Rendered};
use crate::task::services::RETURN_VALUE;
use crate::task::toolsets::Connections;
use crate::task::xcom_push::push_one;
use crate::toolset::sql::Mask;

/// One try of one task instance.
#[derive(Clone)]
pub struct TaskContext {
    attempt: Arc<Attempt>,
    cancel: CancellationToken,
    telemetry: Option<Telemetry>,
}

impl TaskContext {
    pub(super) fn new(
        attempt: &Arc<Attempt>,
        cancel: CancellationToken,
        telemetry: Option<Telemetry>,
    ) -> Self {
        Self {
            attempt: Arc::clone(attempt),
            cancel,
            telemetry,
        }
    }

    /// The Dag's id.
    #[must_use]
    pub fn dag_id(&self) -> &str {
        &self.attempt.services.ti.dag_id
    }

    /// The task's id, with the prefixes of its task groups.
    #[must_use]
    pub fn task_id(&self) -> &str {
        &self.attempt.services.ti.task_id
    }

    /// The id of the Dag run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.attempt.services.ti.run_id
    }

    /// Which instance of a mapped task this is; `None` for a task that is not mapped.
    #[must_use]
    pub fn map_index(&self) -> Option<u64> {
        u64::try_from(self.attempt.services.ti.map_index).ok()
    }

    /// 1 for the first try.
    #[must_use]
    pub fn try_number(&self) -> u32 {
        self.attempt.services.ti.try_number
    }

    /// `logical_date` as ISO 8601; `None` for a run that has none.
    #[must_use]
    pub fn logical_date(&self) -> Option<&str> {
        let run = &self.attempt.details.ti_context.dag_run;
        run.logical_date.as_deref()
    }

    /// The configuration that the run was triggered with.
    #[must_use]
    pub fn conf(&self) -> Option<&Map<String, Value>> {
        self.attempt.details.ti_context.dag_run.conf.as_ref()
    }

    /// The run's params.
    #[must_use]
    pub fn params(&self) -> &Map<String, Value> {
        self.attempt.params()
    }

    /// A connection, from the worker's environment and secrets backends, else from Airflow. Its secrets are masked in the
    /// task's log from now on.
    ///
    /// # Errors
    /// There is none of this id, or it can't be had.
    pub async fn connection(&self, conn_id: &str) -> Result<Connection, TaskError> {
        Ok(self.attempt.services.resolver.connection(conn_id).await?)
    }

    /// A variable's text, from the same places; `None` when there is none.
    ///
    /// # Errors
    /// It can't be had.
    pub async fn variable(&self, key: &str) -> Result<Option<String>, TaskError> {
        Ok(self.attempt.services.resolver.variable(key).await?)
    }

    /// Has this text masked in whatever the task logs or pushes from now on.
    pub fn mask_secret(&self, secret: &str) {
        self.attempt.services.resolver.masker().add_secret(secret);
    }

    /// What another task of this run has returned; `None` when it has returned nothing.
    ///
    /// # Errors
    /// The server refuses, or the value does not fit `T`.
    pub async fn xcom_pull<T: DeserializeOwned>(
        &self,
        task_id: &str,
    ) -> Result<Option<T>, TaskError> {
        self.xcom_pull_key(task_id, RETURN_VALUE).await
    }

    /// An XCom of another task of this run under a key of its own.
    ///
    /// # Errors
    /// See [`Self::xcom_pull`].
    pub async fn xcom_pull_key<T: DeserializeOwned>(
        &self,
        task_id: &str,
        key: &str,
    ) -> Result<Option<T>, TaskError> {
        let request = TaskRequest::GetXCom {
            key: key.to_owned(),
            dag_id: self.dag_id().to_owned(),
            run_id: self.run_id().to_owned(),
            task_id: task_id.to_owned(),
            map_index: None,
            include_prior_dates: false,
        };
        match self.attempt.services.request(request).await {
            Ok(TaskReply::XCom { value, .. }) if !value.is_null() => {
                let read = serde_json::from_value(plain(value));
                let read = read.map_err(|error| {
                    TaskError::failed(format!("the XCom {key} of task {task_id}: {error}"))
                })?;
                Ok(Some(read))
            }
            Ok(_) => Ok(None),
            Err(error) if error.kind == ErrorKind::XComNotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Pushes a value under a key. What the task's function returns is pushed as `return_value` without this.
    ///
    /// # Errors
    /// The value is no JSON that an XCom may hold, or the server refuses it.
    pub async fn xcom_push(&self, key: &str, value: &impl Serialize) -> Result<(), TaskError> {
        let value = serde_json::to_value(value)?;
        check_wire(&value)?;
        Ok(push_one(&self.attempt.services, key, value).await?)
    }

    /// What this task instance has put into Airflow's task state store, on an earlier try too; `None` when nothing.
    ///
    /// # Errors
    /// The server has no state store (before Airflow 3.3), or refuses.
    pub async fn state(&self, key: &str) -> Result<Option<Value>, TaskError> {
        let request = TaskRequest::GetTaskStateStore {
            ti_id: self.attempt.services.ti.id.clone(),
            key: key.to_owned(),
        };
        match self.attempt.services.request(request).await {
            Ok(TaskReply::TaskState(value)) => Ok(Some(value)),
            Ok(_) => Ok(None),
            Err(error) if error.kind == ErrorKind::TaskStoreNotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Keeps a value in the task state store, over one that is there.
    ///
    /// # Errors
    /// As [`Self::state`].
    pub async fn set_state(&self, key: &str, value: &impl Serialize) -> Result<(), TaskError> {
        let request = TaskRequest::SetTaskStateStore {
            ti_id: self.attempt.services.ti.id.clone(),
            key: key.to_owned(),
            value: serde_json::to_value(value)?,
            expires_at: None,
        };
        self.attempt.services.request(request).await?;
        Ok(())
    }

    /// The model of a connection, as an operator's `llm_conn_id` and `model_id` name one.
    ///
    /// # Errors
    /// The connection is missing or names no model that is known.
    pub async fn model(
        &self,
        llm_conn_id: &str,
        model_id: Option<&str>,
    ) -> Result<Arc<dyn Model>, TaskError> {
        let mut fields = Map::new();
        fields.insert("llm_conn_id".to_owned(), llm_conn_id.into());
        if let Some(model_id) = model_id {
            fields.insert("model_id".to_owned(), model_id.into());
        }
        let rendered = Rendered {
            fields,
            ..Rendered::default()
        };
        let chosen = agent_model::choose(&self.attempt, &rendered, self.cancel.clone()).await;
        Ok(chosen
            .map_err(|failure| TaskError::failed(failure.message))?
            .model)
    }

    /// Is cancelled when the task is to stop: it was killed, or its time is over.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Where the spans of agents belong.
    pub(crate) fn telemetry(&self) -> Option<Telemetry> {
        self.telemetry.clone()
    }

    /// The id of the task instance: a UUID, another one on each try.
    pub(crate) fn ti_id(&self) -> &str {
        &self.attempt.services.ti.id
    }

    /// What agents that run durably record their steps in.
    pub(crate) async fn journal(&self) -> Result<Arc<DurableJournal>, TaskError> {
        let journal = self.attempt.agents.journal(&self.attempt).await;
        let journal = journal.map_err(|failure| TaskError::failed(failure.message))?;
        Ok(Arc::clone(journal))
    }

    /// Knows the secrets that the task has come across.
    pub(crate) fn masker(&self) -> &Masker {
        self.attempt.services.resolver.masker()
    }

    /// Takes the secrets that the task has come across out of a text: what toolsets want.
    #[must_use]
    pub fn mask(&self) -> Mask {
        let masker = self.masker().clone();
        Arc::new(move |text| masker.mask_str(text).into_owned())
    }

    /// Connections for toolsets of [`crate::toolset`] and hooks.
    #[must_use]
    pub fn connections(&self) -> Arc<dyn ConnectionSource> {
        Arc::new(Connections(self.attempt.services.resolver.clone()))
    }
}
