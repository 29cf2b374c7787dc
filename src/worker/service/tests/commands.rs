//! What is told to a worker on its own machine, and what it tells there.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};

use pretty_assertions::assert_eq;

use super::*;
use crate::worker::Status;
use crate::worker::control::{Command, ControlError, ask, choose};

async fn told(home: &TempDir, command: Command) -> Result<Status, ControlError> {
    let home = home.path().to_owned();
    tokio::task::spawn_blocking(move || ask(&home, "w1", &command))
        .await
        .unwrap()
}

async fn listening(scenario: &str, prepare: impl FnOnce(&mut Server)) -> (Setup, TempDir) {
    let home = TempDir::new().unwrap();
    let path: PathBuf = home.path().to_owned();
    let setup =
        Setup::with_settings(scenario, prepare, |settings| settings.home = Some(path)).await;
    setup.airflow.until_event("worker idle").await;
    (setup, home)
}

#[tokio::test]
async fn a_worker_says_what_it_does_and_drains_when_it_is_told_to() {
    let (setup, home) = listening("hangs", |_| {}).await;
    setup.airflow.set(|server| server.jobs.push_back(job()));
    setup.airflow.until_log("working").await;
    let status = told(&home, Command::Status).await.unwrap();
    assert_eq!(
        (
            status.state,
            status.job_count,
            status.drain,
            status.registered
        ),
        (WorkerState::Running, 1, false, true)
    );
    assert_eq!((status.concurrency, status.free_concurrency), (3, 1));
    assert_eq!(
        (status.jobs[0].dag_id.as_str(), status.jobs[0].try_number),
        ("d", 1)
    );
    assert!(status.heartbeat_age.is_some_and(|age| age < 30.0));

    let status = told(&home, Command::Drain).await.unwrap();
    assert!(status.drain);
    // A second command is no second signal.
    let status = told(&home, Command::Drain).await.unwrap();
    assert_eq!(
        (status.state, status.job_count),
        (WorkerState::Terminating, 1)
    );
    assert!(!setup.worker.is_finished());

    told(&home, Command::Terminate).await.unwrap();
    setup.airflow.until_event("worker offline").await;
    assert!(setup.airflow.log().contains("terminating the task"));
    timeout(Duration::from_secs(20), setup.worker)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let gone = told(&home, Command::Status).await.unwrap_err();
    assert!(gone.to_string().contains("--worker-name"), "{gone}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn maintenance_that_is_told_here_is_reported_with_its_reason_until_it_is_over() {
    let (setup, home) = listening("success", |_| {}).await;
    let comments = "a disk is changed".to_owned();
    let on = Command::EnterMaintenance {
        comments: comments.clone(),
    };
    let status = told(&home, on).await.unwrap();
    assert_eq!(status.maintenance_comments, Some(comments));
    setup.airflow.until_event("worker maintenance mode").await;
    setup.airflow.set(|server| {
        server.jobs.push_back(job());
        server.events.clear();
    });
    setup.airflow.until_event("worker maintenance mode").await;
    assert!(!setup.airflow.events().contains(&"run".into()));
    let status = told(&home, Command::LeaveMaintenance).await.unwrap();
    assert!(!status.maintenance);
    setup.airflow.until_event("job success").await;
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_socket_that_a_killed_worker_has_left_is_taken_over_and_a_living_ones_is_not() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("updraft-worker-w1.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let folder = home.path().to_owned();
    let adapt = |settings: &mut Settings| settings.home = Some(folder.clone());
    let first = Setup::with_settings("success", |_| {}, adapt).await;
    first.airflow.until_event("worker idle").await;
    let pid = told(&home, Command::Status).await.unwrap().pid;
    assert_eq!(pid, std::process::id());
    let second = Setup::with_settings("success", |_| {}, adapt).await;
    second.airflow.until_event("worker idle").await;
    second.end().await.unwrap();
    // The first one's is still there.
    assert!(told(&home, Command::Status).await.is_ok());
    assert_eq!(choose(home.path(), None, "x".into()).unwrap(), "w1");
    assert_eq!(
        choose(home.path(), Some("y".into()), "x".into()).unwrap(),
        "y"
    );
    first.end().await.unwrap();
    assert_eq!(choose(home.path(), None, "x".into()).unwrap(), "x");
}

/// Ports that nothing else in these tests uses.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let port = 20_000
            + (std::process::id() % 10_000) as u16
            + NEXT.fetch_add(1, Ordering::Relaxed) % 1000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[tokio::test]
async fn health_and_metrics_follow_the_heartbeats_and_the_jobs() {
    let port = port();
    let at = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let setup = Setup::with_settings(
        "success",
        |server| server.jobs.push_back(job()),
        |settings| {
            settings.metrics_address = Some(([127, 0, 0, 1], port).into());
            settings.heartbeat_interval = Duration::from_secs(1);
        },
    )
    .await;
    setup.airflow.until_event("job success").await;
    let asked = async |path: &str| {
        let answer = reqwest::get(at(path)).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let mut text = String::new();
    for _ in 0..100 {
        text = asked("/metrics").await.1;
        if text.contains("updraft_jobs_total{state=\"success\"} 1") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for line in [
        "updraft_jobs_total{state=\"success\"} 1",
        "updraft_slots 3",
        "updraft_worker_registered 1",
        "updraft_job_overhead_seconds_count 1",
    ] {
        assert!(
            text.lines().any(|seen| seen == line),
            "no {line} in\n{text}"
        );
    }
    assert!(text.contains("updraft_heartbeat_age_seconds "), "{text}");
    let (status, body) = asked("/health").await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("\"status\":\"healthy\""), "{body}");

    // The server hears nothing more of the worker.
    setup
        .airflow
        .set(|server| server.worker_beats = vec![(500, json!({})); 10_000].into());
    let unhealthy = async {
        while asked("/health").await.0 != 503 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(20), unhealthy).await.unwrap();
    setup.airflow.set(|server| server.worker_beats.clear());
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_metrics_address_that_is_taken_ends_the_worker_with_the_option_to_change() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let setup = Setup::with_settings(
        "success",
        |_| {},
        |settings| settings.metrics_address = Some(address),
    )
    .await;
    let error = timeout(Duration::from_secs(20), setup.worker)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains("metrics_address"), "{error}");
}
