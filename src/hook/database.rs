//! What every database driver offers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::Script;

/// One value of a result, as exact as the driver can give it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// A JSON column that the driver has decoded.
    Json(serde_json::Value),
    /// An array or a row value.
    List(Vec<Cell>),
    /// Named values: a struct.
    Object(Vec<(String, Cell)>),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// The type as SQLAlchemy prints it: `VARCHAR(20)`, `NUMERIC(10, 2)`.
    pub type_text: String,
}

/// What a statement gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultSet {
    /// Empty for a statement without a result.
    pub columns: Vec<String>,
    /// At most as many as were asked for.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows the whole result has, where the driver knows better than by counting what was fetched.
    pub total_rows: Option<u64>,
}

/// Decides whether a statement may read a table: schema (`None` for the connection's own) and name.
pub type TableFilter = Arc<dyn Fn(Option<&str>, &str) -> bool + Send + Sync>;

/// What a database session may do, whatever the statement says: the second line of defence behind the guard.
#[derive(Clone, Default)]
pub struct Access {
    /// False opens the session read-only where the database has such a thing.
    pub allow_writes: bool,
    /// Where the database can ask for each table, the tables it may read.
    pub tables: Option<TableFilter>,
}

impl Access {
    /// Whether a text may hold several statements: nothing has looked at what it says then.
    #[must_use]
    pub fn allows_several_statements(&self) -> bool {
        self.allow_writes && self.tables.is_none()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("allow_writes", &self.allow_writes)
            .field("tables", &self.tables.as_ref().map(|_| "filtered"))
            .finish()
    }
}

/// Why a database gave nothing. The text is what the Python driver, or SQLAlchemy around it, would say.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The driver's own text.
    #[error("{0}")]
    Driver(String),
    /// A failed reflection, in SQLAlchemy's wrapping.
    #[error(
        "({class}) {message}\n[SQL: {sql}]\n(Background on this error at: https://sqlalche.me/e/21/{code})"
    )]
    Reflection {
        /// `sqlite3.OperationalError` and the like.
        class: &'static str,
        message: String,
        sql: String,
        /// SQLAlchemy's code for the class.
        code: &'static str,
    },
    /// A reflection that never got to its first statement, in SQLAlchemy's wrapping.
    #[error("({class}) {message}\n(Background on this error at: https://sqlalche.me/e/21/{code})")]
    Unreachable {
        /// `psycopg.OperationalError` and the like.
        class: &'static str,
        message: String,
        /// SQLAlchemy's code for the class.
        code: &'static str,
    },
    /// SQLAlchemy's `NoSuchTableError`: the text is the table's name and nothing else.
    #[error("{0}")]
    NoSuchTable(String),
    /// `DbApiHook.run` was given nothing to run.
    #[error("List of SQL statements is empty")]
    EmptySql,
    /// A result that would not be given whole.
    #[error("the result has more than {0} rows: ask for fewer, with LIMIT or a narrower condition")]
    TooManyRows(usize),
    /// Several statements in one session are for the databases that have a hook of their own.
    #[error("{0} has no hook for Dag code on this worker")]
    NoScripts(String),
    /// The thread that ran the statement is gone.
    #[error("the database thread ended early: {0}")]
    Thread(String),
}

/// A database that can be listed, described and asked.
#[async_trait]
pub trait Database: Send + Sync {
    /// SQLAlchemy's dialect name: `sqlite`, `postgresql`, `mysql`, `mssql` ...
    fn dialect_name(&self) -> &str;

    /// Names of tables, without views, in the order the database gives them.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    async fn table_names(&self, schema: Option<&str>) -> Result<Vec<String>, DatabaseError>;

    /// The columns of a table or view.
    ///
    /// # Errors
    /// [`DatabaseError::NoSuchTable`] and whatever the driver says.
    async fn columns(
        &self,
        table: &str,
        schema: Option<&str>,
    ) -> Result<Vec<Column>, DatabaseError>;

    /// Runs one statement, commits, and fetches at most `limit` rows. Dropping the future stops the statement.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    async fn run(&self, sql: &str, limit: usize) -> Result<ResultSet, DatabaseError>;

    /// Runs statements in one session of their own, and in one transaction unless each is to be committed; gives the
    /// result of each. Nothing of the transaction is left when one fails. Dropping the future stops them.
    ///
    /// # Errors
    /// See [`DatabaseError`]; [`DatabaseError::NoScripts`] where the database has nothing of the kind.
    async fn run_all(&self, _script: &Script) -> Result<Vec<ResultSet>, DatabaseError> {
        Err(DatabaseError::NoScripts(self.dialect_name().to_owned()))
    }

    /// Ends the session. Calls after it may fail.
    async fn close(&self) {}
}
