//! What the interpreter is asked for in the course of a try: the work of Python tasks, and beside any task's work its
//! hooks, its callbacks, its retry policy and what it noted for the events of its outlets.
//!
//! The steps are those of `dag/python/updraft_task.py`; a task that sets none of them costs nothing here.

use serde_json::{Map, Value, json};

use super::attempt::{Attempt, Rendered};
use super::failure::Failure;
use crate::airflow::supervisor::TaskRequest;
use crate::dag::PythonError;

/// What a retry policy says about a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum RetryDecision {
    /// Fail at once.
    Fail,
    /// Try again, if the server allows for another try.
    Retry {
        delay_seconds: Option<f64>,
        reason: Option<String>,
    },
    /// What the task's `retries` say.
    Default,
}

/// The request of a step: the context, and the operator's rendered fields as far as there are some.
fn request(attempt: &Attempt, rendered: Option<&Rendered>, more: Value) -> Value {
    let context = attempt.dag_code_context(rendered.unwrap_or(&Rendered::default()));
    let mut request = Map::new();
    request.insert("context".to_owned(), context);
    if let Some(rendered) = rendered {
        request.insert("fields".to_owned(), rendered.fields.clone().into());
        request.insert("mapped".to_owned(), rendered.mapped.clone().into());
    }
    if let Value::Object(more) = more {
        request.extend(more);
    }
    request.into()
}

async fn step(
    attempt: &Attempt,
    name: &str,
    rendered: Option<&Rendered>,
    more: Value,
) -> Result<Value, PythonError> {
    let Some(interpreter) = attempt.interpreter() else {
        return Err(PythonError {
            class: "RuntimeError".to_owned(),
            message: "the Dag interpreter has ended".to_owned(),
            ..PythonError::default()
        });
    };
    interpreter
        .step(name, &request(attempt, rendered, more))
        .await
}

/// Before the work: `pre_execute` and `on_execute_callback`.
///
/// # Errors
/// What `pre_execute` raised; callbacks only log what they raise.
pub async fn prepare(attempt: &Attempt, rendered: &Rendered) -> Result<(), Failure> {
    let task = &attempt.task;
    if !task.has("pre_execute") && !task.has("on_execute_callback") {
        return Ok(());
    }
    step(attempt, "prepare", Some(rendered), Value::Null)
        .await
        .map(drop)
        .map_err(|error| Failure::of_python(&error))
}

/// The work of a Python task; its result is in XCom wire form.
///
/// # Errors
/// The exception that it raised.
pub async fn execute(attempt: &Attempt, rendered: &Rendered) -> Result<Value, Failure> {
    step(attempt, "execute", Some(rendered), Value::Null)
        .await
        .map_err(|error| Failure::of_python(&error))
}

/// Follows the downstream tasks that a model has chosen, and skips the others; `choice` is in XCom wire form.
///
/// # Errors
/// `DownstreamTasksSkipped`, when there is something to skip.
pub async fn branch(
    attempt: &Attempt,
    rendered: &Rendered,
    choice: &Value,
) -> Result<Value, Failure> {
    step(
        attempt,
        "branch",
        Some(rendered),
        json!({ "choice": choice }),
    )
    .await
    .map_err(|error| Failure::of_python(&error))
}

/// Tells the operator's notifiers of an open review.
///
/// # Errors
/// They could not be asked; what one of them raises is only logged.
pub async fn notify(
    attempt: &Attempt,
    rendered: &Rendered,
    subject: &str,
    body: &str,
) -> Result<(), Failure> {
    let more = json!({ "subject": subject, "body": body });
    step(attempt, "notify", Some(rendered), more)
        .await
        .map(drop)
        .map_err(|error| Failure::of_python(&error))
}

/// Goes on where a task has stopped to wait: with a method of its operator. The result is in XCom wire form.
///
/// # Errors
/// The exception that it raised.
pub async fn resume(
    attempt: &Attempt,
    rendered: &Rendered,
    method: &str,
    kwargs: &Value,
) -> Result<Value, Failure> {
    let more = json!({ "method": method, "kwargs": kwargs });
    step(attempt, "resume", Some(rendered), more)
        .await
        .map_err(|error| Failure::of_python(&error))
}

/// Goes on where a task has left its slot to wait for a trigger. The result is in XCom wire form.
///
/// # Errors
/// The exception that it raised; the trigger's arguments were encrypted with a key that workers do not have.
pub async fn resume_deferred(
    attempt: &Attempt,
    rendered: &Rendered,
    method: &str,
    kwargs: &Value,
) -> Result<Value, Failure> {
    if kwargs.is_string() {
        return Err(Failure::new(
            "ValueError",
            "What the trigger left for this task is encrypted with [core] fernet_key, which the tasks of this worker do \
             not have. Send the task to a queue that a Python worker serves.",
        ));
    }
    let more = json!({ "method": method, "kwargs": kwargs, "finish": true });
    step(attempt, "resume", Some(rendered), more)
        .await
        .map_err(|error| Failure::of_python(&error))
}

/// After work that was not done in the interpreter: `post_execute`.
///
/// # Errors
/// What it raised.
pub async fn finish(attempt: &Attempt, rendered: &Rendered, result: &Value) -> Result<(), Failure> {
    if !attempt.task.has("post_execute") {
        return Ok(());
    }
    let more = json!({ "result": result });
    step(attempt, "finish", Some(rendered), more)
        .await
        .map(drop)
        .map_err(|error| Failure::of_python(&error))
}

/// What the task's retry policy says about a failure.
pub async fn retry_decision(
    attempt: &Attempt,
    rendered: Option<&Rendered>,
    failure: &Failure,
) -> RetryDecision {
    if !attempt.task.has("retry_policy") {
        return RetryDecision::Default;
    }
    let more = json!({ "error": failure.for_dag_code() });
    let decision = match step(attempt, "retry_decision", rendered, more).await {
        Ok(decision) => decision,
        Err(error) => {
            tracing::warn!("the retry policy could not be asked: {error}");
            return RetryDecision::Default;
        }
    };
    match decision.get("action").and_then(Value::as_str) {
        Some("fail") => RetryDecision::Fail,
        Some("retry") => RetryDecision::Retry {
            delay_seconds: decision.get("retry_delay_seconds").and_then(Value::as_f64),
            reason: decision
                .get("reason")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned),
        },
        _ => RetryDecision::Default,
    }
}

/// What Dag code put into the context while the task ran, for the template of its map index.
pub async fn added_to_context(attempt: &Attempt) -> Map<String, Value> {
    if attempt.task.map_index_template.is_none() || attempt.interpreter().is_none() {
        return Map::new();
    }
    match step(attempt, "added", None, Value::Null).await {
        Ok(Value::Object(added)) => added,
        Ok(_) => Map::new(),
        Err(error) => {
            tracing::warn!("the context could not be read for map_index_template: {error}");
            Map::new()
        }
    }
}

/// What Dag code noted for the events of the outlets (`SucceedTask.outlet_events`).
///
/// # Errors
/// An extra that is not JSON.
pub async fn outlet_events(attempt: &Attempt) -> Result<Vec<Value>, Failure> {
    if attempt.interpreter().is_none() {
        return Ok(attempt.outlet_events());
    }
    match step(attempt, "outlet_events", None, Value::Null).await {
        Ok(Value::Array(events)) => Ok(events),
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(Failure::of_python(&error)),
    }
}

/// Ends the interpreter, unless it is asked for something once the work is done.
///
/// # Errors
/// See [`outlet_events`].
pub async fn release_interpreter(attempt: &Attempt) -> Result<(), Failure> {
    if attempt.task.dag_code.is_empty() && attempt.task.map_index_template.is_none() {
        attempt.keep_outlet_events(outlet_events(attempt).await?);
        attempt.drop_interpreter();
    }
    Ok(())
}

/// After the end of a try, once the supervisor knows of it: the callbacks of its state.
pub async fn run_callbacks(
    attempt: &Attempt,
    rendered: Option<&Rendered>,
    ending: &TaskRequest,
    failure: Option<&Failure>,
) {
    let (callback, state, end_date) = match ending {
        TaskRequest::SucceedTask { end_date, .. } => {
            ("on_success_callback", "success", Some(end_date))
        }
        TaskRequest::RetryTask { end_date, .. } => {
            ("on_retry_callback", "up_for_retry", Some(end_date))
        }
        TaskRequest::TaskState {
            state, end_date, ..
        } if state == "skipped" => ("on_skipped_callback", "skipped", end_date.as_ref()),
        TaskRequest::TaskState {
            state, end_date, ..
        } if state == "failed" => ("on_failure_callback", "failed", end_date.as_ref()),
        _ => return,
    };
    if !attempt.task.has(callback) {
        return;
    }
    let more = json!({
        "callback": callback,
        "state": state,
        "end_date": end_date,
        "error": failure.map(Failure::for_dag_code),
    });
    if let Err(error) = step(attempt, "end", rendered, more).await {
        tracing::error!("{callback} could not be run to its end: {error}");
    }
}
