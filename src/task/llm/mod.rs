//! `LLMOperator` and the operators that derive from it: what they do before and after the one question to a model.
//!
//! | file | what it does |
//! |---|---|
//! | `approval` | answers that wait for a person |
//! | `decision` | what becomes of the answer to `LLMOperator` and `LLMBranchOperator` |
//! | `files` | the files that `LLMFileAnalysisOperator` sends along |
//! | `schema` | the schemas that `LLMSchemaCompareOperator` compares |
//! | `sql` | the schema that `LLMSQLQueryOperator` shows, and the check of the query that comes back |

mod approval;
mod decision;
mod files;
mod schema;
mod sql;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::approval::Review;
use super::agent_task::prompt;
use super::attempt::{Attempt, Rendered};
use super::dag_code;
use super::failure::Failure;
use super::loggers;
use crate::agent::message::{Message, UserContent};
use crate::agent::pydantic_json::compact_json;
use crate::agent::{Output, RunOutcome};
use crate::dag::definitions::{LlmQuestion, QuestionKind};

/// What the model is asked.
pub(super) struct Prepared {
    pub instructions: String,
    pub prompt: UserContent,
}

impl Prepared {
    /// The operator's own arguments, as they are.
    ///
    /// # Errors
    /// They are of the wrong kind.
    pub(super) fn plain(rendered: &Rendered) -> Result<Self, Failure> {
        Ok(Self {
            instructions: rendered.text("system_prompt")?.unwrap_or_default(),
            prompt: prompt(rendered.field("prompt"))?,
        })
    }
}

pub(super) fn logger(question: &LlmQuestion) -> &'static str {
    match question.kind {
        QuestionKind::Plain => loggers::LLM,
        QuestionKind::Branch => loggers::LLM_BRANCH,
        QuestionKind::Sql(_) => loggers::LLM_SQL,
        QuestionKind::FileAnalysis(_) => loggers::LLM_FILES,
        QuestionKind::SchemaCompare(_) => loggers::LLM_SCHEMA,
    }
}

/// Gathers what the model is told.
///
/// # Errors
/// An argument that is wrong, or a source that can't be described.
pub(super) async fn prepare(
    attempt: &Attempt,
    question: &LlmQuestion,
    rendered: &Rendered,
) -> Result<Prepared, Failure> {
    if question.approval.may_review() {
        approval::check_prompt(attempt, rendered)?;
    }
    match &question.kind {
        QuestionKind::Plain | QuestionKind::Branch => Prepared::plain(rendered),
        QuestionKind::Sql(kind) => sql::prepare(attempt, kind, rendered).await,
        QuestionKind::FileAnalysis(kind) => files::prepare(attempt, kind, rendered).await,
        QuestionKind::SchemaCompare(kind) => schema::prepare(attempt, kind, rendered).await,
    }
}

/// What came of the question.
pub(super) struct Answered<'a> {
    pub outcome: &'a RunOutcome,
    pub output: &'a Output,
    /// In XCom wire form; null where there is none.
    pub xcom: &'a Value,
}

impl Answered<'_> {
    fn model_name(&self) -> Option<&str> {
        self.outcome.model_name.as_deref()
    }

    /// What the provider said of the last response beyond the common fields.
    fn details(&self) -> Map<String, Value> {
        let responses = self.outcome.messages.iter().rev();
        let mut responses = responses.filter_map(|message| match message {
            Message::Response(response) => Some(response.provider_details.clone()),
            Message::Request(_) => None,
        });
        responses.next().unwrap_or_default()
    }

    /// As a person sees and edits it: text as it is, other values as JSON.
    fn text(&self) -> String {
        match self.output {
            Output::Text(text) => text.clone(),
            Output::Nothing => "null".to_owned(),
            Output::Validated(answer) => match &answer.json {
                Value::String(text) => text.clone(),
                other => compact_json(other),
            },
        }
    }
}

/// Looks at the answer, and tells Airflow of it. Gives the task's result where it is another.
///
/// # Errors
/// The answer is refused, an XCom could not be pushed, or the answer waits for a person.
pub(super) async fn settle(
    attempt: &Attempt,
    question: &LlmQuestion,
    rendered: &Rendered,
    answered: &Answered<'_>,
) -> Result<Option<Value>, Failure> {
    let approval = &question.approval;
    let mut result = None;
    let mut body = None;
    match &question.kind {
        QuestionKind::Plain | QuestionKind::Branch => {
            decision::settle(attempt, question, rendered, answered).await?;
            return Ok(None);
        }
        QuestionKind::Sql(kind) => {
            let query = sql::settle(attempt, kind, rendered, answered.xcom).await?;
            result = Some(Value::from(query));
        }
        QuestionKind::FileAnalysis(_) => {}
        QuestionKind::SchemaCompare(_) => {
            schema::say_result(answered.xcom);
            body = Some(schema::review_body(rendered, answered.xcom));
        }
    }
    if !approval.require_approval {
        return Ok(result);
    }
    let generated = match &result {
        Some(Value::String(query)) => query.clone(),
        _ => answered.text(),
    };
    let review = Review {
        generated,
        body,
        editable: None,
        decision: None,
    };
    Err(approval::open(attempt, approval, rendered, review).await?)
}

/// Goes on when a person has answered, or the time for it is over.
///
/// # Errors
/// What the operator makes of it: a refusal, an edit that does not fit; `DownstreamTasksSkipped` for a branch.
pub(super) async fn resume(
    attempt: &Attempt,
    question: &LlmQuestion,
    rendered: &Rendered,
    method: &str,
) -> Result<Value, Failure> {
    let kwargs = attempt.details.ti_context.next_kwargs.clone();
    let kwargs = kwargs.unwrap_or_default();
    let result = dag_code::resume(attempt, rendered, method, &kwargs).await?;
    if let QuestionKind::Sql(kind) = &question.kind
        && Some(&result) != kwargs.get("generated_output")
    {
        sql::check_edited(attempt, kind, rendered, &result).await?;
    }
    Ok(result)
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
    if question.is_branch() {
        dag_code::branch(attempt, rendered, &answer).await
    } else {
        Ok(answer)
    }
}

/// An operator's settings with those that this map index has of its own.
///
/// # Errors
/// One of them is of the wrong kind.
fn with_mapped<T: Serialize + DeserializeOwned>(
    settings: &T,
    mapped: &Map<String, Value>,
) -> Result<T, Failure> {
    let wrong = |error| Failure::of("TypeError", &error);
    let mut settings = serde_json::to_value(settings).map_err(wrong)?;
    for (name, setting) in settings.as_object_mut().into_iter().flatten() {
        if let Some(value) = mapped.get(name) {
            setting.clone_from(value);
        }
    }
    serde_json::from_value(settings).map_err(wrong)
}

/// `json.dumps(value, indent=2)`, or pydantic's with what is not ASCII as it is.
fn indented(value: &Value, is_ascii: bool) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    if !is_ascii || text.is_ascii() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// A field that is a list of texts, or `None` (an empty list).
///
/// # Errors
/// It is something else.
fn texts(rendered: &Rendered, name: &str) -> Result<Vec<String>, Failure> {
    let value = rendered.field(name);
    let items = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(tuple) => tuple.get("__data__").and_then(Value::as_array),
        other => other.as_array(),
    };
    let texts = items.and_then(|items| {
        let texts = items
            .iter()
            .map(|item| item.as_str().map(ToOwned::to_owned));
        texts.collect::<Option<Vec<_>>>()
    });
    texts.ok_or_else(|| {
        let shown = super::arguments::python_repr(value);
        let text = format!("{name} must be a list of texts, and is {shown}");
        Failure::new("TypeError", text)
    })
}
