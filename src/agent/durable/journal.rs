//! The journal of one attempt: its runs, the id they share, the clean-up and the summary.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::LOGGER;
use super::fingerprint::RequestText;
use super::run::{DurableRun, Left, meta_key, step_key};
use super::step::StepKind;
use super::storage::{Entry, JournalError, JournalStorage};

/// What the keys of all records begin with: a task's own keys stand beside them.
pub(super) const KEY_PREFIX: &str = "__commonai_durable__";

/// Holds the id of the task's agent run, which is the first attempt's.
pub const RUN_ID_KEY: &str = "__commonai_durable__run_id";

/// Lists every run that any attempt has started, so that the clean-up finds those this one has not.
const RUNS_KEY: &str = "__commonai_durable__runs";

/// The journal of one attempt.
pub struct DurableJournal {
    storage: Arc<dyn JournalStorage>,
    request_text: RequestText,
    clean_up_after_run: bool,
    state: Mutex<State>,
    /// Runs that earlier attempts have started.
    earlier: OnceCell<Vec<String>>,
}

#[derive(Default)]
struct State {
    top_level_runs: u64,
    /// How many runs each step has started, by its place.
    nested_runs: HashMap<String, u64>,
    /// Every run that has records, in the order of their starts.
    known: Vec<String>,
    /// Before which position all records of a run lie, as far as this attempt knows.
    extents: HashMap<String, u64>,
    replayed: Counts,
    recorded: Counts,
    not_recorded: Vec<(StepKind, String)>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    model: u64,
    tool: u64,
}

impl Counts {
    fn add(&mut self, kind: StepKind) {
        match kind {
            StepKind::Model => self.model += 1,
            StepKind::Tool => self.tool += 1,
        }
    }

    fn total(self) -> u64 {
        self.model + self.tool
    }
}

impl DurableJournal {
    /// `request_text` makes of a request what is the same on every attempt. With `clean_up_after_run` a run's records
    /// are removed as soon as it succeeds; else [`Self::clean_up`] must be called.
    #[must_use]
    pub fn new(
        storage: Arc<dyn JournalStorage>,
        request_text: RequestText,
        clean_up_after_run: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            storage,
            request_text,
            clean_up_after_run,
            state: Mutex::default(),
            earlier: OnceCell::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn storage(&self) -> &dyn JournalStorage {
        self.storage.as_ref()
    }

    pub(super) fn request_text(&self) -> &RequestText {
        &self.request_text
    }

    pub(super) fn cleans_up_after_each_run(&self) -> bool {
        self.clean_up_after_run
    }

    pub(super) fn count_replayed(&self, kind: StepKind) {
        self.state().replayed.add(kind);
    }

    pub(super) fn count_recorded(&self, kind: StepKind) {
        self.state().recorded.add(kind);
    }

    pub(super) fn count_not_recorded(&self, kind: StepKind, name: &str) {
        self.state().not_recorded.push((kind, name.to_owned()));
    }

    async fn earlier_runs(&self) -> Result<&Vec<String>, JournalError> {
        self.earlier
            .get_or_try_init(|| async {
                let entry = self.storage.load(RUNS_KEY).await?.unwrap_or_default();
                let listed = entry.get("runs").and_then(Value::as_array);
                let runs: Vec<String> = listed
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(ToOwned::to_owned)
                    .collect();
                self.state().known.clone_from(&runs);
                Ok(runs)
            })
            .await
    }

    /// Starts a run of the agent `name`; `within` is the place of the step that it is started in, if it is a step of
    /// this journal.
    ///
    /// # Errors
    /// The journal can't be read.
    pub async fn start_run(
        self: &Arc<Self>,
        name: &str,
        within: Option<&str>,
    ) -> Result<Arc<DurableRun>, JournalError> {
        let earlier = self.earlier_runs().await?;
        let (key, listed) = {
            let mut state = self.state();
            let key = match within {
                Some(step) => {
                    let nested = state.nested_runs.entry(step.to_owned()).or_default();
                    *nested += 1;
                    format!("{step}.{nested}")
                }
                None => {
                    state.top_level_runs += 1;
                    (state.top_level_runs - 1).to_string()
                }
            };
            let is_new = !state.known.contains(&key);
            if is_new {
                state.known.push(key.clone());
            }
            let listed = is_new.then(|| state.known.clone());
            (key, listed)
        };
        if let Some(runs) = listed {
            self.storage.save(RUNS_KEY, runs_entry(&runs)).await;
        }
        let known = earlier.contains(&key);
        let run = DurableRun::start(Arc::clone(self), key, name, known).await?;
        Ok(Arc::new(run))
    }

    /// The records of a run may go up to here.
    pub(super) fn extend(&self, run: &str, end: u64) {
        let mut state = self.state();
        let extent = state.extents.entry(run.to_owned()).or_default();
        *extent = end.max(*extent);
    }

    /// Removes every record of every run. Only when the task's work has succeeded.
    pub async fn clean_up(&self) {
        let known = self.state().known.clone();
        for run in known {
            self.remove_run(&run).await;
        }
        let keys = [RUNS_KEY.to_owned(), RUN_ID_KEY.to_owned()];
        self.storage.delete(&keys).await;
        tracing::debug!(target: "airflow.task", logger = LOGGER, "Durable journal cleaned up");
    }

    /// Removes every record of a run, earlier attempts' included.
    pub(super) async fn remove_run(&self, run: &str) {
        let end = match self.end_of(run).await {
            Ok(end) => end,
            Err(error) => {
                tracing::warn!(
                    target: "airflow.task", logger = LOGGER, run, error = error.to_string(),
                    "Durable: records of an earlier attempt may be left behind"
                );
                self.extent(run).unwrap_or(0)
            }
        };
        let steps = (0..end).map(|position| step_key(run, position));
        let keys: Vec<String> = steps.chain([meta_key(run)]).collect();
        self.storage.delete(&keys).await;
    }

    fn extent(&self, run: &str) -> Option<u64> {
        self.state().extents.get(run).copied()
    }

    /// Before which position all records of a run lie.
    async fn end_of(&self, run: &str) -> Result<u64, JournalError> {
        let extent = self.extent(run);
        let earlier = self.earlier.get().into_iter().flatten();
        if !earlier.into_iter().any(|earlier| earlier == run) {
            return Ok(extent.unwrap_or(0));
        }
        let mut end = match extent {
            Some(end) => end,
            // This attempt has not come to the run.
            None => match self.storage.load(&meta_key(run)).await? {
                Some(left) => Left::read(&left).high_water,
                None => 0,
            },
        };
        // An attempt that was killed had no time to say how far it got.
        while self.storage.load(&step_key(run, end)).await?.is_some() {
            end += 1;
        }
        Ok(end)
    }

    /// A run's records are gone.
    pub(super) async fn forget(&self, key: &str) {
        let left = {
            let mut state = self.state();
            state.known.retain(|known| known != key);
            state.extents.remove(key);
            state.known.clone()
        };
        if left.is_empty() {
            self.storage.delete(&[RUNS_KEY.to_owned()]).await;
        } else {
            self.storage.save(RUNS_KEY, runs_entry(&left)).await;
        }
    }

    /// Says in the task log what was replayed and recorded, and what a retry would do again. `logger` is the operator's.
    pub fn log_summary(&self, logger: &str) {
        let state = self.state();
        let (replayed, recorded) = (state.replayed, state.recorded);
        tracing::info!(
            target: "airflow.task", logger,
            "Durable: replayed {} steps ({} model, {} tool, 0 other), recorded {} new steps ({} model, {} tool, 0 other)",
            replayed.total(), replayed.model, replayed.tool, recorded.total(), recorded.model, recorded.tool
        );
        let names = |wanted: StepKind| {
            let all = state.not_recorded.iter();
            all.filter(move |(kind, _)| *kind == wanted)
                .map(|(_, name)| name.as_str())
        };
        let tools: Vec<&str> = names(StepKind::Tool).collect();
        if !tools.is_empty() {
            let mut counted: Vec<(&str, usize)> = Vec::new();
            for name in &tools {
                match counted.iter_mut().find(|(known, _)| known == name) {
                    Some((_, count)) => *count += 1,
                    None => counted.push((name, 1)),
                }
            }
            let shown: Vec<String> = counted
                .into_iter()
                .map(|(name, count)| match count {
                    1 => name.to_owned(),
                    count => format!("{name} (x{count})"),
                })
                .collect();
            tracing::warn!(
                target: "airflow.task", logger,
                "Durable: {} tool results were not recorded, and a retry runs them again: {}",
                tools.len(), shown.join(", ")
            );
        }
        let models = names(StepKind::Model).count();
        if models > 0 {
            tracing::warn!(
                target: "airflow.task", logger,
                "Durable: {models} model responses were not recorded, and a retry re-runs them and every step after the \
                 first of them"
            );
        }
    }
}

fn runs_entry(runs: &[String]) -> Entry {
    Entry::from_iter([("runs".to_owned(), json!(runs))])
}
