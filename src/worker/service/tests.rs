//! A whole worker against a made-up API server that serves both APIs, with fake task processes.

mod commands;
mod faults;
mod runtimes;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use jsonwebtoken::Algorithm;
use pretty_assertions::assert_eq;
use reqwest::{Client, Url};
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::*;
use crate::airflow::bundle::DagBundles;
use crate::control_plane::execution_api::{ApiVersion, ExecutionApiSettings};
use crate::control_plane::retry::RetryPolicy;
use crate::secrets::Masker;
use crate::supervisor::cgroup::Allowance;
use crate::supervisor::heartbeat::HeartbeatLimits;
use crate::supervisor::{Limits, TaskCommand};
use crate::worker::{EdgeApi, LogFolder, Runtimes, Signing, Versions};

const TI: &str = "0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f";
const WHEN: &str = "2026-01-02T03:04:05.678901Z";

/// What the made-up server has been told, and what it is going to say.
#[derive(Default)]
struct Server {
    jobs: VecDeque<Value>,
    /// Every request that matters, in order, in a few words.
    events: Vec<String>,
    log: String,
    log_times: Vec<String>,
    /// Primary keys of the pieces of logs: the real server fails when one comes a second time.
    log_keys: BTreeSet<String>,
    /// The logs by task id.
    logs: BTreeMap<String, String>,
    /// Task ids of jobs that were reported as running, and as ended.
    begun_jobs: BTreeSet<String>,
    ended_jobs: BTreeSet<String>,
    should_retry: bool,
    /// The tasks are told apart by nothing: the end of one is not the end of all.
    several_tasks: bool,
    /// Before each answer to a heartbeat of the worker or a fetch.
    delay: Duration,
    /// Answers to the next registrations, heartbeats of the worker, `run`s and heartbeats of tasks.
    registrations: VecDeque<(u16, Value)>,
    worker_beats: VecDeque<(u16, Value)>,
    run: Option<(u16, Value)>,
    task_beat: Option<(u16, Value)>,
}

#[derive(Clone, Default)]
struct Airflow(Arc<Mutex<Server>>);

impl Respond for Airflow {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut server = self.0.lock().unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let path = request.url.path();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let ok = |body: Value| ResponseTemplate::new(200).set_body_json(body);
        if let Some(rest) = path.strip_prefix("/edge_worker/v1/") {
            if rest.starts_with("worker/") && request.method == "POST" {
                let versions = &body["sysinfo"];
                server.events.push(format!(
                    "register {} of {} and {}",
                    text(&body["state"]),
                    text(&versions["airflow_version"]),
                    text(&versions["edge_provider_version"])
                ));
                let answer = json!({"last_update": WHEN, "versions_match": true});
                let (status, answer) = server.registrations.pop_front().unwrap_or((200, answer));
                return ResponseTemplate::new(status).set_body_json(answer);
            }
            if rest.starts_with("worker/") {
                let state = body["state"].clone();
                server.events.push(format!("worker {}", text(&state)));
                let (status, mut answer) =
                    server.worker_beats.pop_front().unwrap_or((200, json!({})));
                let fields = answer.as_object_mut().unwrap();
                fields.entry("state").or_insert(state);
                fields.entry("queues").or_insert(body["queues"].clone());
                return ResponseTemplate::new(status)
                    .set_body_json(answer)
                    .set_delay(server.delay);
            }
            if rest.starts_with("jobs/fetch/") {
                assert_eq!(body["supports_task_instance_uuid"], true);
                let job = server.jobs.pop_front();
                if job.is_some() {
                    server
                        .events
                        .push(format!("fetch {}", body["free_concurrency"]));
                }
                return ok(job.unwrap_or_default()).set_delay(server.delay);
            }
            if rest.starts_with("jobs/state/") {
                let task_id = rest.split('/').nth(3).unwrap_or_default().to_owned();
                server.begun_jobs.insert(task_id.clone());
                if !rest.ends_with("/running") {
                    server.ended_jobs.insert(task_id);
                }
                server
                    .events
                    .push(format!("job {}", rest.rsplit('/').next().unwrap()));
                return ok(Value::Null);
            }
            if rest.starts_with("logs/push/") {
                server.events.push("push".into());
                let key = format!("{rest} {}", text(&body["log_chunk_time"]));
                if !server.log_keys.insert(key) {
                    return ResponseTemplate::new(500).set_body_string("Internal Server Error");
                }
                let task_id = rest.split('/').nth(3).unwrap_or_default().to_owned();
                let piece = text(&body["log_chunk_data"]);
                server.logs.entry(task_id).or_default().push_str(&piece);
                server
                    .log
                    .push_str(body["log_chunk_data"].as_str().unwrap());
                server.log_times.push(text(&body["log_chunk_time"]));
                return ok(Value::Null);
            }
        }
        if path == "/api/v2/version" {
            return ok(json!({"version": "3.2.2", "git_version": null}));
        }
        if path.ends_with("/run") {
            server.events.push(format!(
                "asks for {}",
                request.headers["airflow-api-version"].to_str().unwrap()
            ));
            server.events.push("run".into());
            let context = json!({"dag_run": {"dag_id": "d", "run_id": "r", "run_after": WHEN, "run_type": "manual",
                "state": "running"}, "max_tries": 2, "start_date": WHEN, "should_retry": server.should_retry});
            let (status, answer) = server.run.clone().unwrap_or((200, context));
            return ResponseTemplate::new(status)
                .set_body_json(answer)
                .insert_header("Refreshed-API-Token", "execution-token");
        }
        assert_eq!(
            request.headers["authorization"], "Bearer execution-token",
            "{path}"
        );
        if path.ends_with("/heartbeat") {
            let (status, answer) = server.task_beat.clone().unwrap_or((204, Value::Null));
            return ResponseTemplate::new(status).set_body_json(answer);
        }
        if path.ends_with("/state") {
            server.events.push(format!("ti {}", text(&body["state"])));
            // From now on a heartbeat would be refused, even before the worker has this answer.
            if !server.several_tasks {
                server.task_beat = Some((409, json!({"detail": {"reason": "not_running"}})));
            }
            return ResponseTemplate::new(204).set_delay(Duration::from_millis(200));
        }
        if path.contains("/connections/") {
            return ok(json!({"conn_id": "c", "conn_type": "http", "password": "hunter2-hunter2"}));
        }
        ResponseTemplate::new(404).set_body_json(json!({"detail": "not here"}))
    }
}

impl Airflow {
    fn set(&self, change: impl FnOnce(&mut Server)) {
        change(&mut self.0.lock().unwrap());
    }

    /// The requests so far, without the repeated beats of the worker.
    fn events(&self) -> Vec<String> {
        let mut events = self.0.lock().unwrap().events.clone();
        events.dedup();
        events
    }

    fn log(&self) -> String {
        self.0.lock().unwrap().log.clone()
    }

    async fn until(&self, what: &str, wanted: impl Fn(&Server) -> bool) {
        let waiting = async {
            while !wanted(&self.0.lock().unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(Duration::from_secs(30), waiting).await.is_err() {
            panic!("no {what}: {:?}\n{}", self.events(), self.log());
        }
    }

    async fn until_event(&self, event: &str) {
        self.until(event, |server| {
            server.events.iter().any(|seen| seen == event)
        })
        .await;
    }

    async fn until_log(&self, part: &str) {
        self.until(part, |server| server.log.contains(part)).await;
    }
}

struct Setup {
    airflow: Airflow,
    shutdown: mpsc::UnboundedSender<Wish>,
    worker: JoinHandle<Result<(), WorkerError>>,
    logs: TempDir,
    _server: MockServer,
}

impl Setup {
    /// A worker whose tasks do what `scenario` says.
    async fn with(scenario: &str, prepare: impl FnOnce(&mut Server)) -> Self {
        Self::with_settings(scenario, prepare, |_| {}).await
    }

    async fn with_settings(
        scenario: &str,
        prepare: impl FnOnce(&mut Server),
        adapt: impl FnOnce(&mut Settings),
    ) -> Self {
        let airflow = Airflow::default();
        airflow.set(prepare);
        let server = MockServer::start().await;
        Mock::given(any())
            .respond_with(airflow.clone())
            .mount(&server)
            .await;
        Self::at(&server.uri(), airflow, server, scenario, adapt).await
    }

    /// A worker that reaches `server` at `address`.
    async fn at(
        address: &str,
        airflow: Airflow,
        server: MockServer,
        scenario: &str,
        adapt: impl FnOnce(&mut Settings),
    ) -> Self {
        let logs = TempDir::new().unwrap();
        let milliseconds = Duration::from_millis;
        let retry = RetryPolicy {
            attempts: 2,
            wait_min: Duration::ZERO,
            wait_max: Duration::ZERO,
            outage: Duration::from_secs(20),
        };
        let signing = Signing {
            secret: "made-up-secret".into(),
            algorithm: Algorithm::HS512,
            kid: "not-used".into(),
            issuer: None,
            leeway: Duration::from_secs(10),
        };
        let url = |path: &str| Url::parse(&format!("{address}{path}")).unwrap();
        let mut settings = Settings {
            name: "w1".into(),
            queues: Some(vec!["agents".into()]),
            bundles: DagBundles::default(),
            concurrency: 3,
            team_name: None,
            versions: Versions::new(None, None),
            edge: EdgeApi::new(Client::new(), url("/edge_worker/v1/rpcapi"), signing, retry),
            execution: ExecutionApiSettings {
                http: Client::new(),
                base: url("/execution/"),
                version: ApiVersion::default(),
                retry,
                timeout: Duration::from_secs(5),
            },
            poll_interval: milliseconds(30),
            proxy_patience: Duration::from_secs(2),
            heartbeat_interval: milliseconds(60),
            drain_timeout: None,
            drain_kill_grace: Duration::from_secs(20),
            push_logs: Some(40),
            logs: LogFolder {
                base: logs.path().to_owned(),
                folder_mode: 0o775,
                file_mode: 0o664,
            },
            masker: Masker::new(),
            task_heartbeats: HeartbeatLimits {
                interval: milliseconds(50),
                max_failed: 3,
                max_silence: Duration::from_secs(60),
            },
            limits: Limits {
                kill_grace: milliseconds(500),
                ..Limits::default()
            },
            command: TaskCommand {
                program: std::env::current_exe().unwrap(),
                arguments: [
                    "--exact",
                    "supervisor::run::tests::fake_task",
                    "--nocapture",
                    "--",
                ]
                .map(Into::into)
                .to_vec(),
                environment: vec![("FAKE_TASK".into(), scenario.into())],
                cgroups: None,
            },
            runtimes: Runtimes::default(),
            unixname: "airflow".into(),
            allowance: Allowance::default(),
            home: None,
            metrics_address: None,
            metrics: Arc::default(),
        };
        adapt(&mut settings);
        let (shutdown, receiver) = mpsc::unbounded_channel();
        let worker = tokio::spawn(run(settings, shutdown.clone(), receiver));
        Self {
            airflow,
            shutdown,
            worker,
            logs,
            _server: server,
        }
    }

    async fn end(self) -> Result<(), WorkerError> {
        let _ = self.shutdown.send(Wish::End);
        timeout(Duration::from_secs(30), self.worker)
            .await
            .unwrap()
            .unwrap()
    }
}

fn job() -> Value {
    json!({"dag_id": "d", "task_id": "t", "run_id": "r", "map_index": -1, "try_number": 1, "concurrency_slots": 2,
        "task_instance_id": null, "command": {"type": "ExecuteTask", "token": "workload-token",
        "dag_rel_path": "d.py", "bundle_info": {"name": "dags-folder", "version": null},
        "log_path": "dag_id=d/run_id=r/task_id=t/attempt=1.log",
        "ti": {"id": TI, "task_id": "t", "dag_id": "d", "run_id": "r", "try_number": 1, "map_index": -1,
            "dag_version_id": "0199a0c1-0000-7000-8000-000000000001", "hostname": null, "context_carrier": null,
            "queue": "agents", "pool_slots": 2, "priority_weight": 1}, "sentry_integration": ""}})
}

fn position(events: &[String], event: &str) -> usize {
    events
        .iter()
        .position(|seen| seen == event)
        .unwrap_or_else(|| panic!("no {event} in {events:?}"))
}

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
