//! Secrets backends: stores of connections, variables and configuration that a worker asks before anything else, chosen
//! and set up by the names and arguments that Airflow's configuration has for them.

mod environment_variables;
mod kwargs;
mod local_filesystem;
mod vault;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::airflow::config::{Config, ConfigError};
use crate::airflow::connection::{Connection, MalformedConnection};
use environment_variables::EnvironmentVariablesBackend;
use kwargs::Kwargs;
use local_filesystem::LocalFilesystemBackend;
use vault::VaultBackend;

/// The backends' class names in Airflow.
const ENVIRONMENT_VARIABLES: &str =
    "airflow.secrets.environment_variables.EnvironmentVariablesBackend";
const LOCAL_FILESYSTEM: &str = "airflow.secrets.local_filesystem.LocalFilesystemBackend";
const VAULT: &str = "airflow.providers.hashicorp.secrets.vault.VaultBackend";

/// A store of secrets.
#[async_trait]
pub trait SecretsBackend: fmt::Debug + Send + Sync {
    /// The class's own name, for logs.
    fn name(&self) -> &'static str;

    /// The connection of this id; `None` when the store has none.
    ///
    /// # Errors
    /// The store can't be asked, or holds something else than a connection.
    async fn connection(&self, conn_id: &str) -> Result<Option<Connection>, BackendError>;

    /// The variable's text; `None` when the store has none.
    ///
    /// # Errors
    /// The store can't be asked.
    async fn variable(&self, key: &str) -> Result<Option<String>, BackendError>;

    /// The text of an option of Airflow's configuration, by the name that a `_SECRET` option gives.
    ///
    /// # Errors
    /// The store can't be asked.
    async fn config(&self, key: &str) -> Result<Option<String>, BackendError>;
}

/// Why a secrets backend can't be made or asked. No text of it holds a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// A class that has no counterpart here.
    #[error(
        "{option} names the secrets backend {class:?}, which Updraft does not know. It knows {LOCAL_FILESYSTEM}, {VAULT} \
         and {ENVIRONMENT_VARIABLES}: choose one of them for this worker, or leave {option} empty for it (an empty \
         environment variable will do); then connections and variables come from the environment and from Airflow"
    )]
    Unsupported {
        /// `[section] key`.
        option: String,
        /// What it names.
        class: String,
    },
    /// The configuration itself can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An argument that the class does not take, or not so.
    #[error("{option}: the argument {name:?} {reason}")]
    Argument {
        /// `[section] key` of the arguments.
        option: String,
        /// The argument.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file that can't be read or is malformed.
    #[error("the secrets file {path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Something that is no connection.
    #[error(transparent)]
    Malformed(#[from] MalformedConnection),
    /// Vault refused or could not answer.
    #[error("Vault at {server}: {reason}")]
    Vault {
        /// Scheme, host and port.
        server: String,
        /// What happened.
        reason: String,
    },
}

/// The secrets backend that the configuration names for workers; `None` when it names none.
///
/// `[workers] secrets_backend` with `secrets_backend_kwargs`, else `[secrets] backend` with `backend_kwargs`. Environment
/// variables such as `AIRFLOW__WORKERS__SECRETS_BACKEND_KWARG__ROLE_ID` set single arguments and win over the JSON.
///
/// # Errors
/// [`BackendError::Unsupported`], [`BackendError::Argument`], [`BackendError::Config`]. Nothing is asked yet.
pub fn from_config(config: &Config) -> Result<Option<Arc<dyn SecretsBackend>>, BackendError> {
    for (section, key, kwargs_key) in [
        ("workers", "secrets_backend", "secrets_backend_kwargs"),
        ("secrets", "backend", "backend_kwargs"),
    ] {
        let Some(class) = config.text(section, key)? else {
            continue;
        };
        let kwargs = Kwargs::read(config, section, kwargs_key)?;
        return match class.trim() {
            LOCAL_FILESYSTEM => Ok(Some(Arc::new(LocalFilesystemBackend::new(kwargs)?))),
            VAULT => Ok(Some(Arc::new(VaultBackend::new(kwargs, config)?))),
            ENVIRONMENT_VARIABLES => {
                kwargs.finish()?;
                let environment = config.environment().clone();
                Ok(Some(Arc::new(EnvironmentVariablesBackend(environment))))
            }
            other => Err(BackendError::Unsupported {
                option: format!("[{section}] {key}"),
                class: other.to_owned(),
            }),
        };
    }
    Ok(None)
}

/// The configuration with its `_SECRET` options answered by the secrets backend that it names.
///
/// Blocks while the backend is asked, which happens once for each such option that is needed.
#[must_use]
pub fn with_secret_options(config: Config) -> Config {
    let plain = config.clone();
    config.with_secrets_backend(move |key| {
        let backend = from_config(&plain)
            .map_err(|error| error.to_string())?
            .ok_or("[workers] secrets_backend names no secrets backend")?;
        // A thread of its own: this one may be the runtime's, which must not be blocked from within.
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .map_err(|error| error.to_string())?
                        .block_on(backend.config(key))
                        .map_err(|error| error.to_string())
                })
                .join()
                .unwrap_or_else(|_| Err("the secrets backend panicked".to_owned()))
        })
    })
}

/// A JSON value as the text that a variable is: texts as they are, anything else as JSON.
fn text_of(value: serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn config(variables: &[(&str, &str)]) -> Config {
        let home = ("AIRFLOW_HOME", "/nonexistent");
        Config::new(variables.iter().copied().chain([home]).collect())
    }

    fn name(variables: &[(&str, &str)]) -> Option<&'static str> {
        from_config(&config(variables))
            .unwrap()
            .map(|backend| backend.name())
    }

    #[test]
    fn the_workers_section_wins_over_the_secrets_section() {
        let vault = ("AIRFLOW__WORKERS__SECRETS_BACKEND", VAULT);
        let token = (
            "AIRFLOW__WORKERS__SECRETS_BACKEND_KWARG__TOKEN",
            "made-up-token",
        );
        let files = ("AIRFLOW__SECRETS__BACKEND", LOCAL_FILESYSTEM);
        assert_eq!(name(&[]), None);
        assert_eq!(name(&[files]), Some("LocalFilesystemBackend"));
        assert_eq!(name(&[vault, token, files]), Some("VaultBackend"));
        assert_eq!(
            name(&[("AIRFLOW__WORKERS__SECRETS_BACKEND", ""), files]),
            Some("LocalFilesystemBackend")
        );
    }

    #[test]
    fn an_unknown_class_is_named_with_the_ones_that_are_known() {
        let class = "airflow.providers.amazon.aws.secrets.secrets_manager.SecretsManagerBackend";
        let error = from_config(&config(&[("AIRFLOW__SECRETS__BACKEND", class)])).unwrap_err();
        let text = error.to_string();
        for part in [
            "[secrets] backend",
            class,
            LOCAL_FILESYSTEM,
            VAULT,
            ENVIRONMENT_VARIABLES,
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn arguments_that_a_class_does_not_take_are_refused_without_showing_their_values() {
        for (class, kwargs) in [
            (LOCAL_FILESYSTEM, r#"{"variable_file_path": "made-up"}"#),
            (ENVIRONMENT_VARIABLES, r#"{"prefix": "made-up"}"#),
            (VAULT, r#"{"tokn": "made-up"}"#),
            (LOCAL_FILESYSTEM, r#"{"variables_file_path": ["made-up"]}"#),
            (LOCAL_FILESYSTEM, r#"["made-up"]"#),
            (LOCAL_FILESYSTEM, "made-up"),
        ] {
            let text = from_config(&config(&[
                ("AIRFLOW__WORKERS__SECRETS_BACKEND", class),
                ("AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS", kwargs),
            ]))
            .unwrap_err()
            .to_string();
            assert!(
                text.starts_with("[workers] secrets_backend_kwargs") && !text.contains("made-up"),
                "{text}"
            );
        }
    }

    #[test]
    fn options_of_the_configuration_come_from_the_backend() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("configs.json");
        std::fs::write(&path, r#"{"airflow/jwt": "made-up-jwt"}"#).unwrap();
        let path = path.to_string_lossy();
        let config = |key: &str, backend: &str| {
            with_secret_options(config(&[
                ("AIRFLOW__API_AUTH__JWT_SECRET_SECRET", key),
                ("AIRFLOW__WORKERS__SECRETS_BACKEND", backend),
                (
                    "AIRFLOW__WORKERS__SECRETS_BACKEND_KWARG__CONFIGS_FILE_PATH",
                    &path,
                ),
            ]))
        };
        assert_eq!(
            config("airflow/jwt", LOCAL_FILESYSTEM)
                .required("api_auth", "jwt_secret")
                .unwrap(),
            "made-up-jwt"
        );
        let refusal = |key, backend| {
            config(key, backend)
                .required("api_auth", "jwt_secret")
                .unwrap_err()
                .to_string()
        };
        let text = refusal("airflow/other", LOCAL_FILESYSTEM);
        assert!(text.contains("has no \"airflow/other\""), "{text}");
        let text = refusal("airflow/jwt", "");
        assert!(text.contains("names no secrets backend"), "{text}");
        let text = refusal("airflow/jwt", "some.other.Backend");
        assert!(text.contains("some.other.Backend"), "{text}");
    }
}
