//! A supervisor against task processes that behave well, badly, or not at all. The processes are this test binary,
//! started again with one scenario in `FAKE_TASK`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;

use async_trait::async_trait;
use pretty_assertions::assert_eq;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::super::task_log::tests::Kept;
use super::super::task_process::TaskCommand;
use super::*;
use crate::airflow::connection::Connection;
use crate::airflow::frame::{MAX_FRAME_BYTES, ReplyFrame, RequestFrame};
use crate::airflow::supervisor::{ErrorKind, ErrorResponse, TaskReply};

const WHEN: &str = "2026-01-02T03:04:05.678901Z";
const SCENARIO: &str = "FAKE_TASK";

/// Where two requests wait for each other.
struct Meeting(tokio::sync::Barrier);

impl Default for Meeting {
    fn default() -> Self {
        Self(tokio::sync::Barrier::new(2))
    }
}

/// Remembers what it has answered; refuses the requests it is told to.
#[derive(Default)]
struct Recorder {
    seen: Mutex<Vec<TaskRequest>>,
    refusals: Mutex<VecDeque<ErrorResponse>>,
    meeting: Meeting,
}

#[async_trait]
impl ControlPlane for Recorder {
    async fn handle(&self, request: TaskRequest) -> Result<TaskReply, ErrorResponse> {
        let terminal = request.is_terminal();
        if matches!(&request, TaskRequest::SetXCom { key, .. } if key == "meet") {
            self.meeting.0.wait().await;
        }
        let answer = match &request {
            TaskRequest::GetConnection { conn_id } => Ok(TaskReply::Connection(Connection {
                conn_id: conn_id.clone(),
                conn_type: "http".into(),
                password: Some("hunter2-hunter2".into()),
                ..Connection::default()
            })),
            TaskRequest::GetVariable { .. } => {
                Err(ErrorResponse::new(ErrorKind::VariableNotFound, "not there"))
            }
            _ => Ok(TaskReply::Done),
        };
        self.seen.lock().unwrap().push(request);
        let refusal = if terminal {
            self.refusals.lock().unwrap().pop_front()
        } else {
            None
        };
        refusal.map_or(answer, Err)
    }
}

impl Recorder {
    fn states(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter()
            .filter(|request| request.is_terminal())
            .map(|request| FinalState::of(request).as_str().into())
            .collect()
    }
}

struct Ran {
    outcome: Outcome,
    log: Kept,
    control_plane: Arc<Recorder>,
}

impl Ran {
    fn has_event(&self, part: &str) -> bool {
        self.log.events().iter().any(|event| event.contains(part))
    }
}

struct Run {
    scenario: &'static str,
    should_retry: bool,
    control_plane: Recorder,
    stop: Option<StopReason>,
    overtime: Duration,
}

impl Run {
    fn of(scenario: &'static str) -> Self {
        Self {
            scenario,
            should_retry: false,
            control_plane: Recorder::default(),
            stop: None,
            overtime: Duration::from_secs(20),
        }
    }

    async fn wait(self) -> Ran {
        let command = TaskCommand {
            program: std::env::current_exe().unwrap(),
            arguments: [
                "--exact",
                "supervisor::run::tests::fake_task",
                "--nocapture",
                "--",
            ]
            .map(Into::into)
            .to_vec(),
            environment: vec![(SCENARIO.into(), self.scenario.into())],
            cgroups: None,
        };
        let process = TaskProcess::spawn(&command).await.unwrap();
        let startup = serde_json::from_value(json!({
            "ti": {"id": "0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f", "task_id": "t", "dag_id": "d", "run_id": "r",
                "try_number": 1},
            "dag_rel_path": "d.py", "bundle_info": {"name": "dags-folder"}, "start_date": WHEN,
            "ti_context": {"dag_run": {"dag_id": "d", "run_id": "r", "run_after": WHEN, "run_type": "manual",
                "state": "running"}, "max_tries": 2, "should_retry": self.should_retry},
        }))
        .unwrap();
        let log = Kept::default();
        let control_plane = Arc::new(self.control_plane);
        let (sender, stop) = stop_channel();
        let stop_at = self.stop;
        let watched = log.clone();
        let stopper = tokio::spawn(async move {
            if let Some(reason) = stop_at {
                // The task says that it runs before it is stopped.
                while !watched.events().iter().any(|event| event == "working") {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                sender.send(Some(reason)).unwrap();
            }
            std::future::pending::<()>().await;
        });
        let running = run_task(SupervisedTask {
            process,
            startup,
            control_plane: control_plane.clone(),
            log: log.log(),
            limits: Limits {
                startup: Duration::from_secs(20),
                kill_grace: Duration::from_millis(300),
                overtime: self.overtime,
                cleanup: Duration::from_secs(5),
            },
            stop,
            ended: CancellationToken::new(),
        });
        let outcome = tokio::time::timeout(Duration::from_secs(60), running)
            .await
            .unwrap();
        stopper.abort();
        Ran {
            outcome,
            log,
            control_plane,
        }
    }
}

fn state(state: FinalState) -> Outcome {
    Outcome {
        state,
        delivered: true,
    }
}

/// The other side: what a task process does in each scenario.
#[tokio::test]
async fn fake_task() {
    let Ok(scenario) = std::env::var(SCENARIO) else {
        return;
    };
    let address = |option: &str| -> SocketAddr {
        std::env::args()
            .find_map(|argument| argument.strip_prefix(option)?.parse().ok())
            .unwrap()
    };
    if scenario == "exits at once" {
        eprintln!("no such thing");
        std::process::exit(3);
    }
    let mut comm = TcpStream::connect(address("--comm=")).await.unwrap();
    let mut logs = TcpStream::connect(address("--logs=")).await.unwrap();
    let startup = ReplyFrame::read(&mut comm, MAX_FRAME_BYTES)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (startup.id, &startup.body["type"]),
        (0, &json!("StartupDetails"))
    );
    assert_eq!(startup.body["start_date"], WHEN);
    logs.write_all(b"{\"level\":\"info\",\"event\":\"working\"}\n")
        .await
        .unwrap();
    if scenario == "asks side by side" {
        let xcom = json!({"type": "SetXCom", "key": "meet", "value": 1, "dag_id": "d", "run_id": "r", "task_id": "t"});
        let end = json!({"type": "SucceedTask", "end_date": WHEN, "task_outlets": [], "outlet_events": []});
        for (id, body) in [(1, xcom.clone()), (2, xcom), (3, end)] {
            let frame = RequestFrame {
                id,
                body,
                context_carrier: None,
            };
            frame.write(&mut comm).await.unwrap();
        }
        let mut answered = Vec::new();
        for _ in 0..3 {
            let reply = ReplyFrame::read(&mut comm, MAX_FRAME_BYTES)
                .await
                .unwrap()
                .unwrap();
            answered.push(reply.id);
        }
        assert_eq!(answered[2], 3, "the end is answered last: {answered:?}");
        std::process::exit(0);
    }
    let mut next_id = 0;
    let mut ask = async |body: Value| {
        next_id += 1;
        RequestFrame {
            id: next_id,
            body,
            context_carrier: None,
        }
        .write(&mut comm)
        .await
        .unwrap();
        let reply = ReplyFrame::read(&mut comm, MAX_FRAME_BYTES)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(reply.id, next_id);
        reply
    };
    let success =
        json!({"type": "SucceedTask", "end_date": WHEN, "task_outlets": [], "outlet_events": []});
    match scenario.as_str() {
        "success" => {
            let connection = ask(json!({"type": "GetConnection", "conn_id": "c"})).await;
            assert_eq!(connection.body["type"], "ConnectionResult");
            let missing = ask(json!({"type": "GetVariable", "key": "k"})).await;
            assert_eq!(
                (&missing.body["error"], &missing.error),
                (&json!("VARIABLE_NOT_FOUND"), &Value::Null)
            );
            let invalid = ask(json!({"type": "GetXCom"})).await;
            assert_eq!(invalid.error["type"], "ErrorResponse");
            ask(json!({"type": "MaskSecret", "value": ["masked-by-hand"]})).await;
            let line = json!({"level": "info", "event": "hunter2-hunter2 and masked-by-hand", "logger": "x"});
            logs.write_all(format!("{line}\n").as_bytes())
                .await
                .unwrap();
            println!("printed");
            ask(success).await;
        }
        "fails" => {
            ask(json!({"type": "TaskState", "state": "failed", "end_date": WHEN})).await;
        }
        "skips" => {
            ask(json!({"type": "TaskState", "state": "skipped", "end_date": WHEN})).await;
        }
        "retries" => {
            ask(json!({"type": "RetryTask", "end_date": WHEN, "retry_reason": "because"})).await;
        }
        "dies by signal" => nix::sys::signal::raise(Signal::SIGKILL).unwrap(),
        "exits 0" => {}
        "exits 7" => std::process::exit(7),
        "hangs" => tokio::time::sleep(Duration::from_secs(600)).await,
        "waits" => {
            tokio::time::sleep(Duration::from_secs(2)).await;
            ask(success).await;
        }
        "hangs after success" => {
            ask(success).await;
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        "ignores SIGTERM" => {
            let mut sigterm =
                tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
            loop {
                sigterm.recv().await;
            }
        }
        "sends garbage" => {
            comm.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        "closes in the middle of a frame" => comm.write_all(&[0, 0, 0, 9, 1]).await.unwrap(),
        "leaves a child behind" => {
            std::process::Command::new("/bin/sh")
                .args(["-c", "sleep 600 &"])
                .status()
                .unwrap();
            ask(success).await;
        }
        other => panic!("no scenario {other}"),
    }
    std::process::exit(0);
}

#[tokio::test]
async fn a_task_that_succeeds_has_its_requests_answered_and_its_secrets_masked() {
    let ran = Run::of("success").wait().await;
    assert_eq!(ran.outcome, state(FinalState::Success));
    assert_eq!(ran.control_plane.states(), ["success"]);
    assert!(ran.has_event("*** and ***"), "{:?}", ran.log.events());
    let printed = ran
        .log
        .records()
        .into_iter()
        .find(|record| record["event"] == "printed")
        .unwrap();
    assert_eq!(
        (&printed["logger"], &printed["level"]),
        (&json!("task.stdout"), &json!("info"))
    );
}

#[tokio::test]
async fn requests_sent_without_waiting_are_answered_side_by_side_and_the_end_waits_for_them() {
    let ran = tokio::time::timeout(Duration::from_secs(20), Run::of("asks side by side").wait());
    let ran = ran.await.expect("each request waits for the other");
    assert_eq!(ran.outcome, state(FinalState::Success));
    let seen = ran.control_plane.seen.lock().unwrap();
    let ends: Vec<_> = seen.iter().map(TaskRequest::is_terminal).collect();
    assert_eq!(ends, [false, false, true]);
}

#[tokio::test]
async fn a_task_state_is_forwarded_once_the_process_is_gone() {
    let ran = Run::of("fails").wait().await;
    assert_eq!(ran.outcome, state(FinalState::Failed));
    assert_eq!(ran.control_plane.states(), ["failed"]);
    let ran = Run::of("skips").wait().await;
    assert_eq!(ran.outcome, state(FinalState::Skipped));
}

#[tokio::test]
async fn a_task_that_asks_for_a_retry_is_up_for_retry() {
    let ran = Run {
        should_retry: true,
        ..Run::of("retries")
    }
    .wait()
    .await;
    assert_eq!(ran.outcome, state(FinalState::UpForRetry));
}

#[tokio::test]
async fn a_process_that_dies_without_a_word_is_a_failed_try_with_its_exit_status_in_the_log() {
    let ran = Run::of("exits 7").wait().await;
    assert_eq!(ran.outcome, state(FinalState::Failed));
    assert!(ran.has_event("exit status 7"), "{:?}", ran.log.events());
    let ran = Run {
        should_retry: true,
        ..Run::of("dies by signal")
    }
    .wait()
    .await;
    assert_eq!(ran.outcome, state(FinalState::UpForRetry));
    assert!(ran.has_event("SIGKILL"), "{:?}", ran.log.events());
    let ran = Run::of("exits 0").wait().await;
    assert_eq!(ran.outcome, state(FinalState::Failed));
    assert!(ran.has_event("exit status 0"), "{:?}", ran.log.events());
}

#[tokio::test]
async fn a_process_that_ends_before_it_connects_is_a_failed_try_with_its_stderr_in_the_log() {
    let ran = Run::of("exits at once").wait().await;
    assert_eq!(ran.outcome, state(FinalState::Failed));
    assert!(
        ran.has_event("before it had connected") && ran.has_event("no such thing"),
        "{:?}",
        ran.log.events()
    );
}

#[tokio::test]
async fn a_task_that_the_server_disowns_is_stopped_and_nothing_is_reported() {
    let stop = StopReason::ServerTerminated {
        elsewhere: false,
        detail: "gone".into(),
    };
    let ran = Run {
        stop: Some(stop),
        should_retry: true,
        ..Run::of("hangs")
    }
    .wait()
    .await;
    assert_eq!(ran.outcome, state(FinalState::ServerTerminated));
    assert_eq!(ran.control_plane.states(), [""; 0]);
    assert!(ran.has_event("shouldn't be running anymore") && ran.has_event("Task killed!"));
}

#[tokio::test]
async fn a_secret_at_the_cut_of_an_endless_line_leaves_nothing_behind() {
    let masker = Masker::new();
    masker.add_secret("made-up-secret");
    let mut line = vec![b'x'; 64 * 1024 - 5];
    line.extend(b"made-up-secret");
    line.resize(MAX_LINE + 10, b'y');
    let seen = Mutex::new(Vec::new());
    read_lines(line.as_slice(), masker, |line| {
        seen.lock()
            .unwrap()
            .push(String::from_utf8(line.to_vec()).unwrap());
    })
    .await;
    let seen = seen.into_inner().unwrap();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].ends_with("bytes of this line are left out)"));
    assert!(seen[0].contains("xx***") && !seen[0].contains("made"));
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed() {
    let ran = Run {
        stop: Some(StopReason::HeartbeatsFailed),
        ..Run::of("ignores SIGTERM")
    }
    .wait()
    .await;
    assert_eq!(ran.outcome, state(FinalState::Failed));
    assert!(ran.has_event("Too many failed heartbeats") && ran.has_event("sending SIGKILL"));
}

#[tokio::test]
async fn garbage_on_the_socket_ends_the_process_and_the_try() {
    for scenario in ["sends garbage", "closes in the middle of a frame"] {
        let ran = Run::of(scenario).wait().await;
        assert_eq!(ran.outcome, state(FinalState::Failed));
        assert!(
            ran.has_event("broke the supervisor protocol"),
            "{:?}",
            ran.log.events()
        );
    }
}

#[tokio::test]
async fn a_final_state_that_could_not_be_delivered_is_tried_once_more_at_the_end() {
    let down = || ErrorResponse::new(ErrorKind::ApiServerError, "down");
    let control_plane = Recorder {
        refusals: Mutex::new([down()].into()),
        ..Recorder::default()
    };
    let ran = Run {
        control_plane,
        ..Run::of("success")
    }
    .wait()
    .await;
    assert_eq!(ran.outcome, state(FinalState::Success));
    assert_eq!(ran.control_plane.states(), ["success", "success"]);

    let control_plane = Recorder {
        refusals: Mutex::new([down(), down()].into()),
        ..Recorder::default()
    };
    let ran = Run {
        control_plane,
        ..Run::of("success")
    }
    .wait()
    .await;
    assert_eq!(
        ran.outcome,
        Outcome {
            state: FinalState::Success,
            delivered: false
        }
    );
}

#[tokio::test]
async fn a_task_that_goes_on_after_its_end_is_terminated_and_keeps_its_state() {
    let ran = Run {
        overtime: Duration::from_millis(100),
        ..Run::of("hangs after success")
    }
    .wait()
    .await;
    assert_eq!(ran.outcome, state(FinalState::Success));
    assert!(
        ran.has_event("task_success_overtime"),
        "{:?}",
        ran.log.events()
    );
}

#[tokio::test]
async fn what_a_task_started_does_not_outlive_it() {
    let started = Instant::now();
    let ran = Run::of("leaves a child behind").wait().await;
    assert_eq!(ran.outcome, state(FinalState::Success));
    assert!(
        started.elapsed() < Duration::from_secs(4),
        "waited for the orphan's pipes"
    );
}
