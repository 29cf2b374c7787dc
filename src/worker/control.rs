//! Commands to a worker from the machine that it runs on, over a socket in `AIRFLOW_HOME`: a line of JSON each way.
//!
//! Whoever may end the worker may speak to it: its own user and root.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::status::{Snapshot, Status};

const PREFIX: &str = "updraft-worker-";
const SUFFIX: &str = ".sock";

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a command may take to show in the status.
const EFFECT: Duration = Duration::from_secs(2);
/// Bytes of the longest command.
const LONGEST: u64 = 64 * 1024;

/// What a worker is asked to do, by a signal or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// SIGTERM and SIGINT: the first drains, the second terminates the running tasks.
    End,
    /// Takes no new jobs, and ends when the running ones have ended.
    Drain,
    /// Terminates the running tasks and ends.
    Terminate,
    /// Takes no new jobs for the time being, for this reason.
    EnterMaintenance(String),
    /// Takes jobs again.
    LeaveMaintenance,
}

/// Wishes on their way to a worker.
pub type Wishes = mpsc::UnboundedReceiver<Wish>;

/// A command as it is sent. The answer to each is a [`Status`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Status,
    Drain,
    Terminate,
    EnterMaintenance {
        /// Why; shown in the UI.
        comments: String,
    },
    LeaveMaintenance,
}

impl Command {
    fn wish(self) -> Option<Wish> {
        Some(match self {
            Self::Status => return None,
            Self::Drain => Wish::Drain,
            Self::Terminate => Wish::Terminate,
            Self::EnterMaintenance { comments } => Wish::EnterMaintenance(comments),
            Self::LeaveMaintenance => Wish::LeaveMaintenance,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Status(Box<Status>),
    Refused(String),
}

/// Why a command got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Nobody listens.
    #[error(
        "no worker {name:?} runs here with AIRFLOW_HOME={}: give the AIRFLOW_HOME and the --worker-name that it was \
         started with",
        home.display()
    )]
    NotRunning {
        /// Name of the worker.
        name: String,
        /// Where its socket would be.
        home: PathBuf,
    },
    /// Several workers run, and none was named.
    #[error("several workers run here; choose one with --worker-name: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The worker refuses.
    #[error("the worker refuses: {0}")]
    Refused(String),
    /// The conversation failed.
    #[error("the worker does not answer: {0}")]
    Io(#[from] io::Error),
    /// The answer is of another version.
    #[error("the worker's answer can't be read ({0}): use the `updraft` that it was started with")]
    Unreadable(#[from] serde_json::Error),
}

/// Addresses of sockets hold 107 bytes and paths of `AIRFLOW_HOME` may be longer, so a socket is addressed through the
/// open folder.
fn address(home: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let folder = File::open(home)?;
    let file = format!("{PREFIX}{name}{SUFFIX}");
    let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(file);
    Ok((folder, path))
}

/// Names of the workers that have a socket in this folder. Those of workers that were killed are among them.
fn names(home: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(home)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.to_owned();
            let (_folder, path) = address(home, &name).ok()?;
            UnixStream::connect(path).ok().map(|_| name)
        })
        .collect();
    names.sort();
    names
}

/// The name to send commands to: the given one, else that of the only worker here, else `default`.
///
/// # Errors
/// [`ControlError::Several`].
pub fn choose(home: &Path, given: Option<String>, default: String) -> Result<String, ControlError> {
    if let Some(name) = given {
        return Ok(name);
    }
    let mut names = names(home);
    match names.len() {
        0 => Ok(default),
        1 => Ok(names.remove(0)),
        _ => Err(ControlError::Several(names)),
    }
}

/// Sends a command to the worker `name` and returns what it does now. Blocks.
///
/// # Errors
/// See [`ControlError`].
pub fn ask(home: &Path, name: &str, command: &Command) -> Result<Status, ControlError> {
    let not_running = || ControlError::NotRunning {
        name: name.to_owned(),
        home: home.to_owned(),
    };
    let (_folder, path) = address(home, name).map_err(|_| not_running())?;
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => not_running(),
        _ => error.into(),
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(command)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    if answer.is_empty() {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    match serde_json::from_str(&answer)? {
        Answer::Status(status) => Ok(*status),
        Answer::Refused(reason) => Err(ControlError::Refused(reason)),
    }
}

/// The worker's end. Dropping it removes the socket.
pub(super) struct ControlSocket {
    path: PathBuf,
    server: JoinHandle<()>,
}

impl ControlSocket {
    /// Listens for commands to the worker `name`.
    ///
    /// # Errors
    /// The socket can't be made, or another worker of this name answers on it.
    pub fn listen(
        home: &Path,
        name: &str,
        wishes: mpsc::UnboundedSender<Wish>,
        status: watch::Receiver<Snapshot>,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(home)?;
        let (_folder, address) = address(home, name)?;
        match UnixStream::connect(&address) {
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    format!("a worker {name:?} runs here already"),
                ));
            }
            // Left by a worker that was killed.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(&address)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(&address)?;
        let server = tokio::spawn(serve(listener, wishes, status));
        Ok(Self {
            path: home.join(format!("{PREFIX}{name}{SUFFIX}")),
            server,
        })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.server.abort();
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!("{} can't be removed: {error}", self.path.display());
        }
    }
}

async fn serve(
    listener: UnixListener,
    wishes: mpsc::UnboundedSender<Wish>,
    status: watch::Receiver<Snapshot>,
) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!("a command to this worker was lost: {error}");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let (wishes, status) = (wishes.clone(), status.clone());
        tokio::spawn(async move {
            match timeout(PATIENCE, converse(stream, wishes, status)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!("a command broke off: {error}"),
                Err(_) => tracing::debug!("a command did not come"),
            }
        });
    }
}

async fn converse(
    mut stream: tokio::net::UnixStream,
    wishes: mpsc::UnboundedSender<Wish>,
    status: watch::Receiver<Snapshot>,
) -> io::Result<()> {
    let peer = stream.peer_cred()?.uid();
    let own = nix::unistd::geteuid().as_raw();
    let (reader, mut writer) = stream.split();
    let answer = if peer == own || peer == 0 {
        let mut line = String::new();
        tokio::io::BufReader::new(reader.take(LONGEST))
            .read_line(&mut line)
            .await?;
        obey(&line, &wishes, status).await
    } else {
        tracing::warn!("refused a command of user {peer}, who is not the worker's own");
        Answer::Refused(format!("it is user {own}'s"))
    };
    let mut line = serde_json::to_string(&answer)?;
    line.push('\n');
    writer.write_all(line.as_bytes()).await?;
    writer.shutdown().await
}

async fn obey(
    line: &str,
    wishes: &mpsc::UnboundedSender<Wish>,
    mut status: watch::Receiver<Snapshot>,
) -> Answer {
    let command: Command = match serde_json::from_str(line) {
        Ok(command) => command,
        Err(error) => return Answer::Refused(format!("it knows no such command: {error}")),
    };
    if let Some(wish) = command.wish() {
        tracing::info!("told on this machine: {wish:?}");
        let before = status.borrow().wishes_followed;
        if wishes.send(wish).is_ok() {
            let followed = status.wait_for(|status| status.wishes_followed > before);
            // A worker that has just ended follows none.
            let _ = timeout(EFFECT, followed).await;
        }
    }
    let now = status.borrow().now();
    Answer::Status(Box::new(now))
}
