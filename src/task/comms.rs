//! The supervisor at the other end of the socket: a control plane for the task.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::airflow::frame::{FrameError, MAX_FRAME_BYTES, ReplyFrame, RequestFrame};
use crate::airflow::supervisor::{
    ErrorKind, ErrorResponse, MessageError, StartupDetails, TaskReply, TaskRequest,
};
use crate::control_plane::ControlPlane;

/// How long a request may take. The supervisor sends no reply at all to a request that it can't decode (Airflow
/// 3.3.2), and repeats its own requests for minutes while the API server is away.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(900);

/// How long the supervisor may take until it says what to run: it asks the API server first.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(600);

/// Why a task process can't talk to its supervisor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommsError {
    /// No connection.
    #[error("no connection to the supervisor at {address}: {source}")]
    Connect {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// The supervisor closed the connection before it said what to run.
    #[error("the supervisor closed the connection before it said what to run")]
    Closed,
    /// It never said.
    #[error("the supervisor did not say what to run within {} s", STARTUP_TIMEOUT.as_secs())]
    Silent,
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Message(#[from] MessageError),
}

type Answer = Result<TaskReply, ErrorResponse>;

struct Outgoing {
    frame: RequestFrame,
    sent: oneshot::Sender<Result<(), FrameError>>,
}

#[derive(Default)]
struct Pending {
    /// `None` once the supervisor is gone.
    waiting: Option<HashMap<i64, oneshot::Sender<Answer>>>,
}

/// A client of the supervisor protocol. Reading and writing have tasks of their own, so that a request that is given
/// up leaves the stream whole.
pub struct SupervisorClient {
    outgoing: mpsc::Sender<Outgoing>,
    pending: Arc<Mutex<Pending>>,
    next_id: AtomicI64,
    /// Trace context of requests that bring none of their own.
    carrier: OnceLock<BTreeMap<String, String>>,
    /// Cancelled when the supervisor is gone.
    gone: CancellationToken,
    patience: Duration,
}

impl SupervisorClient {
    /// Waits until the supervisor has closed the connection, as it does when it dies.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// From now on requests belong to a span: its W3C trace context.
    pub fn set_carrier(&self, carrier: BTreeMap<String, String>) {
        // A second call changes nothing: a process has one task span.
        let _ = self.carrier.set(carrier);
    }

    /// Connects, and waits for the supervisor to say what to run.
    ///
    /// # Errors
    /// See [`CommsError`].
    pub async fn connect(address: SocketAddr) -> Result<(Self, StartupDetails), CommsError> {
        let stream = TcpStream::connect(address)
            .await
            .map_err(|source| CommsError::Connect { address, source })?;
        stream.set_nodelay(true).map_err(FrameError::from)?;
        Self::start(stream).await
    }

    async fn start(stream: TcpStream) -> Result<(Self, StartupDetails), CommsError> {
        let (mut reader, writer) = stream.into_split();
        let first = tokio::time::timeout(
            STARTUP_TIMEOUT,
            ReplyFrame::read(&mut reader, MAX_FRAME_BYTES),
        )
        .await
        .map_err(|_| CommsError::Silent)??
        .ok_or(CommsError::Closed)?;
        let details = StartupDetails::from_body(first.body)?;
        let (outgoing, inbox) = mpsc::channel(16);
        let pending = Arc::new(Mutex::new(Pending {
            waiting: Some(HashMap::new()),
        }));
        tokio::spawn(write_frames(writer, inbox));
        let gone = CancellationToken::new();
        tokio::spawn({
            let (pending, gone) = (Arc::clone(&pending), gone.clone());
            async move {
                read_frames(reader, pending).await;
                gone.cancel();
            }
        });
        Ok((
            Self {
                outgoing,
                pending,
                next_id: AtomicI64::new(1),
                carrier: OnceLock::new(),
                gone,
                patience: REQUEST_TIMEOUT,
            },
            details,
        ))
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchange(
        &self,
        request: &TaskRequest,
        carrier: Option<BTreeMap<String, String>>,
    ) -> Answer {
        let gone = || {
            ErrorResponse::new(
                ErrorKind::GenericError,
                "the supervisor has closed the connection",
            )
        };
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        match &mut self.pending().waiting {
            Some(waiting) => waiting.insert(id, answer),
            None => return Err(gone()),
        };
        let (sent, was_sent) = oneshot::channel();
        let frame = RequestFrame {
            id,
            body: request.to_body(),
            context_carrier: carrier,
        };
        if self.outgoing.send(Outgoing { frame, sent }).await.is_err() {
            return Err(gone());
        }
        match was_sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                return Err(ErrorResponse::new(
                    ErrorKind::GenericError,
                    error.to_string(),
                ));
            }
            Err(_) => return Err(gone()),
        }
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

async fn write_frames(mut writer: OwnedWriteHalf, mut inbox: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { frame, sent }) = inbox.recv().await {
        let written = frame.write(&mut writer).await;
        let broken = matches!(written, Err(FrameError::Io(_)));
        // The receiver is gone when the request was given up.
        let _ = sent.send(written);
        if broken {
            break;
        }
    }
    // The supervisor may have closed its side already.
    let _ = writer.shutdown().await;
}

async fn read_frames(mut reader: OwnedReadHalf, pending: Arc<Mutex<Pending>>) {
    let lock = || pending.lock().unwrap_or_else(PoisonError::into_inner);
    let broken = loop {
        match ReplyFrame::read(&mut reader, MAX_FRAME_BYTES).await {
            Ok(Some(frame)) => {
                let Some(answer) = lock()
                    .waiting
                    .as_mut()
                    .and_then(|waiting| waiting.remove(&frame.id))
                else {
                    tracing::warn!(
                        "the supervisor answered request {}, which nobody waits for",
                        frame.id
                    );
                    continue;
                };
                let reply =
                    TaskReply::from_frame(frame.body, frame.error).unwrap_or_else(|error| {
                        Err(ErrorResponse::new(
                            ErrorKind::GenericError,
                            error.to_string(),
                        ))
                    });
                // The receiver is gone when the request was given up.
                let _ = answer.send(reply);
            }
            Ok(None) => break "the supervisor has closed the connection".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    for (_, answer) in lock().waiting.take().into_iter().flatten() {
        // As above.
        let _ = answer.send(Err(ErrorResponse::new(
            ErrorKind::GenericError,
            broken.as_str(),
        )));
    }
}

#[async_trait]
impl ControlPlane for SupervisorClient {
    async fn handle(&self, request: TaskRequest) -> Answer {
        self.handle_traced(request, None).await
    }

    async fn handle_traced(
        &self,
        request: TaskRequest,
        carrier: Option<&BTreeMap<String, String>>,
    ) -> Answer {
        tokio::time::timeout(
            self.patience,
            self.exchange(&request, carrier.or(self.carrier.get()).cloned()),
        )
        .await
        .unwrap_or_else(|_| {
            let kind = request
                .to_body()
                .get("type")
                .map(ToString::to_string)
                .unwrap_or_default();
            Err(ErrorResponse::new(
                ErrorKind::GenericError,
                format!(
                    "the supervisor has not answered {kind} within {} s",
                    self.patience.as_secs()
                ),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair(
        replies: Vec<(i64, Value, Value)>,
    ) -> Result<(SupervisorClient, StartupDetails), CommsError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let startup = json!({
                "type": "StartupDetails",
                "ti": {"id": "i", "task_id": "t", "dag_id": "d", "run_id": "r", "try_number": 1},
                "dag_rel_path": "d.py",
                "bundle_info": {"name": "b"},
                "start_date": "2026-01-01T00:00:00Z",
                "ti_context": {"dag_run": {"dag_id": "d", "run_id": "r", "run_after": "2026-01-01T00:00:00Z",
                    "run_type": "manual", "state": "running"}},
            });
            ReplyFrame {
                id: 0,
                body: startup,
                error: Value::Null,
            }
            .write(&mut stream)
            .await
            .unwrap();
            let mut requests = Vec::new();
            while requests.len() < replies.len() {
                requests.push(
                    RequestFrame::read(&mut stream, MAX_FRAME_BYTES)
                        .await
                        .unwrap()
                        .unwrap(),
                );
            }
            for (id, body, error) in replies {
                ReplyFrame { id, body, error }
                    .write(&mut stream)
                    .await
                    .unwrap();
            }
        });
        SupervisorClient::connect(address).await
    }

    #[tokio::test]
    async fn a_supervisor_that_dies_is_noticed_without_a_request() {
        let (client, _) = pair(Vec::new()).await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), client.gone())
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn replies_find_their_requests_in_any_order_and_errors_in_either_place() {
        let missing =
            json!({"type": "ErrorResponse", "error": "VARIABLE_NOT_FOUND", "detail": null});
        let (client, details) = pair(vec![
            (
                3,
                json!({"type": "VariableResult", "key": "c", "value": "3"}),
                Value::Null,
            ),
            (1, Value::Null, missing.clone()),
            (2, missing, Value::Null),
        ])
        .await
        .unwrap();
        assert_eq!(details.ti.task_id, "t");
        let get = |key: &str| {
            client.handle(TaskRequest::GetVariable {
                key: key.to_owned(),
            })
        };
        let (a, b, c) = tokio::join!(get("a"), get("b"), get("c"));
        assert_eq!(a.unwrap_err().kind, ErrorKind::VariableNotFound);
        assert_eq!(b.unwrap_err().kind, ErrorKind::VariableNotFound);
        assert_eq!(
            c.unwrap(),
            TaskReply::Variable {
                key: "c".to_owned(),
                value: Some("3".to_owned())
            }
        );
    }

    #[tokio::test]
    async fn a_request_that_is_never_answered_fails_after_a_while() {
        let never = (2, Value::Null, Value::Null);
        // Answers nothing before it has read two requests, and gets one.
        let (mut client, _) = pair(vec![never.clone(), never]).await.unwrap();
        client.patience = Duration::from_secs(1);
        let asked = client.handle(TaskRequest::GetVariable {
            key: "a".to_owned(),
        });
        let text = asked.await.unwrap_err().to_string();
        assert!(
            ["has not answered", "GetVariable", "within 1 s"]
                .iter()
                .all(|part| text.contains(part)),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_supervisor_that_goes_away_fails_the_requests_that_wait() {
        let (client, _) = pair(Vec::new()).await.unwrap();
        let error = client
            .handle(TaskRequest::GetVariable {
                key: "a".to_owned(),
            })
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("closed") || error.to_string().contains("socket"),
            "{error}"
        );
    }
}
