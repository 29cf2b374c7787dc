//! Answers that wait for a person: the request in Airflow's interface, and the task's way on when it is answered.

use serde_json::{Value, json};

use crate::airflow::supervisor::TaskRequest;
use crate::dag::definitions::Approval;
use crate::task::attempt::{Attempt, Rendered};
use crate::task::dag_code;
use crate::task::failure::Failure;

/// What a person is asked.
pub(super) struct Review {
    /// The answer as text, from which it is read back.
    pub generated: String,
    /// Markdown; `None`: prompt and answer.
    pub body: Option<String>,
    /// What the form edits, where it is not the text, with its schema.
    pub editable: Option<(Value, Value)>,
    /// The decision as it stands, for the task to finish it when it goes on.
    pub decision: Option<Value>,
}

/// A prompt that is shown to a person must be text.
///
/// # Errors
/// It is none.
pub(super) fn check_prompt(attempt: &Attempt, rendered: &Rendered) -> Result<(), Failure> {
    let prompt = rendered.field("prompt");
    if prompt.is_string() {
        return Ok(());
    }
    let text = format!(
        "{}: require_approval=True is not supported with a non-string prompt (got {}). The approval review body renders \
         the prompt as text; passing a Sequence[UserContent] would expose object reprs (and any embedded bytes) in the \
         human review UI. Return a str prompt, or disable require_approval.",
        attempt.task.operator,
        if prompt.is_array() { "list" } else { "tuple" }
    );
    Err(Failure::new("TypeError", text))
}

/// Asks, and gives what makes the task wait.
///
/// # Errors
/// The server refuses the request, or a notifier could not be reached at all.
pub(super) async fn open(
    attempt: &Attempt,
    approval: &Approval,
    rendered: &Rendered,
    review: Review,
) -> Result<Failure, Failure> {
    let services = &attempt.services;
    let subject = format!("Review output for task `{}`", attempt.task.task_id);
    let prompt = rendered.field("prompt").as_str().unwrap_or_default();
    let body = review
        .body
        .unwrap_or_else(|| format!("```\nPrompt: {prompt}\n\n{}\n```", review.generated));
    let mut params = json!({});
    if approval.allow_modifications {
        let (value, schema) = review.editable.unwrap_or_else(|| {
            (
                review.generated.as_str().into(),
                json!({ "type": "string" }),
            )
        });
        params = json!({ "output": {
            "value": value,
            "description": "Edit the output before approving (optional).",
            "schema": schema,
        }});
    }
    let defaults = match approval.on_timeout.as_str() {
        "approve" => json!(["Approve"]),
        "reject" => json!(["Reject"]),
        _ => Value::Null,
    };
    let request = json!({
        "type": "CreateHITLDetailPayload",
        "ti_id": services.ti.id,
        "options": ["Approve", "Reject"],
        "subject": subject,
        "body": body,
        "defaults": defaults,
        "multiple": false,
        "params": params,
        "assigned_users": approval.assigned_users,
    });
    if let Value::Object(request) = request {
        services
            .request(TaskRequest::Other(request))
            .await
            .map_err(|error| {
                Failure::new(
                    "airflow.sdk.exceptions.AirflowRuntimeError",
                    format!("the review could not be opened: {error}"),
                )
            })?;
    }
    if approval.has_notifiers {
        dag_code::notify(attempt, rendered, &subject, &body).await?;
    }
    let mut kwargs = json!({ "generated_output": review.generated });
    if let (Some(decision), Value::Object(kwargs)) = (review.decision, &mut kwargs) {
        kwargs.insert("decision".to_owned(), decision);
    }
    Ok(Failure::awaiting_input(
        "execute_complete",
        kwargs,
        approval.timeout,
    ))
}
