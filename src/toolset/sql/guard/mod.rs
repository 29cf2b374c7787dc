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
//! # Stricter than the original
//!
//! - SET, KILL, ATTACH, DETACH, PRAGMA, PUT, LIST, INSTALL, DECLARE, UNDROP, ALTER SESSION and DROP of anything but
//!   tables, views, indexes and sequences are refused when writes are allowed within a list: they name no table, and
//!   they change what later statements reach.
//! - `x IN name` is refused: ClickHouse and SQLite read the table of that name, and the original sees a column.
//! - MySQL's version comments are refused in every mode, since the server runs them.
//! - A function that is qualified with a schema is never a known one, nor is a quoted name; `SECRET` is not known.
//! - On servers whose table names keep their case a WITH clause hides a table of the same spelling only.
//! - A second statement needs no semicolon in T-SQL (`SELECT 1 SHUTDOWN`): words that begin one are refused.
//! - Text whose quotes, comments or white space can be read in two ways is refused, and so are placeholders, very long
//!   statements and very deep ones.

mod bounded;
mod dialect;
mod functions;
mod leading;
mod lexical;
mod policy;
mod refusal;
mod vendor;
mod walk;

pub use dialect::Dialect;
pub use policy::{Guard, Report};
pub use refusal::Refusal;

#[cfg(test)]
mod tests;
