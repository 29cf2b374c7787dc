//! SQL Server: one session for a toolset, a transaction a call, which is rolled back unless writes are allowed.
//!
//! SQL Server has no read-only transactions. What stands behind the guard instead: a text that may be more than one
//! SELECT is not sent (`single_read`), the session asks for a replica that is there for reading, and the transaction
//! ends with a rollback. A login that may only read is the better fence, and the docs say so.

mod error;
mod reflection;
mod session;
mod settings;
mod single_read;
mod statement;
mod value;

use async_trait::async_trait;
use tiberius::{ColumnData, Row};

use self::reflection::Declared;
use self::session::Session;
use self::settings::Settings;
use super::session_slot::{Held, SessionSlot};
use super::{Access, Column, Database, DatabaseError, ResultSet};
use crate::airflow::connection::Connection;

/// The logger of the Python hook, so that log lines stand under the name they have in Airflow.
const LOGGER: &str = "airflow.task.hooks.airflow.providers.microsoft.mssql.hooks.mssql.MsSqlHook";

fn log(message: &str) {
    tracing::info!(target: "airflow.task", logger = LOGGER, "{message}");
}

/// A SQL Server database.
pub struct MssqlDatabase {
    settings: Result<Settings, String>,
    access: Access,
    session: SessionSlot<Session>,
}

impl MssqlDatabase {
    /// The database that the connection points to. Opens nothing.
    #[must_use]
    pub fn new(connection: &Connection, access: Access) -> Self {
        Self {
            settings: Settings::of(connection, !access.allow_writes),
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

    /// The rows of a question of our own, in SQLAlchemy's wrapping where there are none.
    async fn reflect(&self, sql: String) -> Result<Vec<Row>, DatabaseError> {
        let wrapped = |message| DatabaseError::Unreachable {
            class: "pymssql.exceptions.OperationalError",
            message,
            code: "e3q8",
        };
        let mut held = self.hold().await.map_err(wrapped)?;
        let session = held.session().ok_or_else(gone)?;
        let answer = async {
            session
                .client
                .simple_query(sql)
                .await?
                .into_first_result()
                .await
        };
        let rows = answer.await.map_err(|failure| {
            session.lost |= !matches!(failure, tiberius::error::Error::Server(_));
            wrapped(error::statement(&failure))
        });
        held.put_back();
        rows
    }
}

fn gone() -> DatabaseError {
    DatabaseError::Driver("the session is gone".to_owned())
}

#[async_trait]
impl Database for MssqlDatabase {
    fn dialect_name(&self) -> &str {
        "mssql"
    }

    async fn table_names(&self, schema: Option<&str>) -> Result<Vec<String>, DatabaseError> {
        let rows = self.reflect(reflection::tables(schema)).await?;
        Ok(rows
            .into_iter()
            .filter_map(|row| text(row.into_iter().next()?))
            .collect())
    }

    async fn columns(
        &self,
        table: &str,
        schema: Option<&str>,
    ) -> Result<Vec<Column>, DatabaseError> {
        let rows = self.reflect(reflection::columns(table, schema)).await?;
        let columns: Vec<Column> = rows.into_iter().filter_map(column).collect();
        if columns.is_empty() {
            return Err(DatabaseError::NoSuchTable(schema.map_or_else(
                || table.to_owned(),
                |schema| format!("{schema}.{table}"),
            )));
        }
        Ok(columns)
    }

    async fn run(&self, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError> {
        if sql.trim().is_empty() {
            return Err(DatabaseError::EmptySql);
        }
        log(&format!("Running statement: {sql}, parameters: None"));
        let mut held = self.hold().await.map_err(DatabaseError::Driver)?;
        let session = held.session().ok_or_else(gone)?;
        let allow_writes = self.access.allow_writes;
        let running = statement::run(session, sql, limit, allow_writes);
        let outcome = match self
            .settings
            .as_ref()
            .ok()
            .and_then(|settings| settings.timeout.map(|timeout| (timeout, &settings.host)))
        {
            None => running.await,
            Some((timeout, host)) => match tokio::time::timeout(timeout, running).await {
                Ok(outcome) => outcome,
                // Letting go of the session stops the statement.
                Err(_) => return Err(DatabaseError::Driver(error::timed_out(host))),
            },
        };
        if outcome.unread {
            drop(held);
        } else if allow_writes {
            held.close().await;
        } else {
            held.put_back();
        }
        outcome.result
    }

    async fn close(&self) {
        self.session.close().await;
    }
}

fn text(data: ColumnData<'_>) -> Option<String> {
    match data {
        ColumnData::String(text) => text.map(std::borrow::Cow::into_owned),
        _ => None,
    }
}

fn number(data: &ColumnData<'_>) -> Option<i64> {
    match data {
        ColumnData::U8(number) => number.map(i64::from),
        ColumnData::I16(number) => number.map(i64::from),
        ColumnData::I32(number) => number.map(i64::from),
        _ => None,
    }
}

/// A row of [`reflection::columns`].
fn column(row: Row) -> Option<Column> {
    let mut cells = row.into_iter();
    let name = text(cells.next()?)?;
    let ty = text(cells.next()?)?;
    let base = text(cells.next()?);
    let mut numbers = || Some(number(&cells.next()?).unwrap_or_default());
    let (length, precision, scale) = (numbers()?, numbers()?, numbers()?);
    let collation = text(cells.next()?);
    let declared = Declared {
        name: &ty,
        base: base.as_deref(),
        length,
        precision,
        scale,
        collation: collation.as_deref(),
    };
    Some(Column {
        name,
        type_text: reflection::type_text(declared),
    })
}
