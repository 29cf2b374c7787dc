//! Where the journal of a durable task is kept: in the server's task state store, or in a file.
//!
//! Airflow has a task state store since 3.3. A server without one keeps nothing between attempts, and
//! `[common.ai] durable_cache_path` then names an object store that does; where there is a state store the option is
//! ignored, as by the Python provider.

mod journal_file;
mod named_runs;
mod state_store;

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use self::journal_file::JournalFile;
pub(super) use self::named_runs::NamedRuns;
use self::state_store::StateStore;
use super::attempt::Attempt;
use super::failure::Failure;
use crate::agent::durable::{DurableJournal, Entry, JournalStorage, RUN_ID_KEY, RequestText};
use crate::secrets::Masker;
use crate::toolset::work_folder;

/// The logger under which the provider's durable code writes.
const LOGGER: &str = "task";

const NO_PLACE: &str = "durable=True requires [common.ai] durable_cache_path to be set, as this server has no task state \
                        store. Example: durable_cache_path = s3://conn_id@bucket/durable";

/// The journal of this attempt.
///
/// # Errors
/// There is no place for it.
pub(super) async fn journal(
    attempt: &Attempt,
    clean_up_after_run: bool,
) -> Result<Arc<DurableJournal>, Failure> {
    let storage = storage(attempt).await?;
    let text = request_text(attempt.services.resolver.masker().clone());
    Ok(DurableJournal::new(storage, text, clean_up_after_run))
}

/// The journal of an attempt whose agent is the task, and the id that its run has on every attempt: the first one's.
///
/// # Errors
/// There is no place for the journal, or it can't be read.
pub(super) async fn journal_of_task(
    attempt: &Attempt,
) -> Result<(Arc<DurableJournal>, String), Failure> {
    let storage = storage(attempt).await?;
    let entry = storage.load(RUN_ID_KEY).await;
    let entry = entry.map_err(|error| Failure::of_journal(&error))?;
    let stored = entry
        .as_ref()
        .and_then(|entry| entry.get("run_id"))
        .and_then(Value::as_str);
    let run_id = match stored {
        Some(run_id) => run_id.to_owned(),
        None => {
            let run_id = attempt.services.ti.id.clone();
            let entry = Entry::from_iter([("run_id".to_owned(), run_id.as_str().into())]);
            storage.save(RUN_ID_KEY, entry).await;
            run_id
        }
    };
    let text = request_text(attempt.services.resolver.masker().clone());
    Ok((DurableJournal::new(storage, text, false), run_id))
}

async fn storage(attempt: &Attempt) -> Result<Arc<dyn JournalStorage>, Failure> {
    let services = &attempt.services;
    let store = StateStore::new(services.clone());
    if store.is_there().await {
        return Ok(Arc::new(store));
    }
    let path = services.config.text("common.ai", "durable_cache_path");
    let path = path.map_err(|error| Failure::of("AirflowConfigException", &error))?;
    let Some(path) = path.filter(|path| !path.trim().is_empty()) else {
        return Err(Failure::new("ValueError", NO_PLACE));
    };
    let file = JournalFile::open(services, path.trim()).await;
    Ok(Arc::new(
        file.map_err(|error| Failure::of("ValueError", &error))?,
    ))
}

/// A request without secrets, which may have been renewed since, and without the names of folders that each attempt has
/// anew: instructions of skills tell of them.
fn request_text(masker: Masker) -> RequestText {
    let temporary = std::env::temp_dir();
    let temporary = temporary.canonicalize().unwrap_or(temporary);
    let folder = Regex::new(&format!(
        r"{}/{}\w+",
        regex::escape(&temporary.display().to_string()),
        regex::escape(work_folder::PREFIX)
    ))
    .ok();
    Arc::new(move |request| {
        let masked = masker.mask_value(request);
        match &folder {
            Some(folder) => without(folder, masked),
            None => masked,
        }
    })
}

fn without(folder: &Regex, value: Value) -> Value {
    match value {
        Value::String(text) => folder.replace_all(&text, "<folder>").into_owned().into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| without(folder, item))
            .collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, item)| (key, without(folder, item)))
            .collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn renewed_secrets_and_new_folders_leave_a_request_the_same() {
        let masker = Masker::new();
        masker.add_secret("made-up-secret-1");
        masker.add_secret("made-up-secret-2");
        let text = request_text(masker);
        let of = |secret: &str, folder: &str| {
            let folder = std::env::temp_dir().join(format!("{}{folder}", work_folder::PREFIX));
            text(
                json!({"messages": [{"prompt": format!("{secret} in {}/SKILL.md", folder.display())}]}),
            )
        };
        assert_eq!(of("made-up-secret-1", "a1"), of("made-up-secret-2", "b2"));
        assert_ne!(of("made-up-secret-1", "a1"), of("another", "a1"));
    }
}
