//! Output types of a Dag file: described and validated by its interpreter.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::failure::Failure;
use crate::agent::ToolDefinition;
use crate::agent::output::{
    ObjectMode, OutputError, OutputObject, OutputSpec, OutputTool, OutputValidator, TextOutput,
    ValidOutput, json_in,
};
use crate::dag::Interpreter;
use crate::dag::definitions::Handle;

/// An output type in the interpreter.
pub(super) struct PythonOutput {
    interpreter: Arc<Interpreter>,
    context: Value,
    handle: Handle,
    serialize: bool,
    /// Is text read by a function, as it is?
    reads_text: bool,
}

impl PythonOutput {
    /// `context` is Airflow's, for `get_current_context()`; with `serialize` (`serialize_output`) models become dicts.
    pub(super) fn new(
        interpreter: Arc<Interpreter>,
        context: Value,
        handle: Handle,
        serialize: bool,
    ) -> Self {
        Self {
            interpreter,
            context,
            handle,
            serialize,
            reads_text: false,
        }
    }

    /// What an agent is to be told of it. `known` are arguments of the task that it depends on, beside its object.
    ///
    /// # Errors
    /// A type that no answer can have.
    pub(super) async fn spec(mut self, known: &Value) -> Result<OutputSpec, Failure> {
        let described = self
            .interpreter
            .output(self.handle, "describe", known, &self.context)
            .await
            .map_err(|error| Failure::of_python(&error))?;
        let mut spec = read_spec(&described).ok_or_else(|| {
            Failure::new(
                "RuntimeError",
                "the stand-in modules describe the output type in a way that can't be read",
            )
        })?;
        self.reads_text = spec.text == TextOutput::Function;
        spec.validator = Some(Arc::new(self));
        Ok(spec)
    }
}

fn read_spec(described: &Value) -> Option<OutputSpec> {
    let text = |value: &Value, key: &str| {
        value
            .get(key)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let strict = |value: &Value| value.get("strict").and_then(Value::as_bool);
    let tools = described.get("tools")?.as_array()?.iter().map(|tool| {
        let retries = tool.get("max_retries").and_then(Value::as_u64);
        Some(OutputTool {
            definition: ToolDefinition {
                name: text(tool, "name")?,
                description: text(tool, "description"),
                parameters: tool.get("schema")?.clone(),
                sequential: tool.get("sequential").and_then(Value::as_bool)?,
                max_retries: retries.and_then(|retries| u32::try_from(retries).ok()),
            },
            strict: strict(tool),
        })
    });
    let object = match described.get("object")? {
        Value::Null => None,
        object => Some(OutputObject {
            mode: match object.get("mode")?.as_str()? {
                "native" => ObjectMode::Native,
                _ => ObjectMode::Prompted,
            },
            name: text(object, "name"),
            description: text(object, "description"),
            schema: object.get("schema")?.clone(),
            strict: strict(object),
            template: text(object, "template"),
        }),
    };
    Some(OutputSpec {
        text: match described.get("text")?.as_str()? {
            "plain" => TextOutput::Plain,
            "function" => TextOutput::Function,
            "structured" => TextOutput::Structured,
            _ => TextOutput::Refused,
        },
        tools: tools.collect::<Option<_>>()?,
        allows_none: described.get("allows_none")?.as_bool()?,
        object,
        validator: None,
    })
}

#[async_trait]
impl OutputValidator for PythonOutput {
    async fn validate(&self, tool: Option<&str>, raw: &str) -> Result<ValidOutput, OutputError> {
        let text = if tool.is_none() && self.reads_text {
            raw.into()
        } else {
            json_in(raw)?
        };
        let payload = json!({ "tool": tool, "text": text, "serialize": self.serialize });
        let mut answer = self
            .interpreter
            .output(self.handle, "validate", &payload, &self.context)
            .await
            .map_err(|error| OutputError::Fatal(error.message))?;
        if let Some(Value::String(text)) = answer.get("retry") {
            return Err(OutputError::Retry(text.clone()));
        }
        if let Some(Value::Array(items)) = answer.get_mut("errors") {
            return Err(OutputError::Invalid(std::mem::take(items)));
        }
        let Some(mut kept) = answer.get_mut("ok").map(Value::take) else {
            return Err(OutputError::Fatal(
                "the stand-in modules gave an answer that can't be read".to_owned(),
            ));
        };
        let mut take = |key: &str| kept.get_mut(key).map(Value::take).unwrap_or_default();
        Ok(ValidOutput {
            json: take("json"),
            repr: take("repr").as_str().unwrap_or_default().to_owned(),
            value: kept,
        })
    }
}

/// The XCom of an answer that was validated here.
///
/// # Errors
/// Airflow has no XCom for it.
pub(super) fn xcom(kept: &Value) -> Result<Value, Failure> {
    match (kept.get("unserializable"), kept.get("class")) {
        (Some(Value::String(text)), Some(Value::String(class))) => Err(Failure::new(class, text)),
        _ => Ok(kept.get("xcom").cloned().unwrap_or_default()),
    }
}
