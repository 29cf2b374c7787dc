//! `updraft sql check`: asks the guard without a database, for people who test their allow-lists in their own CI.

use std::collections::HashSet;
use std::io::{BufRead, BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::airflow::python_text::casefold;
use crate::toolset::sql::AllowList;
use crate::toolset::sql::guard::{Dialect, Guard, Refusal, Report};

/// Check SQL the way SQLToolset does.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: SqlCommand,
}

#[derive(Debug, Subcommand)]
enum SqlCommand {
    Check(Check),
}

/// Says whether SQLToolset would run a statement, and what the statement refers to.
#[derive(Debug, Args)]
struct Check {
    /// The statement.
    #[arg(required_unless_present = "jsonl", conflicts_with = "jsonl")]
    sql: Option<String>,

    /// The database's dialect: postgres, mysql, sqlite, snowflake, bigquery, duckdb, tsql ...
    #[arg(long, default_value = "")]
    dialect: String,

    /// Tables that may be reached, separated by commas. Left out: every table.
    #[arg(long, value_delimiter = ',')]
    allowed_tables: Vec<String>,

    /// Functions that may be called although nothing is known of them, separated by commas.
    #[arg(long, value_delimiter = ',')]
    allowed_functions: Vec<String>,

    /// The schema of tables that are named without one.
    #[arg(long)]
    schema: Option<String>,

    /// Let statements change data.
    #[arg(long)]
    allow_writes: bool,

    /// Read rows of JSON from standard input and write one verdict a row.
    ///
    /// A row holds `sql` and, where they differ from the options' defaults, `dialect`, `allowed_tables`,
    /// `allow_writes`, `allowed_functions` and `schema`.
    #[arg(long)]
    jsonl: bool,
}

/// Exit status 1 when a statement is refused; with `--jsonl`, when a line is no row: verdicts are the output and
/// not the status.
pub(super) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let SqlCommand::Check(check) = arguments.command;
    if check.jsonl {
        return check_rows();
    }
    let row = Row {
        dialect: Some(check.dialect),
        sql: check.sql.unwrap_or_default(),
        allowed_tables: (!check.allowed_tables.is_empty()).then_some(check.allowed_tables),
        allow_writes: check.allow_writes,
        allowed_functions: Some(check.allowed_functions),
        schema: check.schema,
    };
    match row.check()? {
        Ok(report) => {
            outln!("accept");
            print_list("tables", report.tables.iter());
            print_list("functions not known", report.unknown_functions.iter());
            Ok(ExitCode::SUCCESS)
        }
        Err(refusal) => {
            outln!("reject\n{refusal}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn print_list<'a>(title: &str, names: impl Iterator<Item = &'a String>) {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if !names.is_empty() {
        outln!("{title}: {}", names.join(", "));
    }
}

/// One verdict a row; a line that is no row is refused, and makes the exit status 1.
fn check_rows() -> anyhow::Result<ExitCode> {
    let mut output = BufWriter::new(std::io::stdout().lock());
    let mut status = ExitCode::SUCCESS;
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.context("reading standard input")?;
        if line.trim().is_empty() {
            continue;
        }
        let verdict = check_row(&line).unwrap_or_else(|error| {
            status = ExitCode::FAILURE;
            Verdict {
                verdict: "reject",
                message: format!("line {}: {error:#}", index + 1),
            }
        });
        serde_json::to_writer(&mut output, &verdict)?;
        output.write_all(b"\n")?;
    }
    output.flush()?;
    Ok(status)
}

fn check_row(line: &str) -> anyhow::Result<Verdict> {
    let row: Row = serde_json::from_str(line).context("not a row of JSON with \"sql\"")?;
    Ok(row.check()?.into())
}

#[derive(Debug, Deserialize)]
struct Row {
    #[serde(default)]
    dialect: Option<String>,
    sql: String,
    #[serde(default)]
    allowed_tables: Option<Vec<String>>,
    #[serde(default)]
    allow_writes: bool,
    #[serde(default)]
    allowed_functions: Option<Vec<String>>,
    #[serde(default)]
    schema: Option<String>,
}

impl Row {
    /// The verdict of the `query` tool, which checks nothing when writes are allowed and no list is set.
    fn check(&self) -> anyhow::Result<Result<Report, Refusal>> {
        let allow_list = match self.allowed_tables.as_deref() {
            Some([]) => bail!("allowed_tables must name at least one table: leave it out for all"),
            Some(tables) => Some(AllowList::new(tables, self.schema.as_deref())),
            None => None,
        };
        if self.allow_writes && allow_list.is_none() {
            return Ok(Ok(Report::default()));
        }
        let names = self.allowed_functions.iter().flatten();
        let allowed_functions: HashSet<String> = names.map(|name| casefold(name)).collect();
        let dialect: Dialect = self.dialect.as_deref().unwrap_or_default().parse()?;
        let guard = Guard {
            dialect,
            allow_writes: self.allow_writes,
            allow_list,
            allowed_functions,
        };
        Ok(guard.check(&self.sql))
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Verdict {
    verdict: &'static str,
    message: String,
}

impl From<Result<Report, Refusal>> for Verdict {
    fn from(result: Result<Report, Refusal>) -> Self {
        match result {
            Ok(_) => Self {
                verdict: "accept",
                message: String::new(),
            },
            Err(refusal) => Self {
                verdict: "reject",
                message: refusal.to_string(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(row: &str) -> Verdict {
        check_row(row).unwrap()
    }

    #[test]
    fn a_line_that_is_no_row_gets_no_verdict() {
        let error = check_row(r#"{"dialect": "postgres"}"#).unwrap_err();
        assert!(
            format!("{error:#}").contains("missing field `sql`"),
            "{error:#}"
        );
    }

    #[test]
    fn a_row_of_the_corpus_shape_gets_a_verdict() {
        let accepted = verdict(r#"{"dialect": null, "sql": "SELECT 1", "allowed_tables": ["a"]}"#);
        assert_eq!(
            accepted,
            Verdict {
                verdict: "accept",
                message: String::new()
            }
        );
        let refused =
            verdict(r#"{"dialect": "postgres", "sql": "TABLE b", "allowed_tables": ["a"]}"#);
        assert_eq!(refused.verdict, "reject");
        assert!(
            refused.message.contains("allowed tables list: b."),
            "{}",
            refused.message
        );
    }

    #[test]
    fn an_empty_list_is_not_every_table() {
        let row: Row =
            serde_json::from_str(r#"{"sql": "SELECT 1", "allowed_tables": []}"#).unwrap();
        assert!(row.check().is_err());
    }
}
