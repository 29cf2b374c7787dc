//! Running one statement in a transaction of its own, and fetching the beginning of its result.

use futures::StreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Error, Row, Value};
use sqlparser::dialect::MySqlDialect;

use super::error;
use super::session::Session;
use super::value::{self, Unreadable};
use crate::hook::called_functions::called_functions;
use crate::hook::{Access, Cell, DatabaseError, ResultSet, Script};

/// Seconds after which a query of a read-only session is stopped, unless the server sets a limit of its own.
pub(super) const STATEMENT_TIMEOUT: u32 = 900;

/// What became of a statement.
pub(super) struct Outcome {
    pub result: Result<ResultSet, DatabaseError>,
    /// Whether more rows are waiting: whoever goes on with the session would have to read them.
    pub unread: bool,
}

/// Runs `sql` and fetches at most `limit` rows.
///
/// The server is told to stop after `limit` rows, which it heeds for a query without a LIMIT of its own; of any other no
/// more than one row beyond is read. With writes allowed, what may change data is run to its end: the rest of its rows is
/// counted and thrown away.
pub(super) async fn run(
    session: &mut Session,
    sql: &str,
    limit: usize,
    access: &Access,
) -> Outcome {
    let allow_writes = access.allow_writes;
    let failed = |text: String| Outcome {
        result: Err(DatabaseError::Driver(text)),
        unread: false,
    };
    if !allow_writes && !is_question(sql) {
        // READ ONLY keeps from changing tables, and from nothing else: not from KILL, SET GLOBAL, FLUSH or COMMIT.
        return failed("(1792, 'Cannot execute statement in a READ ONLY transaction')".to_owned());
    }
    if !allow_writes && writes_a_file(sql) {
        return failed(
            "(1290, 'SELECT ... INTO OUTFILE and INTO DUMPFILE write files of the server: this session is read-only')"
                .to_owned(),
        );
    }
    let to_the_end = match may_act(&mut session.conn, sql, allow_writes).await {
        Ok(answer) => answer,
        Err(error) => {
            session.note(&error);
            return failed(error::statement(&error));
        }
    };
    let begin = begin(session.is_mariadb, limit, allow_writes, to_the_end);
    let outcome = execute(&mut session.conn, &begin, sql, limit, access, to_the_end).await;
    match outcome {
        Ok(rows) => {
            let unread = rows.unread;
            Outcome {
                result: rows.into_result(),
                unread,
            }
        }
        Err(error) => {
            session.note(&error);
            failed(error::statement(&error))
        }
    }
}

/// Runs statements as they stand, one after another. A failure may leave rows unread.
pub(super) async fn run_all(
    session: &mut Session,
    script: &Script,
) -> Result<Vec<ResultSet>, DatabaseError> {
    let mut results = Vec::new();
    // With `autocommit` off a transaction begins anew after a statement that ends one, such as CREATE TABLE.
    let begin = format!(
        "SET NAMES utf8mb4; SET SESSION autocommit = {}",
        u8::from(script.autocommit)
    );
    let outcome = async {
        let conn = &mut session.conn;
        conn.query_drop(begin).await.map_err(Stopped::Server)?;
        for statement in &script.statements {
            statement.begin(super::log).map_err(Stopped::Here)?;
            let wanted = script.max_rows.is_some();
            let rows = read(conn, &statement.sql, script.rows_to_fetch(), !wanted)
                .await
                .map_err(Stopped::Server)?;
            let result = rows.into_result().and_then(|result| script.checked(result));
            results.push(result.map_err(Stopped::Here)?);
        }
        if !script.autocommit {
            conn.query_drop("COMMIT").await.map_err(Stopped::Server)?;
        }
        Ok(())
    }
    .await;
    match outcome {
        Ok(()) => Ok(results),
        Err(Stopped::Here(error)) => Err(error),
        Err(Stopped::Server(error)) => {
            session.note(&error);
            Err(DatabaseError::Driver(error::statement(&error)))
        }
    }
}

/// Who ended a script before its end.
enum Stopped {
    Here(DatabaseError),
    Server(Error),
}

/// Whether a statement may do more than ask: it is none that only asks, or calls a function that may.
async fn may_act(conn: &mut Conn, sql: &str, allow_writes: bool) -> Result<bool, Error> {
    const ACTING: [&str; 5] = ["benchmark", "get_lock", "nextval", "setval", "sleep"];
    if !allow_writes || !is_question(sql) {
        return Ok(allow_writes);
    }
    let Some(names) = called_functions(&MySqlDialect {}, sql) else {
        return Ok(true);
    };
    if names.is_empty() {
        return Ok(false);
    }
    if names.iter().any(|name| ACTING.contains(&name.as_str())) {
        return Ok(true);
    }
    let places = vec!["?"; names.len()].join(", ");
    let stored: Option<u8> = conn
        .exec_first(
            format!(
                "SELECT 1 FROM information_schema.routines WHERE routine_type = 'FUNCTION' AND routine_name IN ({places}) LIMIT 1"
            ),
            names,
        )
        .await?;
    Ok(stored.is_some())
}

async fn execute(
    conn: &mut Conn,
    begin: &str,
    sql: &str,
    limit: usize,
    access: &Access,
    to_the_end: bool,
) -> Result<Rows, Error> {
    conn.query_drop(begin).await?;
    if !access.allows_several_statements() && sql.contains(';') {
        // The driver lets a text hold several statements, of which the first could end the read-only transaction. The
        // server prepares no more than one.
        let prepared = conn.prep(sql).await?;
        conn.close(prepared).await?;
    }
    let rows = read(conn, sql, limit, to_the_end).await?;
    // A question that is left in the middle has nothing to commit.
    if access.allow_writes && !rows.unread {
        conn.query_drop("COMMIT").await?;
    }
    Ok(rows)
}

/// What stands before the statement. All of it is undone when the session is reset.
fn begin(is_mariadb: bool, limit: usize, allow_writes: bool, to_the_end: bool) -> String {
    let mut begin = "SET NAMES utf8mb4".to_owned();
    if !to_the_end {
        begin.push_str(&format!("; SET SESSION sql_select_limit = {limit}"));
    }
    if allow_writes {
        begin.push_str("; START TRANSACTION");
        return begin;
    }
    let (variable, timeout) = if is_mariadb {
        ("max_statement_time", STATEMENT_TIMEOUT)
    } else {
        // Milliseconds.
        ("max_execution_time", STATEMENT_TIMEOUT * 1000)
    };
    begin.push_str(&format!(
        "; SET SESSION {variable} = IF(@@SESSION.{variable} = 0, {timeout}, @@SESSION.{variable}); \
         SET SESSION TRANSACTION READ ONLY; START TRANSACTION READ ONLY"
    ));
    begin
}

/// Whether the statement is of a kind that only asks.
fn is_question(sql: &str) -> bool {
    const KINDS: [&str; 7] = [
        "SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "TABLE",
    ];
    let keyword = leading_keyword(sql);
    KINDS.iter().any(|kind| keyword.eq_ignore_ascii_case(kind))
}

/// The first word behind white space, comments and parentheses; nothing when a comment is one that the server executes.
fn leading_keyword(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        if rest.starts_with("/*!") || rest.starts_with("/*M!") {
            return "";
        }
        let after = if rest.starts_with("--") || rest.starts_with('#') {
            rest.split_once('\n')
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/")
        } else {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            return rest.get(..end).unwrap_or_default();
        };
        rest = after.map_or("", |(_, after)| after);
    }
}

/// Whether the words for writing a file stand in the text, wherever that is: READ ONLY does not keep from it.
fn writes_a_file(sql: &str) -> bool {
    let words: Vec<String> = sql
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map(str::to_lowercase)
        .collect();
    words
        .iter()
        .position(|word| word == "into")
        .is_some_and(|into| {
            words
                .iter()
                .skip(into)
                .any(|word| word == "outfile" || word == "dumpfile")
        })
}

struct Rows {
    columns: Option<Vec<Column>>,
    rows: Vec<Row>,
    /// Rows of the result, or rows that a statement without one changed; `None` while only a beginning is known.
    total: Option<u64>,
    unread: bool,
}

async fn read(conn: &mut Conn, sql: &str, limit: usize, to_the_end: bool) -> Result<Rows, Error> {
    let mut result = conn.query_iter(sql).await?;
    let columns: Vec<Column> = result.columns_ref().to_vec();
    let mut read = Rows {
        columns: (!columns.is_empty()).then_some(columns),
        rows: Vec::new(),
        total: None,
        unread: false,
    };
    if read.columns.is_none() {
        read.total = Some(result.affected_rows());
        result.drop_result().await?;
        return Ok(read);
    }
    let mut total = 0_u64;
    if let Some(mut stream) = result.stream::<Row>().await? {
        while let Some(row) = stream.next().await {
            let row = row?;
            total += 1;
            if read.rows.len() < limit {
                read.rows.push(row);
            } else if !to_the_end {
                read.unread = true;
                return Ok(read);
            }
        }
    }
    // A server that was told to stop at the limit does not say whether there was more.
    if to_the_end || total < limit as u64 {
        read.total = Some(total);
    }
    result.drop_result().await?;
    Ok(read)
}

impl Rows {
    fn into_result(self) -> Result<ResultSet, DatabaseError> {
        if let Some(total) = self.total {
            super::log(&format!("Rows affected: {total}"));
        }
        let Some(columns) = self.columns else {
            return Ok(ResultSet::default());
        };
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in self.rows {
            let mut cells = Vec::with_capacity(columns.len());
            // The driver's own `unwrap`: the row taken apart into its values.
            for (column, value) in columns.iter().zip(row.unwrap()) {
                cells.push(cell(column, value)?);
            }
            rows.push(cells);
        }
        Ok(ResultSet {
            columns: columns
                .iter()
                .map(|column| column.name_str().into_owned())
                .collect(),
            rows,
            total_rows: self.total,
        })
    }
}

fn cell(column: &Column, value: Value) -> Result<Cell, DatabaseError> {
    let outcome = match value {
        Value::NULL => return Ok(Cell::Null),
        Value::Bytes(bytes) => value::cell(column, &bytes),
        // The text protocol has no others.
        _ => Err(Unreadable),
    };
    outcome.map_err(|Unreadable| {
        DatabaseError::Driver(format!(
            "column \"{}\" holds a value that can't be shown exactly: cast it to CHAR in the query",
            column.name_str()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_a_file_is_told_by_its_words_wherever_they_stand() {
        for sql in [
            "SELECT 1 INTO OUTFILE '/tmp/x'",
            "select 1 into/**/dumpfile '/tmp/x'",
            "SELECT 1 /*!50000 INTO OUTFILE '/tmp/x' */",
        ] {
            assert!(writes_a_file(sql), "{sql}");
        }
        for sql in ["SELECT outfile FROM t", "SELECT 'outfile into'", "SELECT 1"] {
            assert!(!writes_a_file(sql), "{sql}");
        }
    }

    #[test]
    fn a_question_is_told_by_its_first_word() {
        for sql in [
            "select 1",
            " (SELECT 1) UNION (SELECT 2)",
            "-- why\n# how\n/* what */ WITH a AS (SELECT 1) TABLE a",
            "SHOW TABLES",
        ] {
            assert!(is_question(sql), "{sql}");
        }
        for sql in [
            "KILL 1",
            "SET GLOBAL x = 1",
            "/*!50000 SELECT */ KILL 1",
            "/*M!100000 KILL 1 */",
            "-- SELECT",
            "/*/ SELECT 1 */ KILL 1",
            "SELECTED",
            "",
        ] {
            assert!(!is_question(sql), "{sql}");
        }
    }

    #[test]
    fn a_read_only_transaction_has_limits_in_the_servers_own_terms() {
        assert!(
            begin(true, 51, false, false)
                .contains("max_statement_time = IF(@@SESSION.max_statement_time = 0, 900,")
        );
        let mysql = begin(false, 51, false, false);
        assert!(mysql.contains("max_execution_time = 0, 900000,"));
        assert!(mysql.contains("sql_select_limit = 51"));
        assert!(mysql.ends_with("START TRANSACTION READ ONLY"));
        assert_eq!(
            begin(true, 51, true, true),
            "SET NAMES utf8mb4; START TRANSACTION"
        );
    }
}
