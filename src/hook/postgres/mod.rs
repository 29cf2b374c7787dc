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

use async_trait::async_trait;
use tokio_postgres::Error;

use self::session::Session;
use self::settings::Settings;
use super::session_slot::{Held, SessionSlot};
use super::{Access, Column, Database, DatabaseError, ResultSet, Script};
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
    session: SessionSlot<Session>,
}

impl PostgresDatabase {
    /// The database that the connection points to. Opens nothing.
    #[must_use]
    pub fn new(connection: &Connection, access: Access) -> Self {
        Self {
            settings: Settings::of(connection),
            access,
            session: SessionSlot::new(),
        }
    }

    /// The session, opened when there is none or the server has ended it.
    async fn hold(&self) -> Result<Held<'_, Session>, String> {
        self.session.hold(self.open()).await
    }

    async fn open(&self) -> Result<Session, String> {
        match &self.settings {
            Ok(settings) => Session::open(settings).await,
            // libpq's complaints about the name of an option are bare, those about its value are not.
            Err(reason)
                if reason.starts_with("invalid connection option")
                    || reason.contains("Python worker") =>
            {
                Err(reason.clone())
            }
            Err(reason) => Err(format!("connection is bad: {reason}")),
        }
    }

    /// For reflection, which SQLAlchemy does and whose failures it wraps.
    async fn hold_for_reflection(&self) -> Result<Held<'_, Session>, DatabaseError> {
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
        let mut held = self.hold_for_reflection().await?;
        let names = match held.session() {
            Some(session) => reflection::table_names(&session.client, schema).await,
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
        let mut held = self.hold_for_reflection().await?;
        let columns = match held.session() {
            Some(session) => reflection::columns(&session.client, table, schema).await,
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
        let mut held = self.hold().await.map_err(DatabaseError::Driver)?;
        let Some(Session { client, .. }) = held.session() else {
            return Err(DatabaseError::Driver("the session is gone".to_owned()));
        };
        let result = statement::run(client, sql, limit, &self.access).await;
        let clean = !self.access.allow_writes && statement::reset(client).await.is_ok();
        if clean {
            held.put_back();
        } else {
            held.close().await;
        }
        result
    }

    async fn run_all(&self, script: &Script) -> Result<Vec<ResultSet>, DatabaseError> {
        let mut held = self.hold().await.map_err(DatabaseError::Driver)?;
        let Some(Session { client, .. }) = held.session() else {
            return Err(DatabaseError::Driver("the session is gone".to_owned()));
        };
        let results = statement::run_all(client, script).await;
        held.close().await;
        results
    }

    async fn close(&self) {
        self.session.close().await;
    }
}

fn reflection_error(error: &Error) -> DatabaseError {
    DatabaseError::Unreachable {
        class: "psycopg.OperationalError",
        message: error::statement(error, "", 0),
        code: "e3q8",
    }
}
