//! DuckDB: one connection a call, as the Python hook does, read-only and shut off from files and network unless writes
//! are allowed. Only in builds with the feature `duckdb`, which link a `libduckdb`.

mod settings;
mod value;

use std::sync::{Arc, Mutex, PoisonError};

use ::duckdb::{Connection as Session, Error, InterruptHandle, Statement, types::ValueRef};
use async_trait::async_trait;
use sqlparser::dialect::DuckDbDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use self::settings::Settings;
use self::value::Shown;
use super::{Access, Cell, Column, Database, DatabaseError, ResultSet, blocking};
use crate::airflow::connection::Connection;

/// The logger of the Python hook, so that log lines stand under the name they have in Airflow.
const LOGGER: &str = "airflow.task.hooks.airflow.providers.duckdb.hooks.duckdb.DuckDBHook";

/// A DuckDB database, in a file or in memory.
#[derive(Debug)]
pub struct DuckdbDatabase {
    settings: Result<Settings, String>,
    access: Access,
}

impl DuckdbDatabase {
    /// The database that the connection points to. Opens nothing.
    #[must_use]
    pub fn new(connection: &Connection, access: Access) -> Self {
        Self {
            settings: Settings::of(connection),
            access,
        }
    }

    /// Runs `work` with a fresh session on a blocking thread, and interrupts it when the caller goes away.
    async fn with_session<T: Send + 'static>(
        &self,
        access: Access,
        work: impl FnOnce(&Session) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let settings = self.settings.clone().map_err(DatabaseError::Driver)?;
        let progress = Arc::new(Mutex::new(Progress::Waiting));
        let inside = Arc::clone(&progress);
        let _stop_when_dropped = StopOnDrop(progress);
        let result = blocking::run(move || {
            let session = settings
                .open(&access)
                .map_err(|error| driver_error(&error))?;
            {
                let mut progress = inside.lock().unwrap_or_else(PoisonError::into_inner);
                if matches!(*progress, Progress::Stopped) {
                    return Err(DatabaseError::Driver(
                        "INTERRUPT Error: Interrupted!".to_owned(),
                    ));
                }
                *progress = Progress::Running(session.interrupt_handle());
            }
            work(&session)
        })
        .await;
        result.map_err(|error| DatabaseError::Thread(error.to_string()))?
    }
}

enum Progress {
    Waiting,
    Running(Arc<InterruptHandle>),
    Stopped,
}

/// Stops the statement when the waiting task is dropped; after the statement has ended this does nothing.
struct StopOnDrop(Arc<Mutex<Progress>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Progress::Running(handle) = std::mem::replace(&mut *progress, Progress::Stopped) {
            handle.interrupt();
        }
    }
}

#[async_trait]
impl Database for DuckdbDatabase {
    fn dialect_name(&self) -> &str {
        "duckdb"
    }

    async fn table_names(&self, schema: Option<&str>) -> Result<Vec<String>, DatabaseError> {
        let sql = format!(
            "SELECT table_name FROM information_schema.tables WHERE table_type IN ('BASE TABLE', 'LOCAL TEMPORARY') \
             AND table_catalog = current_database() AND table_schema = {} ORDER BY table_name",
            place(schema)
        );
        self.with_session(Access::default(), move |session| {
            let rows = texts(session, &sql).map_err(|error| driver_error(&error))?;
            Ok(rows
                .into_iter()
                .filter_map(|row| row.into_iter().next())
                .flatten()
                .collect())
        })
        .await
    }

    async fn columns(
        &self,
        table: &str,
        schema: Option<&str>,
    ) -> Result<Vec<Column>, DatabaseError> {
        let sql = format!(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_catalog = current_database() \
             AND table_schema = {} AND table_name = {} ORDER BY ordinal_position",
            place(schema),
            literal(table)
        );
        let missing = schema.map_or_else(|| table.to_owned(), |schema| format!("{schema}.{table}"));
        self.with_session(Access::default(), move |session| {
            let rows = texts(session, &sql).map_err(|error| driver_error(&error))?;
            let columns: Vec<Column> = rows
                .into_iter()
                .filter_map(|row| {
                    let mut cells = row.into_iter();
                    Some(Column {
                        name: cells.next()??,
                        type_text: value::type_text(&cells.next()??),
                    })
                })
                .collect();
            if columns.is_empty() {
                return Err(DatabaseError::NoSuchTable(missing));
            }
            Ok(columns)
        })
        .await
    }

    async fn run(&self, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError> {
        if sql.trim().is_empty() {
            return Err(DatabaseError::EmptySql);
        }
        let sql = sql.to_owned();
        let access = self.access.clone();
        let allow_writes = access.allow_writes;
        self.with_session(access, move |session| {
            tracing::info!(
                target: "airflow.task", logger = LOGGER, "Running statement: {sql}, parameters: None"
            );
            if is_query(&sql) {
                return query(session, &sql, limit);
            }
            if allow_writes {
                return session
                    .execute_batch(&sql)
                    .map(|()| ResultSet::default())
                    .map_err(|error| driver_error(&error));
            }
            Err(DatabaseError::Driver(
                "this session only reads: one statement that starts with SELECT, WITH, FROM, VALUES, TABLE, DESCRIBE, \
                 SHOW or SUMMARIZE"
                    .to_owned(),
            ))
        })
        .await
    }
}

/// Whether the text is one statement that can stand in a FROM clause.
fn is_query(sql: &str) -> bool {
    const KINDS: [&str; 8] = [
        "SELECT",
        "WITH",
        "FROM",
        "VALUES",
        "TABLE",
        "DESCRIBE",
        "SHOW",
        "SUMMARIZE",
    ];
    let Ok(tokens) = Tokenizer::new(&DuckDbDialect {}, sql).tokenize() else {
        return false;
    };
    let mut tokens = tokens
        .iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .skip_while(|token| **token == Token::LParen);
    let starts = matches!(
        tokens.next(),
        Some(Token::Word(word)) if word.quote_style.is_none()
            && KINDS.iter().any(|kind| word.value.eq_ignore_ascii_case(kind))
    );
    starts && !tokens.any(|token| *token == Token::SemiColon)
}

/// Fetches the beginning of a query's result: as text, which every type has, cut off by the database itself.
fn query(session: &Session, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError> {
    let describe = format!("DESCRIBE {sql}");
    let as_it_is = |error: Error| driver_error(&error);
    // DESCRIBE of a DESCRIBE is none: what it shows is text.
    let described = match texts(session, &describe) {
        Ok(rows) if !is_about_tables(sql) => rows,
        _ => texts(session, &format!("DESCRIBE SELECT * FROM ({sql}\n)")).map_err(as_it_is)?,
    };
    let mut columns = Vec::new();
    for row in described {
        let mut cells = row.into_iter();
        if let (Some(Some(name)), Some(Some(ty))) = (cells.next(), cells.next()) {
            columns.push((name, Shown::of(&ty)));
        }
    }
    let names: Vec<String> = (0..columns.len())
        .map(|index| format!("c{index}"))
        .collect();
    let shown: Vec<String> = columns
        .iter()
        .zip(&names)
        .map(|((_, shown), name)| shown.expression(name))
        .collect();
    let cut = format!(
        "SELECT {} FROM ({sql}\n) AS q({}) LIMIT {limit}",
        shown.join(", "),
        names.join(", ")
    );
    let mut rows = Vec::new();
    for row in texts(session, &cut).map_err(as_it_is)? {
        let mut cells = Vec::with_capacity(columns.len());
        for (text, (name, shown)) in row.into_iter().zip(&columns) {
            let cell = match text {
                None => Cell::Null,
                Some(text) => shown.cell(&text).ok_or_else(|| {
                    DatabaseError::Driver(format!(
                        "column \"{name}\" holds a value that can't be shown exactly: cast it to VARCHAR in the query"
                    ))
                })?,
            };
            cells.push(cell);
        }
        rows.push(cells);
    }
    Ok(ResultSet {
        columns: columns.into_iter().map(|(name, _)| name).collect(),
        rows,
        total_rows: None,
    })
}

fn is_about_tables(sql: &str) -> bool {
    let word: String = sql
        .trim_start()
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    ["DESCRIBE", "SHOW", "SUMMARIZE"]
        .iter()
        .any(|kind| word.eq_ignore_ascii_case(kind))
}

/// The rows of a query all of whose columns are text.
fn texts(session: &Session, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
    let mut statement: Statement<'_> = session.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut out = Vec::new();
    while let Some(row) = rows.next()? {
        let width = row.as_ref().column_count();
        let mut cells = Vec::with_capacity(width);
        for index in 0..width {
            cells.push(match row.get_ref(index)? {
                ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
                _ => None,
            });
        }
        out.push(cells);
    }
    Ok(out)
}

fn place(schema: Option<&str>) -> String {
    schema.map_or_else(|| "current_schema()".to_owned(), literal)
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// DuckDB's own text, without the crate's words around it.
fn driver_error(error: &Error) -> DatabaseError {
    DatabaseError::Driver(match error {
        Error::DuckDBFailure(_, Some(message)) => message.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests;
