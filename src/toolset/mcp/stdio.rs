//! A server that is a child process: its environment, its output, and its end.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::server::StdioServer;

/// Of the worker's environment every server sees these, and nothing else: the list of the Python MCP library.
const INHERITED: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A shell that guards the process group of a server, which it leads. When the worker's end of its standard input closes,
/// because the worker let it go or was killed, the server's has closed as well; whatever of the group still runs then is
/// asked to end after two seconds and killed after three.
const GUARD: &str = "trap '' TERM; read -r line; sleep 2; kill -s TERM 0; sleep 1; kill -s KILL 0";

/// How long a server may take to end when its standard input has closed: a little longer than its guard lets it.
const GRACE: Duration = Duration::from_millis(3500);
/// What is kept of a server's standard error, for the message that it can't be used.
const KEPT_LINES: usize = 8;
/// Bytes of one line of standard error; the rest of a longer one makes further lines.
const MAX_LINE: u64 = 4096;
/// How long the last lines are waited for.
const LAST_LINES: Duration = Duration::from_millis(300);

/// The two ends of a server that speaks on its standard output and input.
pub(super) type Pipes = (ChildStdout, ChildStdin);

/// A running server. Dropping it kills everything in its process group.
pub(super) struct Process {
    group: Arc<Group>,
    /// What the guard waits for the end of.
    guarded: Option<ChildStdin>,
    /// Ends when the server and the rest of its group have.
    ended: JoinHandle<()>,
    complaints: Complaints,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts the server.
    ///
    /// # Errors
    /// As Python words it: no such command, or what the operating system says.
    pub(super) fn start(server: &StdioServer) -> Result<(Self, Pipes), String> {
        let environment = environment(server, std::env::vars_os());
        let search = environment
            .get("PATH")
            .map_or_else(|| DEFAULT_PATH.into(), Clone::clone);
        let program = program(&server.command, &search, server.cwd.as_deref())?;
        let failed =
            |error: std::io::Error| format!("{} can't be started: {error}", program.display());
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD])
            .env_clear()
            .env("PATH", DEFAULT_PATH)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let leader = guard.id().and_then(|id| i32::try_from(id).ok());
        let leader = leader.ok_or("the server's guard is gone")?;
        let guarded = guard.stdin.take();
        let mut command = Command::new(&program);
        command
            .arg0(&server.command)
            .args(&server.args)
            .env_clear()
            .envs(&environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(leader)
            .kill_on_drop(true);
        if let Some(cwd) = &server.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn().map_err(failed)?;
        let group = Arc::new(Group(Mutex::new(Some(Pid::from_raw(leader)))));
        let pipes = child.stdout.take().zip(child.stdin.take());
        let complaints = Complaints::default();
        let reader = child.stderr.take().map(|pipe| complaints.collect(pipe));
        let rest = Arc::clone(&group);
        let ended = tokio::spawn(async move {
            if let Err(error) = child.wait().await {
                tracing::warn!(%error, "an MCP server can't be waited for");
            }
            rest.kill();
            // It was killed: this does not take long.
            let _ = guard.wait().await;
        });
        let process = Self {
            group,
            guarded,
            ended,
            complaints,
            reader,
        };
        let pipes = pipes.ok_or("the server's pipes are gone")?;
        Ok((process, pipes))
    }

    /// Waits for the end of a server whose standard input has been closed, and kills what does not end.
    pub(super) async fn end(mut self) {
        self.guarded = None;
        if tokio::time::timeout(GRACE, &mut self.ended).await.is_err() {
            self.killed().await;
        }
    }

    async fn killed(&mut self) {
        self.group.kill();
        // It is being killed: this does not take long.
        let _ = (&mut self.ended).await;
    }

    /// What the server last said on its standard error, once it can't be used. Ends it.
    pub(super) async fn last_words(mut self) -> String {
        if let Some(reader) = &mut self.reader {
            // It may have ended just now, and then all of it is here in a moment.
            let _ = tokio::time::timeout(LAST_LINES, reader).await;
        }
        self.killed().await;
        self.complaints.text()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// The process group of a server and its guard, until it was killed. Its number is nobody else's as long as its leader,
/// the guard, has not been waited for.
struct Group(Mutex<Option<Pid>>);

impl Group {
    fn kill(&self) {
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(group) = group
            && let Err(error) = killpg(group, Signal::SIGKILL)
            && error != nix::errno::Errno::ESRCH
        {
            tracing::warn!(%error, "an MCP server can't be killed");
        }
    }
}

/// All that a server sees.
fn environment(
    server: &StdioServer,
    all: impl Iterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, OsString> {
    let mut seen: BTreeMap<String, OsString> = all
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| INHERITED.contains(&name.as_str()))
        .collect();
    for (name, value) in &server.env {
        seen.insert(name.clone(), value.expose_secret().into());
    }
    seen
}

/// Finds a command as `execvp` would in the folder in which it is to run.
fn program(command: &str, search: &OsString, cwd: Option<&Path>) -> Result<PathBuf, String> {
    let no_such = |what: &str| {
        let what = crate::airflow::python_text::repr_str(what);
        format!("[Errno 2] No such file or directory: {what}")
    };
    let runs = |path: &Path| {
        path.metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    let folder = std::path::absolute(cwd.unwrap_or(Path::new(".")))
        .map_err(|error| format!("the folder of the server can't be found: {error}"))?;
    if let Some(cwd) = cwd
        && !folder.is_dir()
    {
        return Err(no_such(&cwd.display().to_string()));
    }
    if command.contains('/') {
        let path = folder.join(command);
        return match path.metadata() {
            Err(_) => Err(no_such(command)),
            Ok(_) if !runs(&path) => Err(format!(
                "[Errno 13] Permission denied: {}",
                crate::airflow::python_text::repr_str(command)
            )),
            Ok(_) => Ok(path),
        };
    }
    std::env::split_paths(search)
        .map(|entry| folder.join(entry).join(command))
        .find(|path| runs(path))
        .ok_or_else(|| no_such(command))
}

/// What a server writes to its standard error: into the task log, and the last lines kept.
#[derive(Clone, Default)]
struct Complaints(Arc<Mutex<VecDeque<String>>>);

impl Complaints {
    fn collect(&self, pipe: impl AsyncRead + Unpin + Send + 'static) -> JoinHandle<()> {
        let kept = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while let Ok(1..) = (&mut pipe)
                .take(MAX_LINE)
                .read_until(b'\n', &mut line)
                .await
            {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if text.trim().is_empty() {
                    continue;
                }
                tracing::info!(target: "airflow.task", logger = "mcp.stderr", "{text}");
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == KEPT_LINES {
                    kept.pop_front();
                }
                kept.push_back(text);
            }
        })
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().cloned().collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use pretty_assertions::assert_eq;
    use secrecy::SecretString;
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    fn shell(script: &str) -> StdioServer {
        StdioServer {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    fn alive(pid: &str) -> bool {
        // A zombie is dead, only not yet buried.
        fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .is_ok_and(|stat| !stat.contains(") Z "))
    }

    async fn soon(mut holds: impl FnMut() -> bool) -> bool {
        for _ in 0..500 {
            if holds() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn a_server_reads_what_is_written_and_sees_its_variables_and_nothing_else() {
        let mut server = shell("read line; echo \"got $line\"; exec env");
        server.env.insert(
            "DOCK_TOKEN".to_owned(),
            SecretString::from("made-up-token".to_owned()),
        );
        let (process, (mut out, mut input)) = Process::start(&server).unwrap();
        input.write_all(b"hello\n").await.unwrap();
        let mut said = String::new();
        out.read_to_string(&mut said).await.unwrap();
        drop(input);
        process.end().await;
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some("got hello"));
        let mut names: Vec<_> = lines
            .filter_map(|line| line.split_once('=').map(|(name, _)| name))
            // What the shell of this very test adds.
            .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
            .collect();
        names.sort_unstable();
        let mut expected: Vec<_> = INHERITED
            .into_iter()
            .filter(|name| std::env::var_os(name).is_some())
            .chain(["DOCK_TOKEN"])
            .collect();
        expected.sort_unstable();
        assert_eq!(names, expected);
    }

    #[tokio::test]
    async fn a_server_that_ends_by_itself_ends_at_once_when_its_input_closes() {
        let (process, (out, input)) = Process::start(&shell("cat")).unwrap();
        let started = Instant::now();
        drop((out, input));
        process.end().await;
        assert!(started.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test]
    async fn a_stubborn_server_and_what_it_started_are_killed_when_dropped() {
        let script = "trap '' TERM; sleep 300 & echo $!; echo $$; wait; sleep 300";
        let (process, (out, input)) = Process::start(&shell(script)).unwrap();
        let mut lines = BufReader::new(out).lines();
        let mut pids = Vec::new();
        for _ in 0..2 {
            pids.push(lines.next_line().await.unwrap().unwrap());
        }
        assert!(pids.iter().all(|pid| alive(pid)));
        drop(process);
        assert!(soon(|| !pids.iter().any(|pid| alive(pid))).await);
        drop(input);
    }

    #[tokio::test]
    async fn a_stubborn_server_is_killed_though_nobody_but_its_guard_knows_of_it() {
        let script = "trap '' TERM; sleep 300 & echo $!; echo $$; wait; sleep 300";
        let (mut process, (out, input)) = Process::start(&shell(script)).unwrap();
        let mut lines = BufReader::new(out).lines();
        let mut pids = Vec::new();
        for _ in 0..2 {
            pids.push(lines.next_line().await.unwrap().unwrap());
        }
        // As when the worker is killed: its pipes close, and nothing else happens.
        drop((input, process.guarded.take()));
        assert!(soon(|| !pids.iter().any(|pid| alive(pid))).await);
        let _ = (&mut process.ended).await;
    }

    #[tokio::test]
    async fn what_a_server_started_ends_with_it() {
        let script = "sleep 300 >/dev/null 2>&1 </dev/null & echo $!";
        let (process, (out, input)) = Process::start(&shell(script)).unwrap();
        let mut lines = BufReader::new(out).lines();
        let pid = lines.next_line().await.unwrap().unwrap();
        assert!(soon(|| !alive(&pid)).await);
        drop((process, input));
    }

    #[tokio::test]
    async fn variables_and_programs_may_have_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a=b");
        fs::create_dir(&folder).unwrap();
        let names = ["my-var", "npm_config_//x:_authToken", "_", "PWD"];
        std::os::unix::fs::symlink("/usr/bin/env", folder.join("show=all")).unwrap();
        // By its place in the folder where it runs, by its whole path, and by its name.
        for (command, cwd) in [
            ("./show=all", Some(folder.clone())),
            ("a=b/show=all", folder.parent().map(Path::to_owned)),
            (folder.join("show=all").to_str().unwrap(), None),
            ("show=all", Some(folder.clone())),
        ] {
            let value = |name: &str| (name.to_owned(), SecretString::from("made-up-token"));
            let mut env: BTreeMap<_, _> = names.into_iter().map(value).collect();
            env.insert("PATH".to_owned(), SecretString::from("/nonexistent:."));
            let server = StdioServer {
                command: command.to_owned(),
                args: Vec::new(),
                env,
                cwd,
            };
            let (process, (mut out, input)) = Process::start(&server).unwrap();
            let mut said = String::new();
            out.read_to_string(&mut said).await.unwrap();
            drop((process, input));
            for name in names {
                let line = format!("{name}=made-up-token");
                assert!(said.lines().any(|said| said == line), "{name}: {said}");
            }
        }
    }

    #[tokio::test]
    async fn the_last_words_of_a_server_that_fails_are_kept() {
        let (process, pipes) = Process::start(&shell("echo 'no such dock' >&2; exit 3")).unwrap();
        assert_eq!(process.last_words().await, "no such dock");
        drop(pipes);
    }

    #[test]
    fn a_command_that_is_not_there_is_named_as_python_names_it() {
        let path = "/nonexistent".into();
        for command in ["/nonexistent/server", "nonexistent-server"] {
            assert_eq!(
                program(command, &path, None).unwrap_err(),
                format!("[Errno 2] No such file or directory: '{command}'")
            );
        }
        assert_eq!(
            program("/etc/passwd", &path, None).unwrap_err(),
            "[Errno 13] Permission denied: '/etc/passwd'"
        );
        assert_eq!(
            program("sh", &path, Some(Path::new("/nonexistent"))).unwrap_err(),
            "[Errno 2] No such file or directory: '/nonexistent'"
        );
    }
}
