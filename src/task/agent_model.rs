//! Which model an agent task asks: its connection's, a transcript in its place, or a recording.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::agent_runs::Chosen;
use super::attempt::{Attempt, Rendered};
use super::failure::Failure;
use super::loggers;
use super::services::Services;
use crate::agent::{AgentError, Model};
use crate::control_plane::resolve::ResolveError;
use crate::model::choice_error::ModelChoiceError;
use crate::model::recording::{Recorder, RecordingError, Replay, Scope};
use crate::model::resolve::{ModelChoice, named, resolve};
use crate::model::scripted::Scripted;
use crate::toolset::work_folder;

/// The field of a model that has a name and no connection. No operator has it; agents of Dag code do.
pub(super) const NAME_FIELD: &str = "model";

/// Names the transcript that stands in for a model whose connection is not defined. Set by `updraft run`.
pub const TRANSCRIPT_VARIABLE: &str = "UPDRAFT_TRANSCRIPT";

/// There is no Airflow in which a person could answer. Set by `updraft run`.
pub const UNATTENDED_VARIABLE: &str = "UPDRAFT_UNATTENDED";

/// Names the file that exchanges are written to. Set by `updraft run --record`.
pub const RECORD_VARIABLE: &str = "UPDRAFT_RECORD";

/// Names the recording that answers in the models' place. Set by `updraft run --replay`.
pub const REPLAY_VARIABLE: &str = "UPDRAFT_REPLAY";

/// The model of a task.
///
/// # Errors
/// No model can be made of the task's arguments and connection, or the recording can't be used.
pub(super) async fn choose(
    attempt: &Attempt,
    rendered: &Rendered,
    cancel: CancellationToken,
) -> Result<Chosen, Failure> {
    let services = &attempt.services;
    let ti = &services.ti;
    let scope = || Scope {
        task: match ti.map_index {
            index if index >= 0 => format!("{}[{index}]", ti.task_id),
            _ => ti.task_id.clone(),
        },
        try_number: ti.try_number.into(),
        dag_folder: attempt.dag_folder.clone(),
        private_folders: work_folder::PREFIX,
        masker: services.resolver.masker().clone(),
    };
    let unusable = |error: RecordingError| Failure::of("ValueError", &error).for_good();
    let environment = services.config.environment();
    if let Some(path) = environment.get(REPLAY_VARIABLE) {
        let replay = Arc::new(Replay::open(Path::new(path), scope()).map_err(unusable)?);
        return Ok(Chosen {
            model: Arc::clone(&replay) as Arc<dyn Model>,
            replay: Some(replay),
        });
    }
    let mut model = model(services, rendered, cancel).await?;
    if let Some(path) = environment.get(RECORD_VARIABLE) {
        model = Arc::new(Recorder::new(model, Path::new(path), scope()).map_err(unusable)?);
    }
    Ok(Chosen {
        model,
        replay: None,
    })
}

/// A path as people write it: from the current folder, when it lies under it.
fn from_here(path: &Path) -> &Path {
    std::env::current_dir()
        .ok()
        .and_then(|here| path.strip_prefix(here).ok())
        .unwrap_or(path)
}

async fn model(
    services: &Services,
    rendered: &Rendered,
    cancel: CancellationToken,
) -> Result<Arc<dyn Model>, Failure> {
    let unresolved = |error| match error {
        ModelChoiceError::Connection(error) => error.into(),
        other => Failure::of("ValueError", &other),
    };
    if let Some(name) = rendered.text(NAME_FIELD)? {
        let (masker, environment) = (services.resolver.masker(), services.config.environment());
        return named(&name, masker, environment).map_err(unresolved);
    }
    let Some(llm_conn_id) = rendered.text("llm_conn_id")? else {
        return Err(Failure::new(
            "ValueError",
            "llm_conn_id must be text, and is None",
        ));
    };
    let model_id = rendered.text("model_id")?;
    let environment = services.config.environment();
    if let Some(transcript) = environment.get(TRANSCRIPT_VARIABLE)
        && matches!(
            services.resolver.connection(&llm_conn_id).await,
            Err(ResolveError::ConnectionNotFound(_))
        )
    {
        tracing::info!(
            target: "airflow.task", logger = loggers::AGENT,
            "Connection {llm_conn_id} is not defined: the scripted model answers from {}",
            from_here(Path::new(transcript)).display()
        );
        return scripted(Path::new(transcript), services);
    }
    let fallbacks = rendered.field("fallback_conn_ids");
    let choice = ModelChoice {
        llm_conn_id: &llm_conn_id,
        model_id: model_id.as_deref(),
        fallback_conn_ids: (!fallbacks.is_null()).then_some(fallbacks),
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failure::of_agent(&AgentError::Cancelled)),
        model = resolve(choice, &services.resolver, environment) => model.map_err(unresolved),
    }
}

/// A transcript may hold several, by `task_id` or `task_id[map_index]`.
fn scripted(path: &Path, services: &Services) -> Result<Arc<dyn Model>, Failure> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::new(
            "ValueError",
            format!("the transcript {} can't be used: {error}", path.display()),
        )
        .for_good()
    };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    let whole: Value = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    let ti = &services.ti;
    let own = whole
        .get(format!("{}[{}]", ti.task_id, ti.map_index))
        .or_else(|| whole.get(&ti.task_id))
        .filter(|_| whole.get("turns").is_none())
        .unwrap_or(&whole);
    let model = Scripted::from_text(&own.to_string(), &path.display().to_string())
        .map_err(|error| unreadable(&error))?;
    Ok(Arc::new(model))
}
