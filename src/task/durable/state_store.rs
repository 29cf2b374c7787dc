//! A journal in the server's task state store: one entry for each record, of the task instance, for every try of it.

use async_trait::async_trait;
use futures::StreamExt as _;
use serde_json::Value;

use super::LOGGER;
use crate::agent::durable::{Entry, JournalError, JournalStorage};
use crate::airflow::supervisor::{ErrorKind, TaskReply, TaskRequest};
use crate::task::services::Services;

/// How many entries are removed at a time.
const AT_A_TIME: usize = 8;

/// A key that is never set.
const PROBE_KEY: &str = "__commonai_durable__probe";

pub(super) struct StateStore {
    services: Services,
}

impl StateStore {
    pub(super) fn new(services: Services) -> Self {
        Self { services }
    }

    /// Has the server a task state store? Airflow has one since 3.3. A server that gives no answer counts as one that
    /// has: what is asked next says what is wrong with it.
    pub(super) async fn is_there(&self) -> bool {
        match self.remove(PROBE_KEY).await {
            Ok(_) => true,
            Err(error) => error.detail.get("status_code").and_then(Value::as_u64) != Some(404),
        }
    }

    async fn remove(
        &self,
        key: &str,
    ) -> Result<TaskReply, crate::airflow::supervisor::ErrorResponse> {
        let request = TaskRequest::DeleteTaskStateStore {
            ti_id: self.services.ti.id.clone(),
            key: key.to_owned(),
        };
        self.services.request(request).await
    }
}

#[async_trait]
impl JournalStorage for StateStore {
    async fn load(&self, key: &str) -> Result<Option<Entry>, JournalError> {
        let request = TaskRequest::GetTaskStateStore {
            ti_id: self.services.ti.id.clone(),
            key: key.to_owned(),
        };
        match self.services.request(request).await {
            Ok(TaskReply::TaskState(Value::Object(entry))) => Ok(Some(entry)),
            Ok(_) => Ok(None),
            Err(error) if error.kind == ErrorKind::TaskStoreNotFound => Ok(None),
            Err(error) => Err(JournalError::Unreadable(error.to_string())),
        }
    }

    async fn save(&self, key: &str, entry: Entry) -> bool {
        let request = TaskRequest::SetTaskStateStore {
            ti_id: self.services.ti.id.clone(),
            key: key.to_owned(),
            value: Value::Object(entry),
            // Never: a retry may be long in coming.
            expires_at: None,
        };
        let saved = self.services.request(request).await;
        if let Err(error) = &saved {
            tracing::warn!(
                target: "airflow.task", logger = LOGGER, key, error = error.to_string(),
                "Durable: could not store step"
            );
        }
        saved.is_ok()
    }

    async fn delete(&self, keys: &[String]) {
        let removals = futures::stream::iter(keys);
        let removals = removals.for_each_concurrent(AT_A_TIME, |key| async move {
            if let Err(error) = self.remove(key).await {
                tracing::warn!(
                    target: "airflow.task", logger = LOGGER, key = key.as_str(), error = error.to_string(),
                    "Durable: failed to delete journal key"
                );
            }
        });
        removals.await;
    }
}
