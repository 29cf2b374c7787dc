//! Agents with the tools of real MCP servers (FastMCP, `tests/servers/mcp_dock.py`), and our own tools served to clients
//! of other frameworks.

mod client;
mod dag;
mod newest;
mod serve;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A Python with FastMCP: that of the tests' environment.
///
/// # Panics
/// There is none.
pub fn python() -> String {
    python_of("")
}

/// A Python with LangChain's adapters, which need an older MCP library than FastMCP.
fn langchain_python() -> String {
    python_of("-langchain")
}

fn python_of(suffix: &str) -> String {
    let venv = std::env::var_os("UPDRAFT_TEST_VENV").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/updraft/venv"),
        PathBuf::from,
    );
    let mut venv = venv.into_os_string();
    venv.push(suffix);
    let python = PathBuf::from(venv).join("bin/python");
    assert!(
        python.exists(),
        "there is no {}: tests/run.sh makes it; UPDRAFT_TEST_VENV names another environment",
        python.display()
    );
    python.display().to_string()
}

fn dock_script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/servers/mcp_dock.py")
        .display()
        .to_string()
}

/// A dock over HTTP. It ends with this value, and with the tests.
struct Dock {
    child: Child,
    port: String,
    path: &'static str,
}

impl Dock {
    /// `mode` is `http` or `sse`; with `legacy` it refuses the newest protocol.
    fn start(mode: &str, legacy: bool, token: Option<&str>) -> Self {
        let mut child = Command::new(python())
            .arg(dock_script())
            .arg(mode)
            .args(legacy.then_some("--legacy"))
            .envs(token.map(|token| ("DOCK_TOKEN", token)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        assert!(!port.is_empty(), "the dock did not start");
        Self {
            child,
            port: port.trim().to_owned(),
            path: if mode == "sse" { "sse" } else { "mcp" },
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}", self.port, self.path)
    }

    /// The number that `GET /<what>` answers.
    async fn get(&self, what: &str) -> u64 {
        let url = format!("http://127.0.0.1:{}/{what}", self.port);
        reqwest::get(url).await.unwrap().json().await.unwrap()
    }
}

impl Drop for Dock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does a process run? A zombie does not.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until something holds.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
