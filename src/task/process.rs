//! The task process from its first connection to its exit status.

use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::attempt::Attempt;
use super::comms::{CommsError, SupervisorClient};
use super::dag_code;
use super::failure::Failure;
use super::host::TaskHost;
use super::log::{Levels, LogLevel, LogThread, TaskLogLayer, TaskLogger};
use super::outcome::{self, Ending};
use super::services::Services;
use super::startup::{self, StartupError};
use crate::airflow::config::{Config, ConfigError};
use crate::airflow::supervisor::{ErrorResponse, StartupDetails, TaskRequest};
use crate::control_plane::ControlPlane;
use crate::control_plane::resolve::Resolver;
use crate::secrets::{BackendError, Masker, SearchPath};
use crate::telemetry::{TaskSpan, Telemetry, propagate};

/// Why a task process ends without having said how its task ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    #[error("no connection for the task log at {address}: {source}")]
    Log {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Comms(#[from] CommsError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Secrets(#[from] BackendError),
    /// The supervisor died. Airflow gives the task to somebody else, so that this try must not go on.
    #[error("the supervisor is gone; the task is given up")]
    SupervisorGone,
    /// The supervisor did not take the task's final message.
    #[error("the supervisor did not take the task's final state: {0}")]
    NotTaken(#[from] ErrorResponse),
}

/// Runs the task that the supervisor names. Returns once the supervisor has taken its final message.
///
/// # Errors
/// See [`ProcessError`]; the process must then exit with another status than 0.
pub async fn run(comm: SocketAddr, logs: SocketAddr) -> Result<(), ProcessError> {
    let config = Arc::new(Config::from_env());
    let masker = Masker::from_config(&config)?;
    let (log, log_thread) = TaskLogger::connect(logs, Levels::from_config(&config), masker.clone())
        .map_err(|source| ProcessError::Log {
            address: logs,
            source,
        })?;
    // Fails only when a subscriber is installed already, as in tests.
    let _ = tracing_subscriber::registry()
        .with(TaskLogLayer(log.clone()))
        .try_init();
    let ended = speak(comm, config, masker, &log).await;
    if let Err(error) = &ended {
        log.write(
            "task",
            LogLevel::Error,
            &format!("Top level error: {error}"),
            serde_json::Map::new(),
        );
    }
    finish(log_thread).await;
    ended
}

async fn finish(log_thread: LogThread) {
    // A thread that panicked has nothing more to write.
    let _ = tokio::task::spawn_blocking(move || log_thread.finish()).await;
}

async fn speak(
    comm: SocketAddr,
    config: Arc<Config>,
    masker: Masker,
    log: &TaskLogger,
) -> Result<(), ProcessError> {
    log.info("::group::Pre Execute");
    let (client, details) = SupervisorClient::connect(comm).await?;
    log.bind(&details.ti);
    let telemetry = Telemetry::start(&config, &masker).unwrap_or_else(|error| {
        tracing::warn!("no spans are sent: {error}");
        Telemetry::off()
    });
    // The agent's spans go through the global provider.
    telemetry.install();
    let span = TaskSpan::start(&telemetry, &details.ti);
    client.set_carrier(propagate(span.context()).into_iter().collect());
    let client = Arc::new(client);
    let work = task(
        Arc::clone(&client) as Arc<dyn ControlPlane>,
        details,
        config,
        masker,
        log,
        &span,
        &telemetry,
    );
    let ended = tokio::select! {
        biased;
        ended = work => ended,
        () = client.gone() => Err(ProcessError::SupervisorGone),
    };
    span.end();
    // Blocks while the last spans are sent; nothing else runs any more.
    if let Err(error) = tokio::task::spawn_blocking(move || telemetry.shutdown())
        .await
        .unwrap_or(Ok(()))
    {
        tracing::warn!("{error}");
    }
    ended
}

async fn task(
    control_plane: Arc<dyn ControlPlane>,
    details: StartupDetails,
    config: Arc<Config>,
    masker: Masker,
    log: &TaskLogger,
    span: &TaskSpan,
    telemetry: &Telemetry,
) -> Result<(), ProcessError> {
    let ti = Arc::new(details.ti.clone());
    let resolver = Resolver::new(
        SearchPath::from_config(&config)?,
        Arc::clone(&control_plane),
        masker,
    );
    let services = Services::new(
        Arc::clone(&control_plane),
        Arc::clone(&config),
        resolver,
        ti,
    );
    let host = Arc::new(TaskHost::new(services.clone(), log.clone()));
    let load_host = Arc::clone(&host);
    let begin = details.clone();
    let (start_config, start_log) = (Arc::clone(&config), log.clone());
    let stage = span.stage("parse");
    let started =
        super::blocking(move || startup::start(&begin, &start_config, load_host, &start_log)).await;
    drop(stage);
    let started = match started {
        Ok(started) => started,
        Err(panicked) => Err(StartupError::Failed(panicked)),
    };
    let should_retry = details.ti_context.should_retry;
    let mut attempt = None;
    let ending = match started {
        Ok(started) => {
            let made = Attempt::new(
                details,
                started.dag,
                started.task,
                services,
                Arc::new(started.interpreter),
                started.dag_folder,
            );
            match made {
                Ok(made) => {
                    let made = attempt.insert(Arc::new(made));
                    host.set_attempt(made);
                    outcome::run(Arc::clone(made), log, span, telemetry).await
                }
                Err(failure) => outcome::failed_early(&failure, should_retry, log),
            }
        }
        Err(StartupError::Missing(failure)) => missing(&failure, &details, &config, log),
        Err(StartupError::Failed(failure)) => outcome::failed_early(&failure, should_retry, log),
    };
    if let Some(failure) = &ending.failure {
        span.fail(&failure.class, &failure.message);
    }
    let taken = control_plane.handle(ending.message.clone()).await;
    if let Some(attempt) = attempt {
        // Even when the supervisor did not take the state: Airflow's task runner calls them all the same.
        let Ending {
            message,
            failure,
            rendered,
        } = &ending;
        dag_code::run_callbacks(&attempt, rendered.as_ref(), message, failure.as_ref()).await;
    }
    taken?;
    log.info("::endgroup::");
    Ok(())
}

/// A Dag or task that is not there may only be late: Airflow reschedules a few times without counting a try.
fn missing(
    failure: &Failure,
    details: &StartupDetails,
    config: &Config,
    log: &TaskLogger,
) -> Ending {
    let retries = config
        .get_int("workers", "missing_dag_retries")
        .unwrap_or(3);
    let delay = config
        .get_int("workers", "missing_dag_retry_delay")
        .unwrap_or(60);
    if details.ti_context.task_reschedule_count >= retries || retries <= 0 {
        return outcome::failed_early(failure, details.ti_context.should_retry, log);
    }
    failure.log(log, &failure.message);
    log.write(
        "task",
        LogLevel::Warning,
        "Rescheduling task during startup, marking task as UP_FOR_RESCHEDULE",
        serde_json::Map::new(),
    );
    let now = Utc::now();
    let text = |at: chrono::DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
    Ending {
        message: TaskRequest::RescheduleTask {
            reschedule_date: text(now + chrono::Duration::seconds(delay)),
            end_date: text(now),
        },
        failure: Some(failure.clone()),
        rendered: None,
    }
}
