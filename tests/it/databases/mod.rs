//! Real database servers: `tests/servers/databases.sh` starts them, the Python provider's toolset says what is right.

mod attacker;
pub(crate) mod mariadb;
mod meter;
mod mssql;
pub(crate) mod postgres;
mod sqlite;
mod stopped_task;
mod table_keys;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use updraft::agent::{ToolError, Toolset};
use updraft::airflow::connection::Connection;
use updraft::hook::{Cell, ConnectionError, ConnectionSource, Database};
use updraft::toolset::sql::{SqlToolset, SqlToolsetConfig};

use crate::servers;

fn server(name: &str) -> &'static str {
    &servers::databases()[name]
}

/// A toolset's arguments, for Updraft and for Python.
#[derive(Clone, Default)]
struct Arguments {
    allowed_tables: Option<Vec<&'static str>>,
    schema: Option<&'static str>,
    allow_writes: bool,
    max_rows: Option<i64>,
}

impl Arguments {
    fn toolset(&self, connection: &Connection) -> SqlToolset {
        let mut config = SqlToolsetConfig::new("db");
        config.allowed_tables = self
            .allowed_tables
            .as_ref()
            .map(|tables| tables.iter().map(|&table| table.to_owned()).collect());
        config.schema = self.schema.map(str::to_owned);
        config.allow_writes = self.allow_writes;
        if let Some(max_rows) = self.max_rows {
            config.max_rows = max_rows;
        }
        let source = Arc::new(OneConnection(connection.clone()));
        SqlToolset::new(config, source, Arc::new(str::to_owned)).unwrap()
    }

    fn in_python(&self) -> Value {
        let mut arguments = Map::new();
        if let Some(tables) = &self.allowed_tables {
            arguments.insert("allowed_tables".to_owned(), json!(tables));
        }
        if let Some(schema) = self.schema {
            arguments.insert("schema".to_owned(), schema.into());
        }
        if let Some(max_rows) = self.max_rows {
            arguments.insert("max_rows".to_owned(), max_rows.into());
        }
        arguments.insert("allow_writes".to_owned(), self.allow_writes.into());
        arguments.into()
    }
}

struct OneConnection(Connection);

#[async_trait]
impl ConnectionSource for OneConnection {
    async fn connection(&self, _: &str) -> Result<Connection, ConnectionError> {
        Ok(self.0.clone())
    }
}

/// A tool and its arguments.
type Call = (&'static str, Value);

fn list_tables() -> Call {
    ("list_tables", json!({}))
}

fn get_schema(table: &str) -> Call {
    ("get_schema", json!({ "table_name": table }))
}

fn query(sql: impl Into<String>) -> Call {
    ("query", json!({ "sql": sql.into() }))
}

fn check_query(sql: &str) -> Call {
    ("check_query", json!({ "sql": sql }))
}

/// The calls that are made on every database. `qualified` names a table with its schema.
fn twenty_calls(qualified: &str) -> Vec<Call> {
    vec![
        list_tables(),
        get_schema("customers"),
        get_schema("busy"),
        get_schema("nope"),
        get_schema(qualified),
        get_schema("nope.nope"),
        (
            "get_schema",
            json!({"table_name": "orders", "name_contains": "PAI"}),
        ),
        (
            "get_schema",
            json!({"table_name": "orders", "name_contains": "zzz"}),
        ),
        query("SELECT * FROM customers ORDER BY id"),
        query(
            "SELECT name, count(*) AS n, sum(total) AS sum, avg(total) AS mean FROM customers JOIN orders ON customer_id = customers.id GROUP BY name ORDER BY name;",
        ),
        query("SELECT id FROM orders ORDER BY id"),
        query("SELECT id FROM orders WHERE id < 0"),
        query("SELECT nome FROM customers"),
        query("SELECT *\nFROM nope"),
        query("SELECT 1/0"),
        query("SELECT placed, paid, total FROM orders WHERE id IN (1, 2) ORDER BY id"),
        query("DELETE FROM orders"),
        query("SELECT 1; SELECT 2"),
        check_query("SELECT 1"),
        check_query("DROP TABLE orders"),
    ]
}

/// The first cell of a statement's first row.
async fn one(database: &impl Database, sql: &str) -> Cell {
    let mut rows = database.run(sql, 1).await.unwrap().rows;
    rows.remove(0).remove(0)
}

/// One answer: `{"value": text}` or `{"retry": text}`.
async fn ask(toolset: &SqlToolset, (tool, arguments): &Call) -> Value {
    match toolset
        .call(tool, arguments.as_object().unwrap().clone())
        .await
    {
        Ok(value) => json!({ "value": value }),
        Err(ToolError::Retry(text)) => json!({ "retry": text }),
        Err(other) => panic!("{tool}: {other:?}"),
    }
}

/// The answers of the Python provider's toolset to the same calls.
fn ask_python(requests: &[(&Connection, &Arguments, &[Call])]) -> Vec<Vec<Value>> {
    let requests: Vec<Value> = requests
        .iter()
        .map(|(connection, arguments, calls)| {
            json!({
                "connection": connection_json(connection),
                "toolset": arguments.in_python(),
                "calls": calls,
            })
        })
        .collect();
    let python = updraft_venv().join("bin/python");
    let mut child = Command::new(&python)
        .arg(servers::script("python_answers.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| {
            panic!(
                "{}: {error}. tests/run.sh makes the environment",
                python.display()
            )
        });
    child
        .stdin
        .take()
        .unwrap()
        .write_all(json!(requests).to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn updraft_venv() -> PathBuf {
    if let Some(venv) = std::env::var_os("UPDRAFT_TEST_VENV") {
        return venv.into();
    }
    PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/updraft/venv")
}

fn connection_json(connection: &Connection) -> Value {
    let mut value = serde_json::to_value(connection).unwrap();
    value.as_object_mut().unwrap().remove("conn_id");
    value
}

/// Asks both and compares, call by call. What they write must not meet, so each has a database, set up alike.
async fn compare(
    connection: &Connection,
    in_python: &Connection,
    batches: &[(Arguments, Vec<Call>)],
) {
    let requests: Vec<_> = batches
        .iter()
        .map(|(arguments, calls)| (in_python, arguments, calls.as_slice()))
        .collect();
    let expected = ask_python(&requests);
    let mut differences = Vec::new();
    for ((arguments, calls), expected) in batches.iter().zip(&expected) {
        let toolset = arguments.toolset(connection);
        for (call, expected) in calls.iter().zip(expected) {
            let answer = ask(&toolset, call).await;
            // A total that only fetching or counting the whole table would tell is left out on purpose.
            let expected = renamed(&without_total(expected), in_python, connection);
            if without_total(&answer) != expected {
                differences.push(format!(
                    "{call:?}\n  Python:  {expected}\n  Updraft: {answer}"
                ));
            }
        }
        toolset.close().await;
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Where texts name the database, or its file, which are two.
fn renamed(answer: &Value, from: &Connection, to: &Connection) -> Value {
    match (&from.schema, &to.schema) {
        (Some(from), Some(to)) => {
            serde_json::from_str(&answer.to_string().replace(from.as_str(), to)).unwrap()
        }
        _ => answer.clone(),
    }
}

fn without_total(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if let Some(Value::String(text)) = answer.get_mut("value")
        && let Some(at) = text.find(",\"total_rows\":")
        && let Some(length) = text[at + 1..].find(',')
    {
        text.replace_range(at..=at + length, "");
    }
    answer
}
