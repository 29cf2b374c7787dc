//! What must hold for anything that comes from outside, whatever its bytes. The fuzz targets and the tests of
//! `tests/it/hostile_inputs.rs` share it: each function panics when its rule is broken.

#![allow(dead_code, reason = "each fuzz target takes one of these functions")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use updraft::airflow::config::{Config, Environment};
use updraft::airflow::connection::Connection;
use updraft::airflow::frame::{FrameError, ReplyFrame, RequestFrame};
use updraft::airflow::supervisor::TaskRequest;
use updraft::dag::host::{Host, HostError, LogRecord, XComQuery};
use updraft::dag::{Interpreter, LoadError, LoadOptions};
use updraft::toolset::skills::list_skills;

/// The longest frame that these are read with.
const FRAME_LIMIT: u32 = 1 << 16;

/// A stream of frames: read to its end or to its first fault, as either side of the protocol reads it. What was read can
/// be written and read again.
pub fn frames(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut stream = bytes;
        while let Ok(Some(frame)) = RequestFrame::read(&mut stream, FRAME_LIMIT).await {
            let mut written = Vec::new();
            match frame.write(&mut written).await {
                Ok(()) => {
                    let again = RequestFrame::read(&mut written.as_slice(), u32::MAX)
                        .await
                        .expect("what was written can be read");
                    assert_eq!(again.as_ref(), Some(&frame));
                }
                Err(FrameError::Unencodable(_) | FrameError::TooLarge { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            // A message or the reason why it is none.
            let _ = TaskRequest::from_body(frame.body);
        }
        let mut stream = bytes;
        while let Ok(Some(_)) = ReplyFrame::read(&mut stream, FRAME_LIMIT).await {}
    });
}

/// A connection as it stands in an environment variable: read or refused, and no password in what is shown of it.
pub fn connection(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Connection::from_env_text("c", text, "here") {
        Ok(connection) => {
            let _ = connection.extra_json();
            let shown = format!("{connection:?}");
            if let Some(password) = connection.password.as_deref()
                && password.len() > 8
                && connection.conn_type != password
                && connection.host.as_deref() != Some(password)
            {
                let elsewhere = [&connection.login, &connection.schema]
                    .into_iter()
                    .flatten()
                    .any(|field| field.contains(password));
                assert!(
                    elsewhere || !shown.contains(password),
                    "a password is shown: {shown}"
                );
            }
        }
        Err(error) => {
            let shown = error.to_string();
            if let Some((_, rest)) = text.split_once("://:")
                && let Some((password, _)) = rest.split_once('@')
                && password.len() > 12
            {
                assert!(!shown.contains(password), "a password is shown: {shown}");
            }
        }
    }
}

/// An `airflow.cfg`: options are found, are not, or can't be read. (Options that may name a command are not asked for.)
pub fn airflow_cfg(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("airflow.cfg");
    std::fs::write(&file, bytes).expect("written");
    let environment: Environment = [
        ("AIRFLOW_HOME", folder.path().display().to_string()),
        ("AIRFLOW_CONFIG", file.display().to_string()),
    ]
    .into_iter()
    .collect();
    let config = Config::new(environment);
    for (section, key) in [
        ("core", "dags_folder"),
        ("edge", "api_url"),
        ("edge", "worker_concurrency"),
        ("logging", "base_log_folder"),
        ("common.ai", "durable_cache_path"),
        ("updraft", "local_storage"),
    ] {
        let _ = config.get(section, key);
        let _ = config.get_list(section, key);
        let _ = config.get_path(section, key);
    }
    let _ = config.get_int("edge", "worker_concurrency");
    let _ = config.get_float("core", "dagbag_import_timeout");
    let _ = config.get_seconds("edge", "heartbeat_interval");
    let _ = config.get_bool("edge", "push_logs");
    let _ = config.get_json("dag_processor", "dag_bundle_config_list");
}

/// The SKILL.md of a skill: a summary of one line each, or the reason why there is none.
pub fn skill_md(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let skill = folder.path().join("skill");
    std::fs::create_dir(&skill).expect("made");
    std::fs::write(skill.join("SKILL.md"), bytes).expect("written");
    let _ = list_skills(&[folder.path().to_owned()]);
}

/// A Dag file: plain data or the reason why there is none, within the time that it has, and an interpreter that ends.
pub fn dag_file(bytes: &[u8], timeout: Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("made.py");
    std::fs::write(&file, bytes).expect("written");
    let mut options = LoadOptions::new(folder.path());
    options.timeout = timeout;
    let begun = std::time::Instant::now();
    let loaded = Interpreter::load(&file, options, Arc::new(Nobody));
    match loaded {
        Ok((dags, interpreter)) => {
            drop(interpreter);
            let _ = format!("{dags:?}");
        }
        Err(LoadError::Internal { message, .. }) => panic!("a fault of the interpreter: {message}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    // Code that does not end is stopped soon after its time.
    assert!(begun.elapsed() < timeout + Duration::from_secs(30));
    // Nothing was made or changed beside the file.
    assert_eq!(entries(folder.path()), 1);
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// A host without anything.
struct Nobody;

impl Host for Nobody {
    fn connection(&self, conn_id: &str) -> Result<Value, HostError> {
        Err(HostError::NotFound(conn_id.to_owned()))
    }
    fn variable(&self, _: &str) -> Result<Option<String>, HostError> {
        Ok(None)
    }
    fn set_variable(&self, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), HostError> {
        Ok(())
    }
    fn xcom_pull(&self, _: XComQuery) -> Result<Value, HostError> {
        Ok(Value::Null)
    }
    fn xcom_push(&self, _: &str, _: Value) -> Result<(), HostError> {
        Ok(())
    }
    fn config(&self, _: &str, _: &str) -> Option<String> {
        None
    }
    fn mask_secret(&self, _: &Value, _: Option<&str>) {}
    fn log(&self, _: LogRecord) {}
}
