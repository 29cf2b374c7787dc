//! A whole worker against a made-up API server that serves both APIs, with fake task processes.

mod commands;
mod faults;
mod runtimes;
mod server;

use pretty_assertions::assert_eq;
use serde_json::json;
use tempfile::TempDir;
use wiremock::MockServer;

use self::server::{Airflow, Server, Setup, job, position};
use super::*;

#[tokio::test]
async fn a_job_is_run_its_log_pushed_and_its_end_reported_in_this_order() {
    let setup = Setup::with("success", |server| server.jobs.push_back(job())).await;
    let airflow = setup.airflow.clone();
    airflow.until_event("job success").await;
    let file = std::fs::read_to_string(
        setup
            .logs
            .path()
            .join("dag_id=d/run_id=r/task_id=t/attempt=1.log"),
    )
    .unwrap();
    setup.end().await.unwrap();
    let events = airflow.events();
    assert_eq!(events[0], "register starting of 3.3.2 and 5.1.0");
    assert_eq!(events.last().unwrap(), "worker offline");
    assert!(
        position(&events, "run") < position(&events, "ti success"),
        "{events:?}"
    );
    assert!(
        position(&events, "ti success") < position(&events, "job success"),
        "{events:?}"
    );
    let last_push = events.iter().rposition(|event| event == "push").unwrap();
    assert!(last_push < position(&events, "job success"), "{events:?}");
    assert!(events.contains(&"fetch 3".to_owned()));
    assert_eq!(airflow.log(), file);
    assert!(
        file.contains("*** and ***") && !file.contains("hunter2"),
        "{file}"
    );
    let times = airflow.0.lock().unwrap().log_times.clone();
    let mut unique = times.clone();
    unique.sort();
    unique.dedup();
    assert!(times.len() > 2 && unique == times, "{times:?}");
}

#[tokio::test]
async fn a_failed_try_is_a_job_that_succeeded() {
    let setup = Setup::with("fails", |server| server.jobs.push_back(job())).await;
    setup.airflow.until_event("job success").await;
    assert!(setup.airflow.events().contains(&"ti failed".into()));
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_task_process_that_dies_is_reported_as_the_server_wants_failures() {
    let setup = Setup::with("dies by signal", |server| {
        server.jobs.push_back(job());
        server.should_retry = true;
    })
    .await;
    setup.airflow.until_event("job success").await;
    assert!(setup.airflow.events().contains(&"ti up_for_retry".into()));
    assert!(setup.airflow.log().contains("SIGKILL"));
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_heartbeat_that_the_server_refuses_ends_the_task_without_a_state() {
    for status in [404, 409, 410] {
        let setup = Setup::with("hangs", |server| {
            server.jobs.push_back(job());
            server.task_beat = Some((
                status,
                json!({"detail": {"reason": "not_running", "current_state": "failed"}}),
            ));
        })
        .await;
        setup.airflow.until_event("job failed").await;
        let events = setup.airflow.events();
        assert!(
            !events.iter().any(|event| event.starts_with("ti ")),
            "{events:?}"
        );
        assert!(setup.airflow.log().contains("Task killed!"));
        setup.end().await.unwrap();
    }
}

#[tokio::test]
async fn a_try_that_runs_elsewhere_is_left_alone() {
    let refusal = json!({"detail": {"reason": "invalid_state", "previous_state": "running"}});
    let setup = Setup::with("hangs", |server| {
        server.jobs.push_back(job());
        server.run = Some((409, refusal));
    })
    .await;
    setup.airflow.until_log("runs somewhere else").await;
    let airflow = setup.airflow.clone();
    setup.end().await.unwrap();
    let events = airflow.events();
    assert!(
        !events
            .iter()
            .any(|event| event == "job failed" || event == "job success"),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_try_that_the_server_does_not_let_begin_is_a_failed_job() {
    for (status, words) in [(404, "knows no such try"), (403, "task_queued_timeout")] {
        let setup = Setup::with("hangs", |server| {
            server.jobs.push_back(job());
            server.run = Some((status, json!({"detail": "no"})));
        })
        .await;
        setup.airflow.until_event("job failed").await;
        assert!(
            setup.airflow.log().contains(words),
            "{}",
            setup.airflow.log()
        );
        setup.end().await.unwrap();
    }
}

#[tokio::test]
async fn the_first_wish_to_end_drains_and_the_second_terminates() {
    let setup = Setup::with("hangs", |server| server.jobs.push_back(job())).await;
    setup.airflow.until_log("working").await;
    setup.shutdown.send(Wish::End).unwrap();
    setup.airflow.until_event("worker terminating").await;
    setup.airflow.set(|server| server.jobs.push_back(job()));
    assert!(!setup.worker.is_finished());
    setup.shutdown.send(Wish::End).unwrap();
    setup.airflow.until_event("worker offline").await;
    let airflow = setup.airflow.clone();
    setup.end().await.unwrap();
    let events = airflow.events();
    assert!(
        position(&events, "ti failed") < position(&events, "job success"),
        "{events:?}"
    );
    assert_eq!(
        airflow.0.lock().unwrap().jobs.len(),
        1,
        "no job is fetched while draining"
    );
    assert!(airflow.log().contains("terminating the task"));
}

#[tokio::test]
async fn a_drain_timeout_is_kept_while_the_server_takes_its_time() {
    let setup = Setup::with_settings(
        "hangs",
        |server| server.jobs.push_back(job()),
        |settings| settings.drain_timeout = Some(Duration::from_millis(300)),
    )
    .await;
    setup.airflow.until_log("working").await;
    setup
        .airflow
        .set(|server| server.delay = Duration::from_secs(15));
    // A request that is answered late is on its way by now.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let told = Instant::now();
    setup.shutdown.send(Wish::End).unwrap();
    setup.airflow.until_log("drain timeout").await;
    setup.airflow.until_event("job success").await;
    assert!(
        told.elapsed() < Duration::from_secs(8),
        "{:?}",
        told.elapsed()
    );
    setup.airflow.set(|server| server.delay = Duration::ZERO);
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_second_signal_is_heard_while_the_server_takes_its_time() {
    let setup = Setup::with("hangs", |server| server.jobs.push_back(job())).await;
    setup.airflow.until_log("working").await;
    setup
        .airflow
        .set(|server| server.delay = Duration::from_secs(15));
    tokio::time::sleep(Duration::from_millis(150)).await;
    let told = Instant::now();
    for _ in 0..2 {
        setup.shutdown.send(Wish::End).unwrap();
    }
    setup.airflow.until_event("job success").await;
    assert!(
        told.elapsed() < Duration::from_secs(8),
        "{:?}",
        told.elapsed()
    );
    assert!(setup.airflow.log().contains("terminating the task"));
    setup.airflow.set(|server| server.delay = Duration::ZERO);
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_proxy_that_finds_no_server_yet_is_waited_for_and_airflows_own_word_is_not() {
    let setup = Setup::with("success", |server| {
        server.registrations = vec![(404, json!("no backend")); 2].into();
        server.jobs.push_back(job());
    })
    .await;
    setup.airflow.until_event("job success").await;
    setup.end().await.unwrap();

    let of = |answer: Value, patience: u64| async move {
        let setup = Setup::with_settings(
            "success",
            |server| server.registrations = vec![(404, answer); 100].into(),
            |settings| settings.proxy_patience = Duration::from_millis(patience),
        )
        .await;
        let error = timeout(Duration::from_secs(30), setup.worker)
            .await
            .unwrap()
            .unwrap()
            .unwrap_err();
        assert!(
            error.to_string().contains("apache-airflow-providers-edge3"),
            "{error}"
        );
        setup.airflow.0.lock().unwrap().events.len()
    };
    assert_eq!(of(json!({"detail": "Not Found"}), 60_000).await, 1);
    assert!(of(json!("no backend"), 300).await > 1);
}

#[tokio::test]
async fn a_server_that_is_down_at_start_is_waited_for() {
    let setup = Setup::with("success", |server| {
        server.registrations = vec![(503, Value::Null); 2].into();
        server.jobs.push_back(job());
    })
    .await;
    setup.airflow.until_event("job success").await;
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_down_later_leaves_running_tasks_unharmed() {
    let setup = Setup::with("hangs", |server| server.jobs.push_back(job())).await;
    setup.airflow.until_log("working").await;
    setup.airflow.set(|server| {
        server.worker_beats = [(503, json!({})), (502, json!({})), (500, json!({}))].into();
        server.task_beat = Some((503, Value::Null));
    });
    setup
        .airflow
        .until("beats", |server| server.worker_beats.is_empty())
        .await;
    setup.airflow.set(|server| server.task_beat = None);
    assert!(
        !setup
            .airflow
            .events()
            .iter()
            .any(|event| event.starts_with("job ") && event != "job running")
    );
    setup.shutdown.send(Wish::End).unwrap();
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_refused_registration_ends_the_worker_with_advice() {
    let taken = (409, json!({"detail": "taken"}));
    let setup = Setup::with("success", |server| server.registrations = [taken].into()).await;
    let error = timeout(Duration::from_secs(30), setup.worker)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains("--worker-name"), "{error}");
}

#[tokio::test]
async fn a_worker_that_the_server_has_forgotten_registers_again() {
    let setup = Setup::with("success", |server| {
        server.worker_beats = [(404, json!({"detail": "Worker not found"}))].into();
    })
    .await;
    let twice = |server: &Server| {
        server
            .events
            .iter()
            .filter(|event| event.starts_with("register starting"))
            .count()
            == 2
    };
    setup.airflow.until("second registration", twice).await;
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_name_that_somebody_else_has_taken_meanwhile_leaves_running_tasks_unharmed() {
    let setup = Setup::with("waits", |server| server.jobs.push_back(job())).await;
    setup.airflow.until_log("working").await;
    setup.airflow.set(|server| {
        server.registrations = [(409, json!({"detail": "taken"}))].into();
        server.worker_beats = [(404, json!({"detail": "Worker not found"}))].into();
    });
    let error = timeout(Duration::from_secs(30), setup.worker)
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    assert!(error.to_string().contains("--worker-name"), "{error}");
    let events = setup.airflow.events();
    assert!(
        position(&events, "ti success") < position(&events, "job success"),
        "{events:?}"
    );
    // The other worker of this name is not to be reported as gone.
    assert!(!events.contains(&"worker offline".to_owned()), "{events:?}");
}

#[tokio::test]
async fn a_worker_that_is_forgotten_while_it_drains_lets_its_tasks_finish() {
    let setup = Setup::with("waits", |server| server.jobs.push_back(job())).await;
    setup.airflow.until_log("working").await;
    setup.airflow.set(|server| {
        server.worker_beats = [(404, json!({"detail": "Worker not found"}))].into();
    });
    setup.shutdown.send(Wish::End).unwrap();
    timeout(Duration::from_secs(30), setup.worker)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    let events = setup.airflow.events();
    assert!(
        position(&events, "ti success") < position(&events, "job success"),
        "{events:?}"
    );
}

#[tokio::test]
async fn maintenance_stops_fetching_and_a_server_upgrade_drains() {
    let setup = Setup::with("success", |server| {
        server.worker_beats = [(
            200,
            json!({"state": "maintenance request", "maintenance_comments": "disk"}),
        )]
        .into();
    })
    .await;
    setup.airflow.until_event("worker maintenance mode").await;
    setup.airflow.set(|server| server.jobs.push_back(job()));
    setup.airflow.set(|server| {
        server
            .worker_beats
            .push_back((200, json!({"state": "maintenance mode"})))
    });
    setup
        .airflow
        .until("beat", |server| server.worker_beats.is_empty())
        .await;
    assert!(!setup.airflow.events().contains(&"run".into()));
    setup.airflow.set(|server| {
        server
            .worker_beats
            .push_back((200, json!({"state": "idle"})))
    });
    setup.airflow.until_event("job success").await;
    setup.airflow.set(|server| {
        server
            .worker_beats
            .push_back((400, json!({"detail": "3.3.3"})))
    });
    setup.airflow.until_event("worker offline").await;
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_shutdown_request_of_the_server_drains() {
    let setup = Setup::with("success", |server| {
        server.worker_beats = [(200, json!({"state": "shutdown request"}))].into();
    })
    .await;
    let result = timeout(Duration::from_secs(30), setup.worker)
        .await
        .unwrap()
        .unwrap();
    assert!(result.is_ok());
    assert_eq!(setup.airflow.events().last().unwrap(), "worker offline");
}

#[tokio::test]
async fn the_servers_number_of_slots_counts() {
    let setup = Setup::with("hangs", |server| {
        server.jobs = [job(), job()].into();
        server.worker_beats = vec![(200, json!({"concurrency": 2})); 500].into();
    })
    .await;
    setup.airflow.until_log("working").await;
    // Two slots, both taken by the first job.
    setup
        .airflow
        .until("beats", |server| server.worker_beats.len() < 490)
        .await;
    assert_eq!(setup.airflow.0.lock().unwrap().jobs.len(), 1);
    setup.shutdown.send(Wish::End).unwrap();
    setup.end().await.unwrap();
}

#[tokio::test]
async fn work_for_python_and_malformed_work_are_failed_jobs() {
    let callback = json!({"dag_id": "ExecuteCallback", "task_id": "x", "run_id": "ExecuteCallback-x", "map_index": -1,
        "try_number": 0, "concurrency_slots": 1, "command": {"type": "ExecuteCallback", "callback": {}}});
    let mut malformed = job();
    malformed["command"] = json!({"type": "ExecuteTask"});
    let setup = Setup::with("success", |server| {
        server.jobs = [callback, malformed].into()
    })
    .await;
    let both = |server: &Server| {
        server
            .events
            .iter()
            .filter(|event| *event == "job failed")
            .count()
            == 2
    };
    setup.airflow.until("failed jobs", both).await;
    setup.end().await.unwrap();
}

#[tokio::test]
async fn ids_that_cannot_be_addressed_do_no_harm() {
    let mut odd = job();
    odd["dag_id"] = json!("a/b");
    let setup = Setup::with("success", |server| {
        server.several_tasks = true;
        server.jobs = [odd, job()].into();
    })
    .await;
    setup.airflow.until_event("job success").await;
    setup.end().await.unwrap();
}

#[tokio::test]
async fn a_log_folder_that_cannot_be_written_costs_the_local_file_only() {
    let mut lost = job();
    lost["command"]["log_path"] = json!("../outside.log");
    let setup = Setup::with("success", |server| server.jobs.push_back(lost)).await;
    setup.airflow.until_event("job success").await;
    assert!(setup.airflow.log().contains("working"));
    assert!(
        !setup
            .logs
            .path()
            .parent()
            .unwrap()
            .join("outside.log")
            .exists()
    );
    setup.end().await.unwrap();
}
