//! SQLite: one connection a call, as the Python hook does, read-only unless writes are allowed.

mod column_type;
mod uri;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection as Session, ErrorCode, InterruptHandle, OpenFlags, Statement};

use super::{
    Access, Cell, Column, Database, DatabaseError, ResultSet, Script, TableFilter, blocking,
};
use crate::airflow::connection::Connection;

/// Python's `sqlite3.connect(timeout=5.0)`.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The logger of the Python hook, so that log lines stand under the name they have in Airflow.
const LOGGER: &str = "airflow.task.hooks.airflow.providers.sqlite.hooks.sqlite.SqliteHook";

/// A SQLite database file.
#[derive(Debug)]
pub struct SqliteDatabase {
    uri: String,
    access: Access,
}

impl SqliteDatabase {
    /// The database that the connection points to. Opens nothing.
    #[must_use]
    pub fn new(connection: &Connection, access: Access) -> Self {
        Self {
            uri: uri::sqlite_uri(connection),
            access,
        }
    }

    /// Runs `work` with a fresh session on a blocking thread, and interrupts it when the caller goes away.
    async fn with_session<T: Send + 'static>(
        &self,
        access: Access,
        work: impl FnOnce(&Session) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let uri = self.uri.clone();
        let interrupt = Interrupt::default();
        let slot = Interrupt(Arc::clone(&interrupt.0));
        let _stop_when_dropped = StopOnDrop(&interrupt);
        let result = blocking::run(move || {
            let session = open(&uri, access)?;
            if !slot.started(session.get_interrupt_handle()) {
                return Err(DatabaseError::Driver("interrupted".to_owned()));
            }
            work(&session)
        })
        .await;
        result.map_err(|error| DatabaseError::Thread(error.to_string()))?
    }
}

#[async_trait]
impl Database for SqliteDatabase {
    fn dialect_name(&self) -> &str {
        "sqlite"
    }

    async fn table_names(&self, schema: Option<&str>) -> Result<Vec<String>, DatabaseError> {
        let prefix = schema
            .map(|schema| format!("{}.", quoted(schema)))
            .unwrap_or_default();
        let sql = format!(
            "SELECT name FROM {prefix}sqlite_master WHERE type='table' \
             AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name"
        );
        self.with_session(Access::default(), move |session| {
            let names = || -> rusqlite::Result<Vec<String>> {
                session
                    .prepare(&sql)?
                    .query_map([], |row| row.get(0))?
                    .collect()
            };
            names().map_err(|error| reflection_error(&error, &sql))
        })
        .await
    }

    async fn columns(
        &self,
        table: &str,
        schema: Option<&str>,
    ) -> Result<Vec<Column>, DatabaseError> {
        let schemas = schema.map_or_else(
            || vec!["main".to_owned(), "temp".to_owned()],
            |schema| vec![quoted(schema)],
        );
        let statements: Vec<String> = schemas
            .iter()
            .map(|schema| format!("PRAGMA {schema}.table_xinfo({})", quoted(table)))
            .collect();
        let missing = schema.map_or_else(|| table.to_owned(), |schema| format!("{schema}.{table}"));
        self.with_session(Access::default(), move |session| {
            for sql in &statements {
                let columns =
                    table_info(session, sql).map_err(|error| reflection_error(&error, sql))?;
                if !columns.is_empty() {
                    return Ok(columns);
                }
            }
            Err(DatabaseError::NoSuchTable(missing))
        })
        .await
    }

    async fn run(&self, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError> {
        if sql.trim().is_empty() {
            return Err(DatabaseError::EmptySql);
        }
        let sql = sql.to_owned();
        self.with_session(self.access.clone(), move |session| {
            say(&format!("Running statement: {sql}, parameters: None"));
            run_statement(session, &sql, limit)
        })
        .await
    }

    async fn run_all(&self, script: &Script) -> Result<Vec<ResultSet>, DatabaseError> {
        let script = script.clone();
        self.with_session(self.access.clone(), move |session| {
            let mut results = Vec::new();
            for statement in &script.statements {
                statement.begin(say)?;
                // As Python's driver: what defines tables stands in no transaction unless one is open.
                if is_dml(&statement.sql) && session.is_autocommit() {
                    let begun = session.execute_batch("BEGIN");
                    begun.map_err(|error| driver_error(&error))?;
                }
                // The first step of a statement that changes rows and returns them changes them all.
                let fetched = script.rows_to_fetch().max(1);
                let result = run_statement(session, &statement.sql, fetched)?;
                results.push(script.checked(result)?);
            }
            if !session.is_autocommit() {
                let committed = session.execute_batch("COMMIT");
                committed.map_err(|error| driver_error(&error))?;
            }
            Ok(results)
        })
        .await
    }
}

/// The way to a running statement from the task that waits for it.
#[derive(Default)]
struct Interrupt(Arc<Mutex<Progress>>);

#[derive(Default)]
enum Progress {
    #[default]
    Waiting,
    Running(InterruptHandle),
    Stopped,
}

impl Interrupt {
    /// False when the caller has gone away meanwhile.
    fn started(&self, handle: InterruptHandle) -> bool {
        let mut progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*progress, Progress::Stopped) {
            return false;
        }
        *progress = Progress::Running(handle);
        true
    }
}

/// Stops the statement when the waiting task is dropped; after the statement has ended this does nothing.
struct StopOnDrop<'a>(&'a Interrupt);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        let mut progress = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Progress::Running(handle) = std::mem::replace(&mut *progress, Progress::Stopped) {
            handle.interrupt();
        }
    }
}

fn open(uri: &str, access: Access) -> Result<Session, DatabaseError> {
    let memory = uri::is_memory(uri);
    let mode = if access.allow_writes || memory {
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE
    } else {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    };
    let flags = mode | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut session = Session::open_with_flags(uri, flags).map_err(|error| driver_error(&error))?;
    session
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(|error| driver_error(&error))?;
    let Access {
        allow_writes,
        tables,
    } = access;
    let list = match tables {
        None => None,
        Some(allows) => Some(List {
            allows,
            views: names(&session, "'view', 'trigger'").map_err(|error| driver_error(&error))?,
            relations: names(&session, "'table', 'view'").map_err(|error| driver_error(&error))?,
        }),
    };
    session
        .authorizer(Some(move |context: AuthContext<'_>| {
            authorize(&context, allow_writes, list.as_ref())
        }))
        .map_err(|error| driver_error(&error))?;
    Ok(session)
}

/// The tables that a session may reach.
struct List {
    allows: TableFilter,
    /// Views and triggers by their lower-cased names.
    views: HashSet<String>,
    /// Tables and views by their lower-cased names.
    relations: HashSet<String>,
}

fn names(session: &Session, types: &str) -> rusqlite::Result<HashSet<String>> {
    session
        .prepare(&format!(
            "SELECT name FROM sqlite_master WHERE type IN ({types})"
        ))?
        .query_map([], |row| row.get::<_, String>(0))?
        .map(|name| name.map(|name| name.to_ascii_lowercase()))
        .collect()
}

/// Denies what the guard should have refused. An action that is not named here is denied.
fn authorize(context: &AuthContext<'_>, allow_writes: bool, list: Option<&List>) -> Authorization {
    let allowed = match context.action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => {
            !function_name.eq_ignore_ascii_case("load_extension")
        }
        AuthAction::Read {
            table_name,
            column_name,
        } => {
            may_read(context, table_name, list)
                || (allow_writes && is_catalog(table_name))
                || (column_name.is_empty() && is_clause(context, table_name, list))
        }
        // Reflection asks for these; a statement of a model that starts with PRAGMA never gets here in read-only mode.
        AuthAction::Pragma { pragma_name, .. } => {
            (allow_writes && list.is_none()) || pragma_name.eq_ignore_ascii_case("table_xinfo")
        }
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => allow_writes && list.is_none(),
        AuthAction::Insert { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::Delete { table_name } => {
            allow_writes && (may_read(context, table_name, list) || is_catalog(table_name))
        }
        AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::CreateVtable { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::DropTempView { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropView { .. }
        | AuthAction::DropVtable { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Analyze { .. } => allow_writes,
        // The enum is not exhaustive: an action that SQLite may learn later is denied.
        _ => false,
    };
    if allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}

/// Whether a list allows the table, or the view on whose account it is read.
fn may_read(context: &AuthContext<'_>, table: &str, list: Option<&List>) -> bool {
    list.is_none_or(|List { allows, views, .. }| {
        let database = context.database_name.unwrap_or("main");
        let own = database.eq_ignore_ascii_case("main") || database.is_empty();
        let named = |name: &str| allows(Some(database), name) || (own && allows(None, name));
        // What a permitted view or trigger does on its own account is its business. SQLite names a WITH clause and a
        // subquery with an alias in the same place, which may bear the name of a permitted table.
        let is_view = |name: &str| views.contains(&name.to_ascii_lowercase());
        context
            .accessor
            .is_some_and(|name| is_view(name) && named(name))
            || named(table)
    })
}

/// Whether `SELECT count(*) FROM name` counts the rows of a WITH clause, whose own reads are asked for one by one.
fn is_clause(context: &AuthContext<'_>, name: &str, list: Option<&List>) -> bool {
    let name = name.to_ascii_lowercase();
    context.database_name.is_none()
        && !is_catalog(&name)
        && !name.starts_with("pragma_")
        && list.is_some_and(|list| !list.relations.contains(&name))
}

/// SQLite's own tables, which it reads and writes when a table is made, changed or dropped.
fn is_catalog(table: &str) -> bool {
    table
        .get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"))
}

fn table_info(session: &Session, sql: &str) -> rusqlite::Result<Vec<Column>> {
    const HIDDEN: i64 = 1;
    let mut statement = session.prepare(sql)?;
    let mut rows = statement.query([])?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(6)? != HIDDEN {
            let declared: String = row.get(2)?;
            columns.push(Column {
                name: row.get(1)?,
                type_text: column_type::reflected_type(&declared),
            });
        }
    }
    Ok(columns)
}

fn say(text: &str) {
    tracing::info!(target: "airflow.task", logger = LOGGER, "{text}");
}

fn run_statement(session: &Session, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError> {
    let mut batch = Batch::new(session, sql);
    let Some(mut statement) = batch.next().map_err(|error| driver_error(&error))? else {
        return Ok(ResultSet::default());
    };
    if !matches!(batch.next(), Ok(None)) {
        return Err(DatabaseError::Driver(
            "You can only execute one statement at a time.".to_owned(),
        ));
    }
    if statement.column_count() == 0 {
        let changed = statement
            .execute([])
            .map_err(|error| driver_error(&error))?;
        if is_dml(sql) {
            say(&format!("Rows affected: {changed}"));
        }
        return Ok(ResultSet::default());
    }
    fetch(&mut statement, limit)
}

/// The statements for which Python's driver reports a row count.
fn is_dml(sql: &str) -> bool {
    let sql = sql.trim_start();
    ["INSERT", "UPDATE", "DELETE", "REPLACE"]
        .iter()
        .any(|keyword| {
            sql.get(..keyword.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(keyword))
        })
}

fn fetch(statement: &mut Statement<'_>, limit: usize) -> Result<ResultSet, DatabaseError> {
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut result = ResultSet {
        columns,
        ..ResultSet::default()
    };
    let mut rows = statement.query([]).map_err(|error| driver_error(&error))?;
    while result.rows.len() < limit {
        let Some(row) = rows.next().map_err(|error| driver_error(&error))? else {
            break;
        };
        let mut cells = Vec::with_capacity(result.columns.len());
        for (index, name) in result.columns.iter().enumerate() {
            let value = row.get_ref(index).map_err(|error| driver_error(&error))?;
            cells.push(cell(value, name)?);
        }
        result.rows.push(cells);
    }
    Ok(result)
}

fn cell(value: ValueRef<'_>, column: &str) -> Result<Cell, DatabaseError> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(value) => Cell::Int(value),
        ValueRef::Real(value) => Cell::Float(value),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => {
                return Err(DatabaseError::Driver(format!(
                    "Could not decode to UTF-8 column '{column}' with text '{}'",
                    String::from_utf8_lossy(bytes)
                )));
            }
        },
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    })
}

/// SQLAlchemy's quoting of an identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The text that Python's `sqlite3` gives an error: SQLite's own message.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        rusqlite::Error::InvalidParameterCount(given, wanted) => format!(
            "Incorrect number of bindings supplied. The current statement uses {wanted}, and there are {given} supplied."
        ),
        rusqlite::Error::SqliteFailure(_, Some(message)) => match message.split_once(": ") {
            // rusqlite adds the file's name, which Python leaves out.
            Some((text @ "unable to open database file", _)) => text.to_owned(),
            _ => message.clone(),
        },
        other => other.to_string(),
    }
}

fn driver_error(error: &rusqlite::Error) -> DatabaseError {
    DatabaseError::Driver(message(error))
}

fn reflection_error(error: &rusqlite::Error, sql: &str) -> DatabaseError {
    let (class, code) = match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::AuthorizationForStatementDenied,
        ) => ("sqlite3.DatabaseError", "4xp6"),
        _ => ("sqlite3.OperationalError", "e3q8"),
    };
    DatabaseError::Reflection {
        class,
        message: message(error),
        sql: sql.to_owned(),
        code,
    }
}

#[cfg(test)]
mod tests;
