//! Agent skills from real git servers (`tests/servers/git.sh`), and what is left of them when a run ends or is ended.

mod git;
mod leftovers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::servers;

fn server_file(name: &str) -> PathBuf {
    Path::new(&servers::git()["UPDRAFT_TEST_GIT_DIR"]).join(name)
}

/// A path on the HTTPS server.
fn https(path: &str) -> String {
    format!(
        "https://localhost:{}/{path}",
        servers::git()["UPDRAFT_TEST_GIT_HTTPS_PORT"]
    )
}

/// The token that the server asks for: see `git_https.py`.
const TOKEN: &str = "made-up-git-token";

/// A connection of type git, as an environment variable.
fn connection(password: Option<&str>, extra: serde_json::Value) -> (String, String) {
    let value = serde_json::json!({"conn_type": "git", "login": "reader", "password": password, "extra": extra});
    ("AIRFLOW_CONN_SKILLS".to_owned(), value.to_string())
}

/// `updraft` with an environment of its own: a private home and a private folder for temporary files.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        Self { folder }
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    fn command(&self, connection: Option<(String, String)>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_updraft"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("AIRFLOW_HOME", self.folder.path().join("airflow"))
            .env("TMPDIR", self.temporary())
            .env("SSL_CERT_FILE", server_file("ca.crt"))
            .envs(connection)
            .stdin(Stdio::null());
        command
    }

    /// `updraft skills resolve --conn-id skills SOURCE -- sh -c SCRIPT`, with the folder as `$1`.
    fn resolve(&self, connection: Option<(String, String)>, source: &str, script: &str) -> Output {
        let mut command = self.command(connection.clone());
        command.args(["skills", "resolve", source]);
        if connection.is_some() {
            command.args(["--conn-id", "skills"]);
        }
        command
            .args(["--", "sh", "-c", script, "sh"])
            .output()
            .unwrap()
    }

    /// What is left of skills in the folder for temporary files.
    fn leftovers(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.temporary())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_string_lossy().contains("updraft_task_"))
            .collect()
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
