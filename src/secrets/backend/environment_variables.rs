//! The environment variables of the worker.

use async_trait::async_trait;

use super::super::environment::{connection, variable};
use super::{BackendError, SecretsBackend};
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;

/// The environment as a configured secrets backend. It is asked anyway, but only after that one.
#[derive(Debug)]
pub(super) struct EnvironmentVariablesBackend(pub Environment);

#[async_trait]
impl SecretsBackend for EnvironmentVariablesBackend {
    fn name(&self) -> &'static str {
        "EnvironmentVariablesBackend"
    }

    async fn connection(&self, conn_id: &str) -> Result<Option<Connection>, BackendError> {
        Ok(connection(&self.0, conn_id)?)
    }

    async fn variable(&self, key: &str) -> Result<Option<String>, BackendError> {
        Ok(variable(&self.0, key).map(str::to_owned))
    }

    /// None, as in Airflow.
    async fn config(&self, _: &str) -> Result<Option<String>, BackendError> {
        Ok(None)
    }
}
