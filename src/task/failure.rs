//! Why a try failed: an exception as Airflow's log shows it, and what it means for the task's state.

use std::error::Error;

use serde_json::{Map, Value, json};

use super::arguments::ArgumentError;
use super::context::ParamError;
use super::log::{LogLevel, TaskLogger};
use super::mapping::MappingError;
use super::services::LookupError;
use super::xcom_push::PushError;
use crate::agent::durable::JournalError;
use crate::agent::{AgentError, ModelError};
use crate::airflow::task_log::{ErrorDetail, Frame};
use crate::control_plane::resolve::ResolveError;
use crate::dag::PythonError;

/// Exceptions that ask Airflow for more than Updraft passes on, and what they ask for.
const NOT_YET: [(&str, &str); 2] = [
    (
        "TaskAwaitingInput",
        "The task wants to wait for a person, and Updraft asks nobody yet",
    ),
    (
        "DagRunTriggerException",
        "The task wants to start a run of another Dag, which Updraft doesn't do yet",
    ),
];

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
    /// What Dag code raised, beside what the log shows of it.
    raised: Option<Box<Raised>>,
}

/// What an exception of Dag code has that others have not.
#[derive(Clone, Debug)]
struct Raised {
    /// By which the interpreter knows the exception object again.
    kept: Option<u64>,
    /// What it asks for: see [`Meaning`].
    data: Value,
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
    /// `DownstreamTasksSkipped`: a success, with `tasks` in the data to skip.
    DownstreamSkipped,
    /// `AirflowRescheduleException`: again at `reschedule_date`, which stands in the data.
    Rescheduled,
    /// `TaskDeferred`: goes on with `method_name` when the trigger of `classpath` has fired.
    Deferred,
    /// `TaskAwaitingInput`: goes on with `method_name` when a person has answered, for which there are `timeout` seconds.
    AwaitingInput,
}

impl Failure {
    /// A run's failure under the name of pydantic-ai's exception.
    #[must_use]
    pub fn of_agent(error: &AgentError) -> Self {
        let class = match error {
            AgentError::UsageLimitExceeded(_) => "UsageLimitExceeded",
            AgentError::Model(ModelError::Http { status, .. }) => match *status {
                401 | 403 => "ModelAuthenticationError",
                402 => "ModelQuotaExceededError",
                404 => "ModelNotFoundError",
                429 => "ModelRateLimitError",
                503 => "ModelUnavailableError",
                529 => "ModelOverloadedError",
                500.. => "ModelServerError",
                _ => "ModelRequestRejectedError",
            },
            AgentError::Model(ModelError::Connection(_)) => "ModelConnectionError",
            AgentError::Model(ModelError::AllFailed { .. }) => "FallbackExceptionGroup",
            AgentError::ContentFilter { .. } => "ContentFilterError",
            AgentError::OutputTokenLimitExceeded { .. } | AgentError::IncompleteOutput { .. } => {
                "OutputTokenLimitExceeded"
            }
            AgentError::ToolNameConflict { .. } | AgentError::UnansweredCalls => "UserError",
            AgentError::Cancelled => "RunCancelled",
            AgentError::Tool(_) => return Self::new("RuntimeError", error.to_string()),
            AgentError::Journal(error) => return Self::of_journal(error),
            AgentError::Model(ModelError::Configuration(_)) => {
                return Self::new("ValueError", error.to_string());
            }
            AgentError::Model(ModelError::Replay(_)) => {
                return Self::new("AssertionError", error.to_string()).for_good();
            }
            _ => "UnexpectedModelBehavior",
        };
        Self::new(
            &format!("pydantic_ai.exceptions.{class}"),
            error.to_string(),
        )
    }

    /// What keeps a durable run from going on.
    #[must_use]
    pub fn of_journal(error: &JournalError) -> Self {
        match error {
            JournalError::NotJson(_) => {
                let class = "airflow.providers.common.ai.exceptions.DurableJournalError";
                Self::new(class, error.to_string()).for_good()
            }
            _ => Self::of("airflow.sdk.exceptions.AirflowRuntimeError", error),
        }
    }

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
            raised: None,
        }
    }

    /// The same failure, past retrying.
    #[must_use]
    pub fn for_good(mut self) -> Self {
        self.meaning = Meaning::FailedForGood;
        self
    }

    /// What makes a task wait for a person; it goes on with the named method of its operator.
    #[must_use]
    pub fn awaiting_input(method: &str, kwargs: Value, timeout: Option<f64>) -> Self {
        let data = json!({ "method_name": method, "kwargs": kwargs, "timeout": timeout });
        Self {
            meaning: Meaning::AwaitingInput,
            raised: Some(Box::new(Raised { kept: None, data })),
            ..Self::new("airflow.sdk.exceptions.TaskAwaitingInput", "")
        }
    }

    /// The same failure of a task that was stopped from outside, which another try may do better: unlike
    /// `AirflowTaskTerminated` that Dag code raises by itself.
    #[must_use]
    pub fn mended_by_a_retry(mut self) -> Self {
        if self.class.ends_with(".AirflowTaskTerminated") {
            self.meaning = Meaning::Failed;
        }
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
            raised: None,
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
        } else if is("DownstreamTasksSkipped") {
            Meaning::DownstreamSkipped
        } else if is("AirflowRescheduleException") {
            Meaning::Rescheduled
        } else if is("TaskDeferred") && error.more.data.is_object() {
            Meaning::Deferred
        } else if error.is("updraft_unavailable.NotHereError")
            || error.is("updraft_unavailable.UnavailableModuleError")
            || is("AirflowFailException")
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
        let mut failure = Self {
            class: error.class.clone(),
            message: error.message.clone(),
            details,
            meaning,
            raised: Some(Box::new(Raised {
                kept: error.more.kept,
                data: error.more.data.clone(),
            })),
        };
        for (name, what) in NOT_YET {
            if is(name) {
                failure.message =
                    format!("{what}. Send it to a queue that a Python worker serves.");
                if let Some(detail) = failure.details.first_mut() {
                    detail.exc_value.clone_from(&failure.message);
                }
            }
        }
        failure
    }

    /// The failure as the interpreter takes it, to find or make the exception object.
    #[must_use]
    pub fn for_dag_code(&self) -> Value {
        let kept = self.raised.as_ref().and_then(|raised| raised.kept);
        json!({ "kept": kept, "class": self.class, "message": self.message })
    }

    /// What the exception asks for: see [`Meaning`].
    #[must_use]
    pub fn asks_for(&self, name: &str) -> Option<&Value> {
        self.raised.as_ref()?.data.get(name)
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
