//! The places on a worker that connections and variables come from, in Airflow's order: the configured secrets backend,
//! then the environment. (Airflow itself, over the control plane, is the last one.)

use std::sync::Arc;

use super::backend::{self, BackendError, SecretsBackend};
use super::environment;
use crate::airflow::config::{Config, Environment};
use crate::airflow::connection::{Connection, MalformedConnection};

/// What is asked before the control plane. Clones share the secrets backend and its login.
#[derive(Clone, Debug)]
pub struct SearchPath {
    backend: Option<Arc<dyn SecretsBackend>>,
    environment: Environment,
}

impl SearchPath {
    /// The secrets backend that the configuration names, and the environment.
    ///
    /// # Errors
    /// The backend is unknown or its arguments are wrong. It is not asked yet.
    pub fn from_config(config: &Config) -> Result<Self, BackendError> {
        Ok(Self {
            backend: backend::from_config(config)?,
            environment: config.environment().clone(),
        })
    }

    /// The environment alone.
    #[must_use]
    pub fn of_environment(environment: Environment) -> Self {
        Self {
            backend: None,
            environment,
        }
    }

    /// The connection of this id. A secrets backend that fails is passed over with a warning, as in Airflow.
    ///
    /// # Errors
    /// The environment defines the connection wrongly.
    pub async fn connection(
        &self,
        conn_id: &str,
    ) -> Result<Option<Connection>, MalformedConnection> {
        if let Some(backend) = &self.backend {
            match backend.connection(conn_id).await {
                Ok(Some(connection)) => return Ok(Some(connection)),
                Ok(None) => {}
                Err(error) => passed_over(&**backend, "connection", conn_id, &error),
            }
        }
        environment::connection(&self.environment, conn_id)
    }

    /// The variable's text. A secrets backend that fails is passed over with a warning, as in Airflow.
    pub async fn variable(&self, key: &str) -> Option<String> {
        if let Some(backend) = &self.backend {
            match backend.variable(key).await {
                Ok(Some(value)) => return Some(value),
                Ok(None) => {}
                Err(error) => passed_over(&**backend, "variable", key, &error),
            }
        }
        environment::variable(&self.environment, key).map(str::to_owned)
    }
}

fn passed_over(backend: &dyn SecretsBackend, what: &str, name: &str, error: &BackendError) {
    tracing::warn!(
        target: "airflow.task",
        "Unable to retrieve {what} {name} from secrets backend ({}): {error}. The next place is asked",
        backend.name()
    );
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// A search path with a file of connections and variables as the secrets backend.
    fn search_path(file: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, SearchPath) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.json");
        std::fs::write(&path, file).unwrap();
        let path = path.to_string_lossy().into_owned();
        let kwargs =
            serde_json::json!({"connections_file_path": path, "variables_file_path": path});
        let kwargs = kwargs.to_string();
        let config = Config::new(
            [
                (
                    "AIRFLOW__WORKERS__SECRETS_BACKEND",
                    "airflow.secrets.local_filesystem.LocalFilesystemBackend",
                ),
                ("AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS", kwargs.as_str()),
            ]
            .into_iter()
            .chain(variables.iter().copied())
            .collect(),
        );
        (folder, SearchPath::from_config(&config).unwrap())
    }

    const ENVIRONMENT: [(&str, &str); 3] = [
        ("AIRFLOW_CONN_DB", "mysql://environment"),
        ("AIRFLOW_CONN_BAD", "{"),
        ("AIRFLOW_VAR_REGION", "environment"),
    ];

    async fn host(search_path: &SearchPath, conn_id: &str) -> Option<String> {
        search_path.connection(conn_id).await.unwrap()?.host
    }

    #[tokio::test]
    async fn the_secrets_backend_is_asked_before_the_environment() {
        let file = r#"{"db": "mysql://backend", "region": "backend"}"#;
        let (_folder, search_path) = search_path(file, &ENVIRONMENT);
        assert_eq!(host(&search_path, "db").await.as_deref(), Some("backend"));
        assert_eq!(
            search_path.variable("region").await.as_deref(),
            Some("backend")
        );
    }

    #[tokio::test]
    async fn what_the_backend_lacks_or_fails_to_give_comes_from_the_environment() {
        for file in ["{}", "not JSON", r#"{"db": 5}"#] {
            let (_folder, search_path) = search_path(file, &ENVIRONMENT);
            assert_eq!(
                host(&search_path, "db").await.as_deref(),
                Some("environment"),
                "{file}"
            );
            assert_eq!(
                search_path.variable("region").await.as_deref(),
                Some("environment")
            );
            assert_eq!(search_path.variable("other").await, None);
            assert!(search_path.connection("bad").await.is_err());
        }
    }
}
