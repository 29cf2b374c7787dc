//! MySQL and MariaDB: one session for a toolset, a transaction a call, READ ONLY unless writes are allowed.
//!
//! The Python hook connects for every call. Here the session stays and is reset after each, which undoes whatever the
//! call left in it; where writes are allowed it is closed.

mod error;
mod reflection;
mod session;
mod settings;
mod statement;
mod value;

use async_trait::async_trait;

use self::session::Session;
use self::settings::Settings;
use super::session_slot::{Held, SessionSlot};
use super::{Access, Column, Database, DatabaseError, ResultSet, Script};
use crate::airflow::connection::Connection;

/// The logger of the Python hook, so that log lines stand under the name they have in Airflow.
const LOGGER: &str = "airflow.task.hooks.airflow.providers.mysql.hooks.mysql.MySqlHook";

fn log(message: &str) {
    tracing::info!(target: "airflow.task", logger = LOGGER, "{message}");
}

/// A MySQL or MariaDB database.
pub struct MysqlDatabase {
    settings: Result<Settings, String>,
    access: Access,
    session: SessionSlot<Session>,
}

impl MysqlDatabase {
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
        self.session
            .hold(async {
                match &self.settings {
                    Ok(settings) => Session::open(settings).await,
                    Err(reason) => Err(reason.clone()),
                }
            })
            .await
    }

    /// For reflection, which SQLAlchemy does and whose failures it wraps.
    async fn hold_for_reflection(&self) -> Result<Held<'_, Session>, DatabaseError> {
        self.hold()
            .await
            .map_err(|message| DatabaseError::Unreachable {
                class: "MySQLdb.OperationalError",
                message,
                code: "e3q8",
            })
    }
}

/// Keeps the session when it can be made as new, and ends it otherwise.
async fn give_back(mut held: Held<'_, Session>) {
    let clean = match held.session() {
        Some(session) => session.reset().await,
        None => false,
    };
    if clean {
        held.put_back();
    } else {
        held.close().await;
    }
}

fn gone() -> DatabaseError {
    DatabaseError::Driver("the session is gone".to_owned())
}

#[async_trait]
impl Database for MysqlDatabase {
    fn dialect_name(&self) -> &str {
        "mysql"
    }

    async fn table_names(&self, schema: Option<&str>) -> Result<Vec<String>, DatabaseError> {
        let mut held = self.hold_for_reflection().await?;
        let session = held.session().ok_or_else(gone)?;
        let names = reflection::table_names(&mut session.conn, schema).await;
        give_back(held).await;
        names
    }

    async fn columns(
        &self,
        table: &str,
        schema: Option<&str>,
    ) -> Result<Vec<Column>, DatabaseError> {
        let mut held = self.hold_for_reflection().await?;
        let session = held.session().ok_or_else(gone)?;
        let columns = reflection::columns(&mut session.conn, table, schema).await;
        give_back(held).await;
        columns
    }

    async fn run(&self, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError> {
        if sql.trim().is_empty() {
            return Err(DatabaseError::EmptySql);
        }
        log(&format!("Running statement: {sql}, parameters: None"));
        let mut held = self.hold().await.map_err(DatabaseError::Driver)?;
        let session = held.session().ok_or_else(gone)?;
        let outcome = statement::run(session, sql, limit, &self.access).await;
        if outcome.unread {
            // The server still sends: it is told to stop, and the next call connects anew.
            drop(held);
        } else if self.access.allow_writes {
            // A reset leaves the session in the database that USE has named.
            held.close().await;
        } else {
            give_back(held).await;
        }
        outcome.result
    }

    async fn run_all(&self, script: &Script) -> Result<Vec<ResultSet>, DatabaseError> {
        let mut held = self.hold().await.map_err(DatabaseError::Driver)?;
        let session = held.session().ok_or_else(gone)?;
        let results = statement::run_all(session, script).await;
        if results.is_ok() {
            held.close().await;
        } else {
            // The server may still be sending: it is told to stop.
            drop(held);
        }
        results
    }

    async fn close(&self) {
        self.session.close().await;
    }
}
