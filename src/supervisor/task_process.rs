//! A task process: started in a process group of its own, with the two sockets of the supervisor protocol.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::cgroup::{Cgroups, TaskGroup};
use super::peer;
use super::strays::Mark;

/// What to start. The options `--comm` and `--logs` are added to `arguments`.
#[derive(Clone, Debug)]
pub struct TaskCommand {
    /// The program, usually this very one.
    pub program: PathBuf,
    /// Arguments before the two options.
    pub arguments: Vec<OsString>,
    /// Environment variables set for the task on top of the inherited ones.
    pub environment: Vec<(String, String)>,
    /// Limits each process by a control group of its own.
    pub cgroups: Option<Arc<Cgroups>>,
}

impl TaskCommand {
    /// Starts the running program again as a task process.
    ///
    /// # Errors
    /// When the operating system can't say which program is running.
    pub fn this_program() -> std::io::Result<Self> {
        Ok(Self {
            program: std::env::current_exe()?,
            arguments: Vec::new(),
            environment: Vec::new(),
            cgroups: None,
        })
    }
}

/// Variables that a task process must not inherit: with most of them a task could forge tokens, decrypt every connection
/// or write to Airflow's database. `_CMD` and `_SECRET` forms go as well.
const WITHHELD: &[&str] = &[
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__API_AUTH__JWT_PRIVATE_KEY_PATH",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__WEBSERVER__SECRET_KEY",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__CORE__SQL_ALCHEMY_CONN",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_ENGINE_ARGS",
    "AIRFLOW__CELERY__BROKER_URL",
    "AIRFLOW__CELERY__RESULT_BACKEND",
    // What systemd told the worker is not for its tasks.
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_PID",
    "LISTEN_FDS",
];

/// Must a task process do without this environment variable?
#[must_use]
pub fn is_withheld(variable: &str) -> bool {
    WITHHELD.iter().any(|name| {
        variable
            .strip_prefix(name)
            .is_some_and(|rest| matches!(rest, "" | "_CMD" | "_SECRET"))
    })
}

/// A started task process. Dropping it kills the whole process group.
#[derive(Debug)]
pub struct TaskProcess {
    child: Child,
    pid: u32,
    comm: TcpListener,
    logs: TcpListener,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    exit: Option<ExitStatus>,
    mark: Mark,
    group: Option<(Arc<Cgroups>, TaskGroup)>,
}

/// Why a task process could not be started or reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program can't be started.
    #[error("{} can't be started: {source}", program.display())]
    Spawn {
        /// What was to be started.
        program: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The loopback listeners failed.
    #[error("no socket for the task process: {0}")]
    Socket(#[from] std::io::Error),
    /// The process ended before it had connected.
    #[error("the task process ended before it had connected to its supervisor ({0})")]
    Ended(ExitStatus),
    /// The process did not connect in time.
    #[error("the task process did not connect to its supervisor within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
}

impl TaskProcess {
    /// Starts the process; it will connect on its own.
    ///
    /// # Errors
    /// [`ConnectError::Spawn`] and [`ConnectError::Socket`].
    pub async fn spawn(command: &TaskCommand) -> Result<Self, ConnectError> {
        let comm = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let logs = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let mark = Mark::new();
        let mut process = Command::new(&command.program);
        process
            .args(&command.arguments)
            .arg(format!("--comm={}", comm.local_addr()?))
            .arg(format!("--logs={}", logs.local_addr()?))
            .envs(
                command
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .envs([mark.variable()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_withheld) {
                process.env_remove(name);
            }
        }
        let mut child = process.spawn().map_err(|source| ConnectError::Spawn {
            program: command.program.clone(),
            source,
        })?;
        let pid = child.id().unwrap_or_default();
        // Nothing runs in it yet: it waits to be told what to do.
        let group = command.cgroups.as_ref().and_then(|cgroups| {
            let taken = cgroups.take(pid);
            taken
                .inspect_err(|error| {
                    tracing::warn!(pid, "a task runs without limits of memory and CPU: {error}");
                })
                .ok()
                .map(|group| (Arc::clone(cgroups), group))
        });
        Ok(Self {
            pid,
            mark,
            group,
            comm,
            logs,
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            exit: None,
            child,
        })
    }

    /// Process id, and id of the process group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The pipes of stdout and stderr; each can be taken once.
    pub(super) fn take_output(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.stdout.take(), self.stderr.take())
    }

    /// Waits for the process to connect to both listeners. Connections of anybody else are closed.
    ///
    /// # Errors
    /// [`ConnectError::Ended`], [`ConnectError::TimedOut`], [`ConnectError::Socket`].
    pub(super) async fn connect(
        &mut self,
        timeout: Duration,
    ) -> Result<(TcpStream, TcpStream), ConnectError> {
        let pid = self.pid;
        let both = async { tokio::try_join!(accept(&self.comm, pid), accept(&self.logs, pid)) };
        tokio::select! {
            biased;
            streams = both => Ok(streams?),
            status = self.child.wait() => {
                let status = status?;
                self.exit = Some(status);
                Err(ConnectError::Ended(status))
            }
            () = tokio::time::sleep(timeout) => Err(ConnectError::TimedOut(timeout)),
        }
    }

    /// Waits for the end of the process. Safe to cancel and to call again.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(status) = self.exit {
            return Ok(status);
        }
        let status = self.child.wait().await?;
        self.exit = Some(status);
        Ok(status)
    }

    /// The most memory that the task may use, if the kernel has ended it for using more.
    pub(super) fn ran_out_of_memory(&self) -> Option<u64> {
        let (cgroups, group) = self.group.as_ref()?;
        cgroups.ran_out_of_memory(group)
    }

    /// Kills everything that the task has started, wherever it has gone. For when the process itself has ended.
    pub(super) async fn clear(&mut self) {
        self.signal(Signal::SIGKILL);
        let group = self.group.take();
        let mark = self.mark.clone();
        let pid = self.pid;
        let cleared = tokio::task::spawn_blocking(move || {
            let strays = mark.kill_all();
            if strays > 0 {
                tracing::warn!(pid, "killed {strays} processes that a task had left behind");
            }
            if let Some((cgroups, group)) = group {
                cgroups.clear(&group);
            }
        });
        if let Err(error) = cleared.await {
            tracing::error!(
                pid,
                "what a task has left behind was not looked for: {error}"
            );
        }
    }

    /// Sends a signal to every process of the group. A group that is gone is no error.
    pub(super) fn signal(&self, signal: Signal) {
        if let Ok(group) = i32::try_from(self.pid)
            && group > 0
            && let Err(error) = killpg(Pid::from_raw(group), signal)
            && error != nix::errno::Errno::ESRCH
        {
            tracing::warn!(pid = self.pid, %signal, %error, "the task process can't be signalled");
        }
    }
}

impl Drop for TaskProcess {
    fn drop(&mut self) {
        // Once the leader is reaped its id may belong to a stranger, and `run_task` has cleared the group already.
        if self.exit.is_none() {
            self.signal(Signal::SIGKILL);
        }
        if let Some((cgroups, group)) = self.group.take() {
            cgroups.clear(&group);
        }
    }
}

async fn accept(listener: &TcpListener, group: u32) -> std::io::Result<TcpStream> {
    loop {
        let (stream, peer) = listener.accept().await?;
        let local: SocketAddr = stream.local_addr()?;
        if peer::belongs_to_group(peer, local, group) {
            stream.set_nodelay(true)?;
            return Ok(stream);
        }
        tracing::warn!(%peer, "closed a connection to a task's socket that its task process did not make");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_worker_are_withheld_in_all_their_forms() {
        for name in [
            "AIRFLOW__API_AUTH__JWT_SECRET",
            "AIRFLOW__API_AUTH__JWT_SECRET_CMD",
            "AIRFLOW__CORE__FERNET_KEY_SECRET",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC",
        ] {
            assert!(is_withheld(name), "{name}");
        }
        for name in [
            "AIRFLOW_CONN_DB",
            "AIRFLOW__API_AUTH__JWT_LEEWAY",
            "AIRFLOW__CORE__FERNET_KEY_2",
            "PATH",
        ] {
            assert!(!is_withheld(name), "{name}");
        }
    }

    #[tokio::test]
    async fn only_the_child_is_let_in() {
        let command = TaskCommand {
            program: "/bin/sleep".into(),
            arguments: vec!["30".into()],
            environment: vec![],
            cgroups: None,
        };
        // `sleep` refuses the options and ends, or waits: both without connecting.
        let mut process = TaskProcess::spawn(&command).await.unwrap();
        let _stranger = TcpStream::connect(process.comm.local_addr().unwrap())
            .await
            .unwrap();
        let error = process
            .connect(Duration::from_millis(300))
            .await
            .unwrap_err();
        assert!(
            matches!(error, ConnectError::Ended(_) | ConnectError::TimedOut(_)),
            "{error}"
        );
    }
}
