//! What a task process gives up before it reads a line of a Dag file: new privileges, and by Landlock the reach to
//! processes outside of the task. With `[updraft] task_folders` also every file that a task does not need.
//!
//! The rules bind the calling thread and what it starts, so they are set while there is no other thread.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};
use serde_json::Value;

use crate::airflow::bundle::DagBundles;
use crate::airflow::config::{Config, ConfigError};
use crate::toolset::skills::confine::{DEVICES, READABLE, SYSTEM};

/// The newest rights that are known here; the kernel takes those it knows.
const RIGHTS: ABI = ABI::V6;

/// Files that programs and name resolution read, beside those that skills' scripts may.
const ALSO_READABLE: [&str; 9] = [
    "/etc/passwd",
    "/etc/group",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/ssl",
    "/etc/pki",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/proc/self",
];

/// Why a task process can't be confined as configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// An option can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The kernel refuses.
    #[error("new privileges can't be given up: {0}")]
    Privileges(#[from] nix::errno::Errno),
    /// Files were to be confined, and the kernel can't or won't.
    #[error(
        "[updraft] task_folders is set, and the kernel can't keep tasks to these folders (Linux 5.13 or later with \
         Landlock does): {0}"
    )]
    Files(RulesetError),
}

/// How far the kernel can confine task processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Files and the reach to other processes.
    Full,
    /// Files only: before Linux 6.12.
    FilesOnly,
    /// Nothing.
    Nothing,
}

/// What this kernel can do.
#[must_use]
pub fn kernel() -> Kernel {
    let scopes = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(RIGHTS))
        .and_then(Ruleset::create);
    if scopes.is_ok() {
        return Kernel::Full;
    }
    let files = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    if files.is_ok() {
        Kernel::FilesOnly
    } else {
        Kernel::Nothing
    }
}

/// The folders that tasks are kept to; `None` when they are not.
///
/// # Errors
/// The option can't be read.
pub fn task_folders(config: &Config) -> Result<Option<Vec<PathBuf>>, ConfigError> {
    let folders: Vec<_> = config
        .get_list("updraft", "task_folders")?
        .into_iter()
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from)
        .collect();
    Ok((!folders.is_empty()).then_some(folders))
}

/// Confines this process, before it has a second thread. Nothing is given up where `[updraft] allow_bash` is on: such a
/// shell has the worker's rights.
///
/// # Errors
/// See [`ConfineError`]; the process must end.
pub fn confine(config: &Config) -> Result<(), ConfineError> {
    if config.get_bool("updraft", "allow_bash").unwrap_or(false) {
        return Ok(());
    }
    nix::sys::prctl::set_no_new_privs()?;
    // Not in one rule set with the files: a domain with rules about files may mount nothing, which some MCP servers do.
    let apart = Ruleset::default()
        .scope(Scope::from_all(RIGHTS))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.restrict_self());
    if let Err(error) = apart {
        tracing::debug!("the task process is not set apart from others: {error}");
    }
    if let Some(folders) = task_folders(config)? {
        keep_to(&Files::of(config, folders)).map_err(ConfineError::Files)?;
    }
    Ok(())
}

/// What a task may touch.
#[derive(Debug, Default, PartialEq)]
struct Files {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl Files {
    fn of(config: &Config, folders: Vec<PathBuf>) -> Self {
        let mut files = Self {
            writable: folders,
            ..Self::default()
        };
        files.writable.push(std::env::temp_dir());
        for option in ["local_storage"] {
            if let Ok(folders) = config.get_list("updraft", option) {
                files
                    .writable
                    .extend(folders.into_iter().map(PathBuf::from));
            }
        }
        for (section, option) in [("common.ai", "durable_cache_path")] {
            if let Ok(Some(path)) = config.get_path(section, option) {
                files.writable.push(path);
            }
        }
        let home = config.airflow_home();
        files.readable.extend([
            home.join("airflow.cfg"),
            home.join("plugins"),
            home.join("config"),
        ]);
        if let Ok(bundles) = DagBundles::from_config(config) {
            for bundle in bundles.all() {
                if let Ok(root) = bundle.root() {
                    files.readable.push(root.to_owned());
                }
            }
        }
        let environment = config.environment();
        for variable in ["AIRFLOW_CONFIG", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
            files
                .readable
                .extend(environment.get(variable).map(PathBuf::from));
        }
        for (section, key) in [
            ("api", "ssl_cert"),
            ("api", "ssl_ca_file"),
            ("api", "client_ssl_cert"),
            ("api", "client_ssl_key"),
        ] {
            if let Ok(Some(path)) = config.get_path(section, key) {
                files.readable.push(path);
            }
        }
        for (section, key) in [
            ("workers", "secrets_backend_kwargs"),
            ("secrets", "backend_kwargs"),
        ] {
            if let Ok(Some(kwargs)) = config.get_json(section, key) {
                files.readable.extend(paths_in(&kwargs));
            }
        }
        if let Ok(program) = std::env::current_exe() {
            files.readable.push(program);
        }
        files
    }
}

/// The values that are absolute paths: files that a secrets backend reads.
fn paths_in(kwargs: &Value) -> Vec<PathBuf> {
    kwargs
        .as_object()
        .into_iter()
        .flat_map(|kwargs| kwargs.values())
        .filter_map(Value::as_str)
        .filter(|text| Path::new(text).is_absolute())
        .map(PathBuf::from)
        .collect()
}

fn keep_to(files: &Files) -> Result<(), RulesetError> {
    let read = AccessFs::from_read(RIGHTS);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    Ruleset::default()
        // Without this right nothing is kept from anybody.
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RIGHTS))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules(ALSO_READABLE, read))?
        .add_rules(path_beneath_rules(DEVICES, device))?
        .add_rules(path_beneath_rules(&files.readable, read))?
        .add_rules(path_beneath_rules(
            &files.writable,
            AccessFs::from_all(RIGHTS),
        ))?
        .restrict_self()
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airflow::config::Environment;

    fn config(options: &[(&str, &str)]) -> Config {
        let environment: Environment = [("AIRFLOW_HOME", "/nonexistent/airflow")]
            .into_iter()
            .chain(options.iter().copied())
            .collect();
        Config::new(environment)
    }

    #[test]
    fn a_task_that_is_kept_to_folders_reads_its_bundle_and_writes_there_and_nowhere_else() {
        let [dags, kept, other] = [(); 3].map(|()| tempfile::tempdir_in("/var/tmp").unwrap());
        std::fs::write(dags.path().join("dag.py"), "").unwrap();
        std::fs::write(other.path().join("secret"), "").unwrap();
        let absolute = |folder: &tempfile::TempDir| folder.path().canonicalize().unwrap();
        let (dags_path, kept_path, other_path) =
            (absolute(&dags), absolute(&kept), absolute(&other));
        let config = config(&[
            ("AIRFLOW__CORE__DAGS_FOLDER", dags_path.to_str().unwrap()),
            (
                "AIRFLOW__UPDRAFT__TASK_FOLDERS",
                kept_path.to_str().unwrap(),
            ),
        ]);
        std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                confine(&config).expect("the tests need a kernel with Landlock");
                assert!(std::fs::read(dags_path.join("dag.py")).is_ok());
                assert!(std::fs::write(dags_path.join("dag.py"), "x").is_err());
                assert!(std::fs::write(kept_path.join("out"), "x").is_ok());
                assert!(std::fs::read(other_path.join("secret")).is_err());
                assert!(tempfile::tempdir().is_ok());
                assert!(std::fs::read("/etc/hosts").is_ok());
            });
            confined.join().unwrap();
        });
        assert!(std::fs::read(other_path.join("secret")).is_ok());
    }

    #[test]
    fn without_task_folders_files_stay_as_they_are_and_other_processes_are_out_of_reach() {
        let mut stranger = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let memory = format!("/proc/{}/mem", stranger.id());
        std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                confine(&config(&[])).unwrap();
                assert!(
                    std::fs::write(std::env::temp_dir().join("updraft-confine-test"), "x").is_ok()
                );
                if kernel() == Kernel::Full {
                    assert!(std::fs::File::open(&memory).is_err());
                    let pid = nix::unistd::Pid::from_raw(stranger.id() as i32);
                    assert!(nix::sys::signal::kill(pid, None).is_err());
                }
            });
            confined.join().unwrap();
        });
        assert!(std::fs::File::open(&memory).is_ok());
        let _ = std::fs::remove_file(std::env::temp_dir().join("updraft-confine-test"));
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_worker_whose_tasks_may_use_a_shell_confines_nothing() {
        let config = config(&[
            ("AIRFLOW__UPDRAFT__ALLOW_BASH", "True"),
            ("AIRFLOW__UPDRAFT__TASK_FOLDERS", "/nonexistent"),
        ]);
        std::thread::scope(|scope| {
            let free = scope.spawn(|| {
                confine(&config).unwrap();
                assert!(!nix::sys::prctl::get_no_new_privs().unwrap());
            });
            free.join().unwrap();
        });
    }

    #[test]
    fn files_of_the_configuration_may_be_read() {
        let config = config(&[
            (
                "AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS",
                r#"{"connections_file_path": "/made/up/connections.json", "x": 1, "y": "relative"}"#,
            ),
            ("AIRFLOW__UPDRAFT__LOCAL_STORAGE", "/made/up/store"),
            ("SSL_CERT_FILE", "/made/up/ca.pem"),
        ]);
        let files = Files::of(&config, vec!["/made/up/work".into()]);
        for path in ["/made/up/connections.json", "/made/up/ca.pem"] {
            assert!(files.readable.contains(&PathBuf::from(path)), "{path}");
        }
        for path in ["/made/up/work", "/made/up/store"] {
            assert!(files.writable.contains(&PathBuf::from(path)), "{path}");
        }
    }
}
