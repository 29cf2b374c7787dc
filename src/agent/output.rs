//! What an agent must answer with: text, a call of an output tool, or text that holds JSON.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::arguments::show_input_once;
use super::toolset::ToolDefinition;
use crate::airflow::python_text::{JsonStyle, dumps, repr_str};

/// What pydantic-ai's `output_type` comes to.
#[derive(Clone, Default)]
pub struct OutputSpec {
    /// What text in a response counts for.
    pub text: TextOutput,
    /// One for each type that the answer may have; a valid call of one of them ends the run.
    pub tools: Vec<OutputTool>,
    /// `None` is among the types: a response that says nothing is an answer.
    pub allows_none: bool,
    /// The one schema that text must meet, with `NativeOutput` and `PromptedOutput`.
    pub object: Option<OutputObject>,
    /// Reads what the model gives. Needed for everything but plain text.
    pub validator: Option<Arc<dyn OutputValidator>>,
}

/// What text in a response counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextOutput {
    /// It is the answer (`str`).
    #[default]
    Plain,
    /// It is none: an output tool must be called (`ToolOutput`).
    Refused,
    /// A function makes the answer of it (`TextOutput`).
    Function,
    /// It is one if it is the JSON that was asked for.
    Structured,
}

/// A tool whose valid call ends the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputTool {
    /// `max_retries` is that of `ToolOutput`; without it the run's output retries count.
    pub definition: ToolDefinition,
    /// Whether the provider is to hold the model to the schema. `None`: where the schema allows it.
    pub strict: Option<bool>,
}

/// The schema of an answer that comes as text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputObject {
    pub mode: ObjectMode,
    pub name: Option<String>,
    pub description: Option<String>,
    pub schema: Value,
    /// As [`OutputTool::strict`].
    pub strict: Option<bool>,
    /// What the model is told of the schema, at `{schema}`; `None`: nothing.
    pub template: Option<String>,
}

/// Who sees to it that text is the JSON that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectMode {
    /// The provider (`NativeOutput`).
    Native,
    /// The prompt (`PromptedOutput`).
    Prompted,
}

impl OutputObject {
    /// The instruction that tells the model of `schema`: this object's, as the provider's API wants schemas.
    #[must_use]
    pub fn instructions(&self, schema: &Value) -> Option<String> {
        let template = self.template.as_deref()?;
        let mut schema = schema.as_object().cloned().unwrap_or_default();
        for (key, text) in [("title", &self.name), ("description", &self.description)] {
            if let Some(text) = text {
                schema.insert(key.to_owned(), text.as_str().into());
            }
        }
        let schema = dumps(&Value::Object(schema), JsonStyle::LOOSE);
        Some(if template.contains("{schema}") {
            template.replace("{schema}", &schema)
        } else {
            format!("{template}\n\n{schema}")
        })
    }
}

/// What to do with the function tools that a model calls beside an output tool: pydantic-ai's `end_strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndStrategy {
    /// They are not run when the turn has a valid output.
    Early,
    /// All calls in the order of the model; the first valid output counts, and those after it are not looked at.
    #[default]
    Graceful,
    /// As graceful, but every output is looked at.
    Exhaustive,
}

/// The answer of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    Text(String),
    Validated(ValidOutput),
    /// Python's `None`.
    Nothing,
}

/// A validated answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidOutput {
    /// What the validator made: its caller knows what it is.
    pub value: Value,
    /// As JSON, for spans.
    pub json: Value,
    /// As `repr` shows it, for logs.
    pub repr: String,
}

impl Output {
    /// As `repr` shows it.
    #[must_use]
    pub fn repr(&self) -> String {
        match self {
            Self::Text(text) => repr_str(text),
            Self::Validated(output) => output.repr.clone(),
            Self::Nothing => "None".to_owned(),
        }
    }
}

/// Why an answer was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputError {
    /// It does not validate: error items `{"type", "loc", "msg", "input"}`.
    Invalid(Vec<Value>),
    /// The output's own code asks for another (`ModelRetry`).
    Retry(String),
    /// Validation failed in a way that the model can't put right.
    Fatal(String),
}

impl OutputError {
    /// What the model is told, and the cause under which it is recorded.
    pub(super) fn feedback(self) -> Result<(Value, &'static str), String> {
        match self {
            Self::Invalid(items) => Ok((show_input_once(items), "validation_error")),
            Self::Retry(text) => Ok((Value::String(text), "model_retry")),
            Self::Fatal(text) => Err(text),
        }
    }

    /// Was the text no JSON at all?
    pub(super) fn is_incomplete_json(&self) -> bool {
        match self {
            Self::Invalid(items) => items
                .iter()
                .any(|item| item.get("type") == Some(&json!("json_invalid"))),
            Self::Retry(_) | Self::Fatal(_) => false,
        }
    }
}

/// Reads answers.
#[async_trait]
pub trait OutputValidator: Send + Sync {
    /// Reads the arguments of a call of an output tool, or text (`tool` is `None`).
    ///
    /// # Errors
    /// See [`OutputError`].
    async fn validate(&self, tool: Option<&str>, raw: &str) -> Result<ValidOutput, OutputError>;
}

/// The JSON in what a model wrote: text without the Markdown fence around it. Nothing at all is an empty object.
///
/// # Errors
/// What is wrong with the JSON.
pub fn json_in(raw: &str) -> Result<Cow<'_, str>, OutputError> {
    static FENCE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?s)```(?:\w+)?\r?\n(\{.*?\})\s*(?:\r?\n?```|\z)").ok());
    let text = if raw.starts_with('{') {
        raw
    } else {
        let fenced = FENCE.as_ref().and_then(|fence| fence.captures(raw));
        let inside = fenced.and_then(|captures| captures.get(1));
        inside.map_or(raw, |inside| inside.as_str())
    };
    if text.is_empty() {
        return Ok(Cow::Borrowed("{}"));
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(Cow::Borrowed(text)),
        Err(error) => Err(OutputError::Invalid(vec![Value::Object(Map::from_iter([
            ("type".to_owned(), "json_invalid".into()),
            ("loc".to_owned(), Value::Array(Vec::new())),
            ("msg".to_owned(), format!("Invalid JSON: {error}").into()),
            ("input".to_owned(), text.into()),
        ]))])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn json_is_found_bare_and_in_a_fence_and_nothing_is_an_empty_object() {
        for (raw, inside) in [
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("Here:\n```\n{\"a\": {}}\n```\nDone.", "{\"a\": {}}"),
            ("```json\n{\"a\": 1}", "{\"a\": 1}"),
            ("", "{}"),
            ("[1]", "[1]"),
        ] {
            assert_eq!(json_in(raw).unwrap(), inside, "{raw}");
        }
        let Err(OutputError::Invalid(items)) = json_in("{\"a\": ") else {
            panic!("half an object is no JSON");
        };
        assert_eq!(
            items,
            vec![json!({
                "type": "json_invalid", "loc": [], "input": "{\"a\": ",
                "msg": "Invalid JSON: EOF while parsing a value at line 1 column 6",
            })]
        );
    }

    #[test]
    fn a_template_without_a_place_for_the_schema_has_it_at_its_end() {
        let object = |template: &str| OutputObject {
            mode: ObjectMode::Prompted,
            name: Some("Ship".to_owned()),
            description: None,
            schema: Value::Null,
            strict: None,
            template: Some(template.to_owned()),
        };
        let schema = json!({"type": "object"});
        assert_eq!(
            object("As {schema}!").instructions(&schema).unwrap(),
            "As {\"type\": \"object\", \"title\": \"Ship\"}!"
        );
        assert_eq!(
            object("As JSON.").instructions(&schema).unwrap(),
            "As JSON.\n\n{\"type\": \"object\", \"title\": \"Ship\"}"
        );
    }
}
