//! How a task written in Rust ends when it does not succeed.

use std::fmt;

use crate::airflow::error_chain::error_chain;
use crate::task::failure::{Failure, Meaning};

/// Why a task did not succeed, and what Airflow is to make of it.
///
/// Any error becomes one with `?`: the try has failed, and is retried if the task has retries left. Its text, with those
/// of the errors behind it, stands in the task log.
#[derive(Debug)]
pub struct TaskError {
    message: String,
    end: End,
}

#[derive(Debug)]
enum End {
    Failed,
    FailedForGood,
    Skipped,
}

impl TaskError {
    /// The try has failed.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            end: End::Failed,
        }
    }

    /// The task has failed, whatever retries it has left: Python's `AirflowFailException`.
    #[must_use]
    pub fn failed_for_good(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            end: End::FailedForGood,
        }
    }

    /// The task is skipped: Python's `AirflowSkipException`.
    #[must_use]
    pub fn skipped(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            end: End::Skipped,
        }
    }
}

// No `std::error::Error`: the conversion below would cover it twice.
impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self::failed(error_chain(&error))
    }
}

impl From<TaskError> for Failure {
    fn from(error: TaskError) -> Self {
        match error.end {
            End::Failed => Failure::new("updraft.sdk.TaskError", error.message),
            End::FailedForGood => {
                Failure::new("airflow.sdk.exceptions.AirflowFailException", error.message)
                    .for_good()
            }
            End::Skipped => {
                let mut failure =
                    Failure::new("airflow.sdk.exceptions.AirflowSkipException", error.message);
                failure.meaning = Meaning::Skipped;
                failure
            }
        }
    }
}
