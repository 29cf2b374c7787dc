//! The guard against SQLite itself: what it accepts is handed to a real database, whose authorizer tells what a
//! statement would read. Whatever the guard made of the text, SQLite must find listed tables only, and no write.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use updraft::toolset::sql::guard::Dialect;

use crate::sql_generated::{Written, guard, statement};

const TABLES: &str = "
    CREATE TABLE orders (a, b, id);
    CREATE TABLE customers (a, b, id);
    CREATE TABLE secrets (a, b, id);
    CREATE TABLE payroll (a, b, id);
    CREATE TABLE items (a, b, id);
    CREATE TABLE recent (a, b, id);
    ATTACH ':memory:' AS sales;
    CREATE TABLE sales.items (a, b, id);
    CREATE TABLE sales.orders (a, b, id);
";

/// Words and signs that change what a text means to one reader or another.
const PIECES: &[&str] = &[
    "'",
    "''",
    "\"",
    "`",
    "[",
    "]",
    "(",
    ")",
    ",",
    ".",
    ";",
    "--",
    "/*",
    "*/",
    "\\",
    "\n",
    "$a",
    "$a(",
    "@a",
    ":a",
    "?",
    "?1",
    "#",
    "#a",
    "~",
    "|",
    "||",
    "->",
    "->>",
    "0x1",
    "1e",
    "1.",
    "x'",
    "E'",
    "U&'",
    "secrets",
    "SECRETS",
    "main.secrets",
    "main",
    "temp.",
    "sqlite_master",
    "sqlite_schema",
    "pragma_table_list",
    "\"secrets\"",
    "'secrets'",
    "`secrets`",
    "[secrets]",
    "ſecrets",
    "orders",
    "FROM",
    "SELECT",
    "UNION",
    "UNION ALL",
    "IN",
    "NOT IN",
    "EXISTS",
    "JOIN",
    "LEFT",
    "NATURAL",
    "CROSS JOIN",
    "ON",
    "USING (a)",
    "WITH",
    "RECURSIVE",
    "AS",
    "MATERIALIZED",
    "VALUES (1)",
    "TABLE",
    "WHERE",
    "GROUP BY",
    "HAVING",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "INDEXED BY",
    "NOT INDEXED",
    "OVER ()",
    "FILTER (WHERE",
    "WINDOW",
    "ISNULL",
    "NOTNULL",
    "GLOB",
    "MATCH",
    "COLLATE",
    "CAST(",
    "CASE",
    "WHEN",
    "END",
    "BETWEEN",
    "AND",
    "DISTINCT",
    "RETURNING",
    "DELETE FROM",
    "INSERT INTO",
    "REPLACE INTO",
    "DROP TABLE",
    "EXPLAIN",
    "json_each(a)",
    "load_extension(",
    "\u{a0}",
    "\u{feff}",
    "\u{200b}",
    "é",
    "\0",
    "\u{c}",
];

/// What a statement would do, by SQLite's own account.
struct Sqlite {
    session: Connection,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Sqlite {
    fn new() -> Self {
        let mut session = Connection::open_in_memory().unwrap();
        session.execute_batch(TABLES).unwrap();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = Arc::clone(&seen);
        session
            .authorizer(Some(move |context: AuthContext<'_>| {
                let database = context.database_name.unwrap_or("main").to_owned();
                let found = match context.action {
                    AuthAction::Select | AuthAction::Recursive => None,
                    AuthAction::Function { function_name } => {
                        (function_name == "load_extension").then(|| function_name.to_owned())
                    }
                    AuthAction::Read { table_name, .. } => {
                        Some(format!("{database}.{table_name}").to_lowercase())
                    }
                    other => Some(format!("{other:?}")),
                };
                record.lock().unwrap().extend(found);
                Authorization::Allow
            }))
            .unwrap();
        Self { session, seen }
    }

    /// What is not a read of a listed table; nothing for a text that SQLite does not take.
    fn beyond_the_list(&self, sql: &str) -> Vec<String> {
        self.seen.lock().unwrap().clear();
        let Ok(statement) = self.session.prepare(sql) else {
            return Vec::new();
        };
        drop(statement);
        let mut seen = self.seen.lock().unwrap();
        seen.retain(|found| {
            // A subquery's rows have no table.
            let listed = [
                "main.orders",
                "main.customers",
                "sales.items",
                "main.",
                "sales.",
                "temp.",
            ];
            !listed.contains(&found.as_str())
        });
        std::mem::take(&mut *seen)
    }
}

fn mutated(sql: &str, changes: &[(Index, &'static str, bool)]) -> String {
    let mut tokens: Vec<&str> = sql.split_inclusive([' ', '(', ')', ',']).collect();
    for (at, piece, replaces) in changes {
        let at = at.index(tokens.len() + 1);
        let end = (at + usize::from(*replaces)).min(tokens.len());
        tokens.splice(at..end, [*piece, " "]);
    }
    tokens.concat()
}

#[test]
fn sqlite_reads_only_listed_tables_in_what_the_guard_accepts() {
    let sqlite = Sqlite::new();
    let seen_by_both = std::cell::Cell::new(0_u32);
    let mut runner = TestRunner::new(Config {
        cases: 3_000,
        failure_persistence: None,
        ..Config::default()
    });
    let change = (any::<Index>(), select(PIECES), any::<bool>());
    let strategy = (statement(), prop::collection::vec(change, 0..4));
    let outcome = runner.run(&strategy, |(statement, changes)| {
        let sql = mutated(&Written::new(&statement, Dialect::Sqlite).text, &changes);
        if guard(Dialect::Sqlite, false).check(&sql).is_ok() {
            let beyond = sqlite.beyond_the_list(sql.trim().trim_end_matches(';'));
            prop_assert!(
                beyond.is_empty(),
                "accepted {sql:?}, which means {beyond:?}"
            );
            seen_by_both.set(seen_by_both.get() + 1);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(
        seen_by_both.get() > 60,
        "only {} statements were accepted",
        seen_by_both.get()
    );
}
