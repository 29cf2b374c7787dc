//! The servers of `tests/servers`: those that `tests/run.sh` started, else started here, once in a test run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// What a script prints: ports, folders and addresses by name.
pub type Places = HashMap<String, String>;

/// What `databases.sh` prints.
pub fn databases() -> &'static Places {
    static PLACES: LazyLock<Places> =
        LazyLock::new(|| started("databases.sh", "UPDRAFT_TEST_POSTGRES_PORT"));
    &PLACES
}

/// What `git.sh` prints.
pub fn git() -> &'static Places {
    static PLACES: LazyLock<Places> = LazyLock::new(|| started("git.sh", "UPDRAFT_TEST_GIT_DIR"));
    &PLACES
}

/// What `stores.sh` prints.
pub fn stores() -> &'static Places {
    static PLACES: LazyLock<Places> = LazyLock::new(|| started("stores.sh", "UPDRAFT_TEST_S3_URL"));
    &PLACES
}

/// A file of `tests/servers`.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/servers")
        .join(name)
}

/// `known`: a variable that is there when the servers are.
fn started(name: &str, known: &str) -> Places {
    if std::env::var_os(known).is_some() {
        return std::env::vars().collect();
    }
    let folder = tempfile::Builder::new()
        .prefix("updraft-servers.")
        .tempdir()
        .expect("a folder")
        .keep();
    let out = Command::new(script(name))
        .arg("start")
        .arg(folder)
        .arg(std::process::id().to_string())
        .stderr(Stdio::inherit())
        .output()
        .expect("the script starts");
    assert!(out.status.success(), "{name} did not start its servers");
    String::from_utf8(out.stdout)
        .expect("text")
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
