//! Jobs that do not run in a task process of this program.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pretty_assertions::assert_eq;

use super::*;
use crate::airflow::bundle::DagBundles;
use crate::airflow::config::Config;
use crate::worker::{DagIndex, Executables, PythonRuntime, Versions};

const LOG: &str = "dag_id=d/run_id=r/task_id=t/attempt=1.log";

fn script(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A worker with a made-up Python beside it that leaves what it was given in `folder` and then does `ending`. Of Dag `d`,
/// task `t` does not run natively and task `u` does.
fn beside(folder: &Path, ending: &str) -> impl FnOnce(&mut Settings) {
    std::fs::write(folder.join("d.py"), "").unwrap();
    let task = |task_id: &str, reason: Value| json!({"task_id": task_id, "reason": reason});
    let report = json!({"files": [{"error": null, "dags": [
        {"dag_id": "d", "tasks": [task("t", "it needs numpy".into()), task("u", Value::Null)]}]}]});
    script(&folder.join("updraft"), &format!("echo '{report}'\n"));
    script(
        &folder.join("python"),
        &format!(
            "cd {}\necho \"$1 $2 $3\" > arguments\ncp \"$4\" workload.json\nstat -c %a \"$4\" > mode\necho \"$4\" > path\n\
             env > environment\nmkdir -p \"$(dirname \"$AIRFLOW__LOGGING__BASE_LOG_FOLDER/{LOG}\")\"\n\
             echo '{{\"event\":\"said by Python\"}}' >> \"$AIRFLOW__LOGGING__BASE_LOG_FOLDER/{LOG}\"\n{ending}\n",
            folder.display()
        ),
    );
    let bundles = json!([{"name": "dags-folder", "kwargs": {"path": folder.display().to_string()},
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle"}])
    .to_string();
    let config = Config::new(
        [
            ("AIRFLOW_HOME", "/nonexistent"),
            ("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", &bundles),
        ]
        .into_iter()
        .collect(),
    );
    let (python, updraft) = (folder.join("python"), folder.join("updraft"));
    move |settings| {
        settings.bundles = DagBundles::from_config(&config).unwrap();
        let server = settings.execution.base.as_str();
        settings.runtimes.python = Some((
            PythonRuntime::new(python, server, &settings.logs.base),
            DagIndex::new(updraft, Duration::from_secs(5)),
        ));
    }
}

async fn with(folder: &Path, ending: &str, job: Value) -> Setup {
    let prepare = |server: &mut Server| server.jobs.push_back(job);
    Setup::with_settings("success", prepare, beside(folder, ending)).await
}

#[tokio::test]
async fn a_task_that_does_not_run_natively_is_left_to_python_whole() {
    let folder = TempDir::new().unwrap();
    let setup = with(folder.path(), "exit 0", job()).await;
    setup.airflow.until_event("job success").await;
    let (airflow, base) = (setup.airflow.clone(), setup.logs.path().to_owned());
    setup.end().await.unwrap();
    let events = airflow.events();
    // Python tells the server itself that the task runs, and how it ended.
    assert!(
        !events
            .iter()
            .any(|event| event == "run" || event.starts_with("ti ")),
        "{events:?}"
    );
    assert!(position(&events, "job running") < position(&events, "job success"));
    let log = airflow.log();
    assert!(
        log.contains("Updraft does not run this task natively: it needs numpy. It runs on ")
            && log.contains("said by Python"),
        "{log}"
    );
    let left = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(
        left("arguments").trim(),
        "-m airflow.sdk.execution_time.execute_workload --json-path"
    );
    let workload: Value = serde_json::from_str(&left("workload.json")).unwrap();
    assert_eq!(workload, job()["command"]);
    // It holds a token.
    assert_eq!(left("mode").trim(), "600");
    assert!(!Path::new(left("path").trim()).exists());
    let environment = left("environment");
    for expected in [
        format!("AIRFLOW__LOGGING__BASE_LOG_FOLDER={}\n", base.display()),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL=http://127.0.0.1:".to_owned(),
    ] {
        assert!(environment.contains(&expected), "{environment}");
    }
}

#[tokio::test]
async fn a_native_task_of_the_same_file_runs_here() {
    let folder = TempDir::new().unwrap();
    let mut native = job();
    native["command"]["ti"]["task_id"] = "u".into();
    let setup = with(folder.path(), "exit 0", native).await;
    setup.airflow.until_event("job success").await;
    assert!(setup.airflow.events().contains(&"ti success".to_owned()));
    setup.end().await.unwrap();
    assert!(!folder.path().join("arguments").exists());
}

#[tokio::test]
async fn what_python_says_when_it_fails_stands_in_the_task_log() {
    let folder = TempDir::new().unwrap();
    let setup = with(folder.path(), "echo 'no module named x' >&2; exit 3", job()).await;
    setup.airflow.until_event("job failed").await;
    let log = setup.airflow.log();
    assert!(
        log.contains("Error executing job: Python ended with exit status: 3\\nno module named x"),
        "{log}"
    );
    setup.end().await.unwrap();
}

#[tokio::test]
async fn callbacks_run_on_python_and_their_log_stays_on_the_worker() {
    let folder = TempDir::new().unwrap();
    let mut callback = job();
    callback["command"] = json!({"type": "ExecuteCallback", "token": "workload-token", "log_path": "executor_callbacks/d/r/1",
        "dag_rel_path": "d.py", "bundle_info": {"name": "dags-folder"}, "callback": {"id": "1",
        "fetch_method": "import_path", "data": {"path": "a.b", "kwargs": {}}}});
    let setup = with(folder.path(), "exit 0", callback.clone()).await;
    setup.airflow.until_event("job success").await;
    let events = setup.airflow.events();
    setup.end().await.unwrap();
    assert!(!events.contains(&"push".to_owned()), "{events:?}");
    let workload = std::fs::read(folder.path().join("workload.json")).unwrap();
    let workload: Value = serde_json::from_slice(&workload).unwrap();
    assert_eq!(workload, callback["command"]);
}

#[tokio::test]
async fn python_is_told_when_the_worker_ends() {
    let folder = TempDir::new().unwrap();
    let ending = "trap 'echo ended > ended; exit 0' TERM\nwhile true; do sleep 0.05; done";
    let setup = with(folder.path(), ending, job()).await;
    setup.airflow.until_log("said by Python").await;
    setup.shutdown.send(Wish::End).unwrap();
    setup.airflow.until_event("worker terminating").await;
    setup.shutdown.send(Wish::End).unwrap();
    setup.airflow.until_event("job success").await;
    setup.end().await.unwrap();
    assert!(folder.path().join("ended").exists());
}

#[tokio::test]
async fn nothing_of_python_outlives_a_worker_that_gives_up() {
    let folder = TempDir::new().unwrap();
    // As Airflow's task: in a session of its own.
    let ending = "trap '' TERM\nsetsid sh -c 'echo $$ > task; exec sleep 60' &\nwhile true; do sleep 0.05; done";
    let prepare = |server: &mut Server| server.jobs.push_back(job());
    let adapt = beside(folder.path(), ending);
    let setup = Setup::with_settings("success", prepare, |settings| {
        adapt(settings);
        settings.drain_kill_grace = Duration::from_millis(200);
    })
    .await;
    setup.airflow.until_log("said by Python").await;
    let task = loop {
        let text = std::fs::read_to_string(folder.path().join("task")).unwrap_or_default();
        match text.trim().parse::<u32>() {
            Ok(task) => break task,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    setup.shutdown.send(Wish::End).unwrap();
    assert!(matches!(setup.end().await, Err(WorkerError::Abandoned(1))));
    let gone = || {
        std::fs::read_to_string(format!("/proc/{task}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    };
    for _ in 0..200 {
        if gone() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("process {task} is still there");
}

#[tokio::test]
async fn a_bundle_that_names_the_task_and_is_damaged_fails_the_job_and_says_which() {
    use crate::airflow::executable_bundle::{Manifest, write};
    let folder = TempDir::new().unwrap();
    let dags = BTreeMap::from([("d".to_owned(), vec!["t".to_owned()])]);
    let mut bytes = Vec::new();
    write(
        &mut &b"#!/bin/true\n"[..],
        12,
        &Manifest::new(&dags),
        &mut bytes,
    )
    .unwrap();
    bytes[3] = b'?';
    let path = folder.path().join("tasks");
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let prepare = |server: &mut Server| server.jobs.push_back(job());
    let setup = Setup::with_settings("success", prepare, |settings| {
        settings.runtimes.executables = Executables::new(vec![folder.path().to_owned()]);
    })
    .await;
    setup.airflow.until_event("job failed").await;
    assert!(!setup.airflow.events().contains(&"run".to_owned()));
    let log = setup.airflow.log();
    assert!(log.contains("SHA-256") && log.contains("d.t"), "{log}");
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_worker_goes_by_the_versions_of_an_older_server_and_asks_for_its_execution_api() {
    let refuse = |text: &str| (400, json!({ "detail": text }));
    let setup = Setup::with("success", |server| {
        server.registrations.extend([
            refuse("Edge Worker runs on Airflow 3.3.2 which is below the minimum acceptable version None. Rejecting access"),
            refuse("Edge Worker runs on Edge Provider 5.1.0 and the core runs on 3.7.0. Rejecting access"),
        ]);
        server.jobs.push_back(job());
    })
    .await;
    setup.airflow.until_event("job success").await;
    let events = setup.airflow.events();
    setup.end().await.unwrap();
    assert_eq!(
        events[..3],
        [
            "register starting of 3.3.2 and 5.1.0",
            "register starting of 3.2.2 and 5.1.0",
            "register starting of 3.2.2 and 3.7.0"
        ]
    );
    position(&events, "asks for 2026-04-06");
}

#[tokio::test]
async fn a_server_that_refuses_the_version_that_was_set_is_believed() {
    let refuse = (
        400,
        json!({"detail": "Edge Worker runs on Airflow 3.3.1 and the core runs on 3.3.2. Rejecting"}),
    );
    let prepare = |server: &mut Server| server.registrations.push_back(refuse);
    let setup = Setup::with_settings("success", prepare, |settings| {
        settings.versions = Versions::new(Some("3.3.1".to_owned()), None);
    })
    .await;
    let error = timeout(Duration::from_secs(30), setup.worker)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains("--airflow-version"), "{error}");
}
