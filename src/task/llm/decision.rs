//! What `LLMOperator` and `LLMBranchOperator` make of a model's answer: whether it counts without a person, and the XComs
//! that tell of it.

use serde_json::{Map, Value, json};

use super::Answered;
use super::approval::{self, Review};
use crate::dag::definitions::{Approval, LlmQuestion};
use crate::task::attempt::{Attempt, Rendered};
use crate::task::failure::Failure;
use crate::task::xcom_push::{MODEL_NAME_KEY, push_one};

const DECISION_KEY: &str = "decision";
/// The field under which the confidence in an answer that is no object stands.
const BARE_FIELD: &str = "response";

/// How sure a model was, by the fields of its answer; empty for one that does not say.
#[derive(Debug, Default, PartialEq)]
struct Confidence {
    confidence: Map<String, Value>,
    probabilities: Map<String, Value>,
}

impl Confidence {
    /// Out of the response's `provider_details`.
    fn of(details: &Map<String, Value>) -> Self {
        let numbers = |value: &Value| -> Map<String, Value> {
            let entries = value.as_object().into_iter().flatten();
            entries
                .filter(|(_, value)| value.as_f64().is_some_and(f64::is_finite))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let probabilities = details.get("probabilities").and_then(Value::as_object);
        Self {
            confidence: details.get("confidence").map(numbers).unwrap_or_default(),
            probabilities: probabilities
                .into_iter()
                .flatten()
                .filter(|(_, options)| options.is_object())
                .map(|(name, options)| (name.clone(), numbers(options).into()))
                .collect(),
        }
    }

    fn in_field(&self, field: &str) -> Option<f64> {
        self.confidence.get(field)?.as_f64()
    }

    fn lowest(&self) -> Option<f64> {
        let values = self.confidence.values().filter_map(Value::as_f64);
        values.min_by(f64::total_cmp)
    }

    /// A paragraph for the person who reviews: the confidence in a field, the bar, the alternatives.
    fn described(&self, field: &str, threshold: Option<f64>) -> String {
        let mut text = match self.in_field(field) {
            None => "Confidence: not reported by the model".to_owned(),
            Some(confidence) => format!("Confidence: {confidence:.2}"),
        };
        if let Some(threshold) = threshold {
            text.push_str(&format!(" (minimum {threshold:.2})"));
        }
        let options = self.probabilities.get(field).and_then(Value::as_object);
        if let Some(options) = options.filter(|options| !options.is_empty()) {
            let mut ranked: Vec<(&String, f64)> = options
                .iter()
                .map(|(option, value)| (option, value.as_f64().unwrap_or_default()))
                .collect();
            ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            let ranked: Vec<String> = ranked
                .iter()
                .map(|(option, probability)| format!("{option} {probability:.2}"))
                .collect();
            text.push_str(&format!("\n\nProbabilities: {}", ranked.join(", ")));
        }
        text
    }
}

/// Why an answer does not count by itself; `None` when it does.
fn review_reason(
    approval: &Approval,
    threshold: Option<f64>,
    confidence: Option<f64>,
) -> Option<&'static str> {
    if approval.require_approval {
        return Some("require_approval");
    }
    let threshold = threshold?;
    match confidence {
        None => Some("missing_confidence"),
        Some(confidence) if confidence < threshold => Some("below_threshold"),
        Some(_) => None,
    }
}

/// Pushes the decision, and sends an answer that does not count by itself to a person.
///
/// # Errors
/// A model that chose no branch at all, or was not sure enough; an XCom that could not be pushed; and what makes the task
/// wait.
pub(super) async fn settle(
    attempt: &Attempt,
    question: &LlmQuestion,
    rendered: &Rendered,
    answered: &Answered<'_>,
) -> Result<(), Failure> {
    let is_branch = question.is_branch();
    let answer = answered.xcom;
    let task_id = &attempt.task.task_id;
    if is_branch && answer.as_array().is_some_and(Vec::is_empty) {
        let text = format!(
            "the model chose none of the tasks after {task_id}: all of them would be skipped"
        );
        return Err(Failure::new("ValueError", text));
    }
    let approval = &question.approval;
    let said = Confidence::of(&answered.details());
    let (threshold, confidence) = if is_branch {
        (branch_bar(approval, answer), said.in_field(BARE_FIELD))
    } else {
        (approval.min_confidence, said.lowest())
    };
    let review = review_reason(approval, threshold, confidence);
    let fails = approval.on_uncertain == "fail"
        && matches!(review, Some("missing_confidence" | "below_threshold"));
    let chosen = if is_branch { answer } else { &Value::Null };
    let mut decision = json!({
        "model": answered.model_name(),
        "proposed": chosen,
        "action": if review.is_none() { chosen } else { &Value::Null },
        "confidence": said.confidence,
        "probabilities": said.probabilities,
        "min_confidence": threshold,
        "review": review,
        "decided_by": if review.is_none() { Some("model") } else { fails.then_some("policy") },
        "policy": {
            "min_confidence": approval.min_confidence,
            "on_uncertain": on_uncertain(approval),
            "branches": (!approval.branch_bars.is_empty()).then_some(&approval.branch_bars),
        },
    });
    if let (true, Value::Object(decision)) = (is_branch, &mut decision) {
        decision.insert("descriptions".to_owned(), descriptions(rendered));
    }
    if attempt.task.do_xcom_push {
        if let Some(name) = answered.model_name().filter(|_| !is_branch) {
            push_one(&attempt.services, MODEL_NAME_KEY, name.into()).await?;
        }
        push_one(&attempt.services, DECISION_KEY, decision.clone()).await?;
    }
    let Some(reason) = review else {
        return Ok(());
    };
    let threshold_text = format!("{:.2}", threshold.unwrap_or_default());
    let confidence_text = format!("{:.2}", confidence.unwrap_or_default());
    if fails {
        let what = if is_branch { "branch task" } else { "task" };
        return Err(not_sure(
            &format!("{what} '{task_id}'"),
            reason,
            &threshold_text,
            &confidence_text,
        ));
    }
    let logger = super::logger(question);
    match reason {
        "below_threshold" => tracing::info!(
            target: "airflow.task", logger,
            "Sending the output to review: confidence {confidence_text} is below min_confidence={threshold_text}."
        ),
        "missing_confidence" => tracing::info!(
            target: "airflow.task", logger,
            "Sending the output to review: min_confidence={threshold_text} is set but the model reported no confidence \
             for its answer."
        ),
        _ => {}
    }
    let shown = if is_branch {
        review_of_choice(attempt, rendered, answered, &said, threshold, reason)
    } else {
        review_of_answer(rendered, answered, &said, threshold, reason)
    };
    let review = Review {
        decision: Some(decision),
        ..shown
    };
    Err(approval::open(attempt, approval, rendered, review).await?)
}

fn prompt(rendered: &Rendered) -> &str {
    rendered.field("prompt").as_str().unwrap_or_default()
}

/// What a person is shown of a chosen branch, and chooses from.
fn review_of_choice(
    attempt: &Attempt,
    rendered: &Rendered,
    answered: &Answered<'_>,
    said: &Confidence,
    threshold: Option<f64>,
    reason: &str,
) -> Review {
    let choices = &attempt.task.downstream_task_ids;
    let shown: Vec<String> = choices.iter().map(|task| format!("`{task}`")).collect();
    let picked = match answered.xcom {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(Value::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let mut body = format!(
        "Valid branches: {}\n\n```\nPrompt: {}\n\nChosen branch(es): {picked}\n```",
        shown.join(", "),
        prompt(rendered)
    );
    if reason != "require_approval" || !said.confidence.is_empty() {
        body.push_str(&format!("\n\n{}", said.described(BARE_FIELD, threshold)));
    }
    let one = json!({ "type": "string", "enum": choices });
    let schema = match answered.xcom {
        Value::Array(_) => json!({ "type": "array", "items": one, "examples": choices }),
        _ => one,
    };
    Review {
        generated: answered.text(),
        body: Some(body),
        editable: Some((answered.xcom.clone(), schema)),
        decision: None,
    }
}

/// What a person is shown of any other answer: with an uncertain one, how sure the model was.
fn review_of_answer(
    rendered: &Rendered,
    answered: &Answered<'_>,
    said: &Confidence,
    threshold: Option<f64>,
    reason: &str,
) -> Review {
    let generated = answered.text();
    let mut fields: Vec<&str> = said.confidence.keys().map(String::as_str).collect();
    if fields.is_empty() {
        fields.push(BARE_FIELD);
    }
    let described: Vec<String> = fields
        .iter()
        .map(|field| said.described(field, threshold))
        .collect();
    let body = (reason != "require_approval").then(|| {
        format!(
            "```\nPrompt: {}\n\n{generated}\n```\n\n{}",
            prompt(rendered),
            described.join("\n\n")
        )
    });
    Review {
        generated,
        body,
        editable: None,
        decision: None,
    }
}

fn on_uncertain(approval: &Approval) -> &str {
    match approval.on_uncertain.as_str() {
        "" => "review",
        given => given,
    }
}

fn not_sure(what: &str, reason: &str, threshold: &str, confidence: &str) -> Failure {
    let text = if reason == "missing_confidence" {
        format!(
            "min_confidence={threshold} is set for {what} but the model reported no confidence for its answer, and \
             on_uncertain='fail'. A text model reports none; a bounded float field reports none because the probability \
             is the answer. Use a decision model, remove the bar, or set on_uncertain='review'."
        )
    } else {
        format!(
            "Confidence {confidence} for {what} is below min_confidence={threshold}, and on_uncertain='fail'."
        )
    };
    Failure::new(
        "airflow.providers.common.ai.exceptions.LowConfidenceError",
        text,
    )
}

/// The highest of the bars of what was chosen; `None` without a policy.
fn branch_bar(approval: &Approval, answer: &Value) -> Option<f64> {
    let bar = approval.min_confidence?;
    let picked = match answer {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        other => Vec::from_iter(other.as_str()),
    };
    picked
        .into_iter()
        .map(|branch| approval.branch_bars.get(branch).copied().unwrap_or(bar))
        .max_by(f64::total_cmp)
        .or(Some(bar))
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

    #[test]
    fn an_answer_that_nobody_vouches_for_counts_only_without_a_bar() {
        let gated = Approval {
            min_confidence: Some(0.8),
            ..Approval::default()
        };
        let reason = |approval: &Approval, confidence| {
            review_reason(approval, approval.min_confidence, confidence)
        };
        assert_eq!(reason(&Approval::default(), None), None);
        assert_eq!(reason(&gated, None), Some("missing_confidence"));
        assert_eq!(reason(&gated, Some(0.79)), Some("below_threshold"));
        assert_eq!(reason(&gated, Some(0.8)), None);
        let always = Approval {
            require_approval: true,
            ..gated
        };
        assert_eq!(reason(&always, Some(1.0)), Some("require_approval"));
    }

    #[test]
    fn of_several_branches_the_strictest_bar_counts() {
        let approval = Approval {
            min_confidence: Some(0.5),
            branch_bars: [("drop".to_owned(), 0.9), ("log".to_owned(), 0.1)].into(),
            ..Approval::default()
        };
        assert_eq!(branch_bar(&approval, &json!(["drop", "log"])), Some(0.9));
        assert_eq!(branch_bar(&approval, &json!("log")), Some(0.1));
        assert_eq!(branch_bar(&approval, &json!("other")), Some(0.5));
        assert_eq!(branch_bar(&Approval::default(), &json!("drop")), None);
    }

    #[test]
    fn a_reviewer_sees_how_sure_the_model_was() {
        let details = json!({
            "confidence": {"response": 0.614, "odd": "high"},
            "probabilities": {"response": {"wait": 0.2, "load": 0.8}},
        });
        let said = Confidence::of(details.as_object().unwrap());
        assert_eq!(said.lowest(), Some(0.614));
        assert_eq!(
            said.described("response", Some(0.7)),
            "Confidence: 0.61 (minimum 0.70)\n\nProbabilities: load 0.80, wait 0.20"
        );
        assert_eq!(
            said.described("odd", None),
            "Confidence: not reported by the model"
        );
    }
}
