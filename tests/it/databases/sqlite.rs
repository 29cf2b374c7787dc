//! SQLite: a file for each test.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use updraft::airflow::connection::Connection;
use updraft::hook::sqlite::SqliteDatabase;
use updraft::hook::{Access, Database};

use super::{Arguments, Call, compare, get_schema, list_tables, query, twenty_calls};

/// A database file in the folder, with what `setup` puts into it.
fn database(folder: &Path, name: &str, setup: &str) -> Connection {
    let path = folder.join(name);
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch(setup)
        .unwrap();
    Connection {
        conn_id: "db".to_owned(),
        conn_type: "sqlite".to_owned(),
        host: Some(path.to_str().unwrap().to_owned()),
        ..Connection::default()
    }
}

#[tokio::test]
async fn the_python_toolset_answers_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let setup = include_str!("harbour_sqlite.sql");
    let connection = database(folder.path(), "ours.db", setup);
    let in_python = database(folder.path(), "python.db", setup);
    let allowed = Arguments {
        allowed_tables: Some(vec!["customers", "main.orders"]),
        ..Arguments::default()
    };
    let routed = vec![
        list_tables(),
        get_schema("customers"),
        get_schema("orders"),
        get_schema("main.orders"),
        query("SELECT count(*) FROM customers"),
        query("SELECT count(*) FROM main.orders"),
        query("SELECT count(*) FROM orders"),
        query("SELECT * FROM sqlite_master"),
    ];
    let kinds: Vec<Call> = [
        "kinds",
        "Odd Name",
        "v",
        "notes",
        "keyed",
        "strictly",
        "held",
        "sqlite_master",
    ]
    .map(get_schema)
    .into();
    let writes = Arguments {
        allow_writes: true,
        max_rows: Some(2),
        ..Arguments::default()
    };
    let written = vec![
        query("SELECT id FROM orders ORDER BY id"),
        query("UPDATE orders SET paid = 1 WHERE id < 4"),
        query("UPDATE orders SET paid = 0 WHERE id < 4 RETURNING id"),
        query("SELECT count(*) FROM orders WHERE paid = 0 AND id < 4"),
        query("DELETE FROM orders WHERE id = 4 RETURNING id, total"),
        query("SELECT count(*) FROM orders"),
        query("SELECT 1 AS a; SELECT 'x' AS b"),
        query("INSERT INTO customers VALUES (1, 'again', NULL, NULL)"),
        query("CREATE TABLE copied AS SELECT id FROM orders"),
        query("SELECT count(*) FROM copied"),
        query("DROP TABLE copied"),
        query("SELECT 1 AS"),
        query("SELECT"),
        query("REPLACE INTO customers VALUES (1, 'again', NULL, NULL)"),
        query("SELECT name FROM customers WHERE id = 1"),
    ];
    let values = Arguments {
        allow_writes: true,
        ..Arguments::default()
    };
    let rows = include_str!("values_sqlite.sql").lines();
    compare(
        &connection,
        &in_python,
        &[
            (Arguments::default(), twenty_calls("main.customers")),
            (Arguments::default(), kinds),
            (values, rows.map(query).collect()),
            (allowed, routed),
            (writes, written),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_huge_table_costs_no_more_than_the_rows_that_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let connection = database(folder.path(), "huge.db", "");
    // Python's SQLite is built for speed, that of the tests is not.
    let fill = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript('CREATE TABLE t AS WITH RECURSIVE \
                g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < 10000000) SELECT n AS id FROM g')";
    let filled = Command::new("python3")
        .args(["-c", fill, connection.host.as_deref().unwrap()])
        .status()
        .unwrap();
    assert!(filled.success());
    for allow_writes in [false, true] {
        let access = Access {
            allow_writes,
            tables: None,
        };
        let database = SqliteDatabase::new(&connection, access);
        let start = Instant::now();
        let result = database.run("SELECT * FROM t", 51).await.unwrap();
        assert_eq!((result.rows.len(), result.total_rows), (51, None));
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
    }
}
