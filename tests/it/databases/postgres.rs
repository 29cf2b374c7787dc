//! PostgreSQL.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use updraft::agent::Toolset;
use updraft::airflow::connection::Connection;
use updraft::hook::postgres::PostgresDatabase;
use updraft::hook::{Access, Cell, Database, DatabaseError};

use super::meter::metered;
use super::{
    Arguments, Call, ask, compare, get_schema, list_tables, one, query, server, twenty_calls,
};

const HARBOUR: &str = include_str!("harbour_postgres.sql");

/// A database of this name, made anew, with what `setup` puts into it.
pub(super) async fn database(name: &str, setup: &str) -> Connection {
    let connection = connection(name);
    for command in ["dropdb", "createdb"] {
        let mut command = Command::new(command);
        if command.get_program() == "dropdb" {
            command.arg("--if-exists");
        }
        let done = command
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                server("UPDRAFT_TEST_POSTGRES_PORT"),
                "-U",
                "updraft",
                name,
            ])
            .status()
            .unwrap();
        assert!(done.success());
    }
    if !setup.is_empty() {
        writable(&connection).run(setup, 0).await.unwrap();
    }
    connection
}

pub fn connection(database: &str) -> Connection {
    Connection {
        conn_id: "db".to_owned(),
        conn_type: "postgres".to_owned(),
        host: Some("127.0.0.1".to_owned()),
        port: Some(server("UPDRAFT_TEST_POSTGRES_PORT").parse().unwrap()),
        schema: Some(database.to_owned()),
        login: Some("updraft".to_owned()),
        password: Some("made-up".to_owned()),
        extra: None,
    }
}

pub(super) fn writable(connection: &Connection) -> PostgresDatabase {
    let access = Access {
        allow_writes: true,
        tables: None,
    };
    PostgresDatabase::new(connection, access)
}

pub fn read_only(connection: &Connection) -> PostgresDatabase {
    PostgresDatabase::new(connection, Access::default())
}

#[tokio::test]
async fn the_python_toolset_answers_the_same() {
    let connection = database("same", HARBOUR).await;
    let in_python = database("same_in_python", HARBOUR).await;
    let allowed = Arguments {
        allowed_tables: Some(vec!["customers", "depot.stock"]),
        ..Arguments::default()
    };
    let in_depot = Arguments {
        schema: Some("depot"),
        ..Arguments::default()
    };
    let public = Arguments {
        allowed_tables: Some(vec!["public.orders", "stock"]),
        schema: Some("depot"),
        ..Arguments::default()
    };
    let writes = Arguments {
        allow_writes: true,
        max_rows: Some(2),
        ..Arguments::default()
    };
    let routed = vec![
        list_tables(),
        get_schema("stock"),
        get_schema("depot.stock"),
        get_schema("orders"),
        get_schema("public.orders"),
    ];
    let written = vec![
        query("SELECT id FROM orders ORDER BY id"),
        query("UPDATE orders SET paid = true WHERE id < 4"),
        query("UPDATE orders SET paid = false WHERE id < 4 RETURNING id"),
        query(
            "WITH gone AS (DELETE FROM orders WHERE id = 4 RETURNING id, total) SELECT * FROM gone",
        ),
        query("SELECT 1 AS a; SELECT 'x' AS b"),
        query("UPDATE orders SET paid = true; SELECT 1"),
        query("INSERT INTO customers VALUES (1, 'again')"),
        query("SELECT 1 AS"),
        query("TABLE depot.stock"),
        query("SHOW server_encoding"),
        query("SELECT"),
    ];
    compare(
        &connection,
        &in_python,
        &[
            (Arguments::default(), twenty_calls("depot.stock")),
            (allowed, routed.clone()),
            (in_depot, routed.clone()),
            (public, routed),
            (writes, written),
        ],
    )
    .await;
}

#[tokio::test]
async fn values_and_types_of_every_kind_are_those_of_python() {
    let connection = database("kinds", include_str!("kinds_postgres.sql")).await;
    let rows = include_str!("values_postgres.sql").lines();
    let mut calls: Vec<Call> = rows.map(query).collect();
    calls.extend(
        [
            "kinds",
            "v",
            "mv",
            "nocols",
            "gen",
            "collated",
            "Odd Name",
            "pg_class",
            "pg_catalog.pg_am",
            "information_schema.tables",
        ]
        .map(get_schema),
    );
    calls.push(list_tables());
    let writes = Arguments {
        allow_writes: true,
        ..Arguments::default()
    };
    compare(&connection, &connection, &[(writes, calls)]).await;
}

#[tokio::test]
async fn failures_to_connect_read_as_in_python() {
    let right = connection("postgres");
    let with = |extra: Value| Connection {
        extra: Some(extra.to_string()),
        ..right.clone()
    };
    let sockets = server("UPDRAFT_TEST_POSTGRES_SOCKETS");
    let certificate = format!("{sockets}/server.crt");
    let connections = [
        Connection {
            port: Some(1),
            ..right.clone()
        },
        Connection {
            schema: Some("nodb".to_owned()),
            ..right.clone()
        },
        Connection {
            login: Some("tls_only".to_owned()),
            ..right.clone()
        },
        Connection {
            host: Some("/nonexistent".to_owned()),
            ..right.clone()
        },
        Connection {
            host: Some(sockets.to_owned()),
            ..right.clone()
        },
        Connection {
            host: Some("no.such.host.invalid".to_owned()),
            ..right.clone()
        },
        with(json!({"foo": "1"})),
        with(json!({"sslmode": "foo"})),
        with(json!({"sslmode": "verify-ca", "sslrootcert": "/nonexistent.crt"})),
        with(json!({"sslmode": "verify-full", "sslrootcert": certificate})),
        with(json!({"sslmode": "require", "sslrootcert": "/etc/ssl/certs/ca-certificates.crt"})),
        with(json!({"options": "-c search_path=depot -c statement_timeout=50"})),
    ];
    // Python's reflection goes without the extras, `sslmode` among them; Updraft's connects as the query does.
    let without_extras = [list_tables(), query("SELECT 1")];
    let with_extras = [query("SELECT current_setting('search_path')")];
    let with_timeout = [
        query("SELECT current_setting('search_path')"),
        query("SELECT 1 FROM pg_sleep(1)"),
    ];
    let arguments = Arguments::default();
    let requests: Vec<_> = connections
        .iter()
        .map(|connection| {
            let calls = match connection.extra.as_deref() {
                None => &without_extras[..],
                Some(extra) if extra.contains("timeout") => &with_timeout[..],
                Some(_) => &with_extras[..],
            };
            (connection, &arguments, calls)
        })
        .collect();
    let expected = super::ask_python(&requests);
    for ((connection, arguments, calls), expected) in requests.into_iter().zip(expected) {
        let toolset = arguments.toolset(connection);
        for (call, expected) in calls.iter().zip(expected) {
            assert_eq!(ask(&toolset, call).await, expected, "{connection:?}");
        }
    }
}

#[tokio::test]
async fn a_read_only_session_writes_nothing_even_without_the_guard() {
    let connection = database("holds", HARBOUR).await;
    let session = read_only(&connection);
    for sql in [
        "DELETE FROM orders",
        "CREATE TABLE mine (id int)",
        "WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
        "SELECT 1 AS id INTO mine",
        "COMMIT; DELETE FROM orders",
        "SELECT 1; COMMIT; DELETE FROM orders",
        "SELECT nextval('visits')",
        "SELECT 1 FROM customers FOR UPDATE",
        "DO $$ BEGIN DELETE FROM orders; END $$",
        "DO $$ BEGIN SET TRANSACTION READ WRITE; DELETE FROM orders; END $$",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "COPY orders TO PROGRAM 'cat'",
        "PREPARE p AS DELETE FROM orders; EXECUTE p",
        "SELECT set_config('transaction_read_only', 'off', false), (SELECT purge())",
    ] {
        assert!(session.run(sql, 10).await.is_err(), "{sql}");
    }
    // Neither of these changes anything, nor does it open the door for what comes next.
    for sql in [
        "SET default_transaction_read_only = off",
        "SET TRANSACTION READ WRITE",
        "COMMIT",
        "PREPARE p AS DELETE FROM orders",
        "SET search_path = depot",
    ] {
        session.run(sql, 10).await.ok();
        assert!(session.run("DELETE FROM orders", 10).await.is_err());
    }
    assert!(session.run("EXECUTE p", 10).await.is_err());
    assert_eq!(
        one(&session, "SELECT count(*) FROM orders").await,
        Cell::Int(60)
    );
}

#[tokio::test]
async fn a_huge_table_costs_no_more_than_the_rows_that_are_shown() {
    let connection = database("huge", "").await;
    writable(&connection)
        .run("CREATE UNLOGGED TABLE t AS SELECT g AS id, repeat('x', 20) AS filler FROM generate_series(1, 10000000) g", 0)
        .await
        .unwrap();
    let (metered, sent) = metered(&connection).await;
    let session = read_only(&metered);
    session.run("SELECT 1", 1).await.unwrap();
    let start = Instant::now();
    let result = session.run("SELECT * FROM t", 51).await.unwrap();
    assert_eq!((result.rows.len(), result.total_rows), (51, None));
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    // Nor did the server read on: two calls, and the statistics count rows as they are read.
    writable(&connection)
        .run("SELECT pg_stat_reset()", 1)
        .await
        .unwrap();
    session.run("SELECT * FROM t", 51).await.unwrap();
    session.close().await;
    let read = one(&read_only(&connection), "SELECT coalesce(sum(seq_tup_read), 0)::bigint FROM pg_stat_user_tables WHERE relname = 't'").await;
    let Cell::Int(read) = read else {
        panic!("{read:?}")
    };
    assert!(read <= 102, "{read} rows read");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 64 << 10, "{sent} bytes sent");
}

#[tokio::test]
async fn beside_a_list_of_tables_a_text_holds_one_statement_also_where_writes_are_allowed() {
    let connection = database("listed", "CREATE TABLE t (id int)").await;
    let access = Access {
        allow_writes: true,
        tables: Some(Arc::new(|_, table| table == "t")),
    };
    let listed = PostgresDatabase::new(&connection, access);
    listed.run("INSERT INTO t VALUES (1)", 1).await.unwrap();
    for sql in [
        "SELECT 1; SELECT 2",
        "INSERT INTO t VALUES (2); DROP TABLE t",
    ] {
        assert!(listed.run(sql, 1).await.is_err(), "{sql}");
    }
    assert_eq!(
        listed.run("SELECT count(*) FROM t", 1).await.unwrap().rows,
        [[Cell::Int(1)]]
    );
}

#[tokio::test]
async fn where_writes_are_allowed_only_what_may_write_is_run_to_its_end() {
    let connection = database("ends", "CREATE SEQUENCE visits").await;
    let session = writable(&connection);
    let result = session
        .run("SELECT nextval('visits') FROM generate_series(1, 100)", 5)
        .await
        .unwrap();
    assert_eq!((result.rows.len(), result.total_rows), (5, Some(100)));
    assert_eq!(
        one(&session, "SELECT last_value FROM visits").await,
        Cell::Int(100)
    );
    let result = session
        .run("SELECT abs(g) FROM generate_series(1, 100) g", 5)
        .await
        .unwrap();
    assert_eq!((result.rows.len(), result.total_rows), (5, None));
}

#[tokio::test]
async fn a_statement_has_a_limit_of_time_unless_its_server_or_connection_has_one() {
    let limit = "SELECT current_setting('statement_timeout')";
    let mut connection = connection("postgres");
    let shown = one(&read_only(&connection), limit).await;
    assert_eq!(shown, Cell::Text("15min".to_owned()));
    connection.extra = Some(json!({"options": "-c statement_timeout=2h"}).to_string());
    let shown = one(&read_only(&connection), limit).await;
    assert_eq!(shown, Cell::Text("2h".to_owned()));
}

/// What runs on the server in this database, apart from the question itself.
async fn running(database: &PostgresDatabase) -> Cell {
    one(
        database,
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(3%' AND pid <> pg_backend_pid()",
    )
    .await
}

#[tokio::test]
async fn dropping_the_call_stops_the_statement_on_the_server() {
    let connection = database("stops", "").await;
    let session = read_only(&connection);
    let watcher = read_only(&connection);
    {
        let call = session.run("SELECT pg_sleep(30)", 1);
        tokio::pin!(call);
        loop {
            assert!(
                tokio::time::timeout(Duration::from_millis(20), &mut call)
                    .await
                    .is_err()
            );
            if running(&watcher).await == Cell::Int(1) {
                break;
            }
        }
    }
    session.close().await;
    let start = Instant::now();
    while running(&watcher).await != Cell::Int(0) {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "the statement still runs"
        );
    }
    assert_eq!(one(&session, "SELECT 1").await, Cell::Int(1));
}

#[tokio::test]
async fn a_lost_connection_is_told_and_the_next_call_connects_again() {
    let connection = database("lost", "").await;
    let session = read_only(&connection);
    let killer = writable(&connection);
    let pid = one(&session, "SELECT pg_backend_pid()").await;
    let Cell::Int(pid) = pid else {
        panic!("{pid:?}")
    };
    let (ended, _) = tokio::join!(session.run("SELECT pg_sleep(30)", 1), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        one(&killer, &format!("SELECT pg_terminate_backend({pid})")).await
    });
    let error = ended.unwrap_err().to_string();
    assert!(
        error.contains("terminating connection due to administrator command"),
        "{error}"
    );
    assert_eq!(one(&session, "SELECT 1").await, Cell::Int(1));
}

#[tokio::test]
async fn a_value_that_cannot_be_shown_exactly_is_an_error_that_names_the_column() {
    let mut connection = connection("postgres");
    connection.extra = Some(json!({"options": "-c datestyle=SQL"}).to_string());
    let error = read_only(&connection)
        .run("SELECT 1 AS one, DATE '2020-02-01' AS due", 1)
        .await
        .unwrap_err();
    assert!(
        matches!(error, DatabaseError::Driver(text) if text.contains("column \"due\" of type date"))
    );
}

#[tokio::test]
async fn what_python_cannot_hold_is_shown_as_the_server_writes_it() {
    let session = read_only(&connection("postgres"));
    for (sql, expected) in [
        ("SELECT DATE 'infinity'", "infinity"),
        ("SELECT TIMESTAMP '0044-03-15 BC'", "0044-03-15 00:00:00 BC"),
        ("SELECT TIME '24:00'", "24:00:00"),
        ("SELECT INTERVAL '1000000000 days'", "1000000000 days"),
    ] {
        assert_eq!(one(&session, sql).await, Cell::Text(expected.to_owned()));
    }
}

#[tokio::test]
async fn closing_the_toolset_ends_the_session() {
    let connection = database("closes", "").await;
    let toolset = Arguments::default().toolset(&connection);
    ask(&toolset, &query("SELECT 1")).await;
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'closes' AND pid <> pg_backend_pid()";
    let watcher = read_only(&connection);
    assert_eq!(one(&watcher, sessions).await, Cell::Int(1));
    toolset.close().await;
    let start = Instant::now();
    while one(&watcher, sessions).await != Cell::Int(0) {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "the session is still there"
        );
    }
}
