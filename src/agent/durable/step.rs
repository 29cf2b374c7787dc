//! One position in a durable run.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::payload;
use super::run::DurableRun;
use super::storage::JournalError;
use crate::agent::binary_content::ToolOutput;
use crate::agent::toolset::ToolError;

tokio::task_local! {
    static CURRENT: Arc<Step>;
}

/// The step whose tool call runs in this task; `None` outside of durable runs.
#[must_use]
pub fn current_step() -> Option<Arc<Step>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// What a step is, for the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A request to the model.
    Model,
    /// A call of a tool.
    Tool,
}

impl StepKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tool => "tool",
        }
    }
}

/// One position, claimed.
pub struct Step {
    pub(super) run: Arc<DurableRun>,
    pub(super) position: u64,
    pub(super) name: String,
    pub(super) kind: StepKind,
    pub(super) fingerprint: String,
    /// What an earlier attempt recorded, when that is to be given back.
    pub(super) replayed: Option<Value>,
    /// Why the result can't be recorded, once the tool has said so.
    pub(super) not_json: Mutex<Option<String>>,
}

impl Step {
    /// `<run>.<position>`: agents that start while the step runs are numbered under it.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}.{}", self.run.key(), self.position)
    }

    /// What an earlier attempt recorded, when that is to be given back and the step not made.
    #[must_use]
    pub fn payload(&self) -> Option<&Value> {
        self.replayed.as_ref()
    }

    /// The step's work begins.
    pub fn begin(&self) {
        self.run.begin(self.position);
    }

    /// Records what the step gave.
    pub async fn record(&self, payload: Value) {
        self.run.record(self, payload).await;
    }

    /// The step failed in a way that ends the run.
    pub fn raised(&self) {
        self.run.note_raised();
    }

    /// Notes that the step's result is nothing that can be recorded. The call must then fail.
    pub fn refuse_result(&self, why: &str) {
        *self.not_json.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }

    /// Why the run must end with its call, beyond what the call itself says.
    #[must_use]
    pub(in crate::agent) fn refusal(&self) -> Option<JournalError> {
        let refused = self.not_json.lock().unwrap_or_else(PoisonError::into_inner);
        refused.clone().map(JournalError::NotJson)
    }

    /// Does the recorded result stand in for a call that counts as one?
    pub(in crate::agent) fn replays_success(&self) -> bool {
        self.replayed.as_ref().is_some_and(payload::is_success)
    }

    /// Runs a tool call as this step's work, wherever its toolset lies within others.
    pub(in crate::agent) async fn during<T>(self: &Arc<Self>, call: impl Future<Output = T>) -> T {
        CURRENT.scope(Arc::clone(self), call).await
    }

    /// The recorded result; else what `call` gives, recorded.
    ///
    /// # Errors
    /// Those of the call.
    pub(super) async fn run(
        &self,
        call: impl Future<Output = Result<ToolOutput, ToolError>>,
    ) -> Result<ToolOutput, ToolError> {
        if let Some(result) = self.replayed.as_ref().and_then(payload::tool_result) {
            return result;
        }
        self.run.begin(self.position);
        let result = call.await;
        match payload::of_tool_result(&result) {
            Some(payload) => self.run.record(self, payload).await,
            None => self.run.note_raised(),
        }
        result
    }
}
