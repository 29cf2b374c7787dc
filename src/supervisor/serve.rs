//! The supervisor's end of the supervisor protocol: requests in, answers out. What a task asks without waiting for the
//! answer before is asked side by side; only its end waits until everything before it has been answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::task_log::TaskLog;
use crate::airflow::frame::{FrameError, MAX_FRAME_BYTES, ReplyFrame, RequestFrame, write_startup};
use crate::airflow::supervisor::{
    ErrorKind, ErrorResponse, MessageError, StartupDetails, TaskReply, TaskRequest,
};
use crate::control_plane::ControlPlane;

/// How many requests of a task are under way at a time.
const SIDE_BY_SIDE: usize = 8;

/// What the task said about its end, and whether the control plane knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Ending {
    /// Nothing yet.
    #[default]
    Open,
    /// The control plane has taken the final message.
    Delivered(TaskRequest),
    /// The final message waits for the end of the process (`TaskState`), or could not be delivered at first.
    Undelivered(TaskRequest),
}

/// What the serving task and the one that watches the process share.
pub(super) struct Shared {
    ending: Mutex<Ending>,
    /// Cancelled when a final message comes, before it is passed on: the server expects no heartbeat after it, and would
    /// answer one with the wish that the task be killed.
    pub ended: CancellationToken,
    /// Told once a final message has been dealt with.
    pub answered: Notify,
}

impl Shared {
    pub fn new(ended: CancellationToken) -> Self {
        Self {
            ending: Mutex::default(),
            ended,
            answered: Notify::new(),
        }
    }

    pub fn ending(&self) -> Ending {
        self.ending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, ending: Ending) {
        self.ended.cancel();
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = ending;
    }
}

/// Sends `StartupDetails`, then answers requests until the task closes its side.
///
/// # Errors
/// A broken or malformed conversation; the process can't be trusted to go on.
pub(super) async fn serve(
    mut stream: TcpStream,
    startup: StartupDetails,
    control_plane: Arc<dyn ControlPlane>,
    log: TaskLog,
    shared: Arc<Shared>,
) -> Result<(), FrameError> {
    let (mut reader, mut writer) = stream.split();
    write_startup(&mut writer, &startup).await?;
    drop(startup);
    // Reading a frame can't be broken off half-way, so it happens in a future of its own.
    let (frames, mut inbox) = mpsc::channel(1);
    let read = async move {
        let mut reader = tokio::io::BufReader::new(&mut reader);
        loop {
            let frame = RequestFrame::read(&mut reader, MAX_FRAME_BYTES).await;
            let last = !matches!(frame, Ok(Some(_)));
            if frames.send(frame).await.is_err() || last {
                return;
            }
        }
    };
    let answer_all = async {
        let mut due = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(reply) = due.next() => send(&mut writer, reply).await?,
                frame = inbox.recv(), if due.len() < SIDE_BY_SIDE => {
                    let Some(frame) = frame.transpose()?.flatten() else { break };
                    let request = TaskRequest::from_body(frame.body);
                    let ends = request.as_ref().is_ok_and(TaskRequest::is_terminal);
                    let answering = reply_to(
                        frame.id, request, frame.context_carrier, &control_plane, &log, &shared,
                    );
                    if ends {
                        while let Some(reply) = due.next().await {
                            send(&mut writer, reply).await?;
                        }
                        send(&mut writer, answering.await).await?;
                    } else {
                        due.push(answering);
                    }
                }
            }
        }
        while let Some(reply) = due.next().await {
            send(&mut writer, reply).await?;
        }
        Ok(())
    };
    tokio::select! {
        biased;
        done = answer_all => done,
        // Ends before the answers do; then they go on alone.
        () = async { read.await; std::future::pending().await } => Ok(()),
    }
}

async fn reply_to(
    id: i64,
    request: Result<TaskRequest, MessageError>,
    carrier: Option<BTreeMap<String, String>>,
    control_plane: &Arc<dyn ControlPlane>,
    log: &TaskLog,
    shared: &Shared,
) -> ReplyFrame {
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            let error = ErrorResponse::new(ErrorKind::GenericError, error.to_string());
            return ReplyFrame {
                id,
                body: Value::Null,
                error: error.to_body(),
            };
        }
    };
    let done = request.done_body();
    let (body, error) = match answer(request, carrier.as_ref(), control_plane, log, shared).await {
        Ok(TaskReply::Done) => (done, Value::Null),
        Ok(reply) => (reply.to_body(), Value::Null),
        // Airflow's supervisor puts what a server refused into the error slot, and what is not there into the body.
        Err(error)
            if matches!(
                error.kind,
                ErrorKind::ApiServerError | ErrorKind::GenericError
            ) =>
        {
            (Value::Null, error.to_body())
        }
        Err(error) => (error.to_body(), Value::Null),
    };
    ReplyFrame { id, body, error }
}

/// Sends a reply; in place of one that no frame can carry, the reason.
async fn send<W: AsyncWrite + Unpin>(writer: &mut W, reply: ReplyFrame) -> Result<(), FrameError> {
    let id = reply.id;
    match reply.write(writer).await {
        Err(error @ (FrameError::Unencodable(_) | FrameError::TooLarge { .. })) => {
            let error = ErrorResponse::new(ErrorKind::GenericError, error.to_string());
            ReplyFrame {
                id,
                body: Value::Null,
                error: error.to_body(),
            }
            .write(writer)
            .await
        }
        written => written,
    }
}

async fn answer(
    request: TaskRequest,
    carrier: Option<&BTreeMap<String, String>>,
    control_plane: &Arc<dyn ControlPlane>,
    log: &TaskLog,
    shared: &Shared,
) -> Result<TaskReply, ErrorResponse> {
    match request {
        TaskRequest::MaskSecret { value, name } => {
            log.masker().add_value(&value, name.as_deref());
            Ok(TaskReply::Done)
        }
        TaskRequest::TaskState { .. } => {
            shared.set(Ending::Undelivered(request));
            shared.answered.notify_one();
            Ok(TaskReply::Done)
        }
        _ if request.is_terminal() => {
            // Kept first: the process may die, and this wait with it, before the control plane has answered.
            shared.set(Ending::Undelivered(request.clone()));
            let answer = control_plane.handle_traced(request.clone(), carrier).await;
            if answer.is_ok() {
                shared.set(Ending::Delivered(request));
            }
            shared.answered.notify_one();
            answer
        }
        _ => {
            let reply = control_plane.handle_traced(request, carrier).await?;
            match &reply {
                TaskReply::Connection(connection) => log.masker().add_connection(connection),
                TaskReply::Variable {
                    key,
                    value: Some(value),
                } => log.masker().add_variable(key, value),
                _ => {}
            }
            Ok(reply)
        }
    }
}
