//! The guard: whether a statement may run, from its text alone.
//!
//! It repeats the policy of the Python provider (sqlglot 30.30 under common-ai 1.0.0) on another parser, so it fails
//! closed: what is not understood is refused, and a part of the parser's tree that no rule knows is a refusal, too.
//! No wildcard arm over the tree lets a node pass, so that a newer parser can't bring one that slips through.
//!
//! The order of work: `lexical` cuts the text into tokens and statements and refuses text that an engine could read
//! in another way; `leading` says what kind of statement stands there; `walk` goes through the parser's tree and
//! notes what it names; `policy` decides.
//!
//! # What it is not
//!
//! The guard reads text and knows no database. A view, a synonym or a function of a permitted name reaches what its
//! definition says; without an allow-list any function may be called. Behind the guard stands the database: read-only
//! sessions where there are such (SQLite's authorizer, PostgreSQL's `READ ONLY` transactions), and the rights of the
//! connection's user, which should be no more than the agent needs.
//!
//! # Stricter than the original
//!
//! The original's list is no border on some databases. Here it is meant as one, so these are refused, though the
//! original accepts them:
//!
//! | Refused | Where | Why |
//! |---|---|---|
//! | `SET`, `KILL`, `ATTACH`, `DETACH`, `PRAGMA`, `PUT`, `LIST`, `INSTALL`, `DECLARE`, `UNDROP`, `ALTER SESSION`, with writes and a list | everywhere | they name no table, and they change what later statements reach, or reach files |
//! | `DROP DATABASE orders`, `DROP SCHEMA orders` and the like | everywhere | a list with the table `orders` does not mean that |
//! | clauses of `CREATE` and `ALTER TABLE` that may name other tables or places | everywhere | the list says nothing of them |
//! | `x IN name`, `x IN (name)` for a name beside the list | ClickHouse; the first in SQLite | the server reads the table of that name, the original sees a column |
//! | `secret(...)`, `TO_FILE(...)` | Databricks, Snowflake | they read secrets and files, which are no tables |
//! | a function or an operator that is qualified with a schema, or quoted | everywhere | whatever stands there under that name is called, not the known one |
//! | `SETTINGS` whose value is a text | ClickHouse | the server runs expressions out of some of them |
//! | `/*! ... */` in every mode | MySQL, unknown databases | the server runs it |
//! | `${...}`, also in strings | Spark, Databricks, Hive | the server puts a variable's value there before it reads the statement |
//! | `SELECT 1 ->> ...` | Snowflake | another statement stands behind the arrow |
//! | a second statement without a semicolon (`SELECT 1 SHUTDOWN`) | T-SQL | the original takes the word for an alias |
//! | a backslash before a quote in a plain string | MySQL, PostgreSQL, Redshift, unknown databases | whether it escapes is a setting of the server; `''` means the same everywhere |
//! | raw strings (`r'...'`) | Spark, Databricks, Hive | they end elsewhere than other strings |
//! | comments within comments, unusual white space, NUL, dollar quotes where there are none, `U&"..."` | everywhere | two readers cut the text in two ways |
//! | a WITH clause as a cover for a table that differs in case | MySQL, ClickHouse, T-SQL, unknown databases | the server may keep case apart and read the table; beyond ASCII all servers may |
//! | a recursive clause's own name outside the half behind UNION | everywhere | DuckDB reads the table of that name there |
//! | placeholders (`?`, `%s`) | everywhere | there is never a value; the message says to write it into the query |
//! | texts over 1 MiB, over 8,000 words and signs, over 100 brackets deep | everywhere | time and stack |
//!
//! What the parser does not read is refused as a mistake of grammar: `tests/corpus/sql-policy-exceptions.json` lists
//! the known cases out of 1303.
//!
//! # Try it
//!
//! `updraft sql check --dialect postgres --allowed-tables orders,customers "SELECT ..."` prints the verdict and what was
//! referenced; with `--jsonl` it reads rows of `{"dialect", "sql", "allowed_tables", "allow_writes",
//! "allowed_functions", "schema"}` from standard input and writes `{"verdict", "message"}` for each.

mod bounded;
mod dialect;
mod functions;
mod leading;
mod lexical;
mod policy;
mod refusal;
mod vendor;
#[deny(clippy::wildcard_enum_match_arm)]
mod walk;

pub use dialect::Dialect;
pub use policy::{Guard, Report};
pub use refusal::Refusal;

#[cfg(test)]
mod tests;
