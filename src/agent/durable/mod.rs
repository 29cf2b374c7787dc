//! Durable runs: what an attempt has done is recorded, and a retry takes it from the record.
//!
//! A retry is a new process that runs the agent from the top. The journal holds every completed step of the attempts
//! before it, a model's response or a tool's result, under its position in the run; a step that asks the same as the
//! one that was recorded there gets the recorded answer and is not made again. From the first step that differs on,
//! everything is made anew. Nothing here knows where records are kept: that is [`JournalStorage`]'s business.
//!
//! Names and shapes of the records are those of `airflow-providers-common-ai` 1.0.0, so that either implementation cleans
//! up after the other. Fingerprints of model requests are this one's own: a response that the other recorded is not
//! replayed.
//!
//! | file | what it does |
//! |---|---|
//! | `journal` | the runs of one attempt, their id, the clean-up, the summary |
//! | `run` | one run: positions, replay, divergence, what a failure leaves |
//! | `step` | one position, and how the toolset at the bottom finds it |
//! | `recorded_toolset` | the wrapper around each toolset whose calls are steps |
//! | `fingerprint` | what a step asked, as a digest |
//! | `payload` | what a step gave, as JSON |
//! | `storage` | where records are kept |

mod fingerprint;
mod journal;
mod payload;
mod recorded_toolset;
mod run;
mod step;
mod storage;

pub use fingerprint::RequestText;
pub use journal::{DurableJournal, RUN_ID_KEY};
pub use recorded_toolset::RecordedToolset;
pub use run::DurableRun;
pub use step::{Step, StepKind, current_step};
pub use storage::{Entry, JournalError, JournalStorage};

/// The logger under which the provider's durable code writes.
const LOGGER: &str = "task";

#[cfg(test)]
mod tests;
