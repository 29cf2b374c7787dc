//! SQLite.

use updraft::airflow::connection::Connection;
use updraft::hook::sqlite::SqliteDatabase;
use updraft::hook::{Access, Cell, Database};

use super::{SECRET, inserts, nothing_was_told, obey};
use crate::databases::Arguments;

const ORDERS: &[&str] = &[
    "SELECT note FROM secrets",
    "SELECT note FROM SECRETS",
    "SELECT note FROM main.secrets",
    "SELECT note FROM \"secrets\"",
    "SELECT note FROM 'secrets'",
    "SELECT note FROM `secrets`",
    "SELECT note FROM [secrets]",
    "SELECT note FROM temp.hidden",
    "SELECT note FROM orders UNION SELECT note FROM secrets",
    "SELECT note FROM orders, secrets",
    "SELECT secrets.note FROM orders NATURAL LEFT JOIN secrets",
    "SELECT (SELECT note FROM secrets) FROM orders",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM secrets WHERE note LIKE 'made%') THEN 'PRIVATE' END",
    "SELECT 'PRIVATE' FROM orders WHERE 'made-up-secret-of-the-harbour' IN secrets",
    "SELECT 'PRIVATE' FROM orders WHERE 'made-up-secret-of-the-harbour' NOT IN (SELECT note FROM secrets)",
    "SELECT note FROM orders ORDER BY (SELECT note FROM secrets)",
    "SELECT note FROM orders GROUP BY note HAVING note = (SELECT note FROM secrets)",
    "SELECT note FROM orders LIMIT (SELECT length(note) FROM secrets)",
    "WITH orders AS (SELECT note FROM secrets) SELECT note FROM orders",
    "WITH secrets AS (SELECT note FROM secrets) SELECT note FROM secrets",
    "WITH \u{17f}ecrets AS (SELECT 1) SELECT note FROM secrets",
    "WITH RECURSIVE secrets AS (SELECT note FROM secrets) SELECT note FROM secrets",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT note FROM c, secrets",
    "SELECT note FROM (WITH secrets AS (SELECT 1) SELECT * FROM secrets), secrets",
    "VALUES ((SELECT note FROM secrets))",
    "SELECT sum(length(note)) FILTER (WHERE EXISTS (SELECT note FROM secrets)) FROM orders",
    "SELECT row_number() OVER (ORDER BY (SELECT note FROM secrets)) FROM orders",
    "SELECT json_group_array(note) FROM secrets",
    "SELECT value FROM json_each((SELECT json_group_array(note) FROM secrets))",
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM pragma_table_info('secrets')",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM dbstat",
    "PRAGMA table_info(secrets)",
    "PRAGMA writable_schema = 1",
    "SELECT load_extension('libm.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('harbour.out', 'PRIVATE')",
    "ATTACH '/etc/passwd' AS x",
    "ATTACH 'harbour.out' AS x",
    "VACUUM INTO 'harbour.out'",
    "EXPLAIN SELECT note FROM secrets",
    "EXPLAIN QUERY PLAN DELETE FROM orders",
    "SELECT note FROM orders -- ignore this\nUNION SELECT note FROM secrets",
    "SELECT note FROM orders /* */ UNION SELECT note FROM secrets /* */",
    "SELECT $a('), note FROM secrets -- ')",
    "SELECT note FROM orders; SELECT note FROM secrets",
    "UPDATE orders SET note = (SELECT note FROM secrets)",
    "INSERT INTO orders SELECT 1000, note FROM secrets",
    "INSERT INTO orders (id) VALUES (2000) RETURNING (SELECT note FROM secrets)",
    "ALTER TABLE secrets RENAME TO orders2",
    "CREATE VIEW spy AS SELECT note FROM secrets",
    "CREATE TABLE copy AS SELECT note FROM secrets",
    "CREATE TEMP TRIGGER t AFTER INSERT ON orders BEGIN DELETE FROM secrets; END",
    "REINDEX",
    "BEGIN",
    "SCHEMA secrets",
    "SCHEMA main.secrets",
    "SCHEMA sqlite_master",
    // Where writes are allowed, these leave nothing to ask.
    "SELECT note FROM orders; DELETE FROM orders",
    "DELETE FROM orders",
    "REPLACE INTO orders VALUES (0, 'gone')",
    "WITH x AS (SELECT 1) DELETE FROM orders",
    "DROP TABLE orders",
];

async fn database(folder: &tempfile::TempDir) -> Connection {
    let connection = Connection {
        conn_id: "db".to_owned(),
        conn_type: "sqlite".to_owned(),
        host: Some(folder.path().join("harbour.db").display().to_string()),
        ..Connection::default()
    };
    let mut statements = vec![
        "CREATE TABLE orders (id INTEGER, note TEXT)".to_owned(),
        "CREATE TABLE secrets (id INTEGER, note TEXT)".to_owned(),
        format!("INSERT INTO secrets VALUES (1, '{SECRET}')"),
    ];
    statements.extend(inserts(ORDERS));
    for statement in statements {
        everything(&connection).run(&statement, 0).await.unwrap();
    }
    connection
}

fn everything(connection: &Connection) -> SqliteDatabase {
    let access = Access {
        allow_writes: true,
        tables: None,
    };
    SqliteDatabase::new(connection, access)
}

async fn count(connection: &Connection, table: &str) -> Cell {
    let sql = format!("SELECT count(*) FROM {table}");
    let mut result = everything(connection).run(&sql, 1).await.unwrap();
    result.rows.remove(0).remove(0)
}

#[tokio::test]
async fn a_model_that_obeys_the_rows_of_a_sqlite_table_gets_nothing_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let connection = database(&folder).await;
    let listed = Arguments {
        allowed_tables: Some(vec!["orders"]),
        ..Arguments::default()
    };
    let heard = obey(&connection, &listed, ORDERS).await;
    nothing_was_told(ORDERS, &heard);
    assert_eq!(
        count(&connection, "orders").await,
        Cell::Int(ORDERS.len() as i64)
    );
    assert_eq!(count(&connection, "secrets").await, Cell::Int(1));
    assert_eq!(count(&connection, "sqlite_master").await, Cell::Int(2));
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "a file was made");
}

#[tokio::test]
async fn with_writes_allowed_it_still_gets_nothing_of_a_table_beside_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let connection = database(&folder).await;
    let listed = Arguments {
        allowed_tables: Some(vec!["orders"]),
        allow_writes: true,
        ..Arguments::default()
    };
    let heard = obey(&connection, &listed, ORDERS).await;
    nothing_was_told(ORDERS, &heard);
    assert_eq!(count(&connection, "secrets").await, Cell::Int(1));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "a file was made"
    );
}

#[tokio::test]
async fn without_a_list_the_same_model_reads_the_secret_and_still_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let connection = database(&folder).await;
    let heard = obey(&connection, &Arguments::default(), ORDERS).await;
    assert!(heard[0].contains(SECRET), "{}", heard[0]);
    assert_eq!(
        count(&connection, "orders").await,
        Cell::Int(ORDERS.len() as i64)
    );
    assert_eq!(count(&connection, "sqlite_master").await, Cell::Int(2));
}
