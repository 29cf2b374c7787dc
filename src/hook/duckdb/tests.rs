use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

struct Harbour {
    _folder: tempfile::TempDir,
    connection: Connection,
}

impl Harbour {
    async fn new(setup: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("harbour.duckdb");
        let connection = Connection {
            conn_id: "harbour".to_owned(),
            conn_type: "duckdb".to_owned(),
            host: Some(path.to_str().unwrap().to_owned()),
            ..Connection::default()
        };
        let harbour = Self {
            _folder: folder,
            connection,
        };
        harbour.open(true).run(setup, 0).await.unwrap();
        harbour
    }

    fn open(&self, allow_writes: bool) -> DuckdbDatabase {
        let access = Access {
            allow_writes,
            tables: None,
        };
        DuckdbDatabase::new(&self.connection, access)
    }
}

const SHIPS: &str = "CREATE TABLE ships (id INTEGER, name VARCHAR, tons DECIMAL(10,2), tags VARCHAR[]); \
    CREATE VIEW busy AS SELECT name FROM ships; \
    INSERT INTO ships VALUES (1, 'Aurora', 1.50, ['a', NULL]), (2, 'Belém', NULL, NULL)";

#[tokio::test]
async fn tables_and_columns_are_described() {
    let harbour = Harbour::new(SHIPS).await;
    let database = harbour.open(false);
    assert_eq!(database.table_names(None).await.unwrap(), ["ships"]);
    let columns = database.columns("ships", Some("main")).await.unwrap();
    let types: Vec<_> = columns
        .iter()
        .map(|column| column.type_text.as_str())
        .collect();
    assert_eq!(types, ["INTEGER", "VARCHAR", "DECIMAL(10, 2)", "VARCHAR[]"]);
    let missing = database.columns("ghosts", None).await.unwrap_err();
    assert_eq!(missing.to_string(), "ghosts");
}

#[tokio::test]
async fn values_are_exact() {
    let harbour = Harbour::new(SHIPS).await;
    let result = harbour
        .open(false)
        .run(
            "SELECT id, name, tons, tags, 170141183460469231731687303715884105727::HUGEINT AS h, 'nan'::DOUBLE AS f, \
             '\\x00\\xFF'::BLOB AS b, INTERVAL 1 DAY AS i, TIMESTAMP '2020-01-01 10:11:12.5' AS t, {'a': 1} AS s, 1 AS id \
             FROM ships ORDER BY id -- all",
            1,
        )
        .await
        .unwrap();
    assert_eq!(
        result.columns,
        [
            "id", "name", "tons", "tags", "h", "f", "b", "i", "t", "s", "id"
        ]
    );
    let row = format!("{:?}", result.rows[0]);
    for part in [
        "Int(1), Text(\"Aurora\"), Text(\"1.50\"), Json(Array [String(\"a\"), Null])",
        "170141183460469231731687303715884105727",
        "Float(NaN), Bytes([0, 255]), Text(\"1 day, 0:00:00\"), Text(\"2020-01-01 10:11:12.500000\")",
    ] {
        assert!(row.contains(part), "{row}");
    }
    assert_eq!(result.rows[0][9], Cell::Json(json!({"a": 1})));
}

#[tokio::test]
async fn a_session_that_reads_can_do_nothing_else() {
    let harbour = Harbour::new(SHIPS).await;
    let database = harbour.open(false);
    for sql in [
        "DELETE FROM ships",
        "INSERT INTO ships VALUES (3, 'x', 1, NULL)",
        "CREATE TABLE t (a INT)",
        "COPY ships TO '/tmp/updraft-must-not-exist'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname.csv'",
        "SELECT * FROM glob('/etc/*')",
        "ATTACH ':memory:' AS other",
        "SET enable_external_access = true",
        "SELECT 1; DELETE FROM ships",
        "SELECT 1) AS q(c0); DELETE FROM ships; SELECT * FROM (SELECT 1",
        "INSTALL httpfs",
    ] {
        assert!(database.run(sql, 5).await.is_err(), "{sql}");
    }
    let count = database.run("SELECT count(*) FROM ships", 1).await.unwrap();
    assert_eq!(count.rows, [[Cell::Int(2)]]);
}

#[tokio::test]
async fn a_huge_table_costs_no_more_than_the_rows_that_are_shown() {
    let harbour = Harbour::new("CREATE TABLE t AS SELECT range AS id FROM range(10000000)").await;
    let start = std::time::Instant::now();
    let result = harbour
        .open(false)
        .run("SELECT * FROM t", 51)
        .await
        .unwrap();
    assert_eq!((result.rows.len(), result.total_rows), (51, None));
    assert!(start.elapsed() < std::time::Duration::from_secs(1));
}

#[tokio::test]
async fn a_dropped_call_interrupts_its_statement() {
    let harbour = Harbour::new(SHIPS).await;
    let database = harbour.open(false);
    let endless = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b";
    let stopped = tokio::time::timeout(
        std::time::Duration::from_millis(300),
        database.run(endless, 1),
    )
    .await;
    assert!(stopped.is_err());
    // The runtime waits for its blocking threads when the test ends: an uninterrupted statement would hang here.
}

#[tokio::test]
async fn tables_are_described_by_statements_too() {
    let harbour = Harbour::new(SHIPS).await;
    let database = harbour.open(false);
    for sql in [
        "DESCRIBE ships",
        "SHOW TABLES",
        "SUMMARIZE ships",
        "FROM ships",
        "TABLE ships",
    ] {
        let result = database
            .run(sql, 5)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(!result.rows.is_empty(), "{sql}");
    }
}
