//! The worker behind a network that loses, breaks and delays what it carries.

use std::collections::VecDeque;
use std::net::SocketAddr;

use pretty_assertions::assert_eq;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wiremock::Mock;
use wiremock::matchers::any;

use super::*;
use crate::control_plane::retry::RetryPolicy;

/// What the network does to one request.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The connection is reset before the server hears of the request.
    LoseRequest,
    /// The server has answered, and the answer is lost.
    LoseAnswer,
    /// The answer breaks off in the middle.
    CutAnswer,
    /// The answer comes late.
    Delay,
    /// A proxy answers in the server's place.
    Answer(u16),
    /// Something that is no HTTP.
    Noise,
    /// An answer of the right length that is not the server's.
    Nonsense,
}

const FAULTS: [Fault; 10] = [
    Fault::LoseRequest,
    Fault::LoseAnswer,
    Fault::CutAnswer,
    Fault::Delay,
    Fault::Answer(429),
    Fault::Answer(500),
    Fault::Answer(502),
    Fault::Answer(503),
    Fault::Noise,
    Fault::Delay,
];

/// Carries requests to `server`; a `share` of them meets a fault.
async fn bad_network(server: SocketAddr, faults: &'static [Fault], share: f64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut dice = fastrand::Rng::with_seed(7);
        loop {
            let Ok((client, _)) = listener.accept().await else {
                return;
            };
            let mut dice = dice.fork();
            tokio::spawn(async move {
                let mut client = client;
                loop {
                    let fault = (dice.f64() < share)
                        .then(|| dice.choice(faults).copied())
                        .flatten();
                    if carry(&mut client, server, fault).await.is_none() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// One request and its answer. `None`: the connection is over.
async fn carry(client: &mut TcpStream, server: SocketAddr, fault: Option<Fault>) -> Option<()> {
    let request = message(client).await?;
    let answered = |status: u16, body: &str| {
        format!(
            "HTTP/1.1 {status} Made Up\r\ncontent-length: {}\r\nretry-after: 0\r\n\r\n{body}",
            body.len()
        )
    };
    match fault {
        Some(Fault::LoseRequest) => return None,
        Some(Fault::Answer(status)) => {
            let answer = answered(status, "<html>a proxy</html>");
            return client.write_all(answer.as_bytes()).await.ok();
        }
        Some(Fault::Nonsense) => {
            let answer = answered(200, "{\"what\": [1, {\"is\": \"this\"}]}");
            return client.write_all(answer.as_bytes()).await.ok();
        }
        Some(Fault::Noise) => {
            let _ = client.write_all(b"\x00\xff\x16\x03 not HTTP\r\n\r\n").await;
            return None;
        }
        _ => {}
    }
    let mut stream = TcpStream::connect(server).await.ok()?;
    stream.write_all(&request).await.ok()?;
    let answer = message(&mut stream).await?;
    match fault {
        Some(Fault::LoseAnswer) => return None,
        Some(Fault::CutAnswer) => {
            let _ = client.write_all(&answer[..answer.len() - 1]).await;
            return None;
        }
        Some(Fault::Delay) => tokio::time::sleep(Duration::from_millis(300)).await,
        _ => {}
    }
    client.write_all(&answer).await.ok()
}

/// Reads one HTTP message with its body.
async fn message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length: usize = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
                .unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                return Some(bytes);
            }
        }
        let mut chunk = [0; 16 * 1024];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

impl Setup {
    /// One wish to end, however long the tasks take.
    async fn end_calmly(&mut self) {
        let _ = self.shutdown.send(Wish::End);
        (&mut self.worker).await.unwrap().unwrap();
    }
}

/// A worker whose requests go through a bad network.
async fn behind(
    faults: &'static [Fault],
    share: f64,
    scenario: &str,
    prepare: impl FnOnce(&mut Server),
) -> Setup {
    let airflow = Airflow::default();
    airflow.set(prepare);
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(airflow.clone())
        .mount(&server)
        .await;
    let address = bad_network(*server.address(), faults, share).await;
    Setup::at(
        &format!("http://{address}"),
        airflow,
        server,
        scenario,
        |settings| {
            let retry = RetryPolicy {
                attempts: 10,
                wait_min: Duration::from_millis(1),
                wait_max: Duration::from_millis(20),
                outage: Duration::from_secs(20),
            };
            settings.edge = settings.edge.clone().with_retry(retry);
            settings.execution.retry = retry;
            settings.execution.timeout = Duration::from_secs(2);
            settings.concurrency = 8;
        },
    )
    .await
}

/// Jobs with task ids of their own.
fn many(count: usize) -> VecDeque<Value> {
    (0..count)
        .map(|number| {
            let mut job = job();
            job["concurrency_slots"] = json!(1);
            job["task_id"] = json!(format!("t{number}"));
            job["command"]["ti"]["task_id"] = json!(format!("t{number}"));
            job["command"]["log_path"] = json!(format!("task_id=t{number}/attempt=1.log"));
            job
        })
        .collect()
}

#[tokio::test]
async fn no_state_and_no_log_is_lost_when_every_fifth_request_fails() {
    let mut setup = behind(&FAULTS, 0.2, "success", |server| {
        server.jobs = many(12);
        server.several_tasks = true;
    })
    .await;
    // A job whose answer is lost on its way is the scheduler's to find again; every job that came here ends well.
    let over = |server: &Server| server.jobs.is_empty() && server.ended_jobs.len() >= 9;
    setup.airflow.until("end of the jobs", over).await;
    let airflow = setup.airflow.clone();
    let folder = setup.logs.path().to_owned();
    let written = |task_id: &str| {
        std::fs::read_to_string(folder.join(format!("task_id={task_id}/attempt=1.log")))
    };
    timeout(Duration::from_secs(60), setup.end_calmly())
        .await
        .unwrap();
    let server = airflow.0.lock().unwrap();
    assert_eq!(server.begun_jobs, server.ended_jobs);
    assert!(!server.events.contains(&"job failed".to_owned()));
    for task_id in &server.ended_jobs {
        // A piece whose answer was lost is pushed again, and stands there twice: nothing is missing.
        let (pushed, file) = (&server.logs[task_id], written(task_id).unwrap());
        assert!(file.contains("*** and ***") && !file.contains("hunter2"));
        assert!(pushed.len() >= file.len(), "{task_id}: {pushed}\n{file}");
        assert!(pushed.ends_with(file.get(file.len() - 10..).unwrap()));
    }
}

#[tokio::test]
async fn answers_that_make_no_sense_end_neither_the_worker_nor_its_tasks() {
    let mut setup = behind(&[Fault::Nonsense], 0.3, "success", |server| {
        server.jobs = many(6);
        server.several_tasks = true;
    })
    .await;
    let fetched = |server: &Server| server.jobs.is_empty();
    setup.airflow.until("all jobs fetched", fetched).await;
    setup
        .airflow
        .until("some jobs ended", |server| !server.ended_jobs.is_empty())
        .await;
    assert!(!setup.worker.is_finished());
    timeout(Duration::from_secs(60), setup.end_calmly())
        .await
        .unwrap();
}

#[tokio::test]
async fn malformed_and_monstrous_jobs_are_failed_jobs_and_the_worker_goes_on() {
    let spoil = |pointer: &str, value: Value| {
        let mut job = job();
        *job.pointer_mut(pointer).unwrap() = value;
        job
    };
    let jobs = [
        spoil("/command", Value::Null),
        spoil("/command", json!([1])),
        spoil("/command/ti", json!("text")),
        spoil("/command/token", json!("two\nlines")),
        spoil("/command/token", json!(5)),
        spoil("/command/type", json!("TestConnection")),
    ];
    let count = jobs.len();
    let setup = Setup::with("success", |server| {
        server.jobs = jobs.into();
        server.several_tasks = true;
    })
    .await;
    let refused = |server: &Server| {
        server
            .events
            .iter()
            .filter(|event| *event == "job failed")
            .count()
            == count
    };
    setup.airflow.until("failed jobs", refused).await;
    let big = "x".repeat(1_000_000);
    setup.airflow.set(|server| {
        server.events.clear();
        server.jobs = [
            spoil("/concurrency_slots", json!(-7)),
            spoil("/command/log_path", json!(big)),
            spoil("/command/log_path", json!("a\u{0}b")),
            spoil(
                "/command/ti/context_carrier",
                json!({"traceparent": "two\nlines"}),
            ),
            spoil("/command/sentry_integration", json!(big)),
        ]
        .into();
    });
    let done = |server: &Server| {
        server
            .events
            .iter()
            .filter(|event| *event == "job success")
            .count()
            == 5
    };
    setup.airflow.until("jobs that end well", done).await;
    setup.end().await.unwrap();
}
