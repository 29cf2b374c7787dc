//! Running one statement in a transaction of its own, and fetching the beginning of its result.

use futures::StreamExt;
use sqlparser::dialect::PostgreSqlDialect;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, SimpleQueryMessage, SimpleQueryRow, Statement};

use super::{error, value};
use crate::hook::called_functions::called_functions;
use crate::hook::{Access, Cell, DatabaseError, ResultSet, Script};

/// A statement of a read-only session is stopped after this time, unless the role, the database or the connection's
/// `options` set a `statement_timeout` of their own.
pub(super) const STATEMENT_TIMEOUT: &str = "15min";

/// The name of the cursor is not one that a statement would use.
const CURSOR: &str = "updraft_result";

/// Why a statement gave nothing, and whether it was the statement that failed.
struct Failure {
    error: Error,
    /// Characters in front of the statement in what was sent.
    wrapped: usize,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, wrapped: 0 }
    }
}

/// Runs `sql` and fetches at most `limit` rows.
///
/// A query is opened as a cursor and no more than `limit` rows are computed. With writes allowed, one that calls a
/// volatile function is run to its end, because it may change data: the rest of the rows is counted and stays on the
/// server.
pub(super) async fn run(
    client: &Client,
    sql: &str,
    limit: usize,
    access: &Access,
) -> Result<ResultSet, DatabaseError> {
    let allow_writes = access.allow_writes;
    if !allow_writes && leading_keyword(sql).eq_ignore_ascii_case("COPY") {
        // Reads and writes files of the server, in read-only transactions too.
        return Err(DatabaseError::Driver(
            "COPY cannot be used with this method; use copy() instead".to_owned(),
        ));
    }
    let outcome = in_transaction(client, sql, limit, access).await;
    match outcome {
        Ok(rows) => {
            if allow_writes {
                client
                    .batch_execute("COMMIT")
                    .await
                    .map_err(|error| DatabaseError::Driver(error::statement(&error, sql, 0)))?;
            }
            rows.into_result()
        }
        Err(Failure { error, wrapped }) => Err(DatabaseError::Driver(error::statement(
            &error, sql, wrapped,
        ))),
    }
}

/// Runs statements as they stand, one after another.
pub(super) async fn run_all(
    client: &Client,
    script: &Script,
) -> Result<Vec<ResultSet>, DatabaseError> {
    let failed = |sql: &str, error: Error| DatabaseError::Driver(error::statement(&error, sql, 0));
    let control = async |sql: &'static str| {
        if script.autocommit {
            return Ok(());
        }
        let done = client.batch_execute(sql).await;
        done.map_err(|error| failed(sql, error))
    };
    control("BEGIN").await?;
    let mut results = Vec::new();
    for statement in &script.statements {
        statement.begin(super::log)?;
        let sql = &statement.sql;
        // The result that is shown is the first one's, where one text holds several statements.
        let first = first_statement(sql).unwrap_or(sql);
        let prepared = client.prepare(first).await;
        let types = column_types(&prepared.map_err(|error| failed(sql, error))?);
        let mut rows = Rows::new(types, script.rows_to_fetch());
        rows.read(client, sql)
            .await
            .map_err(|error| failed(sql, error))?;
        results.push(script.checked(rows.into_result()?)?);
    }
    control("COMMIT").await?;
    Ok(results)
}

/// Undoes what a read-only statement may have left in the session, locks that outlive a transaction included.
pub(super) async fn reset(client: &Client) -> Result<(), Error> {
    client
        .batch_execute("ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()")
        .await
}

async fn in_transaction(
    client: &Client,
    sql: &str,
    limit: usize,
    access: &Access,
) -> Result<Rows, Failure> {
    let allow_writes = access.allow_writes;
    client.batch_execute(&begin(allow_writes)).await?;
    // Also where several statements in one text are refused: PostgreSQL prepares no more than one.
    let (types, several) = match client.prepare(sql).await {
        Ok(statement) => (column_types(&statement), false),
        Err(error) if access.allows_several_statements() && is_several_statements(&error) => {
            client.batch_execute("ROLLBACK; BEGIN").await?;
            (first_result_types(client, sql).await?, true)
        }
        Err(error) => return Err(error.into()),
    };
    let direct = |types| async move {
        let mut rows = Rows::new(types, limit);
        rows.read(client, sql).await?;
        Ok(rows)
    };
    if several || !is_query(sql) {
        return direct(types).await;
    }
    let declare = format!("DECLARE {CURSOR} NO SCROLL CURSOR FOR ");
    let rest = if allow_writes && calls_a_volatile_function(client, sql).await? {
        format!(";MOVE FORWARD ALL IN {CURSOR}")
    } else {
        String::new()
    };
    let cursor = format!("{declare}{sql}\n;FETCH FORWARD {limit} FROM {CURSOR}{rest}");
    let mut rows = Rows::new(types.clone(), limit);
    if allow_writes {
        client.batch_execute("SAVEPOINT updraft").await?;
    }
    match rows.read(client, &cursor).await {
        Ok(()) => Ok(rows),
        // A query that writes, `SELECT INTO` or with a writing CTE, has no cursor.
        Err(error) if allow_writes && has_no_cursor(&error) => {
            client
                .batch_execute("ROLLBACK TO SAVEPOINT updraft")
                .await?;
            direct(types).await
        }
        Err(error) => Err(Failure {
            error,
            wrapped: declare.chars().count(),
        }),
    }
}

/// Functions that are not volatile can't change data. One behind an operator or inside a view is not looked for.
async fn calls_a_volatile_function(client: &Client, sql: &str) -> Result<bool, Error> {
    let Some(names) = called_functions(&PostgreSqlDialect {}, sql) else {
        return Ok(true);
    };
    let volatile = "SELECT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND proname = ANY($1))";
    let rows = client
        .query_typed(volatile, &[(&names, Type::TEXT_ARRAY)])
        .await?;
    rows.first().map_or(Ok(true), |row| row.try_get(0))
}

fn column_types(statement: &Statement) -> Vec<Type> {
    statement
        .columns()
        .iter()
        .map(|column| column.type_().clone())
        .collect()
}

fn begin(allow_writes: bool) -> String {
    if allow_writes {
        return "BEGIN".to_owned();
    }
    // The query after BEGIN also takes a snapshot, after which nothing makes the transaction writable.
    format!(
        "BEGIN READ ONLY; SELECT pg_catalog.set_config('statement_timeout', '{STATEMENT_TIMEOUT}', true) \
         WHERE pg_catalog.current_setting('statement_timeout') = '0'"
    )
}

fn is_several_statements(error: &Error) -> bool {
    error.as_db_error().is_some_and(|server| {
        *server.code() == SqlState::SYNTAX_ERROR && server.routine() == Some("exec_parse_message")
    })
}

fn has_no_cursor(error: &Error) -> bool {
    matches!(
        error.code(),
        Some(code) if [
            SqlState::FEATURE_NOT_SUPPORTED,
            SqlState::INVALID_CURSOR_DEFINITION,
            SqlState::SYNTAX_ERROR,
        ].contains(code)
    )
}

/// The types of the first of several statements, whose result is the one that is shown, as psycopg does.
async fn first_result_types(client: &Client, sql: &str) -> Result<Vec<Type>, Failure> {
    let Some(first) = first_statement(sql) else {
        return Ok(Vec::new());
    };
    client.batch_execute("SAVEPOINT updraft").await?;
    let types = match client.prepare(first).await {
        Ok(statement) => column_types(&statement),
        // Running it says what is wrong with it.
        Err(_) => Vec::new(),
    };
    client
        .batch_execute("ROLLBACK TO SAVEPOINT updraft")
        .await?;
    Ok(types)
}

/// What stands before the first semicolon that ends a statement.
fn first_statement(sql: &str) -> Option<&str> {
    use sqlparser::tokenizer::{Token, Tokenizer};
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql)
        .tokenize_with_location()
        .ok()?;
    let end = tokens
        .iter()
        .find(|token| token.token == Token::SemiColon)?;
    let line = usize::try_from(end.span.start.line).ok()?.checked_sub(1)?;
    let column = usize::try_from(end.span.start.column)
        .ok()?
        .checked_sub(1)?;
    let line_start: usize = sql.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = sql.get(line_start..)?;
    let (offset, _) = rest.char_indices().nth(column)?;
    sql.get(..line_start + offset)
}

/// Whether the statement is one that a cursor can be opened for.
fn is_query(sql: &str) -> bool {
    let keyword = leading_keyword(sql);
    ["SELECT", "WITH", "VALUES", "TABLE"]
        .iter()
        .any(|query| keyword.eq_ignore_ascii_case(query))
}

/// The first word behind white space, comments and parentheses.
fn leading_keyword(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = after_block_comment(rest);
        } else {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            return rest.get(..end).unwrap_or_default();
        }
    }
}

/// Comments nest in PostgreSQL.
fn after_block_comment(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix("/*") {
            depth += 1;
            rest = inner;
        } else if let Some(outer) = rest.strip_prefix("*/") {
            depth -= 1;
            rest = outer;
            if depth == 0 {
                return rest;
            }
        } else {
            let mut chars = rest.chars();
            chars.next();
            rest = chars.as_str();
        }
    }
    rest
}

/// The first result of what was sent: the beginning of its rows, and how many there are.
struct Rows {
    types: Vec<Type>,
    limit: usize,
    columns: Option<Vec<String>>,
    rows: Vec<SimpleQueryRow>,
    /// Rows of the result, or rows that a statement without one changed; `None` while only a beginning is known.
    total: Option<u64>,
}

impl Rows {
    fn new(types: Vec<Type>, limit: usize) -> Self {
        Self {
            types,
            limit,
            columns: None,
            rows: Vec::new(),
            total: None,
        }
    }

    async fn read(&mut self, client: &Client, text: &str) -> Result<(), Error> {
        let mut messages = std::pin::pin!(client.simple_query_raw(text).await?);
        // Opening the cursor, fetching, moving on: each ends with a message of its own.
        let cursor = text.starts_with("DECLARE updraft_result ");
        let mut completed = 0;
        while let Some(message) = messages.next().await {
            match message? {
                SimpleQueryMessage::RowDescription(columns)
                    if self.columns.is_none() && self.total.is_none() =>
                {
                    self.columns = Some(
                        columns
                            .iter()
                            .map(|column| column.name().to_owned())
                            .collect(),
                    );
                }
                SimpleQueryMessage::Row(row)
                    if self.total.is_none() && self.rows.len() < self.limit =>
                {
                    self.rows.push(row);
                }
                SimpleQueryMessage::CommandComplete(count) => {
                    completed += 1;
                    let fetched = self.rows.len() as u64;
                    match (cursor, completed) {
                        (true, 1) => {}
                        (true, 2) if fetched == self.limit as u64 => {}
                        (true, 2) => self.total = Some(fetched),
                        (true, _) => self.total = Some(fetched + count),
                        (false, _) => {
                            self.total.get_or_insert(count);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn into_result(self) -> Result<ResultSet, DatabaseError> {
        if let Some(total) = self.total {
            super::log(&format!("Rows affected: {total}"));
        }
        let Some(columns) = self.columns else {
            return Ok(ResultSet::default());
        };
        let rows = self
            .rows
            .iter()
            .map(|row| {
                columns
                    .iter()
                    .enumerate()
                    .map(|(index, name)| cell(row, index, self.types.get(index), name))
                    .collect()
            })
            .collect::<Result<_, _>>()?;
        Ok(ResultSet {
            columns,
            rows,
            total_rows: self.total,
        })
    }
}

fn cell(
    row: &SimpleQueryRow,
    index: usize,
    ty: Option<&Type>,
    column: &str,
) -> Result<Cell, DatabaseError> {
    let text = row
        .try_get(index)
        .map_err(|error| DatabaseError::Driver(format!("column \"{column}\": {error}")))?;
    let Some(text) = text else {
        return Ok(Cell::Null);
    };
    let Some(ty) = ty else {
        return Ok(Cell::Text(text.to_owned()));
    };
    value::cell(ty, text).map_err(|value::Unreadable| {
        DatabaseError::Driver(format!(
            "column \"{column}\" of type {} holds a value that can't be shown exactly: cast it to text in the query",
            ty.name()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_told_by_its_first_word() {
        for sql in [
            "select 1",
            " (SELECT 1)",
            "/* a /* b */ */ WITH x AS (SELECT 1) TABLE x",
            "-- a\nVALUES (1)",
        ] {
            assert!(is_query(sql), "{sql}");
        }
        for sql in [
            "SHOW x",
            "INSERT INTO a VALUES (1)",
            "",
            "-- SELECT",
            "/* SELECT",
            "SELECTED",
        ] {
            assert!(!is_query(sql), "{sql}");
        }
    }

    #[test]
    fn the_first_statement_ends_at_a_semicolon_of_its_own() {
        assert_eq!(
            first_statement("SELECT ';', $$;$$\n , 'é' ; DELETE"),
            Some("SELECT ';', $$;$$\n , 'é' ")
        );
        assert_eq!(first_statement("SELECT 1"), None);
    }
}
