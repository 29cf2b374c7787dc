//! What `LLMOperator` and `LLMBranchOperator` make of a model's answer: the XComs that tell of it, and the branches that
//! are followed.

use serde_json::{Value, json};

use super::attempt::{Attempt, Rendered};
use super::dag_code;
use super::failure::Failure;
use super::loggers;
use super::xcom_push::{MODEL_NAME_KEY, push_one};
use crate::dag::definitions::LlmQuestion;

const DECISION_KEY: &str = "decision";

pub(super) fn logger(question: &LlmQuestion) -> &'static str {
    match question.branch {
        Some(_) => loggers::LLM_BRANCH,
        None => loggers::LLM,
    }
}

/// Pushes the decision, in which nobody but the model had a say. `answer` is in XCom wire form.
///
/// # Errors
/// A model that chose no branch at all, or an XCom that could not be pushed.
pub(super) async fn record(
    attempt: &Attempt,
    question: &LlmQuestion,
    rendered: &Rendered,
    model_name: Option<&str>,
    answer: &Value,
) -> Result<(), Failure> {
    let is_branch = question.branch.is_some();
    if is_branch && answer.as_array().is_some_and(Vec::is_empty) {
        let text = format!(
            "the model chose none of the tasks after {}: all of them would be skipped",
            attempt.task.task_id
        );
        return Err(Failure::new("ValueError", text));
    }
    if !attempt.task.do_xcom_push {
        return Ok(());
    }
    if let Some(name) = model_name.filter(|_| !is_branch) {
        push_one(&attempt.services, MODEL_NAME_KEY, name.into()).await?;
    }
    let chosen = if is_branch { answer } else { &Value::Null };
    let mut decision = json!({
        "model": model_name,
        "proposed": chosen,
        "action": chosen,
        "confidence": {},
        "probabilities": {},
        "min_confidence": null,
        "review": null,
        "decided_by": "model",
        "policy": { "min_confidence": null, "on_uncertain": "review", "branches": null },
    });
    if let (true, Value::Object(decision)) = (is_branch, &mut decision) {
        decision.insert("descriptions".to_owned(), descriptions(rendered));
    }
    push_one(&attempt.services, DECISION_KEY, decision).await?;
    Ok(())
}

/// What the Dag author says of the branches; `null` when that is nothing.
fn descriptions(rendered: &Rendered) -> Value {
    let Value::Object(branches) = rendered.field("branches") else {
        return Value::Null;
    };
    let mut branches = branches.clone();
    branches.retain(|_, description| description.as_str().is_some_and(|text| !text.is_empty()));
    if branches.is_empty() {
        Value::Null
    } else {
        branches.into()
    }
}

/// Ends the task: with the answer, or for a branch by following what was chosen.
///
/// # Errors
/// `DownstreamTasksSkipped` when there is something to skip, or what a `do_branch` of the Dag author's raised.
pub(super) async fn act(
    attempt: &Attempt,
    question: &LlmQuestion,
    rendered: &Rendered,
    answer: Value,
) -> Result<Value, Failure> {
    match question.branch {
        Some(_) => dag_code::branch(attempt, rendered, &answer).await,
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn only_branches_that_are_described_have_a_description() {
        let of = |branches: Value| {
            let mut rendered = Rendered::default();
            rendered.fields.insert("branches".to_owned(), branches);
            descriptions(&rendered)
        };
        assert_eq!(
            of(json!({"load": "Put cargo on.", "wait": null, "unload": ""})),
            json!({"load": "Put cargo on."})
        );
        assert_eq!(of(json!({"wait": null})), Value::Null);
        assert_eq!(of(Value::Null), Value::Null);
    }
}
