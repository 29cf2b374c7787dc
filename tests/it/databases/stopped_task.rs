//! A task that is stopped in the middle of a query: the query ends on the server too.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use updraft::airflow::connection::Connection;
use updraft::control_plane::local::LocalControlPlane;
use updraft::hook::{Cell, Database};
use updraft::secrets::Masker;
use updraft::supervisor::{Limits, StopReason, SupervisedTask, TaskLog, run_task, stop_channel};

use super::connection_json;
use crate::task_process::{Lines, details, plain, spawn_with};

const DAG: &str = r#"
from airflow.sdk import DAG
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset

with DAG("made", schedule=None):
    AgentOperator(task_id="ask", prompt="?", llm_conn_id="model", toolsets=[SQLToolset("db")])
"#;

/// The same, of a function that asks with a hook.
fn hook_dag(import: &str, hook: &str, sql: &str) -> String {
    format!(
        "from airflow.sdk import DAG, task\n{import}\nwith DAG(\"made\", schedule=None):\n    @task\n    def ask():\n        \
         {hook}(\"db\").run(\"{sql}\")\n    ask()\n"
    )
}

/// Runs an agent that asks `sql`, stops the task once `running` says that the server is at it, and waits until it is not.
async fn stop_in_the_middle<F>(
    dag: &str,
    connection: &Connection,
    sql: &str,
    running: impl Fn() -> F,
) where
    F: Future<Output = bool>,
{
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.py"), dag).unwrap();
    let turns = serde_json::json!([
        {"tool_calls": [{"name": "query", "args": {"sql": sql}}]},
        {"text": "It never comes to this."},
    ]);
    std::fs::write(folder.path().join("transcript.json"), turns.to_string()).unwrap();
    let environment = [("AIRFLOW_CONN_DB", connection_json(connection).to_string())];
    let lines = Lines::default();
    let (stop, signal) = stop_channel();
    let task = tokio::spawn(run_task(SupervisedTask {
        process: spawn_with(folder.path(), &environment).await,
        startup: details(&plain("ask")),
        control_plane: Arc::new(LocalControlPlane::new()),
        log: TaskLog::new(Box::new(lines.clone()), Masker::new()),
        limits: Limits::default(),
        stop: signal,
        ended: CancellationToken::new(),
    }));
    let start = Instant::now();
    while !running().await {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "the query does not run: {:#?}",
            lines.events()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let start = Instant::now();
    stop.send(Some(StopReason::HeartbeatsFailed)).unwrap();
    while running().await {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "the query still runs: {:#?}",
            lines.events()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    task.await.unwrap();
}

async fn count(database: &dyn Database, sql: &str) -> bool {
    let rows = database.run(sql, 1).await.unwrap().rows;
    rows[0][0] != Cell::Int(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_has_stopped_it() {
    let connection = super::postgres::connection("postgres");
    let watcher = super::postgres::read_only(&connection);
    let import = "from airflow.providers.postgres.hooks.postgres import PostgresHook";
    for (seconds, is_agent) in [(61, true), (63, false)] {
        let sql = format!("SELECT pg_sleep({seconds})");
        let dag = hook_dag(import, "PostgresHook", &sql);
        let running = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep({seconds})%' \
             AND pid <> pg_backend_pid()"
        );
        let dag = if is_agent { DAG } else { &dag };
        stop_in_the_middle(dag, &connection, &sql, || count(&watcher, &running)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mariadb_has_stopped_it() {
    let connection = super::mariadb::connection("mysql");
    let watcher = super::mariadb::read_only(&connection);
    let import = "from airflow.providers.mysql.hooks.mysql import MySqlHook";
    for (seconds, is_agent) in [(62, true), (64, false)] {
        let sql = format!("SELECT sleep({seconds})");
        let dag = hook_dag(import, "MySqlHook", &sql);
        let running = format!(
            "SELECT count(*) FROM information_schema.processlist WHERE command = 'Query' \
             AND info LIKE '%sleep({seconds})%' AND id <> connection_id()"
        );
        let dag = if is_agent { DAG } else { &dag };
        stop_in_the_middle(dag, &connection, &sql, || count(&watcher, &running)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_has_stopped_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE t (a)")
        .unwrap();
    let connection = Connection {
        conn_id: "db".to_owned(),
        conn_type: "sqlite".to_owned(),
        host: Some(path.to_str().unwrap().to_owned()),
        ..Connection::default()
    };
    // SQLite has no server: whoever reads holds a lock on the file, and keeps others from writing to it.
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n \
                   UNION ALL SELECT count(*) FROM t";
    let locked = || async {
        let writer = rusqlite::Connection::open(&path).unwrap();
        writer.busy_timeout(Duration::ZERO).unwrap();
        writer.execute_batch("BEGIN EXCLUSIVE; ROLLBACK").is_err()
    };
    stop_in_the_middle(DAG, &connection, endless, locked).await;
}
