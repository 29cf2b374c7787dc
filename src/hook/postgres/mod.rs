//! PostgreSQL: one session for a toolset, a transaction a call, READ ONLY unless writes are allowed.
//!
//! The Python hook connects for every call. Here the session stays, because a connection with TLS costs more than most
//! queries; what a statement could leave in it is undone, and where writes are allowed it is closed after the call.

mod error;
mod reflection;
mod session;
mod settings;
mod statement;
mod tls;
mod value;

use std::sync::{Mutex as StdMutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error};

use self::session::Session;
use self::settings::Settings;
use super::{Access, Column, Database, DatabaseError, ResultSet};
use crate::airflow::connection::Connection;

/// The logger of the Python hook, so that log lines stand under the name they have in Airflow.
const LOGGER: &str = "airflow.task.hooks.airflow.providers.postgres.hooks.postgres.PostgresHook";

fn log(message: &str) {
    tracing::info!(target: "airflow.task", logger = LOGGER, "{message}");
}

/// A PostgreSQL database.
pub struct PostgresDatabase {
    settings: Result<Settings, String>,
    access: Access,
    session: Mutex<Option<Session>>,
    /// Requests to stop a statement that are on their way.
    farewells: StdMutex<Vec<JoinHandle<()>>>,
}

impl PostgresDatabase {
    /// The database that the connection points to. Opens nothing.
    #[must_use]
    pub fn new(connection: &Connection, access: Access) -> Self {
        Self {
            settings: Settings::of(connection),
            access,
            session: Mutex::new(None),
            farewells: StdMutex::new(Vec::new()),
        }
    }

    /// The session, opened when there is none or the server has ended it.
    async fn hold(&self) -> Result<Held<'_>, String> {
        let mut slot = self.session.lock().await;
        let session = match slot.take().filter(|session| !session.client.is_closed()) {
            Some(session) => session,
            None => {
                let settings = self.settings.as_ref().map_err(|reason| {
                    // libpq's own complaints about a value come from the connection, those about a name do not.
                    if reason.starts_with("invalid connection option")
                        || reason.contains("Python worker")
                    {
                        reason.clone()
                    } else {
                        format!("connection is bad: {reason}")
                    }
                })?;
                Session::open(settings).await?
            }
        };
        Ok(Held {
            slot,
            session: Some(session),
            farewells: &self.farewells,
        })
    }

    /// For reflection, which SQLAlchemy does and whose failures it wraps.
    async fn hold_for_reflection(&self) -> Result<Held<'_>, DatabaseError> {
        self.hold()
            .await
            .map_err(|message| DatabaseError::Unreachable {
                class: if message.starts_with("invalid connection option") {
                    "psycopg.ProgrammingError"
                } else {
                    "psycopg.OperationalError"
                },
                code: if message.starts_with("invalid connection option") {
                    "f405"
                } else {
                    "e3q8"
                },
                message,
            })
    }
}

#[async_trait]
impl Database for PostgresDatabase {
    fn dialect_name(&self) -> &str {
        "postgresql"
    }

    async fn table_names(&self, schema: Option<&str>) -> Result<Vec<String>, DatabaseError> {
        let held = self.hold_for_reflection().await?;
        let names = match held.client() {
            Some(client) => reflection::table_names(client, schema).await,
            None => Ok(Vec::new()),
        };
        held.put_back();
        names.map_err(|error| reflection_error(&error))
    }

    async fn columns(
        &self,
        table: &str,
        schema: Option<&str>,
    ) -> Result<Vec<Column>, DatabaseError> {
        let held = self.hold_for_reflection().await?;
        let columns = match held.client() {
            Some(client) => reflection::columns(client, table, schema).await,
            None => Ok(None),
        };
        held.put_back();
        columns
            .map_err(|error| reflection_error(&error))?
            .ok_or_else(|| {
                DatabaseError::NoSuchTable(
                    schema.map_or_else(|| table.to_owned(), |schema| format!("{schema}.{table}")),
                )
            })
    }

    async fn run(&self, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError> {
        if sql.trim().is_empty() {
            return Err(DatabaseError::EmptySql);
        }
        log(&format!("Running statement: {sql}, parameters: None"));
        let held = self.hold().await.map_err(DatabaseError::Driver)?;
        let Some(client) = held.client() else {
            return Err(DatabaseError::Driver("the session is gone".to_owned()));
        };
        let allow_writes = self.access.allow_writes;
        let result = statement::run(client, sql, limit, allow_writes).await;
        let clean = !allow_writes && statement::reset(client).await.is_ok();
        if clean {
            held.put_back();
        } else {
            held.close().await;
        }
        result
    }

    async fn close(&self) {
        let session = self.session.lock().await.take();
        if let Some(session) = session {
            session.close().await;
        }
        let farewells = std::mem::take(
            &mut *self
                .farewells
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for farewell in farewells {
            if let Err(error) = farewell.await {
                tracing::debug!("a request to stop a statement was itself stopped: {error}");
            }
        }
    }
}

/// The session while a call uses it. Dropped in the middle of the call, it stops what runs on the server.
struct Held<'a> {
    slot: MutexGuard<'a, Option<Session>>,
    session: Option<Session>,
    farewells: &'a StdMutex<Vec<JoinHandle<()>>>,
}

impl Held<'_> {
    fn client(&self) -> Option<&Client> {
        self.session.as_ref().map(|session| &session.client)
    }

    fn put_back(mut self) {
        *self.slot = self.session.take();
    }

    async fn close(mut self) {
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let (Some(session), Ok(runtime)) =
            (self.session.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        self.farewells
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(runtime.spawn(session.cancel()));
    }
}

fn reflection_error(error: &Error) -> DatabaseError {
    DatabaseError::Unreachable {
        class: "psycopg.OperationalError",
        message: error::statement(error, "", 0),
        code: "e3q8",
    }
}
