//! Airflow's configuration: `AIRFLOW__SECTION__KEY`, `airflow.cfg`, defaults.
//!
//! A [`Config`] is cheap to make and to clone. `airflow.cfg` is read when the first option is asked for that the
//! environment does not set, and never a second time.

mod defaults;
mod expand;
mod file;
mod getters;
mod secret_options;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use defaults::{is_sensitive, sensitive_options};
use file::ConfigFile;
use secret_options::SecretOptions;

/// The environment variables of this process, taken once; or a made-up set, for tests.
#[derive(Clone, Default)]
pub struct Environment(Arc<HashMap<String, String>>);

impl Environment {
    /// The variables this process was started with. Values that are not UTF-8 are read with replacement characters.
    #[must_use]
    pub fn of_process() -> Self {
        let text = |s: std::ffi::OsString| s.to_string_lossy().into_owned();
        Self(Arc::new(
            std::env::vars_os()
                .map(|(k, v)| (text(k), text(v)))
                .collect(),
        ))
    }

    /// The value of a variable, which may be empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Every variable whose name starts with `prefix`, in no order.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .iter()
            .filter(move |(name, _)| name.starts_with(prefix))
            .map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(Arc::new(
            variables
                .into_iter()
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
        ))
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

/// Where the value of an option came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A flag of the command line.
    Flag,
    /// This environment variable.
    Environment(String),
    /// The command in this environment variable.
    EnvironmentCommand(String),
    /// This file.
    File(PathBuf),
    /// The command in `<key>_cmd` of this file.
    FileCommand(PathBuf),
    /// The secrets backend, under the name that this `_SECRET` variable or `_secret` option gives.
    SecretsBackend(String),
    /// Airflow's default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("a command line flag"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::EnvironmentCommand(name) => {
                write!(f, "the command in environment variable {name}")
            }
            Self::File(path) => write!(f, "{}", path.display()),
            Self::FileCommand(path) => write!(f, "a _cmd option in {}", path.display()),
            Self::SecretsBackend(set_by) => write!(f, "the secrets backend, by {set_by}"),
            Self::Default => f.write_str("Airflow's default"),
        }
    }
}

/// The text of an option and where it came from. `Debug` never shows the text, which may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Setting {
    pub value: String,
    pub source: Source,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting")
            .field("value", &"***")
            .field("source", &self.source)
            .finish()
    }
}

/// Why an option can't be had. `option` is `[section] key`.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The option is needed and set nowhere.
    #[error("{option} is not set: set {variable}, or the option in {}", file.display())]
    Missing {
        option: String,
        variable: String,
        file: PathBuf,
    },
    /// The text is not what the option wants. A sensitive value is not shown.
    #[error("{option} must be {expected}, but {set_by} says {value}")]
    Invalid {
        option: String,
        expected: String,
        value: String,
        set_by: Source,
    },
    /// The configuration file is there and can't be read.
    #[error("can't read the configuration file {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    /// The configuration file is malformed.
    #[error("{}, line {line}: {reason}", path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    /// A `_CMD` option's command did not run, or failed.
    #[error("{option}: the command from {set_by} failed: {reason}")]
    Command {
        option: String,
        set_by: Source,
        reason: String,
    },
    /// A `_SECRET` option that the secrets backend can't answer.
    #[error("{option} is to come from the secrets backend, as {set_by} says: {reason}")]
    SecretsBackend {
        option: String,
        set_by: String,
        reason: String,
    },
}

#[derive(Debug)]
struct Inner {
    environment: Environment,
    home: PathBuf,
    path: PathBuf,
    file: OnceLock<Result<ConfigFile, ConfigError>>,
    /// Outputs of `_CMD` options: a command runs once, not at every look.
    commands: Mutex<HashMap<(String, String), String>>,
}

/// Airflow's configuration. Clones share the parsed file.
///
/// Order for each option: flag, `AIRFLOW__SECTION__KEY`, `..._CMD`, `..._SECRET`, `airflow.cfg`, its `key_cmd` and
/// `key_secret`, Airflow's default. Sections and keys are written in lower case.
#[derive(Clone, Debug)]
pub struct Config {
    inner: Arc<Inner>,
    secrets: Option<SecretOptions>,
    flags: Arc<BTreeMap<(String, String), String>>,
}

impl Config {
    /// The configuration as this process's environment gives it.
    #[must_use]
    pub fn from_env() -> Self {
        Self::new(Environment::of_process())
    }

    /// The configuration that an environment gives. `AIRFLOW_HOME` and `AIRFLOW_CONFIG` say where the file is.
    #[must_use]
    pub fn new(environment: Environment) -> Self {
        let path_of = |name: &str| {
            environment
                .get(name)
                .filter(|v| !v.is_empty())
                .map(|v| expand::expand(v, &environment))
        };
        let home = PathBuf::from(
            path_of("AIRFLOW_HOME").unwrap_or_else(|| expand::expand("~/airflow", &environment)),
        );
        let path =
            path_of("AIRFLOW_CONFIG").map_or_else(|| home.join("airflow.cfg"), PathBuf::from);
        let inner = Inner {
            environment,
            home,
            path,
            file: OnceLock::new(),
            commands: Mutex::default(),
        };
        Self {
            inner: Arc::new(inner),
            flags: Arc::default(),
            secrets: None,
        }
    }

    /// The same configuration with `ask` as the secrets backend that its `_SECRET` options speak of. A name that the
    /// backend does not know is `None`.
    #[must_use]
    pub fn with_secrets_backend(
        mut self,
        ask: impl Fn(&str) -> Result<Option<String>, String> + Send + Sync + 'static,
    ) -> Self {
        self.secrets = Some(SecretOptions::new(ask));
        self
    }

    /// The same configuration with one option set by a flag, which wins over everything.
    #[must_use]
    pub fn with_flag(mut self, section: &str, key: &str, value: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.flags).insert((section.to_owned(), key.to_owned()), value.into());
        self
    }

    /// The environment that this configuration reads.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// `AIRFLOW_HOME`, by default `~/airflow`.
    #[must_use]
    pub fn airflow_home(&self) -> &Path {
        &self.inner.home
    }

    /// The option with its source; `None` when nobody sets it and Airflow has no default. May be empty text.
    ///
    /// # Errors
    /// An unreadable or malformed file, a failing `_CMD`, a `_SECRET` that can't be had.
    pub fn setting(&self, section: &str, key: &str) -> Result<Option<Setting>, ConfigError> {
        let environment = &self.inner.environment;
        if let Some(value) = self.flags.get(&(section.to_owned(), key.to_owned())) {
            return Ok(Some(Setting {
                value: value.clone(),
                source: Source::Flag,
            }));
        }
        let variable = variable_name(section, key);
        if let Some(value) = environment.get(&variable) {
            let value = expand::expand(value, environment);
            return Ok(Some(Setting {
                value,
                source: Source::Environment(variable),
            }));
        }
        let sensitive = is_sensitive(section, key);
        // A secret that the backend does not have: other sources may.
        let mut unknown = None;
        if sensitive {
            let name = format!("{variable}_CMD");
            if let Some(command) = environment.get(&name) {
                return self
                    .command(section, key, command, Source::EnvironmentCommand(name))
                    .map(Some);
            }
            let name = format!("{variable}_SECRET");
            if let Some(secret) = environment.get(&name) {
                match self.secret(section, key, secret, &name)? {
                    Some(setting) => return Ok(Some(setting)),
                    None => unknown = Some((secret.to_owned(), name)),
                }
            }
        }
        let file = self.file()?;
        if let Some(value) = file.get(section, key)? {
            let value = expand::expand(&value, environment);
            return Ok(Some(Setting {
                value,
                source: Source::File(self.inner.path.clone()),
            }));
        }
        if sensitive {
            if let Some(command) = file.get(section, &format!("{key}_cmd"))? {
                let source = Source::FileCommand(self.inner.path.clone());
                return self.command(section, key, &command, source).map(Some);
            }
            if let Some(secret) = file.get(section, &format!("{key}_secret"))? {
                let option = format!("[{section}] {key}_secret in {}", self.inner.path.display());
                match self.secret(section, key, &secret, &option)? {
                    Some(setting) => return Ok(Some(setting)),
                    None => unknown = Some((secret, option)),
                }
            }
        }
        match (defaults::default(section, key), unknown) {
            (Some(default), _) => Ok(Some(Setting {
                value: default.replace("{AIRFLOW_HOME}", &self.inner.home.to_string_lossy()),
                source: Source::Default,
            })),
            (None, None) => Ok(None),
            (None, Some((secret, set_by))) => Err(ConfigError::SecretsBackend {
                option: option_name(section, key),
                set_by,
                reason: format!("it has no {secret:?}"),
            }),
        }
    }

    /// What the secrets backend has under the name `secret`, which `set_by` gives.
    fn secret(
        &self,
        section: &str,
        key: &str,
        secret: &str,
        set_by: &str,
    ) -> Result<Option<Setting>, ConfigError> {
        let answer = match &self.secrets {
            Some(secrets) => secrets.get(secret),
            None => Err("only the worker itself asks it for configuration".to_owned()),
        };
        match answer {
            Ok(answer) => Ok(answer.map(|value| Setting {
                value,
                source: Source::SecretsBackend(set_by.to_owned()),
            })),
            Err(reason) => Err(ConfigError::SecretsBackend {
                option: option_name(section, key),
                set_by: set_by.to_owned(),
                reason,
            }),
        }
    }

    /// The option's text; `None` when it is set nowhere. May be empty.
    ///
    /// # Errors
    /// See [`Config::setting`].
    pub fn get(&self, section: &str, key: &str) -> Result<Option<String>, ConfigError> {
        Ok(self.setting(section, key)?.map(|s| s.value))
    }

    /// The option's text; `None` when it is set nowhere or empty, which Airflow's options mostly mean alike.
    ///
    /// # Errors
    /// See [`Config::setting`].
    pub fn text(&self, section: &str, key: &str) -> Result<Option<String>, ConfigError> {
        Ok(self.get(section, key)?.filter(|value| !value.is_empty()))
    }

    /// The text of an option that must be set.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when it is set nowhere or empty; else see [`Config::setting`].
    pub fn required(&self, section: &str, key: &str) -> Result<String, ConfigError> {
        self.text(section, key)?
            .ok_or_else(|| self.missing(section, key))
    }

    /// The error for an option whose text a caller can't use. It names the option and where its value came from.
    #[must_use]
    pub fn invalid(&self, section: &str, key: &str, expected: impl Into<String>) -> ConfigError {
        match self.setting(section, key) {
            Ok(Some(setting)) => invalid(section, key, expected, &setting),
            Ok(None) => self.missing(section, key),
            Err(error) => error,
        }
    }

    fn missing(&self, section: &str, key: &str) -> ConfigError {
        ConfigError::Missing {
            option: option_name(section, key),
            variable: variable_name(section, key),
            file: self.inner.path.clone(),
        }
    }

    fn file(&self) -> Result<&ConfigFile, ConfigError> {
        self.inner
            .file
            .get_or_init(|| ConfigFile::read(&self.inner.path))
            .as_ref()
            .map_err(Clone::clone)
    }

    fn command(
        &self,
        section: &str,
        key: &str,
        command: &str,
        source: Source,
    ) -> Result<Setting, ConfigError> {
        let slot = (section.to_owned(), key.to_owned());
        let mut outputs = self
            .inner
            .commands
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = outputs.get(&slot) {
            return Ok(Setting {
                value: value.clone(),
                source,
            });
        }
        match run(command) {
            Ok(value) => {
                outputs.insert(slot, value.clone());
                Ok(Setting { value, source })
            }
            Err(reason) => Err(ConfigError::Command {
                option: option_name(section, key),
                set_by: source,
                reason,
            }),
        }
    }
}

/// `AIRFLOW__SECTION__KEY`; dots of the section become underscores.
#[must_use]
pub fn variable_name(section: &str, key: &str) -> String {
    format!(
        "AIRFLOW__{}__{}",
        section.replace('.', "_").to_uppercase(),
        key.to_uppercase()
    )
}

fn option_name(section: &str, key: &str) -> String {
    format!("[{section}] {key}")
}

fn invalid(
    section: &str,
    key: &str,
    expected: impl Into<String>,
    setting: &Setting,
) -> ConfigError {
    ConfigError::Invalid {
        option: option_name(section, key),
        expected: expected.into(),
        value: if is_sensitive(section, key) {
            "***".to_owned()
        } else {
            format!("{:?}", setting.value)
        },
        set_by: setting.source.clone(),
    }
}

/// Runs a command without a shell and returns what it prints, its last newline included, as Airflow does.
fn run(command: &str) -> Result<String, String> {
    let words = expand::split_words(command)?;
    let Some((program, arguments)) = words.split_first() else {
        return Err("it is empty".to_owned());
    };
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        // Not its output: that may hold the secret.
        Err(format!(
            "{program}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn config(variables: &[(&str, &str)]) -> Config {
        let home = ("AIRFLOW_HOME", "/nonexistent/airflow");
        Config::new(variables.iter().copied().chain([home]).collect())
    }

    fn with_file(text: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, Config) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("airflow.cfg"), text).unwrap();
        let home = folder.path().to_string_lossy().into_owned();
        let variables = variables
            .iter()
            .copied()
            .chain([("AIRFLOW_HOME", home.as_str())]);
        let config = Config::new(variables.collect());
        (folder, config)
    }

    #[test]
    fn an_environment_variable_wins_over_the_file_and_the_file_over_the_default() {
        let (_folder, config) = with_file(
            "[edge]\nheartbeat_interval = 7\njob_poll_interval = 9\n",
            &[("AIRFLOW__EDGE__JOB_POLL_INTERVAL", "1")],
        );
        assert_eq!(config.get_int("edge", "job_poll_interval").unwrap(), 1);
        assert_eq!(config.get_int("edge", "heartbeat_interval").unwrap(), 7);
        assert_eq!(config.get_int("edge", "worker_concurrency").unwrap(), 8);
    }

    #[test]
    fn a_flag_wins_over_everything_and_leaves_the_other_clones_alone() {
        let base = config(&[("AIRFLOW__EDGE__WORKER_CONCURRENCY", "2")]);
        let flagged = base.clone().with_flag("edge", "worker_concurrency", "16");
        assert_eq!(flagged.get_int("edge", "worker_concurrency").unwrap(), 16);
        assert_eq!(base.get_int("edge", "worker_concurrency").unwrap(), 2);
    }

    #[test]
    fn dots_of_a_section_become_underscores_in_the_variable() {
        let config = config(&[("AIRFLOW__COMMON_AI__CAPTURE_CONTENT", "true")]);
        assert!(config.get_bool("common.ai", "capture_content").unwrap());
    }

    #[test]
    fn folders_default_to_airflow_home() {
        let config = config(&[]);
        assert_eq!(
            config.required("core", "dags_folder").unwrap(),
            "/nonexistent/airflow/dags"
        );
        assert_eq!(
            config.required("logging", "base_log_folder").unwrap(),
            "/nonexistent/airflow/logs"
        );
    }

    #[test]
    fn variables_and_the_home_folder_are_expanded_again_and_again() {
        let config = config(&[
            ("HOME", "/home/ada"),
            ("ROOT", "${BASE}/x"),
            ("BASE", "~"),
            ("AIRFLOW__CORE__DAGS_FOLDER", "$ROOT/dags"),
            (
                "AIRFLOW__LOGGING__BASE_LOG_FOLDER",
                "$UNSET/${ALSO_UNSET}/~",
            ),
        ]);
        assert_eq!(
            config.required("core", "dags_folder").unwrap(),
            "/home/ada/x/dags"
        );
        assert_eq!(
            config.required("logging", "base_log_folder").unwrap(),
            "$UNSET/${ALSO_UNSET}/~"
        );
    }

    #[test]
    fn only_sensitive_options_come_from_commands_and_keep_the_newline() {
        let config = config(&[
            ("AIRFLOW__API_AUTH__JWT_SECRET_CMD", "echo 'made up' secret"),
            ("AIRFLOW__CORE__DAGS_FOLDER_CMD", "echo /elsewhere"),
        ]);
        assert_eq!(
            config.required("api_auth", "jwt_secret").unwrap(),
            "made up secret\n"
        );
        assert_eq!(
            config.required("core", "dags_folder").unwrap(),
            "/nonexistent/airflow/dags"
        );
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_the_option() {
        let config = config(&[("AIRFLOW__API_AUTH__JWT_SECRET_CMD", "false")]);
        let text = config
            .get("api_auth", "jwt_secret")
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("[api_auth] jwt_secret: the command from"),
            "{text}"
        );
        assert!(text.contains("exit status: 1"), "{text}");
    }

    #[test]
    fn a_secret_lookup_without_a_backend_says_so() {
        let config = config(&[("AIRFLOW__API_AUTH__JWT_SECRET_SECRET", "airflow/jwt")]);
        let text = config
            .get("api_auth", "jwt_secret")
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("AIRFLOW__API_AUTH__JWT_SECRET_SECRET says: only the worker"),
            "{text}"
        );
    }

    /// A backend that knows one name and counts what it is asked.
    fn with_backend(config: Config) -> (Config, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        let config = config.with_secrets_backend(move |name| {
            log.lock().unwrap().push(name.to_owned());
            match name {
                "airflow/jwt" => Ok(Some("made-up-jwt".to_owned())),
                "sealed" => Err("it is sealed".to_owned()),
                _ => Ok(None),
            }
        });
        (config, asked)
    }

    #[test]
    fn secret_options_come_from_the_backend_which_is_asked_once() {
        let (config, asked) = with_backend(config(&[(
            "AIRFLOW__API_AUTH__JWT_SECRET_SECRET",
            "airflow/jwt",
        )]));
        for _ in 0..2 {
            let setting = config.setting("api_auth", "jwt_secret").unwrap().unwrap();
            assert_eq!(setting.value, "made-up-jwt");
            assert_eq!(
                setting.source.to_string(),
                "the secrets backend, by AIRFLOW__API_AUTH__JWT_SECRET_SECRET"
            );
        }
        assert_eq!(*asked.lock().unwrap(), ["airflow/jwt"]);
    }

    #[test]
    fn a_secret_that_the_backend_lacks_may_come_from_the_file() {
        let variable = [("AIRFLOW__API_AUTH__JWT_SECRET_SECRET", "nowhere")];
        let (_folder, config) = with_file("[api_auth]\njwt_secret = made-up-file\n", &variable);
        let (config, _) = with_backend(config);
        assert_eq!(
            config.required("api_auth", "jwt_secret").unwrap(),
            "made-up-file"
        );
        let (_folder, config) = with_file("[api_auth]\njwt_secret_secret = airflow/jwt\n", &[]);
        let (config, _) = with_backend(config);
        assert_eq!(
            config.required("api_auth", "jwt_secret").unwrap(),
            "made-up-jwt"
        );
    }

    #[test]
    fn a_secret_that_nobody_has_and_a_backend_that_fails_are_errors_with_a_reason() {
        for (name, reason) in [
            ("nowhere", "it has no \"nowhere\""),
            ("sealed", "it is sealed"),
        ] {
            let (config, _) =
                with_backend(config(&[("AIRFLOW__API_AUTH__JWT_SECRET_SECRET", name)]));
            let text = config
                .required("api_auth", "jwt_secret")
                .unwrap_err()
                .to_string();
            assert!(text.ends_with(reason), "{text}");
        }
    }

    #[test]
    fn only_sensitive_options_come_from_the_backend() {
        let (config, asked) = with_backend(config(&[(
            "AIRFLOW__CORE__DAGS_FOLDER_SECRET",
            "airflow/jwt",
        )]));
        assert_eq!(
            config.required("core", "dags_folder").unwrap(),
            "/nonexistent/airflow/dags"
        );
        assert!(asked.lock().unwrap().is_empty());
    }

    #[test]
    fn commands_work_in_the_file_too() {
        let (_folder, config) = with_file(
            "[api_auth]\njwt_secret_cmd = printf %%s made-up\n[core]\nfernet_key_secret = x\n",
            &[],
        );
        assert_eq!(
            config.required("api_auth", "jwt_secret").unwrap(),
            "made-up"
        );
        assert!(matches!(
            config.get("core", "fernet_key"),
            Err(ConfigError::SecretsBackend { .. })
        ));
    }

    #[test]
    fn a_missing_option_says_how_to_set_it() {
        let text = config(&[])
            .required("edge", "api_url")
            .unwrap_err()
            .to_string();
        assert_eq!(
            text,
            "[edge] api_url is not set: set AIRFLOW__EDGE__API_URL, or the option in /nonexistent/airflow/airflow.cfg"
        );
    }

    #[test]
    fn a_sensitive_value_is_never_shown() {
        let config = config(&[("AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS", "{made-up-token")]);
        let error = config
            .get_json("workers", "secrets_backend_kwargs")
            .unwrap_err();
        assert!(!format!("{error} {error:?}").contains("made-up"), "{error}");
        assert!(
            !format!("{:?}", config.setting("workers", "secrets_backend_kwargs"))
                .contains("made-up")
        );
    }

    #[test]
    fn airflow_config_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.cfg");
        std::fs::write(&path, "[edge]\napi_url = http://127.0.0.1:9/rpc\n").unwrap();
        let config = config(&[("AIRFLOW_CONFIG", &path.to_string_lossy())]);
        assert_eq!(
            config.required("edge", "api_url").unwrap(),
            "http://127.0.0.1:9/rpc"
        );
        assert_eq!(
            config.setting("edge", "api_url").unwrap().unwrap().source,
            Source::File(path)
        );
    }
}
