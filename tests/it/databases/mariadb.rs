//! MariaDB, through the driver that MySQL has as well.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use updraft::agent::Toolset;
use updraft::airflow::connection::Connection;
use updraft::hook::mysql::MysqlDatabase;
use updraft::hook::{Access, Cell, Database, DatabaseError};

use super::meter::metered;
use super::{
    Arguments, Call, ask, compare, get_schema, list_tables, one, query, server, twenty_calls,
};

const HARBOUR: &str = include_str!("harbour_mariadb.sql");

/// A database of this name, made anew, with what `setup` puts into it.
pub async fn database(name: &str, setup: &str) -> Connection {
    let anew =
        format!("DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name} CHARACTER SET utf8mb4");
    writable(&connection("mysql")).run(&anew, 0).await.unwrap();
    let connection = connection(name);
    if !setup.is_empty() {
        writable(&connection).run(setup, 0).await.unwrap();
    }
    connection
}

pub fn connection(database: &str) -> Connection {
    Connection {
        conn_id: "db".to_owned(),
        conn_type: "mysql".to_owned(),
        host: Some("127.0.0.1".to_owned()),
        port: Some(server("UPDRAFT_TEST_MARIADB_PORT").parse().unwrap()),
        schema: Some(database.to_owned()),
        login: Some("updraft".to_owned()),
        password: Some("harbour-pass".to_owned()),
        extra: None,
    }
}

fn with(connection: &Connection, extra: &Value) -> Connection {
    Connection {
        extra: Some(extra.to_string()),
        ..connection.clone()
    }
}

pub(super) fn writable(connection: &Connection) -> MysqlDatabase {
    let access = Access {
        allow_writes: true,
        tables: None,
    };
    MysqlDatabase::new(connection, access)
}

pub fn read_only(connection: &Connection) -> MysqlDatabase {
    MysqlDatabase::new(connection, Access::default())
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
    let own = Arguments {
        allowed_tables: Some(vec!["same.orders", "stock"]),
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
        get_schema("same.orders"),
    ];
    let shown = vec![
        query("SHOW TABLES"),
        query("DESCRIBE orders"),
        query("SHOW CREATE TABLE customers"),
        query("SHOW COLUMNS FROM orders"),
        query("SELECT id FROM orders UNION ALL SELECT id FROM orders ORDER BY id"),
        query("SELECT count(*) FROM (SELECT a.id FROM orders a, orders b) t"),
        query("SELECT count(*) FROM orders WHERE id IN (SELECT b.id FROM orders b)"),
        query("SELECT * FROM (SELECT a.id FROM orders a, orders b ORDER BY a.id, b.id) t LIMIT 60"),
        query("WITH t AS (SELECT id FROM orders) SELECT count(*) FROM t"),
        query("SELECT id FROM orders ORDER BY id LIMIT 55"),
        query("SELECT id FROM orders ORDER BY id LIMIT 50"),
    ];
    let written = vec![
        query("SELECT id FROM orders ORDER BY id"),
        query("UPDATE orders SET paid = true WHERE id < 4"),
        query("DELETE FROM orders WHERE id = 4 RETURNING id, total"),
        query("SELECT count(*) FROM orders"),
        query("SELECT 1 AS a; SELECT 'x' AS b"),
        query("UPDATE orders SET paid = true; SELECT 1"),
        query("INSERT INTO customers VALUES (1, 'again', NULL, NULL)"),
        query("INSERT INTO orders (id) SELECT id + 1000 FROM orders"),
        query("SELECT count(*) FROM orders"),
        query("CREATE TABLE copied SELECT id FROM orders"),
        query("SELECT count(*) FROM copied"),
        query("SELECT clean_out() AS gone"),
        query("SELECT count(*) FROM orders"),
        query("SELECT 1 AS"),
        query("USE depot"),
        query("SELECT database() = 'depot'"),
        query("SHOW VARIABLES LIKE 'character_set_server'"),
        query("SELECT"),
    ];
    compare(
        &connection,
        &in_python,
        &[
            (Arguments::default(), twenty_calls("depot.stock")),
            (Arguments::default(), shown),
            (allowed, routed.clone()),
            (in_depot, routed.clone()),
            (own, routed),
            (writes, written),
        ],
    )
    .await;
}

#[tokio::test]
async fn values_and_types_of_every_kind_are_those_of_python() {
    let connection = database("kinds", include_str!("kinds_mariadb.sql")).await;
    let rows = include_str!("values_mariadb.sql").lines();
    let mut calls: Vec<Call> = rows.map(query).collect();
    calls.extend(
        [
            "kinds",
            "v",
            "Odd Name",
            "held",
            "parted",
            "versioned",
            "sq",
            "information_schema.tables",
            "mysql.user",
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
    let right = connection("mysql");
    let socket = server("UPDRAFT_TEST_MARIADB_SOCKET");
    let folder = socket.trim_end_matches("socket");
    let authority = format!("{folder}authority.crt");
    let on_socket = |socket: &str| Connection {
        host: Some("localhost".to_owned()),
        ..with(&right, &json!({ "unix_socket": socket }))
    };
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
            password: Some("made-up".to_owned()),
            ..right.clone()
        },
        Connection {
            host: Some("no.such.host.invalid".to_owned()),
            ..right.clone()
        },
        on_socket(socket),
        on_socket("/nonexistent/socket"),
        with(&right, &json!({"charset": "nope"})),
        with(&right, &json!({"charset": "latin1"})),
        with(&right, &json!({"ssl": {"ca": "/nonexistent.crt"}})),
        with(&right, &json!({"ssl": {"ca": authority}})),
        with(&right, &json!({"client": "nope"})),
    ];
    let arguments = Arguments::default();
    let calls = [query("SELECT 'é'")];
    let requests: Vec<_> = connections
        .iter()
        .map(|connection| (connection, &arguments, &calls[..]))
        .collect();
    let expected = super::ask_python(&requests);
    let mut differences = Vec::new();
    for ((connection, arguments, calls), expected) in requests.into_iter().zip(expected) {
        let toolset = arguments.toolset(connection);
        for (call, expected) in calls.iter().zip(expected) {
            let answer = ask(&toolset, call).await;
            if answer != expected {
                differences.push(format!(
                    "{connection:?}\n  Python:  {expected}\n  Updraft: {answer}"
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn a_read_only_session_writes_nothing_even_without_the_guard() {
    let connection = database("holds", HARBOUR).await;
    let session = read_only(&connection);
    for sql in [
        "DELETE FROM orders",
        "CREATE TABLE mine (id int)",
        "CREATE TEMPORARY TABLE mine (id int)",
        "TRUNCATE orders",
        "COMMIT; DELETE FROM orders",
        "SELECT 1; COMMIT; DELETE FROM orders",
        "SELECT 1 /*!; COMMIT; DELETE FROM orders */",
        "BEGIN NOT ATOMIC COMMIT; DELETE FROM orders; END",
        "SELECT nextval(visits)",
        "SELECT clean_out()",
        "SELECT 1 INTO OUTFILE '/tmp/updraft-must-not-exist'",
        "SELECT 1 /*!50000 INTO DUMPFILE '/tmp/updraft-must-not-exist' */",
        "LOAD DATA INFILE '/etc/hostname' INTO TABLE customers",
        "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE customers",
        "PREPARE p FROM 'DELETE FROM orders'",
        "EXECUTE IMMEDIATE 'DELETE FROM orders'",
        "EXPLAIN ANALYZE DELETE FROM orders",
        "ANALYZE DELETE FROM orders",
        "SET STATEMENT max_statement_time = 0 FOR SELECT 1",
        "SET GLOBAL max_connections = 10",
        "SET SESSION TRANSACTION READ WRITE",
        "/*!50000 SET GLOBAL max_connections = 10 */",
        "KILL 1",
        "FLUSH TABLES",
        "LOCK TABLES orders WRITE",
        "COMMIT",
        "HANDLER orders OPEN",
    ] {
        assert!(session.run(sql, 10).await.is_err(), "{sql}");
    }
    // A lock, a variable: gone with the call that made them.
    session
        .run("SELECT get_lock('mine', 0), @a := 1", 1)
        .await
        .unwrap();
    assert_eq!(
        one(&session, "SELECT is_free_lock('mine')").await,
        Cell::Int(1)
    );
    assert_eq!(one(&session, "SELECT @a").await, Cell::Null);
    assert_eq!(
        one(&session, "SELECT count(*) FROM orders").await,
        Cell::Int(60)
    );
}

#[tokio::test]
async fn no_file_of_the_worker_is_given_away_even_where_writes_are_allowed() {
    let connection = database("gives", "CREATE TABLE t (a text)").await;
    let session = writable(&connection);
    let error = session
        .run("LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE t", 1)
        .await
        .unwrap_err();
    assert!(error.to_string().starts_with("(4166, "), "{error}");
    assert_eq!(one(&session, "SELECT count(*) FROM t").await, Cell::Int(0));
}

#[tokio::test]
async fn a_huge_table_costs_no_more_than_the_rows_that_are_shown() {
    let connection = database("huge", "").await;
    writable(&connection)
        .run("CREATE TABLE t (id int, filler varchar(20)) ENGINE = Aria TRANSACTIONAL = 0; INSERT INTO t SELECT seq, 'xxxxxxxxxxxxxxxxxxxx' FROM seq_1_to_10000000", 0)
        .await
        .unwrap();
    let (metered, sent) = metered(&connection).await;
    let session = read_only(&metered);
    session.run("SELECT 1", 1).await.unwrap();
    for sql in ["SELECT * FROM t", "SELECT * FROM t LIMIT 9999999"] {
        let start = Instant::now();
        let result = session.run(sql, 51).await.unwrap();
        assert_eq!((result.rows.len(), result.total_rows), (51, None));
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "{:?}",
            start.elapsed()
        );
    }
    // The table is more than 200 MB on the wire; what was sent fills the sockets in between and not the memory.
    session.close().await;
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 50 << 20, "{sent} bytes sent");
}

#[tokio::test]
async fn beside_a_list_of_tables_a_text_holds_one_statement_also_where_writes_are_allowed() {
    let connection = database("listed", "CREATE TABLE t (id int)").await;
    let access = Access {
        allow_writes: true,
        tables: Some(Arc::new(|_, table| table == "t")),
    };
    let listed = MysqlDatabase::new(&connection, access);
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
    let connection = database(
        "ends",
        "CREATE TABLE t (id int); CREATE FUNCTION noted(n int) RETURNS int BEGIN INSERT INTO t VALUES (n); RETURN n; END",
    )
    .await;
    let session = writable(&connection);
    let result = session
        .run("SELECT noted(seq) FROM seq_1_to_100", 5)
        .await
        .unwrap();
    assert_eq!((result.rows.len(), result.total_rows), (5, Some(100)));
    assert_eq!(
        one(&session, "SELECT count(*) FROM t").await,
        Cell::Int(100)
    );
    let result = session
        .run("SELECT abs(seq) FROM seq_1_to_100", 5)
        .await
        .unwrap();
    assert_eq!((result.rows.len(), result.total_rows), (5, None));
}

/// What runs on the server of this text, apart from the question itself.
async fn running(database: &MysqlDatabase, text: &str) -> Cell {
    let sql = format!(
        "SELECT count(*) FROM information_schema.processlist WHERE command = 'Query' AND info LIKE '%{text}%' AND id <> connection_id()"
    );
    one(database, &sql).await
}

async fn until(what: &str, database: &MysqlDatabase, text: &str, count: i64) {
    let start = Instant::now();
    while running(database, text).await != Cell::Int(count) {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
    }
}

#[tokio::test]
async fn dropping_the_call_stops_the_statement_on_the_server() {
    let connection = database("stops", "").await;
    let session = read_only(&connection);
    let watcher = read_only(&connection);
    {
        let call = session.run("SELECT sleep(31)", 1);
        tokio::pin!(call);
        tokio::select! {
            ended = &mut call => panic!("{ended:?}"),
            () = until("the statement does not run", &watcher, "sleep(31", 1) => {}
        }
    }
    session.close().await;
    until("the statement still runs", &watcher, "sleep(31", 0).await;
    assert_eq!(one(&session, "SELECT 1").await, Cell::Int(1));
}

#[tokio::test]
async fn a_lost_connection_is_told_and_the_next_call_connects_again() {
    let connection = database("lost", "").await;
    let session = read_only(&connection);
    let killer = writable(&connection);
    let Cell::Int(id) = one(&session, "SELECT connection_id()").await else {
        panic!("no number")
    };
    let kill = format!("KILL CONNECTION {id}");
    let (ended, ()) = tokio::join!(session.run("SELECT sleep(32)", 1), async {
        until("the statement does not run", &killer, "sleep(32", 1).await;
        killer.run(&kill, 1).await.unwrap();
    });
    let error = ended.unwrap_err().to_string();
    assert_eq!(error, "(2013, 'Lost connection to server during query')");
    assert_eq!(one(&session, "SELECT 1").await, Cell::Int(1));
    // Lost between two calls: nobody notices.
    let Cell::Int(id) = one(&session, "SELECT connection_id()").await else {
        panic!("no number")
    };
    killer
        .run(&format!("KILL CONNECTION {id}"), 1)
        .await
        .unwrap();
    let answers = [
        session.run("SELECT 1", 1).await.is_ok(),
        session.run("SELECT 1", 1).await.is_ok(),
    ];
    assert!(answers[1], "{answers:?}");
}

#[tokio::test]
async fn a_statement_has_a_limit_of_time() {
    let connection = database("limits", "").await;
    let session = read_only(&connection);
    let limit = "SELECT CAST(@@SESSION.max_statement_time AS CHAR)";
    assert_eq!(
        one(&session, limit).await,
        Cell::Text("900.000000".to_owned())
    );
}

#[tokio::test]
async fn what_python_shows_as_null_is_shown_as_the_server_writes_it() {
    let connection = database(
        "zeros",
        "SET sql_mode = ''; CREATE TABLE t (d date, dt datetime(3)); INSERT INTO t VALUES ('0000-00-00', '2020-00-01 00:00:00')",
    )
    .await;
    let result = read_only(&connection)
        .run("SELECT * FROM t", 1)
        .await
        .unwrap();
    assert_eq!(
        result.rows,
        [[
            Cell::Text("0000-00-00".to_owned()),
            Cell::Text("2020-00-01 00:00:00.000".to_owned())
        ]]
    );
}

#[tokio::test]
async fn closing_the_toolset_ends_the_session() {
    let connection = database("closes", "").await;
    let toolset = Arguments::default().toolset(&connection);
    ask(&toolset, &query("SELECT 1")).await;
    let sessions = "SELECT count(*) FROM information_schema.processlist WHERE db = 'closes' AND id <> connection_id()";
    let watcher = read_only(&self::connection("mysql"));
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

#[tokio::test]
async fn tls_is_used_where_the_server_has_it_and_checked_where_the_connection_says_so() {
    let right = connection("mysql");
    let folder = server("UPDRAFT_TEST_MARIADB_SOCKET").trim_end_matches("socket");
    let cipher = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
    let encrypted = |extra: Value| {
        let connection = with(&right, &extra);
        async move {
            let result = read_only(&connection).run(cipher, 1).await?;
            Ok::<_, DatabaseError>(result.rows[0][1] != Cell::Text(String::new()))
        }
    };
    assert!(encrypted(json!({})).await.unwrap());
    assert!(encrypted(json!({"ssl_mode": "REQUIRED"})).await.unwrap());
    assert!(!encrypted(json!({"ssl_mode": "DISABLED"})).await.unwrap());
    let authority = format!("{folder}authority.crt");
    assert!(encrypted(json!({"ssl": {"ca": authority}})).await.unwrap());
    // The server's certificate is of no authority that the operating system knows.
    let refused = encrypted(json!({"ssl_mode": "VERIFY_IDENTITY"})).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("(2026, "), "{refused}");
}
