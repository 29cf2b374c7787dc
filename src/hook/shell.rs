//! Commands of `BashOperator`: a shell in a process group of its own.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use crate::airflow::python_text::repr_str;

/// Airflow's logger for the same lines.
const LOGGER: &str =
    "airflow.task.hooks.airflow.providers.standard.hooks.subprocess.SubprocessHook";
/// How long a command may take to end once it is asked to; the supervisor gives the task 5 s.
const PATIENCE: Duration = Duration::from_secs(3);
/// A line longer than this many bytes is several.
const MAX_LINE: u64 = 1 << 20;

/// What to run.
#[derive(Clone, Debug, Deserialize)]
pub struct ShellCommand {
    pub bash_command: String,
    /// Variables that the shell has, and no others.
    pub env: BTreeMap<String, String>,
    /// `None`: a folder of its own that is removed afterwards.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Negative: the signal that ended it.
    pub exit_code: i32,
    /// The last line that it wrote.
    pub output: String,
}

/// Why a command was not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    #[error("the command could not be run: {0}")]
    Io(#[from] io::Error),
    #[error("Can not find the cwd: {0}")]
    NoFolder(PathBuf),
    #[error("The cwd {0} must be a directory")]
    NotAFolder(PathBuf),
    /// Nobody waits for it any more.
    #[error("the command was stopped")]
    Stopped,
}

/// Ends the whole group when the command is given up.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0
            && let Err(error) = killpg(group, signal)
            && error != Errno::ESRCH
        {
            tracing::warn!("a command's process group could not be sent {signal}: {error}");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// Runs a command, and shows what it writes in the task log.
///
/// # Errors
/// There is no bash, no folder, or `stop` has come.
pub async fn run(command: &ShellCommand, stop: &CancellationToken) -> Result<Finished, ShellError> {
    if let Some(cwd) = &command.cwd {
        if !cwd.exists() {
            return Err(ShellError::NoFolder(cwd.clone()));
        }
        if !cwd.is_dir() {
            return Err(ShellError::NotAFolder(cwd.clone()));
        }
    }
    let temporary = std::env::temp_dir();
    say(&format!("Tmp dir root location: {}", temporary.display()));
    let own = match &command.cwd {
        Some(_) => None,
        None => Some(tempfile::Builder::new().prefix("airflowtmp").tempdir()?),
    };
    let folder = match (&command.cwd, &own) {
        (Some(cwd), _) => cwd.as_path(),
        (None, Some(own)) => own.path(),
        (None, None) => temporary.as_path(),
    };
    let bash = bash();
    // A name of a script file is what was rendered, and its text the script.
    let script = if [".sh", ".bash"]
        .iter()
        .any(|ending| command.bash_command.ends_with(ending))
    {
        let file = tempfile::Builder::new().suffix(".sh").tempfile_in(folder)?;
        std::fs::write(file.path(), &command.bash_command)?;
        Some(file)
    } else {
        None
    };
    let arguments = match &script {
        Some(file) => vec![file_name(file.path())],
        None => vec!["-c".to_owned(), command.bash_command.clone()],
    };
    let shown: Vec<String> = std::iter::once(&bash)
        .chain(&arguments)
        .map(|argument| repr_str(argument))
        .collect();
    say(&format!("Running command: [{}]", shown.join(", ")));

    let (reader, writer) = io::pipe()?;
    let mut started = Command::new(&bash);
    started
        .args(&arguments)
        .env_clear()
        .envs(&command.env)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0);
    let mut child = started.spawn()?;
    // It holds the other end of the pipe.
    drop(started);
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let group = Group(pid.map(Pid::from_raw));
    let mut lines = BufReader::new(pipe::Receiver::from_owned_fd(reader.into())?);
    say("Output:");
    let work = async {
        let mut last = String::new();
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut lines).take(MAX_LINE);
            if bounded.read_until(b'\n', &mut line).await? == 0 {
                break;
            }
            last = decoded(&line);
            say(&last);
        }
        Ok::<_, io::Error>((child.wait().await?, last))
    };
    tokio::pin!(work);
    let (status, output) = tokio::select! {
        biased;
        () = stop.cancelled() => {
            say("Sending SIGTERM signal to process group");
            group.signal(Signal::SIGTERM);
            // It may clean up, and says in the log how.
            let _ = tokio::time::timeout(PATIENCE, &mut work).await;
            return Err(ShellError::Stopped);
        }
        done = &mut work => done?,
    };
    let exit_code = status
        .code()
        .or_else(|| status.signal().map(|signal| -signal))
        .unwrap_or(-1);
    say(&format!("Command exited with return code {exit_code}"));
    Ok(Finished { exit_code, output })
}

fn say(text: &str) {
    tracing::info!(target: "airflow.task", logger = LOGGER, "{text}");
}

/// Bash, where the worker's own path has it.
fn bash() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("bash"))
        .find(|file| file.is_file());
    found.map_or_else(
        || "bash".to_owned(),
        |file| file.to_string_lossy().into_owned(),
    )
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// UTF-8, with what is none as `\xff`, and without white space at the end.
fn decoded(line: &[u8]) -> String {
    let mut text = String::new();
    for chunk in line.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use pretty_assertions::assert_eq;

    use super::*;

    fn command(text: &str) -> ShellCommand {
        ShellCommand {
            bash_command: text.to_owned(),
            env: [
                ("PATH".to_owned(), std::env::var("PATH").unwrap()),
                ("GREETING".to_owned(), "ahoy".to_owned()),
            ]
            .into(),
            cwd: None,
        }
    }

    #[tokio::test]
    async fn the_last_line_of_either_stream_is_the_output() {
        let never = CancellationToken::new();
        let run = async |text: &str| run(&command(text), &never).await.unwrap();
        let done = run("echo one; echo $GREETING >&2; exit 3").await;
        assert_eq!((done.exit_code, done.output.as_str()), (3, "ahoy"));
        let done = run("printf 'a\\xffb  '").await;
        assert_eq!((done.exit_code, done.output.as_str()), (0, "a\\xffb"));
        assert_eq!(run("kill -9 $$").await.exit_code, -9);
        assert_eq!(run("env | grep -c HOME").await.output, "0");
    }

    #[tokio::test]
    async fn a_command_that_is_stopped_may_clean_up_and_takes_its_children_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let mut long = command(
            "trap 'echo cleaned > cleaned; exit 1' TERM; sleep 600 & echo $! > child; touch ready; wait",
        );
        long.cwd = Some(folder.path().to_owned());
        let began = Instant::now();
        let stopped = async {
            while !folder.path().join("ready").exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            stop.cancel();
        };
        let (done, ()) = tokio::join!(run(&long, &stop), stopped);
        assert!(matches!(done, Err(ShellError::Stopped)), "{done:?}");
        assert!(began.elapsed() < Duration::from_secs(20));
        assert!(folder.path().join("cleaned").exists());
        let child = std::fs::read_to_string(folder.path().join("child")).unwrap();
        let stat = format!("/proc/{}/stat", child.trim());
        let is_gone = std::fs::read_to_string(stat).map_or(true, |stat| stat.contains(") Z "));
        assert!(is_gone, "the child {child} is still there");
    }
}
