//! What the agents of a task's Dag code share: their spans, their models, and the runs that are under way.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::attempt::Attempt;
use super::durable::{self, NamedRuns};
use super::failure::Failure;
use super::framework_spans::FrameworkSpans;
use crate::agent::durable::DurableJournal;
use crate::agent::{Model, ModelError, Telemetry};
use crate::dag::Served;
use crate::model::recording::Replay;

/// A model, and what must be looked at when the run has ended.
#[derive(Clone)]
pub(super) struct Chosen {
    pub model: Arc<dyn Model>,
    pub replay: Option<Arc<Replay>>,
}

/// A run whose agent Dag code waits for. Dropped, it is cancelled.
pub(super) struct Run {
    /// What the agent asks of the code that waits for it.
    pub served: Served,
    pub work: JoinHandle<Value>,
    _cancel: DropGuard,
}

/// Runs by numbers that Dag code knows them by.
#[derive(Default)]
pub struct AgentRuns {
    telemetry: OnceLock<Option<Telemetry>>,
    /// By what names them: a transcript goes on where the last run ended.
    models: Mutex<HashMap<String, Chosen>>,
    runs: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<Run>>>>,
    started: AtomicU64,
    /// Of durable runs: the task's own, else one that the first of them makes.
    journal: OnceCell<Arc<DurableJournal>>,
    /// Of agents whose loop is Python's.
    pub(super) named: NamedRuns,
    framework_spans: OnceLock<FrameworkSpans>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AgentRuns {
    /// Says, once, which spans those of the runs belong to.
    pub(super) fn trace(&self, telemetry: Option<Telemetry>) {
        // A task process runs one try.
        let _ = self.telemetry.set(telemetry);
    }

    /// Has spans of agents whose loop is Python's made.
    pub(super) fn keep_framework_spans(&self, spans: FrameworkSpans) {
        // A task process runs one try.
        let _ = self.framework_spans.set(spans);
    }

    /// Takes what Dag code tells of a span; nothing comes of it when nothing is traced.
    ///
    /// # Errors
    /// It is not told in the words for it.
    pub(super) fn tell_span(&self, told: &Value) -> Result<(), String> {
        self.framework_spans
            .get()
            .map_or(Ok(()), |spans| spans.tell(told))
    }

    pub(super) fn telemetry(&self) -> Option<Telemetry> {
        self.telemetry.get().cloned().flatten()
    }

    /// The model that was asked under this name. A recording answers whatever model is asked.
    pub(super) fn model(&self, name: &str) -> Option<Chosen> {
        let models = locked(&self.models);
        let replayed = || models.values().find(|chosen| chosen.replay.is_some());
        models.get(name).or_else(replayed).cloned()
    }

    /// Keeps the model for later runs; the first that came under the name.
    pub(super) fn keep_model(&self, name: String, chosen: Chosen) -> Chosen {
        locked(&self.models).entry(name).or_insert(chosen).clone()
    }

    /// Fails when a recording holds what no run has asked for.
    pub(super) fn left_over(&self) -> Result<(), Failure> {
        let models = locked(&self.models);
        let mut replays = models.values().filter_map(|chosen| chosen.replay.as_ref());
        match replays.find_map(|replay| replay.left_over()) {
            Some(left) => Err(Failure::of_agent(&ModelError::Replay(left).into())),
            None => Ok(()),
        }
    }

    /// Has durable runs recorded in this journal.
    pub(super) fn keep_journal(&self, journal: &Arc<DurableJournal>) {
        // A task process runs one try.
        let _ = self.journal.set(Arc::clone(journal));
    }

    /// The journal of the attempt's durable runs. One that is made here forgets each run as soon as it has succeeded, so
    /// that the task starts afresh when it is cleared.
    ///
    /// # Errors
    /// There is no place for it.
    pub(super) async fn journal(&self, attempt: &Attempt) -> Result<&Arc<DurableJournal>, Failure> {
        self.journal
            .get_or_try_init(|| durable::journal(attempt, true))
            .await
    }

    pub(super) fn start(
        &self,
        served: Served,
        work: JoinHandle<Value>,
        cancel: CancellationToken,
    ) -> u64 {
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let run = Run {
            served,
            work,
            _cancel: cancel.drop_guard(),
        };
        locked(&self.runs).insert(number, Arc::new(tokio::sync::Mutex::new(run)));
        number
    }

    pub(super) fn run(&self, number: u64) -> Option<Arc<tokio::sync::Mutex<Run>>> {
        locked(&self.runs).get(&number).cloned()
    }

    /// Forgets a run; one that is under way is cancelled.
    pub(super) fn end(&self, number: u64) {
        locked(&self.runs).remove(&number);
    }
}
