//! One query over one Parquet file, as an agent would ask it: `benches/datafusion_against_python.sh` runs this and the
//! Python provider's toolset.
//!
//! `FILE SQL TIMES`: prints the seconds of the first answer (the engine is made for it) and of the later ones, and the
//! memory that came on top of the process as it was.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use updraft::agent::Toolset as _;
use updraft::airflow::config::Environment;
use updraft::airflow::connection::Connection;
use updraft::hook::{ConnectionError, ConnectionSource};
use updraft::toolset::datafusion::{
    DataFusionToolset, DataFusionToolsetConfig, DataSourceConfig, EngineSettings,
};

struct NoConnections;

#[async_trait]
impl ConnectionSource for NoConnections {
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
        Err(ConnectionError::NotDefined(conn_id.to_owned()))
    }
}

/// A line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes =
        line.and_then(|line| line.trim_matches([':', '\t', ' ', 'k', 'B']).parse().ok());
    kibibytes.unwrap_or(0) << 10
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let [file, sql, times] = arguments.as_slice() else {
        eprintln!("usage: FILE SQL TIMES; benches/datafusion_against_python.sh knows which");
        return ExitCode::from(2);
    };
    let source = DataSourceConfig {
        table_name: "trips".to_owned(),
        uri: format!("file://{file}"),
        format: "parquet".to_owned(),
        ..DataSourceConfig::default()
    };
    let before = memory("VmRSS");
    let toolset = DataFusionToolset::new(
        DataFusionToolsetConfig::new(vec![source]),
        EngineSettings::new(Environment::default()),
        Arc::new(NoConnections),
        Arc::new(str::to_owned),
    );
    let toolset = match toolset {
        Ok(toolset) => toolset,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let arguments: Map<String, Value> = Map::from_iter([("sql".to_owned(), sql.as_str().into())]);
    let mut seconds = Vec::new();
    for _ in 0..=times.parse().unwrap_or(1) {
        let start = Instant::now();
        match toolset.call("query", arguments.clone()).await {
            Ok(Value::String(answer)) if answer.starts_with("{\"columns\"") => {}
            answer => {
                eprintln!("{answer:?}");
                return ExitCode::FAILURE;
            }
        }
        seconds.push(start.elapsed().as_secs_f64());
    }
    let added = memory("VmHWM").saturating_sub(before);
    println!("{}", json!({"seconds": seconds, "added": added}));
    ExitCode::SUCCESS
}
