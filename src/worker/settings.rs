//! What a worker needs to know, read from Airflow's configuration (flags are part of it already).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use reqwest::Url;

use super::dag_index::DagIndex;
use super::edge_api::{EdgeApi, Signing};
use super::executables::Executables;
use super::log_file::LogFolder;
use super::metrics::Metrics;
use super::python::PythonRuntime;
use super::runtimes::Runtimes;
use super::versions::Versions;
use crate::airflow::bundle::DagBundles;
use crate::airflow::config::{Config, ConfigError};
use crate::airflow::url_text::without_userinfo;
use crate::control_plane::execution_api::ExecutionApiSettings;
use crate::control_plane::http::{self, HttpClientError};
use crate::control_plane::retry::{RetryPolicy, heartbeat_timeout};
use crate::secrets::{BackendError, Masker, SearchPath};
use crate::supervisor::cgroup::Allowance;
use crate::supervisor::heartbeat::HeartbeatLimits;
use crate::supervisor::{Limits, TaskCommand};

/// Everything that stays the same while a worker runs.
#[derive(Clone)]
pub struct Settings {
    /// Name of the worker; also the hostname of its tasks.
    pub name: String,
    /// Queues to serve at first.
    pub queues: Option<Vec<String>>,
    /// Where its tasks find their Dag files.
    pub bundles: DagBundles,
    /// Slots at first.
    pub concurrency: u32,
    /// `[edge] team_name`-like hint of multi-team set-ups.
    pub team_name: Option<String>,
    /// Reported to the server, which may accept its own only.
    pub versions: Versions,
    /// The Edge API.
    pub edge: EdgeApi,
    /// The Execution API.
    pub execution: ExecutionApiSettings,
    /// `[edge] job_poll_interval`.
    pub poll_interval: Duration,
    /// How long a proxy that knows no Edge API is believed to wait for its server to start.
    pub proxy_patience: Duration,
    /// `[edge] heartbeat_interval`.
    pub heartbeat_interval: Duration,
    /// `[edge] drain_timeout_sec`; `None` waits for ever.
    pub drain_timeout: Option<Duration>,
    /// `[edge] drain_kill_grace_sec`.
    pub drain_kill_grace: Duration,
    /// `[edge] push_logs`, and the characters of a piece.
    pub push_logs: Option<usize>,
    /// Where task logs go.
    pub logs: LogFolder,
    /// The rules of masking, and the configuration's own secrets.
    pub masker: Masker,
    /// Heartbeats of tasks.
    pub task_heartbeats: HeartbeatLimits,
    /// Limits of task processes.
    pub limits: Limits,
    /// `AIRFLOW_HOME`, where the socket for commands on this machine is; `None` for no socket.
    pub home: Option<PathBuf>,
    /// `[updraft] metrics_address`: where health and metrics are served.
    pub metrics_address: Option<SocketAddr>,
    /// What there is to count.
    pub metrics: Arc<Metrics>,
    /// What a task may use of memory and CPU.
    pub allowance: Allowance,
    /// How a task process is started.
    pub command: TaskCommand,
    /// What runs tasks beside such processes.
    pub runtimes: Runtimes,
    /// Name of the user that tasks run as.
    pub unixname: String,
}

/// Why a worker can't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// An option is missing or can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The HTTP client can't be made.
    #[error(transparent)]
    Http(#[from] HttpClientError),
    /// The secrets backend that tasks are to ask is unknown or wrongly set up.
    #[error(transparent)]
    Secrets(#[from] BackendError),
    /// A URL that is none.
    #[error("{option} is {value:?}, which is not a URL: {source}")]
    Url {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        #[source]
        source: <Url as std::str::FromStr>::Err,
    },
    /// An API URL that relative RPC paths can't replace the last segment of.
    #[error(
        "[edge] api_url is {0:?}: it must end in /edge_worker/v1/rpcapi, without a slash after it"
    )]
    ApiUrl(String),
    /// A signing algorithm that needs more than a shared secret.
    #[error(
        "[api_auth] jwt_algorithm is {0:?}: an edge worker signs with the shared secret, so it must be HS256, HS384 or \
         HS512"
    )]
    Algorithm(String),
    /// A name that the server can't keep.
    #[error(
        "the worker's name {0:?} must have 1 to 64 characters and no slash: choose another --worker-name"
    )]
    Name(String),
    /// Too many queues for the server's column.
    #[error("the list of queues is too long for the server (256 characters): serve fewer --queues")]
    Queues,
    /// The running program can't be found.
    #[error(
        "the path of this program can't be determined, so that it can't be started for a task: {0}"
    )]
    Program(std::io::Error),
}

impl Settings {
    /// Reads the configuration. `queues` of `None` serves every queue.
    ///
    /// # Errors
    /// See [`SettingsError`].
    pub fn from_config(
        config: &Config,
        name: Option<String>,
        queues: Option<Vec<String>>,
    ) -> Result<Self, SettingsError> {
        let name = name.unwrap_or_else(hostname);
        if name.is_empty() || name.chars().count() > 64 || name.contains('/') {
            return Err(SettingsError::Name(name));
        }
        if queues
            .as_ref()
            .is_some_and(|queues| queues.iter().map(|queue| queue.len() + 4).sum::<usize>() > 256)
        {
            return Err(SettingsError::Queues);
        }
        // Better now than in every task.
        SearchPath::from_config(config)?;
        let bundles = DagBundles::from_config(config)?;
        let timeout = config.get_seconds("workers", "execution_api_timeout")?;
        let http = http::client(config, timeout)?;
        let api_url = config.required("edge", "api_url")?;
        if api_url.ends_with('/') {
            return Err(SettingsError::ApiUrl(
                without_userinfo(&api_url).into_owned(),
            ));
        }
        let execution_url = match config.text("core", "execution_api_server_url")? {
            Some(url) => url,
            None => api_url.replace("edge_worker/v1/rpcapi", "execution"),
        };
        let versions = Versions::new(
            config.text("updraft", "airflow_version")?,
            config.text("updraft", "edge_provider_version")?,
        );
        let mut command = TaskCommand::this_program().map_err(SettingsError::Program)?;
        for key in ["logging_level", "namespace_levels"] {
            let value = config.text("logging", key)?.unwrap_or_default();
            command
                .environment
                .push((format!("AIRFLOW__LOGGING__{}", key.to_uppercase()), value));
        }
        let edge_base = url("[edge] api_url", api_url)?;
        let execution_base = url("[core] execution_api_server_url", execution_url)?;
        let logs = LogFolder {
            base: config
                .get_path("logging", "base_log_folder")?
                .unwrap_or_else(|| config.airflow_home().join("logs")),
            folder_mode: config.get_mode("logging", "file_task_handler_new_folder_permissions")?,
            file_mode: config.get_mode("logging", "file_task_handler_new_file_permissions")?,
        };
        let runtimes = Runtimes {
            executables: Executables::new(
                config
                    .get_list("updraft", "executables_root")?
                    .into_iter()
                    .filter(|folder| !folder.is_empty())
                    .map(Into::into)
                    .collect(),
            ),
            python: match config.get_path("updraft", "python")? {
                Some(program) => Some((
                    PythonRuntime::new(program, execution_base.as_str(), &logs.base),
                    DagIndex::new(
                        command.program.clone(),
                        config.get_seconds("core", "dagbag_import_timeout")?,
                    ),
                )),
                None => None,
            },
        };
        let drain = config.get_seconds("edge", "drain_timeout_sec")?;
        let silence = heartbeat_timeout(config)?;
        Ok(Self {
            name,
            queues,
            bundles,
            concurrency: u32::try_from(config.get_uint("edge", "worker_concurrency")?)
                .unwrap_or(u32::MAX),
            team_name: None,
            execution: ExecutionApiSettings {
                http: http.clone(),
                base: execution_base,
                version: versions.api(),
                retry: RetryPolicy::for_execution_api(config)?,
                timeout,
            },
            versions,
            edge: EdgeApi::new(
                http,
                edge_base,
                signing(config)?,
                RetryPolicy {
                    attempts: retry_number(config, "api_retries", 10.0)? as u32,
                    wait_min: Duration::from_secs_f64(retry_number(
                        config,
                        "api_retry_wait_min",
                        1.0,
                    )?),
                    wait_max: Duration::from_secs_f64(retry_number(
                        config,
                        "api_retry_wait_max",
                        90.0,
                    )?),
                    outage: silence,
                },
            ),
            poll_interval: config
                .get_seconds("edge", "job_poll_interval")?
                .max(Duration::from_millis(50)),
            proxy_patience: Duration::from_secs(120),
            heartbeat_interval: config
                .get_seconds("edge", "heartbeat_interval")?
                .max(Duration::from_millis(50)),
            drain_timeout: (!drain.is_zero()).then_some(drain),
            drain_kill_grace: config.get_seconds("edge", "drain_kill_grace_sec")?,
            push_logs: if config.get_bool("edge", "push_logs")? {
                Some(
                    usize::try_from(config.get_uint("edge", "push_log_chunk_size")?)
                        .unwrap_or(usize::MAX),
                )
            } else {
                None
            },
            logs,
            masker: Masker::from_config(config)?,
            task_heartbeats: HeartbeatLimits {
                interval: config
                    .get_seconds("workers", "min_heartbeat_interval")?
                    .max(Duration::from_millis(50)),
                max_failed: u32::try_from(config.get_uint("workers", "max_failed_heartbeats")?)
                    .unwrap_or(u32::MAX),
                max_silence: silence,
            },
            limits: Limits {
                overtime: config.get_seconds("core", "task_success_overtime")?,
                cleanup: config.get_seconds("workers", "socket_cleanup_timeout")?,
                ..Limits::default()
            },
            allowance: Allowance::from_config(config)?,
            home: Some(config.airflow_home().to_owned()),
            metrics_address: address(config, "metrics_address")?,
            metrics: Arc::default(),
            command,
            runtimes,
            unixname: unixname(),
        })
    }
}

/// An address and a port in section `[updraft]`; `None` when the option is not set.
fn address(config: &Config, key: &str) -> Result<Option<SocketAddr>, ConfigError> {
    config
        .text("updraft", key)?
        .map(|text| {
            text.trim().parse().map_err(|_| {
                config.invalid(
                    "updraft",
                    key,
                    "an address and a port, such as 127.0.0.1:9127",
                )
            })
        })
        .transpose()
}

fn url(option: &'static str, value: String) -> Result<Url, SettingsError> {
    Url::parse(&value).map_err(|source| SettingsError::Url {
        option,
        value: without_userinfo(&value).into_owned(),
        source,
    })
}

fn signing(config: &Config) -> Result<Signing, SettingsError> {
    let first = |key: &str| {
        Ok::<_, ConfigError>(
            config
                .get_list("api_auth", key)?
                .into_iter()
                .find(|item| !item.is_empty()),
        )
    };
    let algorithm = match first("jwt_algorithm")?.as_deref() {
        None | Some("HS512") => Algorithm::HS512,
        Some("HS384") => Algorithm::HS384,
        Some("HS256") => Algorithm::HS256,
        Some(other) => return Err(SettingsError::Algorithm(other.to_owned())),
    };
    Ok(Signing {
        secret: config.required("api_auth", "jwt_secret")?.into(),
        algorithm,
        kid: config
            .text("api_auth", "jwt_kid")?
            .unwrap_or_else(|| "not-used".into()),
        issuer: first("jwt_issuer")?,
        leeway: config.get_seconds("api_auth", "jwt_leeway")?,
    })
}

/// `AIRFLOW__EDGE__API_RETRIES` and its kin: the edge section first, then the workers' one.
fn retry_number(config: &Config, key: &str, default: f64) -> Result<f64, ConfigError> {
    for section in ["edge", "workers"] {
        if config.text(section, key)?.is_some() {
            let number = config.get_float(section, key)?;
            return if number >= 0.0 {
                Ok(number)
            } else {
                Err(config.invalid(section, key, "0 or more"))
            };
        }
    }
    Ok(default)
}

/// The name of this machine.
#[must_use]
pub fn hostname() -> String {
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .unwrap_or_else(|| "updraft".into())
}

/// The name of the user that this process runs as; its number when it has no name.
fn unixname() -> String {
    let uid = nix::unistd::geteuid();
    match nix::unistd::User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        _ => uid.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airflow::error_chain::error_chain;

    const GOOD: [(&str, &str); 3] = [
        ("AIRFLOW_HOME", "/nonexistent/airflow"),
        (
            "AIRFLOW__EDGE__API_URL",
            "http://127.0.0.1:1/edge_worker/v1/rpcapi",
        ),
        ("AIRFLOW__API_AUTH__JWT_SECRET", "made-up-secret"),
    ];

    fn refusal(option: (&str, &str), name: &str, queue: &str) -> String {
        let config = Config::new(GOOD.into_iter().chain([option]).collect());
        let queues = Some(vec![queue.to_owned()]);
        match Settings::from_config(&config, Some(name.to_owned()), queues) {
            Ok(_) => "nothing was wrong".to_owned(),
            Err(error) => error_chain(&error),
        }
    }

    #[test]
    fn what_no_task_could_run_with_is_said_when_the_worker_starts() {
        let fine = ("AIRFLOW__EDGE__HEARTBEAT_INTERVAL", "30");
        assert_eq!(refusal(fine, "w1", "agents"), "nothing was wrong");
        for (option, told) in [
            (
                ("AIRFLOW__EDGE__API_URL", "airflow"),
                "[edge] api_url is \"airflow\", which is not a URL: relative URL without a base",
            ),
            (
                (
                    "AIRFLOW__EDGE__API_URL",
                    "http://user:made-up@127.0.0.1/edge_worker/v1/rpcapi/",
                ),
                "[edge] api_url is \"http://127.0.0.1/edge_worker/v1/rpcapi/\": it must end in",
            ),
            (
                ("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", "[{"),
                "[dag_processor] dag_bundle_config_list",
            ),
            (
                ("AIRFLOW__UPDRAFT__METRICS_ADDRESS", "everywhere"),
                "127.0.0.1:9127",
            ),
            (
                ("AIRFLOW__SECRETS__BACKEND", "made.up.Backend"),
                "made.up.Backend",
            ),
            (("AIRFLOW__API_AUTH__JWT_ALGORITHM", "RS256"), "HS256"),
        ] {
            let text = refusal(option, "w1", "agents");
            assert!(text.contains(told), "{option:?}: {text}");
            assert!(!text.contains("made-up"), "{text}");
        }
        let text = refusal(fine, "a/b", "agents");
        assert!(text.contains("--worker-name"), "{text}");
        let text = refusal(fine, "w1", &"q".repeat(260));
        assert!(text.contains("--queues"), "{text}");
    }
}
