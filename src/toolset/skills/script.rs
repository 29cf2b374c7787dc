//! Runs a skill's script: as a process group of its own, with little of the worker's environment, confined where the
//! kernel can, and for no longer than allowed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, Command};

use super::confine::{self, Rules};
use super::manifest::python_str;

/// How long a script may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of each of stdout and stderr that the model sees.
pub(super) const MAX_OUTPUT: usize = 65_536;
/// How long output is waited for when the script itself has ended: somebody else may hold its end of the pipe.
const LAST_OUTPUT: Duration = Duration::from_millis(500);

/// Of the worker's environment a script sees these, and those that begin with `LC_`.
const VISIBLE: [&str; 8] = [
    "PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "SHELL", "TERM",
];
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Runs the program in `$@` with a guard beside it: when the worker's end of standard input closes, because the worker
/// let it go or was killed, the guard kills the whole group. The script itself has no standard input.
const GUARDED: &str = "exec 3<&0 </dev/null; { read -r _ <&3; kill -s KILL 0; } >/dev/null 2>&1 & exec 3<&-; \
                       exec \"$@\"";

/// Where a script runs.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The skill's folder: readable, and the working directory.
    pub folder: PathBuf,
    /// A folder to write to: `HOME` and `TMPDIR`.
    pub scratch: PathBuf,
    /// The worker's environment, less what holds a secret.
    pub environment: BTreeMap<String, String>,
    pub timeout: Duration,
}

/// Why a script has no result. All of them fail the run, as they do in Airflow.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It can't be started.
    #[error("Failed to execute script '{name}': {reason}")]
    Start { name: String, reason: String },
    /// It took too long; nothing of it runs any more.
    #[error("Script '{name}' timed out after {seconds} seconds")]
    TimedOut { name: String, seconds: u64 },
}

/// Of the worker's environment what a script may see. `is_secret` says whether a text holds a secret.
pub(super) fn visible_environment(
    all: impl Iterator<Item = (OsString, OsString)>,
    is_secret: impl Fn(&str) -> bool,
) -> BTreeMap<String, String> {
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| VISIBLE.contains(&name.as_str()) || name.starts_with("LC_"))
        .filter(|(_, value)| !is_secret(value))
        .collect()
}

/// Runs the script `name` at `path` with named arguments. True beside the output: it was confined.
///
/// # Errors
/// See [`ScriptError`].
pub(super) async fn run(
    name: &str,
    path: &Path,
    args: &Map<String, Value>,
    place: &Place,
) -> Result<(String, bool), ScriptError> {
    let failed = |reason: String| ScriptError::Start {
        name: name.to_owned(),
        reason,
    };
    let search = place
        .environment
        .get("PATH")
        .map_or(DEFAULT_PATH, String::as_str);
    let mut words = command(path, search).map_err(failed)?;
    let mut readable = vec![place.folder.clone()];
    if let Some(interpreter) = words.first_mut() {
        let mut homes = confine::home_of(Path::new(interpreter));
        if !homes.is_empty()
            && let Some(python) = Python::behind(interpreter).await
        {
            *interpreter = python.executable;
            homes = python.homes;
        }
        readable.extend(homes);
    }
    words.extend(arguments(args));
    let rules = Rules {
        readable,
        scratch: place.scratch.clone(),
    };
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", GUARDED, "sh"])
        .args(words)
        .current_dir(&place.folder)
        .env_clear()
        .env("PATH", search)
        .envs(&place.environment)
        .env("HOME", &place.scratch)
        .env("TMPDIR", &place.scratch)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let (child, confined) = start(command, rules).await.map_err(failed)?;
    let mut group = Group::new(child);
    let (out, err) = (Output::default(), Output::default());
    let readers = [
        group.child.stdout.take().map(|pipe| out.collect(pipe)),
        group.child.stderr.take().map(|pipe| err.collect(pipe)),
    ];
    let ended = tokio::time::timeout(place.timeout, group.child.wait()).await;
    group.kill();
    for reader in readers.into_iter().flatten() {
        let mut reader = AbortOnDrop(reader);
        let _ = tokio::time::timeout(LAST_OUTPUT, &mut reader.0).await;
    }
    match ended {
        Err(_) => Err(ScriptError::TimedOut {
            name: name.to_owned(),
            seconds: place.timeout.as_secs(),
        }),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Ok(Ok(status)) => Ok((render(&out.text(), &err.text(), status), confined)),
    }
}

/// A Python that is not the system's. What stands on the PATH may be a script that looks for it elsewhere.
struct Python {
    executable: String,
    /// Where its own files lie.
    homes: Vec<PathBuf>,
}

impl Python {
    /// Asks the interpreter where it is; `None` when it is no Python, or does not say. It runs with the worker's own
    /// environment: it is the worker's program, and no script of a skill.
    async fn behind(interpreter: &str) -> Option<Self> {
        let name = Path::new(interpreter).file_name()?.to_str()?;
        if !name.starts_with("python") {
            return None;
        }
        let asked = Command::new(interpreter)
            .args(["-I", "-S", "-c"])
            .arg("import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .output();
        let said = tokio::time::timeout(Duration::from_secs(10), asked)
            .await
            .ok()?
            .ok()?;
        let said = String::from_utf8(said.stdout).ok()?;
        let mut lines = said.lines().filter(|line| line.starts_with('/'));
        Some(Self {
            executable: lines.next()?.to_owned(),
            homes: lines.map(PathBuf::from).collect(),
        })
    }
}

/// Starts the command from a thread that is confined first.
async fn start(mut command: Command, rules: Rules) -> Result<(Child, bool), String> {
    let runtime = tokio::runtime::Handle::current();
    let (answer, started) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("skill-script".to_owned())
        .spawn(move || {
            let _runtime = runtime.enter();
            let result = confine::confine_this_thread(&rules)
                .map_err(|error| format!("Landlock refused the rules: {error}"))
                .and_then(|confined| match command.spawn() {
                    Ok(child) => Ok((child, confined)),
                    Err(error) => Err(error.to_string()),
                });
            // Nobody waits any more: the child is dropped, and so ends.
            drop(answer.send(result));
        })
        .map_err(|error| format!("no thread to start it from: {error}"))?;
    started
        .await
        .unwrap_or_else(|_| Err("the thread that starts it ended".to_owned()))
}

/// A started script. Dropping it kills everything in its group.
struct Group {
    child: Child,
    id: Option<Pid>,
    /// Closed when this is dropped: the sign for the guard. Not left to the child, whose `wait` closes it.
    _lifeline: Option<ChildStdin>,
}

impl Group {
    fn new(mut child: Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            id: id.map(Pid::from_raw),
            _lifeline: child.stdin.take(),
            child,
        }
    }

    fn kill(&mut self) {
        // Only once: later the number may be somebody else's.
        if let Some(id) = self.id.take()
            && let Err(error) = killpg(id, Signal::SIGKILL)
            && error != nix::errno::Errno::ESRCH
        {
            tracing::warn!(%error, "a skill's script can't be killed");
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The beginning of what a process writes, and how much it was.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<(Vec<u8>, usize)>>);

impl Output {
    /// Reads to the end, so that the process never waits for a reader, and keeps what is shown.
    fn collect(
        &self,
        mut pipe: impl AsyncRead + Unpin + Send + 'static,
    ) -> tokio::task::JoinHandle<()> {
        let kept = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut buffer = vec![0; 16_384];
            while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_OUTPUT.saturating_sub(kept.0.len()).min(count);
                kept.0
                    .extend_from_slice(buffer.get(..room).unwrap_or_default());
                kept.1 += count;
            }
        })
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from_utf8_lossy(&kept.0).into_owned();
        if kept.1 > kept.0.len() {
            text.push_str(&format!(
                "\n[output cut off: the first {} of {} bytes are shown]",
                kept.0.len(),
                kept.1
            ));
        }
        text
    }
}

fn render(out: &str, err: &str, status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;

    let mut text = out.to_owned();
    if !err.is_empty() {
        text.push_str(&format!("\n\nStderr:\n{err}"));
    }
    // As Python counts: a signal is a negative code.
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| -signal))
        .unwrap_or(-1);
    if code != 0 {
        text.push_str(&format!("\n\nScript exited with code {code}"));
    }
    match text.trim() {
        "" => "(no output)".to_owned(),
        text => text.to_owned(),
    }
}

/// `--key value` for each argument; true is a flag, a list repeats its key, false and null are left out.
fn arguments(args: &Map<String, Value>) -> Vec<String> {
    let mut words = Vec::new();
    for (key, value) in args {
        let flag = format!("--{key}");
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => words.push(flag),
            Value::Array(items) => {
                for item in items {
                    words.extend([flag.clone(), python_str(item)]);
                }
            }
            other => words.extend([flag, python_str(other)]),
        }
    }
    words
}

/// The program that runs a script, and the script.
fn command(path: &Path, search: &str) -> Result<Vec<String>, String> {
    let script = path
        .to_str()
        .ok_or_else(|| "its path is not UTF-8".to_owned())?;
    if let Some(mut words) = shebang(path, search) {
        words.push(script.to_owned());
        return Ok(words);
    }
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_lowercase());
    let interpreters: &[&str] = match ending.as_deref() {
        Some("py") => &["python3", "python"],
        Some("sh") => &["sh"],
        Some("bash") => &["bash"],
        Some("zsh") => &["zsh"],
        Some("fish") => &["fish"],
        Some("ps1") => &["pwsh", "powershell"],
        Some("bat" | "cmd") => {
            return Err("batch files of Windows do not run on this worker".to_owned());
        }
        _ => return Ok(vec![script.to_owned()]),
    };
    let interpreter = interpreters.iter().find_map(|name| which(name, search));
    let Some(interpreter) = interpreter else {
        let name = interpreters.first().copied().unwrap_or_default();
        return Err(format!(
            "there is no {name} on this worker's PATH; install it, or send the task to a queue whose workers have it"
        ));
    };
    let file = (ending.as_deref() == Some("ps1")).then(|| "-File".to_owned());
    Ok([interpreter]
        .into_iter()
        .chain(file)
        .chain([script.to_owned()])
        .collect())
}

/// The interpreter that a script's first line names, when it is there.
fn shebang(path: &Path, search: &str) -> Option<Vec<String>> {
    let mut head = Vec::new();
    File::open(path)
        .ok()?
        .take(512)
        .read_to_end(&mut head)
        .ok()?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line.strip_prefix(b"#!")?).into_owned();
    let mut words = line.split_whitespace();
    let mut program = words.next()?;
    if Path::new(program).file_name() == Some(OsStr::new("env")) {
        program = words.find(|word| !word.starts_with('-'))?;
    }
    let program = if Path::new(program).is_absolute() {
        Path::new(program).exists().then(|| program.to_owned())?
    } else {
        which(program, search)?
    };
    Some(
        [program]
            .into_iter()
            .chain(words.map(ToOwned::to_owned))
            .collect(),
    )
}

/// Finds a program as a shell would.
fn which(name: &str, search: &str) -> Option<String> {
    std::env::split_paths(search)
        .map(|folder| folder.join(name))
        .find(|path| {
            path.metadata().is_ok_and(|metadata| {
                metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
            })
        })?
        .into_os_string()
        .into_string()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use pretty_assertions::assert_eq;
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;

    struct Skill {
        folder: TempDir,
        scratch: TempDir,
    }

    impl Skill {
        fn new(name: &str, text: &str) -> Self {
            let skill = Self {
                folder: tempfile::tempdir().unwrap(),
                scratch: tempfile::tempdir().unwrap(),
            };
            fs::write(skill.folder.path().join(name), text).unwrap();
            skill
        }

        fn place(&self) -> Place {
            Place {
                folder: self.folder.path().canonicalize().unwrap(),
                scratch: self.scratch.path().canonicalize().unwrap(),
                environment: visible_environment(std::env::vars_os(), |_| false),
                timeout: Duration::from_secs(10),
            }
        }

        async fn run_with(
            &self,
            name: &str,
            args: Value,
            place: &Place,
        ) -> Result<String, ScriptError> {
            let Value::Object(args) = args else {
                panic!("arguments are an object")
            };
            run(name, &place.folder.join(name), &args, place)
                .await
                .map(|(text, _)| text)
        }

        async fn run(&self, name: &str, args: Value) -> String {
            self.run_with(name, args, &self.place()).await.unwrap()
        }
    }

    #[tokio::test]
    async fn arguments_become_options_and_the_output_is_the_result() {
        let skill = Skill::new("count.sh", "#!/bin/sh\necho \"args: $*\"\n");
        let args = json!({"name": "Aurora", "dry": true, "skip": false, "none": null, "ids": [1, "b"], "n": 2.5});
        assert_eq!(
            skill.run("count.sh", args).await,
            "args: --name Aurora --dry --ids 1 --ids b --n 2.5"
        );
    }

    #[tokio::test]
    async fn stderr_and_the_exit_status_are_part_of_the_result() {
        let skill = Skill::new("fail.sh", "echo partial\necho trouble >&2\nexit 3\n");
        assert_eq!(
            skill.run("fail.sh", json!({})).await,
            "partial\n\n\nStderr:\ntrouble\n\n\nScript exited with code 3"
        );
        let skill = Skill::new("quiet.sh", "exit 0\n");
        assert_eq!(skill.run("quiet.sh", json!({})).await, "(no output)");
        let skill = Skill::new("dies.sh", "kill -KILL $$\n");
        assert_eq!(
            skill.run("dies.sh", json!({})).await,
            "Script exited with code -9"
        );
    }

    #[tokio::test]
    async fn a_script_runs_in_its_skills_folder_with_a_scratch_folder_and_little_else() {
        let skill = Skill::new(
            "look.sh",
            "pwd\nls\necho x > \"$TMPDIR/note\" && cat \"$HOME/note\"\nenv | cut -d= -f1 | sort\nread -r line || echo no input\n",
        );
        let mut place = skill.place();
        place.environment = visible_environment(
            [
                ("PATH", "/usr/bin:/bin"),
                ("LC_ALL", "C"),
                ("AIRFLOW_CONN_X", "postgres://made:up@host"),
                ("USER", "made-up-secret"),
            ]
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())),
            |value| value.contains("made-up-secret"),
        );
        let said = skill.run_with("look.sh", json!({}), &place).await.unwrap();
        let expected = format!(
            "{}\nlook.sh\nx\nHOME\nLC_ALL\nPATH\nPWD\nPYTHONDONTWRITEBYTECODE\nTMPDIR\nno input",
            place.folder.display()
        );
        // The shell adds variables of its own.
        let said: Vec<&str> = said
            .lines()
            .filter(|line| !["OLDPWD", "SHLVL", "_"].contains(line))
            .collect();
        assert_eq!(said.join("\n"), expected);
    }

    #[tokio::test]
    async fn a_script_is_confined_to_its_skill_and_its_scratch_folder() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "made-up secret").unwrap();
        let text = format!(
            "cat {0}/secret\necho x > {0}/new\necho x > own\ncat /etc/passwd /proc/$PPID/environ\nkill -KILL $PPID\n\
             echo done\n",
            outside.path().display()
        );
        let skill = Skill::new("pry.sh", &text);
        let place = skill.place();
        let (said, confined) = run("pry.sh", &place.folder.join("pry.sh"), &Map::new(), &place)
            .await
            .unwrap();
        assert!(confined, "the tests need a kernel with Landlock");
        assert!(said.starts_with("done\n\n\nStderr:"), "{said}");
        assert!(
            !said.contains("made-up secret") && !said.contains("root:"),
            "{said}"
        );
        assert!(!outside.path().join("new").exists());
        assert!(!place.folder.join("own").exists());
    }

    #[tokio::test]
    async fn a_script_that_takes_too_long_is_killed_with_everything_it_started() {
        let skill = Skill::new(
            "slow.sh",
            "sleep 1234.5 & echo $! > \"$TMPDIR/pid\"; wait\n",
        );
        let mut place = skill.place();
        place.timeout = Duration::from_millis(500);
        let error = skill
            .run_with("slow.sh", json!({}), &place)
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("Script 'slow.sh' timed out after"),
            "{error}"
        );
        gone(&place.scratch.join("pid")).await;
    }

    #[tokio::test]
    async fn a_script_ends_when_its_caller_stops_waiting() {
        let skill = Skill::new("slow.sh", "echo $$ > \"$TMPDIR/pid\"; sleep 1234.5\n");
        let place = skill.place();
        let pid = place.scratch.join("pid");
        tokio::select! {
            result = skill.run_with("slow.sh", json!({}), &place) => panic!("{result:?}"),
            () = async { while fs::read_to_string(&pid).unwrap_or_default().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            } } => {}
        }
        gone(&pid).await;
    }

    /// Waits for the end of the process whose number a file holds.
    async fn gone(file: &Path) {
        let pid: i32 = fs::read_to_string(file).unwrap().trim().parse().unwrap();
        let start = Instant::now();
        loop {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(5), "{stat}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn processes_left_in_the_background_neither_delay_the_result_nor_stay() {
        let skill = Skill::new(
            "leave.sh",
            "sleep 1234.5 & echo $! > \"$TMPDIR/pid\"; echo started\n",
        );
        let place = skill.place();
        let start = Instant::now();
        assert_eq!(skill.run("leave.sh", json!({})).await, "started");
        assert!(start.elapsed() < Duration::from_secs(5));
        gone(&place.scratch.join("pid")).await;
    }

    #[tokio::test]
    async fn much_output_is_cut_off_and_does_not_stop_the_script() {
        let skill = Skill::new(
            "loud.sh",
            "head -c 300000 /dev/zero | tr '\\0' x\necho end > \"$TMPDIR/end\"\n",
        );
        let said = skill.run("loud.sh", json!({})).await;
        let note = "\n[output cut off: the first 65536 of 300000 bytes are shown]";
        assert_eq!(said.len(), MAX_OUTPUT + note.len());
        assert!(said.ends_with(note));
        assert!(skill.scratch.path().join("end").exists());
    }

    #[tokio::test]
    async fn a_python_script_needs_a_python() {
        let skill = Skill::new("go.py", "import sys\nprint('py', sys.argv[1:])\n");
        assert_eq!(skill.run("go.py", json!({"a": 1})).await, "py ['--a', '1']");
        let mut place = skill.place();
        place
            .environment
            .insert("PATH".to_owned(), "/nowhere".to_owned());
        let error = skill
            .run_with("go.py", json!({}), &place)
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("there is no python3 on this worker's PATH"),
            "{error}"
        );
    }

    #[test]
    fn the_first_line_chooses_the_interpreter_before_the_name_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.py");
        let script = path.to_str().unwrap().to_owned();
        let words = |text: &str| {
            fs::write(&path, text).unwrap();
            command(&path, "/usr/bin:/bin").unwrap()
        };
        assert_eq!(words("#!/bin/sh -e\n"), ["/bin/sh", "-e", &script]);
        assert_eq!(words("#!/usr/bin/env -S sh -x\n")[1..], ["-x", &script]);
        assert_eq!(words("#!/no/such/program\n")[1..], [script.as_str()]);
        assert!(words("#!/no/such/program\n")[0].contains("python"));
        let plain = folder.path().join("tool");
        fs::write(&plain, "#!/no/such/program\n").unwrap();
        assert_eq!(command(&plain, "").unwrap(), [plain.to_str().unwrap()]);
    }
}
