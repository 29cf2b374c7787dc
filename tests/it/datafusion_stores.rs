//! `DataFusionToolset` on a real S3 server.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use updraft::agent::{ToolError, Toolset as _};
use updraft::airflow::config::Environment;
use updraft::airflow::connection::Connection;
use updraft::hook::object_store::{self as stores, Location};
use updraft::hook::{ConnectionError, ConnectionSource};
use updraft::toolset::datafusion::{
    DataFusionToolset, DataFusionToolsetConfig, DataSourceConfig, EngineSettings,
};

use crate::servers;

/// The S3 server.
fn server() -> &'static str {
    &servers::stores()["UPDRAFT_TEST_S3_URL"]
}

/// `lake` and `other` may read, `web` is no store.
struct Connections;

fn connection(conn_id: &str, conn_type: &str) -> Connection {
    let endpoint = server();
    Connection {
        conn_id: conn_id.to_owned(),
        conn_type: conn_type.to_owned(),
        login: Some("AKIAMADEUP".to_owned()),
        password: Some("made-up".to_owned()),
        extra: Some(json!({"endpoint": endpoint, "region": "eu-north-1"}).to_string()),
        ..Connection::default()
    }
}

#[async_trait]
impl ConnectionSource for Connections {
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
        match conn_id {
            "lake" | "other" => Ok(connection(conn_id, "aws")),
            "web" => Ok(connection(conn_id, "http")),
            _ => Err(ConnectionError::NotDefined(conn_id.to_owned())),
        }
    }
}

fn source(conn_id: &str, table_name: &str, uri: &str) -> DataSourceConfig {
    DataSourceConfig {
        conn_id: conn_id.to_owned(),
        table_name: table_name.to_owned(),
        uri: uri.to_owned(),
        format: "csv".to_owned(),
        ..DataSourceConfig::default()
    }
}

async fn query(sources: Vec<DataSourceConfig>, sql: &str) -> Result<Value, String> {
    let toolset = DataFusionToolset::new(
        DataFusionToolsetConfig::new(sources),
        EngineSettings::new(Environment::default()),
        Arc::new(Connections),
        Arc::new(str::to_owned),
    )
    .unwrap();
    let arguments = json!({ "sql": sql });
    match toolset
        .call("query", arguments.as_object().cloned().unwrap())
        .await
    {
        Ok(text) => Ok(serde_json::from_str(text.as_str().unwrap()).unwrap()),
        Err(ToolError::Retry(text) | ToolError::Fatal(text) | ToolError::Failed(text)) => Err(text),
    }
}

async fn bucket(name: &str, files: &[(&str, &str)]) {
    let url = format!("{}/{name}", server());
    let made = reqwest::Client::new().put(url).send().await.unwrap();
    made.error_for_status().unwrap();
    let location = Location::parse(&format!("s3://{name}")).unwrap();
    let aws = connection("lake", "aws");
    let store: Arc<dyn ObjectStore> = stores::open(&location, Some(&aws), &Environment::default())
        .await
        .unwrap();
    for (key, text) in files {
        let text = (*text).to_owned();
        store
            .put(&Path::parse(key).unwrap(), text.into())
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_in_buckets_join_with_one_another_and_partition_folders_are_columns() {
    bucket(
        "harbour",
        &[
            ("ships.csv", "id,port\n1,1\n2,2\n"),
            ("calls/year=2023/a.csv", "ship,tons\n1,5\n"),
            ("calls/year=2024/b.csv", "ship,tons\n1,7\n2,1\n"),
            ("calls/readme.txt", "no table"),
        ],
    )
    .await;
    bucket(
        "ports",
        &[("a folder/ports.csv", "id,name\n1,Bergen\n2,Oslo\n")],
    )
    .await;
    let mut calls = source("other", "calls", "s3://harbour/calls/");
    calls.options = json!({"table_partition_cols": [["year", "int"]]})
        .as_object()
        .cloned()
        .unwrap();
    let sources = vec![
        source("lake", "ships", "s3://harbour/ships.csv"),
        calls,
        source("lake", "ports", "s3://ports/a folder/ports.csv"),
    ];
    let sql = "SELECT p.name, c.year, sum(c.tons) AS tons FROM calls c JOIN ships s ON c.ship = s.id \
               JOIN ports p ON s.port = p.id GROUP BY 1, 2 ORDER BY 1, 2";
    let found = query(sources, sql).await.unwrap();
    assert_eq!(
        found["rows"],
        json!([["Bergen", 2023, 5], ["Bergen", 2024, 7], ["Oslo", 2024, 1]])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_source_names_the_file_or_the_connection() {
    bucket(
        "mixed",
        &[("t/a.csv", "id,v\n1,1\n"), ("t/b.csv", "v,id\n1,1\n")],
    )
    .await;
    let cases = [
        (
            source("lake", "t", "s3://mixed/t/"),
            "the file s3://mixed/t/b.csv has other columns (v, id)",
        ),
        (
            source("web", "t", "s3://mixed/t/"),
            "Unknown connection type http",
        ),
        (
            source("gone", "t", "s3://mixed/t/"),
            "The conn_id `gone` isn't defined",
        ),
        (
            source("lake", "t", "gs://mixed/t/"),
            "Error while creating object store for StorageType.GCS: connection `lake` is of type \"aws\"",
        ),
    ];
    for (source, expected) in cases {
        let told = query(vec![source], "SELECT * FROM t").await.unwrap_err();
        assert!(told.contains(expected), "{told}");
    }
}
