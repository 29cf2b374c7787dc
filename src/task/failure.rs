//! Why a try failed: an exception as Airflow's log shows it, and what it means for the task's state.

use std::error::Error;

use serde_json::{Map, Value, json};

use super::arguments::ArgumentError;
use super::context::ParamError;
use super::log::{LogLevel, TaskLogger};
use super::mapping::MappingError;
use super::services::LookupError;
use super::xcom_push::PushError;
use crate::airflow::task_log::{ErrorDetail, Frame};
use crate::control_plane::resolve::ResolveError;
use crate::dag::PythonError;

/// One way in which a try did not succeed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Module and name of the Python exception that it is, or would be.
    pub class: String,
    pub message: String,
    /// Exceptions as the log shows them, outermost first.
    details: Vec<ErrorDetail>,
    /// What it means for the state.
    pub meaning: Meaning,
}

/// What an exception means for the task's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Retried if the server says so.
    Failed,
    /// Never retried: `AirflowFailException` and the like.
    FailedForGood,
    /// `AirflowSkipException`.
    Skipped,
}

impl Failure {
    /// A failure that a retry may mend.
    #[must_use]
    pub fn new(class: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let details = vec![ErrorDetail::new(short(class), message.as_str())];
        Self {
            class: class.to_owned(),
            message,
            details,
            meaning: Meaning::Failed,
        }
    }

    /// The same failure, past retrying.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.meaning = Meaning::FailedForGood;
        self
    }

    /// An error of Rust code, with its sources.
    #[must_use]
    pub fn of(class: &str, error: &(dyn Error + 'static)) -> Self {
        Self {
            class: class.to_owned(),
            message: error.to_string(),
            details: ErrorDetail::chain(short(class), error),
            meaning: Meaning::Failed,
        }
    }

    /// An exception that Dag code raised.
    #[must_use]
    pub fn of_python(error: &PythonError) -> Self {
        let is = |name: &str| {
            error.is(&format!("airflow.sdk.exceptions.{name}")) || error.name() == name
        };
        let meaning = if is("AirflowSkipException") {
            Meaning::Skipped
        } else if is("AirflowFailException")
            || is("AirflowSensorTimeout")
            || is("AirflowTaskTerminated")
        {
            Meaning::FailedForGood
        } else {
            Meaning::Failed
        };
        let mut details = Vec::new();
        let mut next = Some(error);
        while let Some(error) = next {
            details.push(ErrorDetail {
                exc_type: error.name().to_owned(),
                exc_value: error.message.clone(),
                is_cause: !details.is_empty(),
                frames: error
                    .trace
                    .iter()
                    .map(|frame| Frame {
                        filename: frame.filename.clone(),
                        lineno: frame.lineno,
                        name: frame.name.clone(),
                    })
                    .collect(),
                ..ErrorDetail::default()
            });
            next = error.cause.as_deref();
        }
        Self {
            class: error.class.clone(),
            message: error.message.clone(),
            details,
            meaning,
        }
    }

    /// Writes it to the log, as Airflow's task runner does.
    pub fn log(&self, log: &TaskLogger, event: &str) {
        let mut fields = Map::new();
        fields.insert("exception".to_owned(), json!(self.details));
        log.write("task", LogLevel::Error, event, fields);
    }

    /// `Class: message`, for people.
    #[must_use]
    pub fn text(&self) -> String {
        match (short(&self.class), self.message.as_str()) {
            (class, "") => class.to_owned(),
            (class, message) => format!("{class}: {message}"),
        }
    }

    /// The reason that a skip gives, for the log.
    #[must_use]
    pub fn reason(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        if !self.message.is_empty() {
            fields.insert("reason".to_owned(), self.message.as_str().into());
        }
        fields
    }
}

fn short(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        let class = match &error {
            ResolveError::ConnectionNotFound(_) => {
                "airflow.sdk.exceptions.AirflowNotFoundException"
            }
            ResolveError::Malformed(_) => "ValueError",
            _ => "airflow.sdk.exceptions.AirflowRuntimeError",
        };
        Self::of(class, &error)
    }
}

impl From<LookupError> for Failure {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Secret(error) => error.into(),
            other => Self::of("airflow.sdk.exceptions.AirflowRuntimeError", &other),
        }
    }
}

impl From<ArgumentError> for Failure {
    fn from(error: ArgumentError) -> Self {
        match error {
            ArgumentError::Template(error) => Self::new(error.class, error.to_string()),
            ArgumentError::Lookup(error) => error.into(),
            ArgumentError::Object(error) => Self::of_python(&error),
        }
    }
}

impl From<MappingError> for Failure {
    fn from(error: MappingError) -> Self {
        match error {
            MappingError::Argument(error) => error.into(),
            other => Self::of("ValueError", &other),
        }
    }
}

impl From<ParamError> for Failure {
    fn from(error: ParamError) -> Self {
        Self::of("airflow.sdk.exceptions.ParamValidationError", &error)
    }
}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Self {
        Self::of(error.class(), &error)
    }
}
