//! What one interpreter knows of the world outside: its host, its files, its environment variables.
//!
//! Native modules are given the virtual machine and nothing else; this finds the world that belongs to it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use rustpython_vm::VirtualMachine;
use rustpython_vm::builtins::PyBaseExceptionRef;

use super::files::ReadableFiles;
use super::host::Host;

/// The world of one interpreter.
pub(super) struct World {
    pub host: Arc<dyn Host>,
    pub files: ReadableFiles,
    pub dag_file: PathBuf,
    /// Its text.
    pub source: String,
    pub bundle_root: PathBuf,
    /// What `os.environ` starts with.
    pub environment: Vec<(String, String)>,
}

/// Worlds by the address of their virtual machine's shared state, which all threads of one interpreter have in common.
static WORLDS: LazyLock<RwLock<HashMap<usize, Arc<World>>>> = LazyLock::new(RwLock::default);

/// Keeps a world registered.
pub(super) struct Registration(usize);

impl Drop for Registration {
    fn drop(&mut self) {
        WORLDS
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.0);
    }
}

fn address(vm: &VirtualMachine) -> usize {
    std::ptr::from_ref(&*vm.state).addr()
}

/// Gives `vm` its world, until the registration is dropped.
pub(super) fn register(vm: &VirtualMachine, world: Arc<World>) -> Registration {
    let address = address(vm);
    WORLDS
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(address, world);
    Registration(address)
}

/// The world of `vm`.
///
/// # Errors
/// The interpreter is being dropped while one of its threads still runs.
pub(super) fn of(vm: &VirtualMachine) -> Result<Arc<World>, PyBaseExceptionRef> {
    WORLDS
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&address(vm))
        .cloned()
        .ok_or_else(|| vm.new_runtime_error("the Dag interpreter has ended"))
}

/// The environment variables that Dag code may see: all but the worker's own secrets.
///
/// On the Python worker a Dag file can read every one of them. Nothing that Dag code can do here needs the keys with
/// which the worker itself speaks to Airflow, so those are left out; connections and variables remain.
pub(super) fn visible_environment(
    variables: impl Iterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    variables
        .filter(|(name, _)| !is_worker_secret(name))
        .collect()
}

fn is_worker_secret(name: &str) -> bool {
    const SECTIONS: [&str; 5] = [
        "API_AUTH__",
        "DATABASE__",
        "CELERY__",
        "SENTRY__",
        "SECRETS__",
    ];
    const KEYS: [&str; 8] = [
        "SECRET",
        "PASSWORD",
        "FERNET_KEY",
        "TOKEN",
        "_CMD",
        "SQL_ALCHEMY_CONN",
        "BROKER_URL",
        "PRIVATE_KEY",
    ];
    let Some(setting) = name.strip_prefix("AIRFLOW__") else {
        return false;
    };
    SECTIONS.iter().any(|section| setting.starts_with(section))
        || KEYS.iter().any(|key| setting.contains(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workers_own_keys_are_hidden_and_everything_else_is_seen() {
        let names = [
            "AIRFLOW_HOME",
            "AIRFLOW_CONN_PASSWORD_DB",
            "AIRFLOW_VAR_TOKEN",
            "AIRFLOW__CORE__DAGS_FOLDER",
            "AIRFLOW__API_AUTH__JWT_SECRET",
            "AIRFLOW__CORE__FERNET_KEY",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_CMD",
            "AIRFLOW__SECRETS__BACKEND_KWARGS",
            "AIRFLOW__API__SECRET_KEY",
            "MY_TOKEN",
        ];
        let seen = visible_environment(
            names
                .into_iter()
                .map(|name| (name.to_owned(), String::new())),
        );
        let seen: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "AIRFLOW_HOME",
            "AIRFLOW_CONN_PASSWORD_DB",
            "AIRFLOW_VAR_TOKEN",
            "AIRFLOW__CORE__DAGS_FOLDER",
            "MY_TOKEN",
        ];
        assert_eq!(seen, expected);
    }
}
