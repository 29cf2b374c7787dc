//! The made-up API server, and a worker that talks to it.

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

pub(super) const TI: &str = "0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f";
pub(super) const WHEN: &str = "2026-01-02T03:04:05.678901Z";

/// What the made-up server has been told, and what it is going to say.
#[derive(Default)]
pub(super) struct Server {
    pub(in crate::worker::service) jobs: VecDeque<Value>,
    /// Every request that matters, in order, in a few words.
    pub(in crate::worker::service) events: Vec<String>,
    pub(in crate::worker::service) log: String,
    pub(in crate::worker::service) log_times: Vec<String>,
    /// Primary keys of the pieces of logs: the real server fails when one comes a second time.
    pub(in crate::worker::service) log_keys: BTreeSet<String>,
    /// The logs by task id.
    pub(in crate::worker::service) logs: BTreeMap<String, String>,
    /// Task ids of jobs that were reported as running, and as ended.
    pub(in crate::worker::service) begun_jobs: BTreeSet<String>,
    pub(in crate::worker::service) ended_jobs: BTreeSet<String>,
    pub(in crate::worker::service) should_retry: bool,
    /// The tasks are told apart by nothing: the end of one is not the end of all.
    pub(in crate::worker::service) several_tasks: bool,
    /// Before each answer to a heartbeat of the worker or a fetch.
    pub(in crate::worker::service) delay: Duration,
    /// Answers to the next registrations, heartbeats of the worker, `run`s and heartbeats of tasks.
    pub(in crate::worker::service) registrations: VecDeque<(u16, Value)>,
    pub(in crate::worker::service) worker_beats: VecDeque<(u16, Value)>,
    pub(in crate::worker::service) run: Option<(u16, Value)>,
    pub(in crate::worker::service) task_beat: Option<(u16, Value)>,
}

#[derive(Clone, Default)]
pub(super) struct Airflow(pub(in crate::worker::service) Arc<Mutex<Server>>);

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
    pub(in crate::worker::service) fn set(&self, change: impl FnOnce(&mut Server)) {
        change(&mut self.0.lock().unwrap());
    }

    /// The requests so far, without the repeated beats of the worker.
    pub(in crate::worker::service) fn events(&self) -> Vec<String> {
        let mut events = self.0.lock().unwrap().events.clone();
        events.dedup();
        events
    }

    pub(in crate::worker::service) fn log(&self) -> String {
        self.0.lock().unwrap().log.clone()
    }

    pub(in crate::worker::service) async fn until(
        &self,
        what: &str,
        wanted: impl Fn(&Server) -> bool,
    ) {
        let waiting = async {
            while !wanted(&self.0.lock().unwrap()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(Duration::from_secs(30), waiting).await.is_err() {
            panic!("no {what}: {:?}\n{}", self.events(), self.log());
        }
    }

    pub(in crate::worker::service) async fn until_event(&self, event: &str) {
        self.until(event, |server| {
            server.events.iter().any(|seen| seen == event)
        })
        .await;
    }

    pub(in crate::worker::service) async fn until_log(&self, part: &str) {
        self.until(part, |server| server.log.contains(part)).await;
    }
}

pub(super) struct Setup {
    pub(in crate::worker::service) airflow: Airflow,
    pub(in crate::worker::service) shutdown: mpsc::UnboundedSender<Wish>,
    pub(in crate::worker::service) worker: JoinHandle<Result<(), WorkerError>>,
    pub(in crate::worker::service) logs: TempDir,
    _server: MockServer,
}

impl Setup {
    /// A worker whose tasks do what `scenario` says.
    pub(in crate::worker::service) async fn with(
        scenario: &str,
        prepare: impl FnOnce(&mut Server),
    ) -> Self {
        Self::with_settings(scenario, prepare, |_| {}).await
    }

    pub(in crate::worker::service) async fn with_settings(
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
    pub(in crate::worker::service) async fn at(
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

    pub(in crate::worker::service) async fn end(self) -> Result<(), WorkerError> {
        let _ = self.shutdown.send(Wish::End);
        timeout(Duration::from_secs(30), self.worker)
            .await
            .unwrap()
            .unwrap()
    }
}

pub(super) fn job() -> Value {
    json!({"dag_id": "d", "task_id": "t", "run_id": "r", "map_index": -1, "try_number": 1, "concurrency_slots": 2,
        "task_instance_id": null, "command": {"type": "ExecuteTask", "token": "workload-token",
        "dag_rel_path": "d.py", "bundle_info": {"name": "dags-folder", "version": null},
        "log_path": "dag_id=d/run_id=r/task_id=t/attempt=1.log",
        "ti": {"id": TI, "task_id": "t", "dag_id": "d", "run_id": "r", "try_number": 1, "map_index": -1,
            "dag_version_id": "0199a0c1-0000-7000-8000-000000000001", "hostname": null, "context_carrier": null,
            "queue": "agents", "pool_slots": 2, "priority_weight": 1}, "sentry_integration": ""}})
}

pub(super) fn position(events: &[String], event: &str) -> usize {
    events
        .iter()
        .position(|seen| seen == event)
        .unwrap_or_else(|| panic!("no {event} in {events:?}"))
}
