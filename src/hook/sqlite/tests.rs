use pretty_assertions::assert_eq;

use super::*;
use crate::hook::ScriptStatement;

const SETUP: &str = "
    CREATE TABLE ships (id INTEGER PRIMARY KEY, name TEXT NOT NULL, flag VARCHAR(20));
    CREATE TABLE payroll (person TEXT, amount REAL);
    CREATE VIEW busy AS SELECT name, count(*) AS n FROM ships GROUP BY name;
    INSERT INTO ships VALUES (1, 'Aurora', 'NO'), (2, 'Belém', NULL);
";

struct Harbour {
    _folder: tempfile::TempDir,
    connection: Connection,
}

impl Harbour {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("harbour.db");
        Session::open(&path).unwrap().execute_batch(SETUP).unwrap();
        let connection = Connection {
            conn_id: "harbour".to_owned(),
            conn_type: "sqlite".to_owned(),
            host: Some(path.to_str().unwrap().to_owned()),
            ..Connection::default()
        };
        Self {
            _folder: folder,
            connection,
        }
    }

    fn open(&self, access: Access) -> SqliteDatabase {
        SqliteDatabase::new(&self.connection, access)
    }

    fn read_only(&self) -> SqliteDatabase {
        self.open(Access::default())
    }
}

#[tokio::test]
async fn tables_are_listed_by_name_without_views() {
    let harbour = Harbour::new();
    assert_eq!(
        harbour.read_only().table_names(None).await.unwrap(),
        ["payroll", "ships"]
    );
}

#[tokio::test]
async fn a_view_is_described_and_its_expression_has_no_type() {
    let harbour = Harbour::new();
    let columns = harbour.read_only().columns("busy", None).await.unwrap();
    let printed: Vec<_> = columns
        .iter()
        .map(|c| (c.name.as_str(), c.type_text.as_str()))
        .collect();
    assert_eq!(printed, [("name", "TEXT"), ("n", "NULL")]);
}

#[tokio::test]
async fn a_missing_table_is_named_and_nothing_more() {
    let harbour = Harbour::new();
    let error = harbour
        .read_only()
        .columns("ghosts", None)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "ghosts");
}

#[tokio::test]
async fn an_unknown_schema_gives_sqlalchemys_wrapping() {
    let harbour = Harbour::new();
    let error = harbour
        .read_only()
        .columns("t", Some("a.b"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("(sqlite3.OperationalError) unknown database"),
        "{error}"
    );
    assert!(
        error.ends_with(
            "\n[SQL: PRAGMA \"a.b\".table_xinfo(\"t\")]\n\
             (Background on this error at: https://sqlalche.me/e/21/e3q8)"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn no_more_rows_are_fetched_than_asked_for() {
    let harbour = Harbour::new();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let result = harbour.read_only().run(endless, 3).await.unwrap();
    assert_eq!(
        result.rows,
        [[Cell::Int(1)], [Cell::Int(2)], [Cell::Int(3)]]
    );
}

#[tokio::test]
async fn driver_errors_are_bare() {
    let harbour = Harbour::new();
    let error = harbour
        .read_only()
        .run("SELECT revenue FROM ships", 3)
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "no such column: revenue");
    let error = harbour
        .read_only()
        .run("SELECT 1; SELECT 2", 3)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "You can only execute one statement at a time."
    );
}

#[tokio::test]
async fn a_session_without_writes_can_not_write_attach_or_load_extensions() {
    let harbour = Harbour::new();
    let database = harbour.read_only();
    for sql in [
        "INSERT INTO ships VALUES (3, 'x', 'y')",
        "DROP TABLE ships",
        "CREATE TEMP TABLE t (a)",
        "ATTACH ':memory:' AS y",
        "PRAGMA writable_schema = ON",
        "SELECT load_extension('x')",
    ] {
        assert!(database.run(sql, 1).await.is_err(), "{sql} ran");
    }
}

#[tokio::test]
async fn a_session_with_writes_keeps_them() {
    let harbour = Harbour::new();
    let database = harbour.open(Access {
        allow_writes: true,
        tables: None,
    });
    assert_eq!(
        database
            .run("INSERT INTO ships VALUES (3, 'Cutter', 'SE')", 1)
            .await
            .unwrap(),
        ResultSet::default()
    );
    let count = harbour
        .read_only()
        .run("SELECT count(*) FROM ships", 1)
        .await
        .unwrap();
    assert_eq!(count.rows, [[Cell::Int(3)]]);
}

#[tokio::test]
async fn only_listed_tables_can_be_read_even_if_the_guard_let_a_statement_through() {
    let harbour = Harbour::new();
    let listed: TableFilter =
        Arc::new(|schema, table| schema.is_none() && ["ships", "busy"].contains(&table));
    let database = harbour.open(Access {
        allow_writes: false,
        tables: Some(listed),
    });
    assert!(database.run("SELECT name FROM ships", 1).await.is_ok());
    assert!(database.run("SELECT name, n FROM busy", 1).await.is_ok());
    assert!(
        database
            .run("WITH c AS (SELECT id FROM ships) SELECT count(*) FROM c", 1)
            .await
            .is_ok()
    );
    let counted =
        "WITH c AS (SELECT name FROM ships UNION SELECT flag FROM ships) SELECT count(*) FROM c";
    assert!(database.run(counted, 1).await.is_ok());
    for sql in [
        "SELECT * FROM payroll",
        "SELECT count(*) FROM payroll",
        "SELECT count(*) FROM pragma_database_list",
        "WITH ships AS (SELECT person FROM payroll) SELECT * FROM ships",
        "SELECT * FROM (SELECT person FROM payroll) AS ships",
        "WITH ships AS MATERIALIZED (SELECT person FROM payroll) SELECT count(*) FROM ships",
        "SELECT * FROM sqlite_master",
    ] {
        assert!(database.run(sql, 1).await.is_err(), "{sql} ran");
    }
}

#[tokio::test]
async fn listed_tables_can_be_changed_and_others_not_when_writes_are_allowed() {
    let harbour = Harbour::new();
    let listed: TableFilter = Arc::new(|schema, table| schema.is_none() && table == "ships");
    let database = harbour.open(Access {
        allow_writes: true,
        tables: Some(listed),
    });
    for sql in [
        "INSERT INTO ships VALUES (3, 'Cutter', 'SE')",
        "CREATE INDEX by_flag ON ships (flag)",
        "ALTER TABLE ships ADD COLUMN built INTEGER",
        "UPDATE ships SET built = 1999 WHERE id = 1",
        "DROP TABLE ships",
    ] {
        database
            .run(sql, 1)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for sql in [
        "INSERT INTO payroll VALUES ('Kai', 1)",
        "DELETE FROM payroll",
        "ATTACH ':memory:' AS y",
        "PRAGMA writable_schema = ON",
    ] {
        assert!(database.run(sql, 1).await.is_err(), "{sql} ran");
    }
}

#[tokio::test]
async fn a_dropped_call_interrupts_its_statement() {
    let harbour = Harbour::new();
    let database = harbour.read_only();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT count(*) FROM n";
    let stopped = tokio::time::timeout(Duration::from_millis(100), database.run(endless, 1)).await;
    assert!(stopped.is_err());
    // The runtime waits for its blocking threads when the test ends: an uninterrupted statement would hang here.
}

#[tokio::test]
async fn a_database_that_is_not_there_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no.db");
    let connection = Connection {
        conn_type: "sqlite".to_owned(),
        host: Some(path.to_str().unwrap().to_owned()),
        ..Connection::default()
    };
    let database = SqliteDatabase::new(&connection, Access::default());
    let error = database.run("SELECT 1", 1).await.unwrap_err();
    assert_eq!(error.to_string(), "unable to open database file");
    assert!(!path.exists());
}

fn script(statements: &[&str], max_rows: Option<usize>) -> Script {
    let statements = statements.iter().map(|sql| ScriptStatement {
        sql: (*sql).to_owned(),
        shown: None,
    });
    Script {
        statements: statements.collect(),
        autocommit: false,
        max_rows,
    }
}

#[tokio::test]
async fn a_script_gives_whole_results_or_an_error_that_undoes_it() {
    let harbour = Harbour::new();
    let database = harbour.open(Access {
        allow_writes: true,
        tables: None,
    });
    let add = "INSERT INTO ships VALUES (3, 'Cutter', NULL)";
    let all = "SELECT id FROM ships";
    let error = database.run_all(&script(&[add, all], Some(2))).await;
    assert!(matches!(error, Err(DatabaseError::TooManyRows(2))));
    let results = database.run_all(&script(&[all, add, all], Some(3))).await;
    let counts: Vec<_> = results.unwrap().iter().map(|r| r.rows.len()).collect();
    assert_eq!(counts, [2, 0, 3]);
    // Nobody asks for rows.
    let results = database.run_all(&script(&[all], None)).await.unwrap();
    assert_eq!(results[0].columns, ["id"]);
    assert!(results[0].rows.is_empty());
    let nothing = database.run_all(&script(&["SELECT 1", " "], None)).await;
    assert!(matches!(nothing, Err(DatabaseError::EmptySql)));
}
