//! What `DbApiHook.run` asks of a database: statements that share a session, and a transaction unless each is committed.

use super::{DatabaseError, ResultSet};

/// Statements for [`Database::run_all`](super::Database::run_all).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub statements: Vec<ScriptStatement>,
    /// Commits each statement when it has run, instead of all when the last one has.
    pub autocommit: bool,
    /// How many rows a result may have; `None` where nobody asks for rows, which are left out then.
    pub max_rows: Option<usize>,
}

/// One statement of a [`Script`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptStatement {
    pub sql: String,
    /// What the log says of it, which may leave out the values that were written into `sql`; `None` for nothing.
    pub shown: Option<String>,
}

impl ScriptStatement {
    /// Says that the statement runs, with `log`.
    ///
    /// # Errors
    /// There is nothing to run.
    pub(super) fn begin(&self, log: impl FnOnce(&str)) -> Result<(), DatabaseError> {
        if self.sql.trim().is_empty() {
            return Err(DatabaseError::EmptySql);
        }
        if let Some(shown) = &self.shown {
            log(&format!("Running statement: {shown}"));
        }
        Ok(())
    }
}

impl Script {
    /// Rows to fetch: one more than may be, which tells that there are too many.
    pub(super) fn rows_to_fetch(&self) -> usize {
        self.max_rows.map_or(0, |most| most.saturating_add(1))
    }

    /// A result that is whole, without rows where nobody asks for them.
    ///
    /// # Errors
    /// It has more rows than may be.
    pub(super) fn checked(&self, mut result: ResultSet) -> Result<ResultSet, DatabaseError> {
        match self.max_rows {
            None => result.rows.clear(),
            Some(most) if result.rows.len() > most => return Err(DatabaseError::TooManyRows(most)),
            Some(_) => {}
        }
        Ok(result)
    }
}
