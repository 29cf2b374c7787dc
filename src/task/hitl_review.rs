//! Answers that a person reads while the task waits, and sends back with what is wrong: `enable_hitl_review`.
//!
//! The person speaks through the `hitl_review` plugin of Airflow's server. Both sides keep what they say in XComs of the
//! task instance itself: `airflow_hitl_review_agent_session`, `..._agent_output_N` from here, `..._human_action` from there.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::agent_model::UNATTENDED_VARIABLE;
use super::arguments::{python_class, python_repr};
use super::failure::Failure;
use super::loggers::AGENT as LOGGER;
use super::services::Services;
use super::xcom_push::push_one;
use crate::agent::pydantic_json::compact_json;
use crate::agent::{AgentError, Output};
use crate::airflow::supervisor::{ErrorKind, TaskReply, TaskRequest};
use crate::dag::definitions::HitlReview;

const SESSION_KEY: &str = "airflow_hitl_review_agent_session";
const OUTPUT_KEY: &str = "airflow_hitl_review_agent_output_";
const ACTION_KEY: &str = "airflow_hitl_review_human_action";
/// So many questions in a row may go unanswered: without a time-out the task would ask for ever.
const MOST_FAILED_POLLS: u32 = 10;

/// What the person says to an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Approved,
    /// It is to be made anew, with this in mind.
    Changes(String),
}

/// `airflow_hitl_review_human_action`.
#[derive(Deserialize)]
struct HumanAction {
    action: Action,
    #[serde(default)]
    feedback: String,
    #[serde(default = "first")]
    iteration: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Approve,
    Reject,
    ChangesRequested,
}

fn first() -> i64 {
    1
}

/// One answer after the other, until one is right.
pub(super) struct Session<'a> {
    services: &'a Services,
    review: &'a HitlReview,
    prompt: &'a str,
    /// Answers shown so far.
    iteration: i64,
    /// The last one.
    shown: String,
    /// Of the last action that was taken note of.
    last_seen: i64,
    deadline: Option<Instant>,
    has_polled: bool,
}

/// Refuses what nobody could review.
///
/// # Errors
/// The prompt is no text, or the task runs without an Airflow in which somebody could answer.
pub(super) fn check(services: &Services, prompt: &Value, operator: &str) -> Result<(), Failure> {
    if !prompt.is_string() {
        let text = format!(
            "{operator}: enable_hitl_review=True needs a prompt that is text, to be shown to the reviewer, and this one is a \
             {}. Return a str, or leave the review out.",
            python_class(prompt)
        );
        return Err(Failure::new("TypeError", text));
    }
    let environment = services.config.environment();
    if environment.get(UNATTENDED_VARIABLE).is_some() {
        let text =
            "the task waits for a person who reviews its answer in Airflow, and there is none here";
        return Err(Failure::new("RuntimeError", text).for_good());
    }
    Ok(())
}

impl<'a> Session<'a> {
    /// Shows the first answer.
    ///
    /// # Errors
    /// The server refuses an XCom.
    pub async fn open(
        services: &'a Services,
        review: &'a HitlReview,
        prompt: &'a str,
        output: &Output,
    ) -> Result<Self, Failure> {
        let session = Self {
            services,
            review,
            prompt,
            iteration: 1,
            shown: shown(output),
            last_seen: 0,
            deadline: review
                .timeout
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .map(|timeout| Instant::now() + timeout),
            has_polled: false,
        };
        session.show().await?;
        let ti = &services.ti;
        tracing::info!(
            target: "airflow.task", logger = LOGGER,
            "Feedback session created for {}/{}/{} (poll every {}s).",
            ti.dag_id, ti.run_id, ti.task_id, review.poll_interval.trunc()
        );
        Ok(session)
    }

    /// Shows the answer that was made after [`Verdict::Changes`].
    ///
    /// # Errors
    /// The server refuses an XCom.
    pub async fn submit(&mut self, output: &Output) -> Result<(), Failure> {
        self.iteration += 1;
        self.shown = shown(output);
        self.show().await?;
        tracing::info!(
            target: "airflow.task", logger = LOGGER,
            "Regenerated output (iteration {}) — waiting for review.", self.iteration
        );
        Ok(())
    }

    /// Waits for the person.
    ///
    /// # Errors
    /// They reject the answer, or want one more than there may be; the time is over; the server can't be asked any more; the
    /// task is killed.
    pub async fn verdict(&mut self, cancel: &CancellationToken) -> Result<Verdict, Failure> {
        let mut failed_polls = 0;
        loop {
            if self
                .deadline
                .is_some_and(|deadline| Instant::now() > deadline)
            {
                self.push_session("timeout_exceeded").await?;
                return Err(Failure::new(
                    "airflow.providers.standard.exceptions.HITLTimeoutError",
                    "Task exceeded timeout.",
                ));
            }
            if self.has_polled {
                let pause = Duration::try_from_secs_f64(self.review.poll_interval);
                tokio::select! {
                    () = cancel.cancelled() => return Err(Failure::of_agent(&AgentError::Cancelled)),
                    () = tokio::time::sleep(pause.unwrap_or_default()) => {}
                }
            }
            self.has_polled = true;
            let said = match self.poll().await {
                Ok(said) => said,
                Err(failure) => {
                    failed_polls += 1;
                    if failed_polls >= MOST_FAILED_POLLS {
                        tracing::error!(
                            target: "airflow.task", logger = LOGGER,
                            "Giving up HITL review after {failed_polls} consecutive XCom pull failures"
                        );
                        return Err(failure);
                    }
                    tracing::warn!(target: "airflow.task", logger = LOGGER, "Failed to pull XCom: {}", failure.message);
                    continue;
                }
            };
            failed_polls = 0;
            if let Some(verdict) = self.weigh(said).await? {
                return Ok(verdict);
            }
        }
    }

    /// What the person said last; null when nothing.
    async fn poll(&self) -> Result<Value, Failure> {
        let ti = &self.services.ti;
        let request = TaskRequest::GetXCom {
            key: ACTION_KEY.to_owned(),
            dag_id: ti.dag_id.clone(),
            run_id: ti.run_id.clone(),
            task_id: ti.task_id.clone(),
            map_index: (ti.map_index >= 0).then_some(ti.map_index),
            include_prior_dates: false,
        };
        match self.services.request(request).await {
            Ok(TaskReply::XCom { value, .. }) => Ok(value),
            Ok(_) => Ok(Value::Null),
            Err(error) if error.kind == ErrorKind::XComNotFound => Ok(Value::Null),
            Err(error) => Err(Failure::new(
                "airflow.sdk.exceptions.AirflowRuntimeError",
                format!("the reviewer's answer could not be asked for: {error}"),
            )),
        }
    }

    async fn weigh(&mut self, said: Value) -> Result<Option<Verdict>, Failure> {
        let read = match &said {
            Value::Null => return Ok(None),
            Value::String(text) => serde_json::from_str::<HumanAction>(text),
            other => serde_json::from_value::<HumanAction>(other.clone()),
        };
        let Ok(human) = read else {
            tracing::warn!(
                target: "airflow.task", logger = LOGGER, "Malformed human action XCom: {}", python_repr(&said)
            );
            return Ok(None);
        };
        if human.iteration <= self.last_seen {
            return Ok(None);
        }
        self.last_seen = human.iteration;
        match human.action {
            Action::Approve => {
                tracing::info!(
                    target: "airflow.task", logger = LOGGER, "Output approved at iteration {}.", self.iteration
                );
                Ok(Some(Verdict::Approved))
            }
            Action::Reject => Err(Failure::new(
                "airflow.providers.standard.exceptions.HITLRejectException",
                format!("Output rejected at iteration {}.", self.iteration),
            )),
            Action::ChangesRequested if human.feedback.is_empty() => {
                tracing::info!(
                    target: "airflow.task", logger = LOGGER,
                    "Empty feedback with 'Request Changes' — treating as approve."
                );
                Ok(Some(Verdict::Approved))
            }
            Action::ChangesRequested if self.iteration >= self.review.max_iterations => {
                self.push_session("max_iterations_exceeded").await?;
                Err(Failure::new(
                    "airflow.providers.common.ai.exceptions.HITLMaxIterationsError",
                    "Task exceeded max iterations.",
                ))
            }
            Action::ChangesRequested => {
                tracing::info!(
                    target: "airflow.task", logger = LOGGER,
                    "Feedback received (iteration {}): {}", self.iteration, human.feedback
                );
                Ok(Some(Verdict::Changes(human.feedback)))
            }
        }
    }

    async fn show(&self) -> Result<(), Failure> {
        self.push_session("pending_review").await?;
        let key = format!("{OUTPUT_KEY}{}", self.iteration);
        push_one(self.services, &key, self.shown.as_str().into()).await?;
        Ok(())
    }

    async fn push_session(&self, status: &str) -> Result<(), Failure> {
        let session = json!({
            "status": status,
            "iteration": self.iteration,
            "max_iterations": self.review.max_iterations,
            "prompt": self.prompt,
            "current_output": self.shown,
        });
        push_one(self.services, SESSION_KEY, session).await?;
        Ok(())
    }
}

/// The answer as the reviewer reads it: text as it is, anything else as pydantic's JSON.
fn shown(output: &Output) -> String {
    match output {
        Output::Text(text) => text.clone(),
        Output::Nothing => "null".to_owned(),
        Output::Validated(answer) => match &answer.json {
            Value::String(text) => text.clone(),
            json => compact_json(json),
        },
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::control_plane::local::LocalControlPlane;
    use crate::task::context_tests::{services, task_instance};

    const REVIEW: HitlReview = HitlReview {
        max_iterations: 2,
        timeout: None,
        poll_interval: 0.01,
    };

    async fn say(services: &Services, what: Value) {
        push_one(services, ACTION_KEY, what).await.unwrap();
    }

    async fn pushed(services: &Services, key: &str) -> Value {
        let ti = &services.ti;
        let request = TaskRequest::GetXCom {
            key: key.to_owned(),
            dag_id: ti.dag_id.clone(),
            run_id: ti.run_id.clone(),
            task_id: ti.task_id.clone(),
            map_index: None,
            include_prior_dates: false,
        };
        match services.request(request).await.unwrap() {
            TaskReply::XCom { value, .. } => value,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn an_answer_is_made_anew_until_the_person_approves() {
        let services = services(LocalControlPlane::new(), task_instance("t", -1));
        let cancel = CancellationToken::new();
        let mut session = Session::open(&services, &REVIEW, "Write.", &Output::Text("One.".into()))
            .await
            .unwrap();
        assert_eq!(
            pushed(&services, SESSION_KEY).await,
            json!({"status": "pending_review", "iteration": 1, "max_iterations": 2, "prompt": "Write.", "current_output": "One."})
        );
        say(
            &services,
            json!({"action": "changes_requested", "feedback": "Longer.", "iteration": 1}),
        )
        .await;
        let verdict = session.verdict(&cancel).await.unwrap();
        assert_eq!(verdict, Verdict::Changes("Longer.".to_owned()));
        session
            .submit(&Output::Text("One, two.".into()))
            .await
            .unwrap();
        assert_eq!(
            pushed(&services, "airflow_hitl_review_agent_output_1").await,
            "One."
        );
        assert_eq!(
            pushed(&services, "airflow_hitl_review_agent_output_2").await,
            "One, two."
        );
        // The plugin writes text where the action is kept as JSON.
        say(&services, json!(r#"{"action": "approve", "iteration": 2}"#)).await;
        assert_eq!(session.verdict(&cancel).await.unwrap(), Verdict::Approved);
    }

    #[tokio::test]
    async fn a_review_ends_with_a_rejection_too_many_changes_or_the_time() {
        let cancel = CancellationToken::new();
        for (action, review, class, status) in [
            (
                json!({"action": "reject", "iteration": 1}),
                REVIEW,
                "airflow.providers.standard.exceptions.HITLRejectException",
                "pending_review",
            ),
            (
                json!({"action": "changes_requested", "feedback": "No.", "iteration": 1}),
                HitlReview {
                    max_iterations: 1,
                    ..REVIEW
                },
                "airflow.providers.common.ai.exceptions.HITLMaxIterationsError",
                "max_iterations_exceeded",
            ),
            (
                json!({"action": "approved"}),
                HitlReview {
                    timeout: Some(0.05),
                    ..REVIEW
                },
                "airflow.providers.standard.exceptions.HITLTimeoutError",
                "timeout_exceeded",
            ),
        ] {
            let services = services(LocalControlPlane::new(), task_instance("t", -1));
            say(&services, action).await;
            let mut session = Session::open(&services, &review, "?", &Output::Nothing)
                .await
                .unwrap();
            let failure = session.verdict(&cancel).await.unwrap_err();
            assert_eq!(failure.class, class);
            let session = pushed(&services, SESSION_KEY).await;
            assert_eq!(session["status"], status);
            assert_eq!(session["current_output"], "null");
        }
    }

    #[tokio::test]
    async fn a_killed_task_waits_no_longer() {
        let services = services(LocalControlPlane::new(), task_instance("t", -1));
        let review = HitlReview {
            poll_interval: 3600.0,
            ..REVIEW
        };
        let mut session = Session::open(&services, &review, "?", &Output::Nothing)
            .await
            .unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        assert!(session.verdict(&cancel).await.is_err());
    }
}
