//! Iceberg tables that pyiceberg has written, through its catalogs and at their paths.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use updraft::agent::{ToolError, Toolset};
use updraft::airflow::config::Environment;
use updraft::airflow::connection::Connection;
use updraft::hook::{ConnectionError, ConnectionSource};
use updraft::toolset::datafusion::{
    DataFusionToolset, DataFusionToolsetConfig, DataSourceConfig, EngineSettings,
};

use crate::servers;

/// The tables and their server, which ends with this process.
struct Peer {
    folder: TempDir,
    address: String,
    _server: Child,
}

fn peer() -> &'static Peer {
    static PEER: OnceLock<Peer> = OnceLock::new();
    PEER.get_or_init(|| {
        let venv = std::env::var_os("UPDRAFT_TEST_VENV").map_or_else(
            || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/updraft/venv"),
            PathBuf::from,
        );
        let folder = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/iceberg.py");
        let mut server = Command::new(venv.join("bin/python"))
            .arg(script)
            .arg(folder.path())
            .arg(s3())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        output.read_line(&mut address).unwrap();
        assert!(address.starts_with("http://"), "the catalog did not start");
        Peer {
            folder,
            address: address.trim().to_owned(),
            _server: server,
        }
    })
}

/// The S3 server.
fn s3() -> &'static str {
    &servers::stores()["UPDRAFT_TEST_S3_URL"]
}

/// What pyiceberg reads from a table.
fn expected(table: &str) -> Value {
    let text = std::fs::read_to_string(peer().folder.path().join("expected.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    all[table].clone()
}

struct Connections;

#[async_trait]
impl ConnectionSource for Connections {
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
        let iceberg = |host: Option<String>, extra: Value| Connection {
            conn_id: conn_id.to_owned(),
            conn_type: "iceberg".to_owned(),
            host,
            extra: Some(extra.to_string()),
            ..Connection::default()
        };
        let database = format!("sqlite:///{}/catalog.db", peer().folder.path().display());
        Ok(match conn_id {
            "rest" => Connection {
                login: Some("harbour-client".to_owned()),
                password: Some("not-a-real-secret".to_owned()),
                ..iceberg(
                    Some(format!("{}/", peer().address)),
                    json!({"warehouse": "w"}),
                )
            },
            "nobody" => iceberg(Some(peer().address.clone()), json!({})),
            "harbour" => iceberg(
                None,
                json!({
                    "type": "sql", "uri": database, "s3.endpoint": s3(), "s3.region": "us-east-1",
                    "s3.access-key-id": "AKIAMADEUP", "s3.secret-access-key": "made-up",
                }),
            ),
            "lake" => Connection {
                conn_id: conn_id.to_owned(),
                conn_type: "aws".to_owned(),
                login: Some("AKIAMADEUP".to_owned()),
                password: Some("made-up".to_owned()),
                extra: Some(json!({"endpoint_url": s3(), "region_name": "us-east-1"}).to_string()),
                ..Connection::default()
            },
            "glue" => iceberg(None, json!({"type": "glue"})),
            other => return Err(ConnectionError::NotDefined(other.to_owned())),
        })
    }
}

fn table(conn_id: &str, namespace: &str, name: &str) -> DataSourceConfig {
    DataSourceConfig {
        conn_id: conn_id.to_owned(),
        table_name: name.to_owned(),
        format: "iceberg".to_owned(),
        db_name: Some(namespace.to_owned()),
        ..DataSourceConfig::default()
    }
}

fn at_path(path: &str) -> DataSourceConfig {
    DataSourceConfig {
        uri: format!("file://{}/{path}", peer().folder.path().display()),
        ..table("none", "sea", "t")
    }
}

async fn ask(source: DataSourceConfig, tool: &str, arguments: Value) -> Result<Value, String> {
    let toolset = DataFusionToolset::new(
        DataFusionToolsetConfig::new(vec![source]),
        EngineSettings::new(Environment::default()),
        Arc::new(Connections),
        Arc::new(str::to_owned),
    )
    .unwrap();
    let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap();
    match toolset.call(tool, arguments).await {
        Ok(Value::String(text)) => Ok(serde_json::from_str(&text).unwrap()),
        Ok(other) => panic!("a tool gave {other}"),
        Err(ToolError::Retry(text) | ToolError::Fatal(text) | ToolError::Failed(text)) => Err(text),
    }
}

async fn rows(source: DataSourceConfig) -> Value {
    let sql = format!("SELECT * FROM {} ORDER BY id", source.table_name);
    ask(source, "query", json!({ "sql": sql })).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_of_a_table_behind_a_rest_catalog_reads_as_pyiceberg_reads_it() {
    assert_eq!(
        rows(table("rest", "sea", "kinds")).await,
        expected("sea.kinds")
    );
    let arguments = json!({"table_name": "kinds"});
    let schema = ask(table("rest", "sea", "kinds"), "get_schema", arguments)
        .await
        .unwrap();
    let types: Vec<_> = schema["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["type"].as_str().unwrap())
        .collect();
    let expected = [
        "int64",
        "string",
        "decimal128(10, 2)",
        "date32[day]",
        "timestamp[us, tz=UTC]",
        "timestamp[us]",
        "time64[us]",
        "int32",
        "float",
        "double",
        "bool",
        "binary",
        "fixed_size_binary[3]",
        "list<element: string>",
        "map<string, int64>",
        "struct<a: int64, b: string>",
    ];
    assert_eq!(types, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn renamed_widened_dropped_and_added_columns_are_told_apart_by_their_ids() {
    for source in [
        table("rest", "sea", "evolved"),
        table("harbour", "sea", "evolved"),
    ] {
        assert_eq!(rows(source).await, expected("sea.evolved"));
    }
    let sql = "SELECT title FROM t WHERE n = 1 AND name IS NULL";
    let found = ask(
        at_path("warehouse/sea/evolved"),
        "query",
        json!({ "sql": sql }),
    )
    .await;
    assert_eq!(found.unwrap()["rows"], json!([["first"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_in_a_bucket_is_found_by_its_catalog_and_by_its_path() {
    let mut boats = table("harbour", "sea", "boats");
    let options = json!({"catalog_table_name": "afloat"});
    boats.options = options.as_object().cloned().unwrap();
    assert_eq!(rows(boats).await, expected("sea.afloat"));
    let at_path = DataSourceConfig {
        uri: "s3://afloat/sea/a b".to_owned(),
        ..table("lake", "sea", "boats")
    };
    assert_eq!(rows(at_path).await, expected("sea.afloat"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_files_of_the_current_snapshot_are_read() {
    let calls = || table("rest", "sea", "calls");
    assert_eq!(rows(calls()).await, expected("sea.calls"));
    for (sql, expected) in [
        ("SELECT count(*) FROM calls", json!([[9]])),
        (
            "SELECT count(*) FROM calls WHERE port = 'b 100%'",
            json!([[4]]),
        ),
        ("SELECT max(id) FROM calls WHERE id < 9", json!([[8]])),
    ] {
        let found = ask(calls(), "query", json!({ "sql": sql })).await.unwrap();
        assert_eq!(found["rows"], expected, "{sql}");
    }
    assert_eq!(
        rows(table("rest", "sea", "empty")).await,
        expected("sea.empty")
    );
    assert_eq!(
        rows(table("rest", "sea.deep", "calls")).await,
        expected("sea.deep.calls")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_give_wrong_rows_or_none_is_an_error_that_says_why() {
    let frame = |conn_id: &str, table: &str| {
        format!("Failed to register Iceberg table '{table}' from connection '{conn_id}': ")
    };
    let cases = [
        (
            at_path("deletes"),
            "none",
            "t",
            "the table has rows that are deleted by a file of their own (file://",
        ),
        (
            at_path("warehouse"),
            "none",
            "t",
            "there is no Iceberg table at file://",
        ),
        (
            table("rest", "sea", "nope"),
            "rest",
            "nope",
            "the catalog of connection 'rest': NoSuchTableException: Table does not exist: sea.nope (404 Not Found",
        ),
        (
            table("harbour", "sea", "nope"),
            "harbour",
            "nope",
            "the catalog of connection 'harbour': Table does not exist: sea.nope",
        ),
        (
            table("nobody", "sea", "calls"),
            "nobody",
            "calls",
            "the catalog of connection 'nobody': NotAuthorizedException: no token (401 Unauthorized",
        ),
        (
            table("glue", "sea", "calls"),
            "glue",
            "calls",
            "the catalog type \"glue\" of connection 'glue' (rest is known, and sql on SQLite) has no native counterpart",
        ),
        (
            table("gone", "sea", "calls"),
            "gone",
            "calls",
            "The conn_id `gone` isn't defined",
        ),
    ];
    for (source, conn_id, name, expected) in cases {
        let told = ask(source, "query", json!({"sql": "SELECT 1"}))
            .await
            .unwrap_err();
        let expected = format!("{}{expected}", frame(conn_id, name));
        assert!(told.starts_with(&expected), "{told}\nshould be\n{expected}");
    }
}
