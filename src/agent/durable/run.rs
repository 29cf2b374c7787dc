//! One run of an agent in the journal: its positions, what is replayed at them, and where a replay ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::LOGGER;
use super::fingerprint;
use super::journal::{DurableJournal, KEY_PREFIX};
use super::payload;
use super::step::{Step, StepKind};
use super::storage::{Entry, JournalError};
use crate::agent::message::{Message, ModelResponse, ToolCall};
use crate::agent::model::{Model, RequestParameters};
use crate::airflow::python_text::repr_str;

/// Why a step whose record fits is made anew all the same.
const UNLOADABLE: &str =
    "the recorded result no longer loads, so it was written by another version";
const MODEL_AT_FAULT: &str =
    "the model's answers from this step on failed the previous attempt, so it is asked again";
const NOT_REACHED: &str = "the previous attempt failed before reaching this step";
const OTHER_REQUEST: &str = "the request differs from the previous attempt's (prompt, model, settings, tools, arguments \
                             or conversation so far)";

/// One run. Positions are claimed one after the other, before the work at them begins, so that calls that overlap keep
/// theirs on every attempt.
pub struct DurableRun {
    journal: Arc<DurableJournal>,
    key: String,
    agent: String,
    /// What an earlier attempt left about the run; `None` when none has started it, so that there is nothing to look for.
    left: Option<Left>,
    state: Mutex<State>,
}

/// What an attempt that failed says about itself: `run_<r>_meta`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Records from here on are not to be trusted.
    diverge_from: Option<u64>,
    /// No attempt has claimed a position from here on.
    pub(super) high_water: u64,
    /// The model's answers failed the attempt, and not a step.
    model_at_fault: bool,
}

impl Left {
    pub(super) fn read(entry: &Entry) -> Self {
        let number = |name: &str| entry.get(name).and_then(Value::as_u64);
        Self {
            diverge_from: number("diverge_from"),
            high_water: number("high_water").unwrap_or(0),
            model_at_fault: entry.get("model_at_fault") == Some(&Value::Bool(true)),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// The next position to be claimed.
    position: u64,
    /// Steps before this position have begun, or were replayed.
    begun: u64,
    diverged: bool,
    /// Records that were looked at, and belong to no step yet.
    peeked: HashMap<u64, Option<Entry>>,
    /// How far the run had begun when a step failed.
    raised_at: Option<u64>,
    /// What this attempt has recorded.
    saved: HashSet<u64>,
    /// Where this attempt has tried to record something.
    last_recorded: Option<u64>,
    last_model: Option<u64>,
}

impl DurableRun {
    /// `known`: an earlier attempt has started this run.
    pub(super) async fn start(
        journal: Arc<DurableJournal>,
        key: String,
        agent: &str,
        known: bool,
    ) -> Result<Self, JournalError> {
        let mut left = None;
        if known {
            let entry = journal.storage().load(&meta_key(&key)).await?;
            let entry = entry.map(|entry| Left::read(&entry)).unwrap_or_default();
            journal.extend(&key, entry.high_water);
            left = Some(entry);
        }
        Ok(Self {
            journal,
            key,
            agent: agent.to_owned(),
            left,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// May what earlier attempts recorded at a position not be replayed, for what they left about themselves?
    fn is_beyond_trust(&self, position: u64) -> bool {
        let from = self.left.and_then(|left| left.diverge_from);
        from.is_some_and(|from| position >= from)
    }

    /// What an earlier attempt recorded at a position, as far as it may be replayed.
    async fn peek(&self, position: u64) -> Result<Option<Entry>, JournalError> {
        {
            let state = self.state();
            if self.left.is_none() || state.diverged || self.is_beyond_trust(position) {
                return Ok(None);
            }
            if let Some(entry) = state.peeked.get(&position) {
                return Ok(entry.clone());
            }
        }
        let entry = self
            .journal
            .storage()
            .load(&step_key(&self.key, position))
            .await?;
        self.state().peeked.insert(position, entry.clone());
        Ok(entry)
    }

    /// How many of the next `calls` tool calls will be replayed as successes, as far as can be seen before them: those
    /// count against no limit.
    ///
    /// # Errors
    /// The journal can't be read.
    pub(in crate::agent) async fn replayable(&self, calls: u64) -> Result<u64, JournalError> {
        let from = self.state().position;
        let mut replayable = 0;
        for position in from..from + calls {
            let Some(entry) = self.peek(position).await? else {
                continue;
            };
            match entry.get("kind").and_then(Value::as_str) {
                Some("model") => break,
                Some("tool") if entry.get("payload").is_some_and(payload::is_success) => {
                    replayable += 1;
                }
                _ => {}
            }
        }
        Ok(replayable)
    }

    /// Takes the next position for a model request. Inside the step: the recorded response, if there is one that fits.
    ///
    /// # Errors
    /// The journal can't be read.
    pub(in crate::agent) async fn claim_model(
        self: &Arc<Self>,
        model: &dyn Model,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<(Step, Option<ModelResponse>), JournalError> {
        let request_text = self.journal.request_text();
        let fingerprint = fingerprint::of_model_request(model, messages, parameters, request_text);
        let name = format!("{}__model.request", self.agent);
        let loads = |payload: &Value| payload::response(payload).is_some();
        let step = self
            .claim(name, StepKind::Model, fingerprint, loads)
            .await?;
        let response = step.replayed.as_ref().and_then(payload::response);
        Ok((step, response))
    }

    /// Takes the next position for a tool call. `recorded_as` is what the toolset says of the tool.
    ///
    /// # Errors
    /// The journal can't be read.
    pub(in crate::agent) async fn claim_tool(
        self: &Arc<Self>,
        recorded_as: (String, String),
        call: &ToolCall,
        args: &Map<String, Value>,
    ) -> Result<Arc<Step>, JournalError> {
        let (step_name, tool_name) = recorded_as;
        let fingerprint = fingerprint::of_tool_call(&tool_name, args, &call.tool_call_id);
        let name = format!("{}__{step_name}", self.agent);
        let loads = |payload: &Value| payload::tool_result(payload).is_some();
        let step = self.claim(name, StepKind::Tool, fingerprint, loads).await?;
        Ok(Arc::new(step))
    }

    /// Takes the next position for a step that its caller names, with a digest of what is asked.
    ///
    /// # Errors
    /// The journal can't be read.
    pub async fn claim_named(
        self: &Arc<Self>,
        name: String,
        kind: StepKind,
        fingerprint: String,
    ) -> Result<Arc<Step>, JournalError> {
        let step = self.claim(name, kind, fingerprint, |_| true).await?;
        Ok(Arc::new(step))
    }

    async fn claim(
        self: &Arc<Self>,
        name: String,
        kind: StepKind,
        fingerprint: String,
        loads: impl Fn(&Value) -> bool,
    ) -> Result<Step, JournalError> {
        let position = {
            let mut state = self.state();
            let position = state.position;
            state.position += 1;
            if kind == StepKind::Model {
                state.last_model = Some(position);
            }
            position
        };
        self.journal.extend(&self.key, position + 1);
        let entry = self.peek(position).await?;
        let reason = match &entry {
            None if self.is_beyond_trust(position) => Some(match self.left {
                Some(left) if left.model_at_fault => MODEL_AT_FAULT.to_owned(),
                _ => NOT_REACHED.to_owned(),
            }),
            None => None,
            Some(entry) => {
                let recorded = entry
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                if recorded != name {
                    Some(format!(
                        "the previous attempt ran {} here",
                        repr_str(recorded)
                    ))
                } else if entry.get("fingerprint").and_then(Value::as_str) != Some(&*fingerprint) {
                    Some(OTHER_REQUEST.to_owned())
                } else if !entry.get("payload").is_some_and(loads) {
                    Some(UNLOADABLE.to_owned())
                } else {
                    None
                }
            }
        };
        let mut replayed = None;
        let diverges = {
            let mut state = self.state();
            state.peeked.remove(&position);
            let diverges = reason.is_some() && !state.diverged;
            if diverges {
                state.diverged = true;
                state.peeked.clear();
            } else if let Some(mut entry) = entry {
                replayed = entry.remove("payload");
                state.begun = state.begun.max(position + 1);
            }
            diverges
        };
        if let (true, Some(reason)) = (diverges, reason) {
            tracing::warn!(
                target: "airflow.task", logger = LOGGER,
                position, step = name.as_str(), reason = reason.as_str(),
                "Durable: the run took a different path from the previous attempt; this step and every step after it \
                 run again"
            );
        }
        if replayed.is_some() {
            self.journal.count_replayed(kind);
            tracing::debug!(
                target: "airflow.task", logger = LOGGER, position, step = name.as_str(), "Durable: replayed step"
            );
        }
        Ok(Step {
            run: Arc::clone(self),
            position,
            name,
            kind,
            fingerprint,
            replayed,
            not_json: Mutex::default(),
        })
    }

    /// The work of a position begins.
    pub(super) fn begin(&self, position: u64) {
        let mut state = self.state();
        state.begun = state.begun.max(position + 1);
    }

    /// A step failed in a way that ends the run: it is made again by the next attempt.
    pub(super) fn note_raised(&self) {
        let mut state = self.state();
        let begun = state.begun;
        state.raised_at.get_or_insert(begun);
    }

    /// Makes a model request that was not replayed, and records the response.
    ///
    /// # Errors
    /// Those of the request.
    pub(in crate::agent) async fn request<E>(
        &self,
        step: &Step,
        request: impl Future<Output = Result<ModelResponse, E>>,
    ) -> Result<ModelResponse, E> {
        self.begin(step.position);
        match request.await {
            Ok(response) => {
                self.record(step, payload::of_response(&response)).await;
                Ok(response)
            }
            Err(error) => {
                self.note_raised();
                Err(error)
            }
        }
    }

    /// Records what a step gave. The work is done: what can't be recorded is made again by the next attempt.
    pub(super) async fn record(&self, step: &Step, payload: Value) {
        let (position, name) = (step.position, step.name.as_str());
        {
            let mut state = self.state();
            state.last_recorded = state.last_recorded.max(Some(position));
        }
        let entry = Entry::from_iter([
            ("name".to_owned(), name.into()),
            ("kind".to_owned(), step.kind.name().into()),
            ("fingerprint".to_owned(), step.fingerprint.as_str().into()),
            ("payload".to_owned(), payload),
        ]);
        if self
            .journal
            .storage()
            .save(&step_key(&self.key, position), entry)
            .await
        {
            self.state().saved.insert(position);
            self.journal.count_recorded(step.kind);
            tracing::debug!(
                target: "airflow.task", logger = LOGGER, position, step = name, "Durable: recorded step"
            );
            return;
        }
        self.journal.count_not_recorded(step.kind, name);
        tracing::warn!(
            target: "airflow.task", logger = LOGGER, position, step = name,
            "Durable: step not recorded; a retry runs it again, and may run the steps after it again"
        );
    }

    /// Leaves word for the next attempt that the run failed, and from where on its records lead to the failure.
    /// `model_at_fault`: the model's answers were at fault; they would be again if they were replayed.
    pub async fn fail(&self, model_at_fault: bool) {
        let left = self.left_after_failure(model_at_fault);
        let entry = Entry::from_iter([
            ("diverge_from".to_owned(), json!(left.diverge_from)),
            ("high_water".to_owned(), json!(left.high_water)),
            ("model_at_fault".to_owned(), json!(left.model_at_fault)),
        ]);
        self.journal
            .storage()
            .save(&meta_key(&self.key), entry)
            .await;
    }

    fn left_after_failure(&self, model_at_fault: bool) -> Left {
        let state = self.state();
        let previous = self.left.unwrap_or_default();
        let failed_at = state.raised_at.unwrap_or(state.begun);
        // An attempt that was still replaying leaves the records before the failure as they were.
        let recorded_beyond = state.last_recorded.is_some_and(|last| last >= failed_at);
        let mut left = Left {
            diverge_from: if state.diverged || recorded_beyond {
                Some(failed_at)
            } else {
                previous.diverge_from
            },
            high_water: previous.high_water.max(state.position),
            model_at_fault: false,
        };
        if let Some(last_model) = state.last_model
            && model_at_fault
            && state.raised_at.is_none()
            && left.diverge_from.is_none_or(|from| last_model <= from)
        {
            left.diverge_from = Some(last_model);
            left.model_at_fault = true;
        }
        // What stands where the attempt before this one diverged is still that one's, unless it was written over.
        if let Some(from) = previous.diverge_from
            && !state.saved.contains(&from)
            && left.diverge_from.is_none_or(|now| from < now)
        {
            left.diverge_from = Some(from);
            left.model_at_fault = previous.model_at_fault;
        }
        left
    }

    /// The run has succeeded: a journal that keeps no more than the run under way removes its records.
    pub async fn succeed(&self) {
        if self.journal.cleans_up_after_each_run() {
            self.journal.remove_run(&self.key).await;
            self.journal.forget(&self.key).await;
        }
    }
}

pub(super) fn step_key(run: &str, position: u64) -> String {
    format!("{KEY_PREFIX}run_{run}_step_{position}")
}

pub(super) fn meta_key(run: &str) -> String {
    format!("{KEY_PREFIX}run_{run}_meta")
}
