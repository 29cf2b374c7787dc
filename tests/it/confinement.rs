//! What a task process has given up by the time that it runs a task.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use updraft::control_plane::local::LocalControlPlane;
use updraft::secrets::Masker;
use updraft::supervisor::{
    FinalState, Limits, StopReason, SupervisedTask, TaskCommand, TaskLog, TaskProcess, run_task,
    stop_channel,
};

use crate::task_process::{Lines, details, plain};

const DAG: &str = r#"
from airflow.sdk import DAG, task

with DAG("made", schedule=None):
    @task
    def waits():
        print("waiting")
        while True:
            pass

    waits()
"#;

fn status(pid: u32, field: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .unwrap()
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap_or_default()
        .trim_start_matches(':')
        .trim()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_process_has_no_inherited_files_no_keys_and_no_way_to_more_rights() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("made.py"), DAG).unwrap();
    let secret = folder.path().join("open-elsewhere");
    std::fs::write(&secret, "made-up").unwrap();
    let bundles = json!([{"name": "here", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": folder.path().display().to_string()}}]);
    let mut command = TaskCommand::this_program().unwrap();
    // A shell that leaves a file open, as a careless service manager would.
    command.program = "/bin/sh".into();
    command.arguments = [
        "-c",
        r#"exec 9<"$0"; program=$1; shift; exec "$program" "$@""#,
        secret.to_str().unwrap(),
        env!("CARGO_BIN_EXE_updraft"),
    ]
    .map(Into::into)
    .to_vec();
    command.environment = vec![
        (
            "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST".to_owned(),
            bundles.to_string(),
        ),
        (
            "AIRFLOW_HOME".to_owned(),
            folder.path().display().to_string(),
        ),
    ];
    let process = TaskProcess::spawn(&command).await.unwrap();
    let pid = process.pid();
    let lines = Lines::default();
    let (stop, signal) = stop_channel();
    let running = tokio::spawn(run_task(SupervisedTask {
        process,
        startup: details(&plain("waits")),
        control_plane: Arc::new(LocalControlPlane::default()),
        log: TaskLog::new(Box::new(lines.clone()), Masker::new()),
        limits: Limits::default(),
        stop: signal,
        ended: CancellationToken::new(),
    }));
    lines.wait_for("waiting").await;
    let open: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|entry| std::fs::read_link(entry.unwrap().path()).unwrap_or_default())
        .collect();
    assert!(!open.contains(&secret), "{open:?}");
    assert_eq!(status(pid, "NoNewPrivs"), "1");
    stop.send(Some(StopReason::Shutdown {
        message: "enough".to_owned(),
    }))
    .unwrap();
    assert_eq!(running.await.unwrap().state, FinalState::Failed);
}
