//! The guard against 1303 verdicts of the Python provider's validator.
//!
//! Every rejected row must be refused. Rows that differ otherwise stand in `sql-policy-exceptions.json` with the
//! reason; an entry that no longer differs is an error, so that the file stays honest.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use updraft::airflow::python_text::casefold;
use updraft::toolset::sql::AllowList;
use updraft::toolset::sql::guard::{Dialect, Guard};

const CORPUS: &str = include_str!("../corpus/sql-policy-corpus.jsonl");
const EXCEPTIONS: &str = include_str!("../corpus/sql-policy-exceptions.json");

/// The share of accepted rows that must be accepted here.
const ACCEPTED_SHARE: f64 = 0.92;

#[derive(Deserialize)]
struct Row {
    dialect: Option<String>,
    sql: String,
    allowed_tables: Option<Vec<String>>,
    allow_writes: bool,
    allowed_functions: Option<Vec<String>>,
    schema: Option<String>,
    verdict: String,
    message: String,
}

impl Row {
    fn guard(&self) -> Guard {
        let dialect: Dialect = self.dialect.as_deref().unwrap_or_default().parse().unwrap();
        let allow_list = self
            .allowed_tables
            .as_ref()
            .map(|tables| AllowList::new(tables, self.schema.as_deref()));
        Guard {
            dialect,
            allow_writes: self.allow_writes,
            allow_list,
            allowed_functions: self
                .allowed_functions
                .iter()
                .flatten()
                .map(|name| casefold(name))
                .collect(),
        }
    }

    /// The verdict of the `query` tool: with writes and without a list it checks nothing.
    fn verdict(&self) -> Result<(), String> {
        if self.allow_writes && self.allowed_tables.is_none() {
            return Ok(());
        }
        self.guard()
            .check(&self.sql)
            .map(drop)
            .map_err(|refusal| refusal.to_string())
    }

    fn key(&self) -> String {
        let mode = match (&self.allowed_tables, self.allow_writes) {
            (None, _) => "read-only",
            (Some(_), false) => "tables",
            (Some(_), true) => "tables, writes",
        };
        format!(
            "{}, {mode}: {}",
            self.dialect.as_deref().unwrap_or("no dialect"),
            self.sql
        )
    }
}

/// Messages compare exactly; errors of grammar by class, table functions up to their arguments.
fn comparable(message: &str) -> &str {
    if message.starts_with("SQL parse error") {
        "SQL parse error"
    } else if message.starts_with("Error tokenizing") {
        "Error tokenizing"
    } else if message.contains("table-valued function") {
        message
            .split_inclusive("table-valued function")
            .next()
            .unwrap_or(message)
    } else {
        message
    }
}

#[derive(Deserialize)]
struct Exceptions {
    /// Reason, and the rows accepted there and refused here for it.
    refused_here: BTreeMap<String, BTreeSet<String>>,
    /// Reason, and the rows refused in both with another message here.
    other_message: BTreeMap<String, BTreeSet<String>>,
}

fn rows() -> Vec<Row> {
    CORPUS
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn every_row_the_provider_rejects_is_refused() {
    let accepted: Vec<String> = rows()
        .iter()
        .filter(|row| row.verdict == "reject" && row.verdict().is_ok())
        .map(Row::key)
        .collect();
    assert!(accepted.is_empty(), "accepted:\n{}", accepted.join("\n"));
}

#[test]
fn rows_the_provider_accepts_are_accepted_or_are_exceptions_with_a_reason() {
    let rows = rows();
    let accepted: Vec<&Row> = rows.iter().filter(|row| row.verdict == "accept").collect();
    let refused: BTreeMap<String, String> = accepted
        .iter()
        .filter_map(|row| Some((row.key(), row.verdict().err()?)))
        .collect();
    let share = 1.0 - refused.len() as f64 / accepted.len() as f64;
    println!(
        "{} of {} accepted rows refused here: {share:.3}",
        refused.len(),
        accepted.len()
    );
    let exceptions: Exceptions = serde_json::from_str(EXCEPTIONS).unwrap();
    let expected: BTreeSet<&String> = exceptions.refused_here.values().flatten().collect();
    let unexpected: Vec<String> = refused
        .iter()
        .filter(|(key, _)| !expected.contains(key))
        .map(|(key, message)| format!("{key}\n    {message}"))
        .collect();
    assert!(
        unexpected.is_empty(),
        "refused here:\n{}",
        unexpected.join("\n")
    );
    let stale: Vec<_> = expected
        .iter()
        .filter(|key| !refused.contains_key(**key))
        .collect();
    assert!(
        stale.is_empty(),
        "no longer refused, remove the exception: {stale:#?}"
    );
    assert!(
        share >= ACCEPTED_SHARE,
        "only {share:.3} of the accepted rows are accepted"
    );
}

#[test]
fn refusals_read_as_the_providers_or_are_exceptions_with_a_reason() {
    let exceptions: Exceptions = serde_json::from_str(EXCEPTIONS).unwrap();
    let expected: BTreeSet<&String> = exceptions.other_message.values().flatten().collect();
    let differing: BTreeMap<String, String> = rows()
        .iter()
        .filter(|row| row.verdict == "reject")
        .filter_map(|row| {
            let message = row.verdict().err()?;
            let same = comparable(&message) == comparable(&row.message);
            (!same).then(|| {
                (
                    row.key(),
                    format!("{message}\n    provider: {}", row.message),
                )
            })
        })
        .collect();
    let unexpected: Vec<String> = differing
        .iter()
        .filter(|(key, _)| !expected.contains(key))
        .map(|(key, message)| format!("{key}\n    {message}"))
        .collect();
    println!("{} messages differ", differing.len());
    assert!(
        unexpected.is_empty(),
        "another message here:\n{}",
        unexpected.join("\n")
    );
    let stale: Vec<_> = expected
        .iter()
        .filter(|key| !differing.contains_key(**key))
        .collect();
    assert!(
        stale.is_empty(),
        "the same message now, remove the exception: {stale:#?}"
    );
}
