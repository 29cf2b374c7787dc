//! Finds connections and variables: in the worker's own places first, then at the control plane.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::ControlPlane;
use crate::airflow::connection::{Connection, MalformedConnection};
use crate::airflow::supervisor::{ErrorKind, ErrorResponse, TaskReply, TaskRequest};
use crate::secrets::{Masker, SearchPath};

/// Why a connection or a variable can't be had.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Nobody defines the connection. Airflow's own text.
    #[error("The conn_id `{0}` isn't defined")]
    ConnectionNotFound(String),
    /// The environment defines it wrongly.
    #[error(transparent)]
    Malformed(#[from] MalformedConnection),
    /// The server forbids it (401, 403). Final: no other place is asked.
    #[error("Airflow denies this task access to {what}: {detail}")]
    Denied { what: String, detail: String },
    /// The server could not answer.
    #[error("Airflow could not be asked for {what}: {source}")]
    Failed {
        what: String,
        #[source]
        source: ErrorResponse,
    },
    /// The server answered something else: a fault of the server or of Updraft.
    #[error("Airflow answered the request for {what} with something else")]
    UnexpectedReply { what: String },
}

/// Finds the connections and variables of one task, and makes every secret among them known to the masker.
///
/// A connection that was found is remembered as long as the resolver lives; a variable may change and is not.
/// Clones share what they remember.
#[derive(Clone)]
pub struct Resolver {
    search_path: SearchPath,
    control_plane: Arc<dyn ControlPlane>,
    masker: Masker,
    connections: Arc<Mutex<HashMap<String, Connection>>>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("search_path", &self.search_path)
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// A resolver for one task.
    #[must_use]
    pub fn new(
        search_path: SearchPath,
        control_plane: Arc<dyn ControlPlane>,
        masker: Masker,
    ) -> Self {
        Self {
            search_path,
            control_plane,
            masker,
            connections: Arc::default(),
        }
    }

    /// The masker that learns what is found.
    #[must_use]
    pub fn masker(&self) -> &Masker {
        &self.masker
    }

    /// The connection of this id.
    ///
    /// # Errors
    /// See [`ResolveError`].
    pub async fn connection(&self, conn_id: &str) -> Result<Connection, ResolveError> {
        let mut known = self.connections.lock().await;
        if let Some(connection) = known.get(conn_id) {
            return Ok(connection.clone());
        }
        let connection = match self.search_path.connection(conn_id).await? {
            Some(connection) => connection,
            None => self.ask_for_connection(conn_id).await?,
        };
        self.masker.add_connection(&connection);
        known.insert(conn_id.to_owned(), connection.clone());
        Ok(connection)
    }

    /// The variable's text; `None` when nobody defines it.
    ///
    /// # Errors
    /// The lookup itself failed; see [`ResolveError`].
    pub async fn variable(&self, key: &str) -> Result<Option<String>, ResolveError> {
        let value = match self.search_path.variable(key).await {
            Some(value) => Some(value),
            None => self.ask_for_variable(key).await?,
        };
        if let Some(value) = &value {
            self.masker.add_variable(key, value);
        }
        Ok(value)
    }

    async fn ask_for_connection(&self, conn_id: &str) -> Result<Connection, ResolveError> {
        let what = || format!("connection `{conn_id}`");
        match self
            .control_plane
            .handle(TaskRequest::GetConnection {
                conn_id: conn_id.to_owned(),
            })
            .await
        {
            Ok(TaskReply::Connection(connection)) => Ok(connection),
            Ok(_) => Err(ResolveError::UnexpectedReply { what: what() }),
            Err(error)
                if error.kind == ErrorKind::ConnectionNotFound || status(&error) == Some(404) =>
            {
                Err(ResolveError::ConnectionNotFound(conn_id.to_owned()))
            }
            Err(error) => Err(refusal(what(), error)),
        }
    }

    async fn ask_for_variable(&self, key: &str) -> Result<Option<String>, ResolveError> {
        let what = || format!("variable `{key}`");
        match self
            .control_plane
            .handle(TaskRequest::GetVariable {
                key: key.to_owned(),
            })
            .await
        {
            Ok(TaskReply::Variable { value, .. }) => Ok(value),
            Ok(_) => Err(ResolveError::UnexpectedReply { what: what() }),
            Err(error)
                if error.kind == ErrorKind::VariableNotFound || status(&error) == Some(404) =>
            {
                Ok(None)
            }
            Err(error) => Err(refusal(what(), error)),
        }
    }
}

/// The HTTP status that the Python supervisor puts into the detail of `API_SERVER_ERROR` and the like.
fn status(error: &ErrorResponse) -> Option<u64> {
    error.detail.get("status_code")?.as_u64()
}

fn refusal(what: String, error: ErrorResponse) -> ResolveError {
    if error.kind == ErrorKind::PermissionDenied || matches!(status(&error), Some(401 | 403)) {
        let detail = ["message", "detail", "reason"]
            .iter()
            .find_map(|key| error.detail.get(key)?.as_str());
        let detail = detail.map_or_else(|| error.detail.to_string(), str::to_owned);
        return ResolveError::Denied { what, detail };
    }
    ResolveError::Failed {
        what,
        source: error,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    /// A control plane that knows one connection and one variable, and counts what it is asked.
    #[derive(Default)]
    struct Server {
        asked: AtomicUsize,
    }

    fn refused(kind: ErrorKind, detail: Value) -> ErrorResponse {
        ErrorResponse { kind, detail }
    }

    #[async_trait]
    impl ControlPlane for Server {
        async fn handle(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            match request {
                TaskRequest::GetConnection { conn_id } => match conn_id.as_str() {
                    "db" => Ok(TaskReply::Connection(Connection {
                        conn_id,
                        conn_type: "sqlite".to_owned(),
                        password: Some("made-up-from-server".to_owned()),
                        ..Connection::default()
                    })),
                    "secret" => Err(refused(
                        ErrorKind::PermissionDenied,
                        json!({"message": "not for you"}),
                    )),
                    "broken" => Err(refused(
                        ErrorKind::ApiServerError,
                        json!({"status_code": 500}),
                    )),
                    "gone" => Err(refused(
                        ErrorKind::ApiServerError,
                        json!({"status_code": 404}),
                    )),
                    "locked" => Err(refused(
                        ErrorKind::ApiServerError,
                        json!({"status_code": 401}),
                    )),
                    "odd" => Ok(TaskReply::Done),
                    _ => Err(refused(
                        ErrorKind::ConnectionNotFound,
                        json!({"conn_id": conn_id}),
                    )),
                },
                TaskRequest::GetVariable { key } if key == "api_token" => Ok(TaskReply::Variable {
                    key,
                    value: Some("made-up-variable".to_owned()),
                }),
                TaskRequest::GetVariable { .. } => {
                    Err(refused(ErrorKind::VariableNotFound, Value::Null))
                }
                other => panic!("{other:?} was not expected"),
            }
        }
    }

    fn resolver(variables: &[(&str, &str)]) -> (Resolver, Arc<Server>) {
        let server = Arc::new(Server::default());
        let search_path = SearchPath::of_environment(variables.iter().copied().collect());
        (
            Resolver::new(
                search_path,
                Arc::clone(&server) as Arc<dyn ControlPlane>,
                Masker::new(),
            ),
            server,
        )
    }

    #[tokio::test]
    async fn the_environment_wins_over_the_control_plane_which_is_not_asked() {
        let (resolver, server) = resolver(&[
            ("AIRFLOW_CONN_DB", "mysql://u:made-up-env@h"),
            ("AIRFLOW_VAR_API_TOKEN", "made-up-env-var"),
        ]);
        assert_eq!(resolver.connection("db").await.unwrap().conn_type, "mysql");
        assert_eq!(
            resolver.variable("api_token").await.unwrap().as_deref(),
            Some("made-up-env-var")
        );
        assert_eq!(server.asked.load(Ordering::SeqCst), 0);
        assert_eq!(
            resolver.masker().mask_str("made-up-env made-up-env-var"),
            "*** ***"
        );
    }

    #[tokio::test]
    async fn a_connection_is_asked_for_once_and_its_secrets_are_masked() {
        let (resolver, server) = resolver(&[]);
        resolver.connection("db").await.unwrap();
        resolver.clone().connection("db").await.unwrap();
        assert_eq!(server.asked.load(Ordering::SeqCst), 1);
        assert_eq!(resolver.masker().mask_str("made-up-from-server"), "***");
    }

    #[tokio::test]
    async fn variables_come_fresh_and_are_masked_by_their_key() {
        let (resolver, server) = resolver(&[]);
        for _ in 0..2 {
            assert_eq!(
                resolver.variable("api_token").await.unwrap().as_deref(),
                Some("made-up-variable")
            );
        }
        assert_eq!(server.asked.load(Ordering::SeqCst), 2);
        assert_eq!(resolver.masker().mask_str("made-up-variable"), "***");
        assert_eq!(resolver.variable("other").await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_unknown_connection_is_reported_in_airflows_words() {
        let (resolver, _) = resolver(&[]);
        for id in ["nowhere", "gone"] {
            let text = resolver.connection(id).await.unwrap_err().to_string();
            assert_eq!(text, format!("The conn_id `{id}` isn't defined"));
        }
    }

    #[tokio::test]
    async fn a_denial_a_failure_and_nonsense_are_told_apart() {
        let (resolver, _) = resolver(&[("AIRFLOW_CONN_BAD", "{")]);
        let error = resolver.connection("secret").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "Airflow denies this task access to connection `secret`: not for you"
        );
        assert!(matches!(
            resolver.connection("locked").await,
            Err(ResolveError::Denied { .. })
        ));
        assert!(matches!(
            resolver.connection("broken").await,
            Err(ResolveError::Failed { .. })
        ));
        assert!(matches!(
            resolver.connection("odd").await,
            Err(ResolveError::UnexpectedReply { .. })
        ));
        assert!(matches!(
            resolver.connection("bad").await,
            Err(ResolveError::Malformed(_))
        ));
    }
}
