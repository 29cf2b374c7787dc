//! Running one statement in a transaction of its own, and fetching the beginning of its result.

use futures::TryStreamExt as _;
use tiberius::error::Error;
use tiberius::{Column, QueryItem, Row};

use super::session::Session;
use super::{error, single_read, value};
use crate::hook::{Cell, DatabaseError, ResultSet};

/// What became of a statement.
pub(super) struct Outcome {
    pub result: Result<ResultSet, DatabaseError>,
    /// Whether more rows are waiting: whoever goes on with the session would have to read them.
    pub unread: bool,
}

/// Runs `sql` and fetches at most `limit` rows.
///
/// The server is told to stop a SELECT after `limit` rows. Anything else, which only runs where writes are allowed, runs
/// to its end: what is not shown is counted and thrown away.
pub(super) async fn run(
    session: &mut Session,
    sql: &str,
    limit: usize,
    allow_writes: bool,
) -> Outcome {
    let single_read = single_read::check(sql);
    if let (Err(single_read::Refused(reason)), false) = (&single_read, allow_writes) {
        return Outcome {
            result: Err(DatabaseError::Driver(reason.clone())),
            unread: false,
        };
    }
    let reads = single_read.is_ok();
    match in_transaction(session, sql, limit, reads, allow_writes).await {
        Ok(rows) => {
            let unread = rows.unread;
            Outcome {
                result: rows.into_result(),
                unread,
            }
        }
        Err(failure) => {
            // Only what the server itself says leaves a session that can go on.
            session.lost |= !matches!(failure, Error::Server(_));
            Outcome {
                result: Err(DatabaseError::Driver(error::statement(&failure))),
                unread: false,
            }
        }
    }
}

async fn in_transaction(
    session: &mut Session,
    sql: &str,
    limit: usize,
    reads: bool,
    allow_writes: bool,
) -> Result<Rows, Error> {
    // Zero is no limit.
    let rowcount = if reads { limit } else { 0 };
    execute(
        session,
        &format!("SET ROWCOUNT {rowcount}; BEGIN TRANSACTION"),
    )
    .await?;
    let outcome = read(session, sql, limit, !reads).await;
    let unread = outcome.as_ref().is_ok_and(|rows| rows.unread);
    let lost = matches!(&outcome, Err(failure) if !matches!(failure, Error::Server(_)));
    if !unread && !lost {
        let end = if allow_writes && outcome.is_ok() {
            "COMMIT"
        } else {
            "ROLLBACK"
        };
        execute(
            session,
            &format!("IF @@TRANCOUNT > 0 {end} TRANSACTION; SET ROWCOUNT 0"),
        )
        .await?;
    }
    outcome
}

/// Runs a text of our own, which has no result.
async fn execute(session: &mut Session, sql: &str) -> Result<(), Error> {
    session
        .client
        .simple_query(sql)
        .await?
        .into_results()
        .await?;
    Ok(())
}

struct Rows {
    columns: Option<Vec<Column>>,
    rows: Vec<Row>,
    /// Rows of the result; `None` while only a beginning is known.
    total: Option<u64>,
    unread: bool,
}

/// The first result, which is the one that pymssql shows.
async fn read(
    session: &mut Session,
    sql: &str,
    limit: usize,
    to_the_end: bool,
) -> Result<Rows, Error> {
    let mut read = Rows {
        columns: None,
        rows: Vec::new(),
        total: None,
        unread: false,
    };
    let mut total = 0_u64;
    let mut results = 0_u32;
    let mut stream = session.client.simple_query(sql).await?;
    while let Some(item) = stream.try_next().await? {
        match item {
            QueryItem::Metadata(meta) => {
                results += 1;
                if results == 1 {
                    read.columns = Some(meta.columns().to_vec());
                }
            }
            QueryItem::Row(row) if results == 1 => {
                total += 1;
                if read.rows.len() < limit {
                    read.rows.push(row);
                } else if !to_the_end {
                    read.unread = true;
                    return Ok(read);
                }
            }
            QueryItem::Row(_) => {}
        }
    }
    if to_the_end || total < limit as u64 {
        read.total = Some(total);
    }
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
            for (column, data) in columns.iter().zip(row) {
                cells.push(cell(column, data)?);
            }
            rows.push(cells);
        }
        Ok(ResultSet {
            columns: columns
                .iter()
                .map(|column| column.name().to_owned())
                .collect(),
            rows,
            total_rows: self.total,
        })
    }
}

fn cell(column: &Column, data: tiberius::ColumnData<'_>) -> Result<Cell, DatabaseError> {
    value::cell(column.column_type(), data).map_err(|value::Unreadable| {
        DatabaseError::Driver(format!(
            "column \"{}\" holds a value that can't be shown exactly: cast it to varchar in the query",
            column.name()
        ))
    })
}
