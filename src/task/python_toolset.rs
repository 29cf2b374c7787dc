//! Toolsets of a Dag file that run in its interpreter: functions, methods of hooks, classes that the Dag derives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::kept_files::KeptFiles;
use crate::agent::durable::current_step;
use crate::agent::{ToolDefinition, ToolError, ToolOutput, Toolset, arguments};
use crate::dag::definitions::Handle;
use crate::dag::{Interpreter, PythonError};
use crate::toolset::filtered::ToolFilter;

/// What every question to the interpreter needs.
#[derive(Clone)]
pub(super) struct PythonSide {
    pub interpreter: Arc<Interpreter>,
    /// Airflow's context, for `get_current_context()`.
    pub context: Arc<Value>,
    pub run_id: String,
    /// The run's budget, for tools that have none of their own.
    pub max_retries: u32,
    /// What tools of the worker gave to Dag code, which names it in what it gives back.
    pub files: Arc<KeptFiles>,
}

impl PythonSide {
    async fn ask(
        &self,
        handle: Handle,
        operation: &str,
        mut payload: Map<String, Value>,
    ) -> Result<Value, PythonError> {
        payload.insert("run_id".to_owned(), self.run_id.as_str().into());
        payload.insert("max_retries".to_owned(), self.max_retries.into());
        self.interpreter
            .toolset(handle, operation, &Value::Object(payload), &self.context)
            .await
    }
}

fn fatal(error: &PythonError) -> ToolError {
    ToolError::Fatal(error.message.clone())
}

fn malformed(what: &str) -> ToolError {
    ToolError::Fatal(format!(
        "the stand-in modules gave {what} that can't be read"
    ))
}

/// A toolset in the interpreter.
pub(super) struct PythonToolset {
    pub side: PythonSide,
    pub handle: Handle,
    pub class: String,
    pub id: Option<String>,
    /// Fields that were templates, rendered.
    pub fields: Map<String, Value>,
    pub checks: Mutex<HashMap<String, Check>>,
}

/// How the arguments of a tool are checked.
#[derive(Clone, Default)]
pub(super) struct Check {
    /// By this schema, here.
    accepts: Option<Value>,
    /// By Dag code as well.
    in_python: bool,
}

impl PythonToolset {
    fn read(&self, tool: &mut Value) -> Result<(ToolDefinition, Check), ToolError> {
        let text = |value: &Value, key: &str| {
            value
                .get(key)
                .and_then(Value::as_str)
                .map(ToOwned::to_owned)
        };
        let name = text(tool, "name").ok_or_else(|| malformed("a tool"))?;
        let retries = tool.get("max_retries").and_then(Value::as_u64);
        let check = Check {
            accepts: tool
                .get_mut("accepts")
                .map(Value::take)
                .filter(Value::is_object),
            in_python: tool.get("check").and_then(Value::as_bool).unwrap_or(false),
        };
        let definition = ToolDefinition {
            name,
            description: text(tool, "description"),
            parameters: tool
                .get_mut("parameters")
                .map(Value::take)
                .unwrap_or_default(),
            sequential: tool
                .get("sequential")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            max_retries: retries.and_then(|retries| u32::try_from(retries).ok()),
        };
        Ok((definition, check))
    }
}

#[async_trait]
impl Toolset for PythonToolset {
    fn id(&self) -> String {
        self.id.clone().unwrap_or_default()
    }

    fn label(&self) -> &str {
        &self.class
    }

    async fn open(&self) -> Result<(), ToolError> {
        let payload = Map::from_iter([("fields".to_owned(), Value::Object(self.fields.clone()))]);
        let opened = self.side.ask(self.handle, "open", payload).await;
        opened.map(drop).map_err(|error| fatal(&error))
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        let parts = self
            .side
            .ask(self.handle, "instructions", Map::new())
            .await
            .map_err(|error| fatal(&error))?;
        let parts: Vec<&str> = parts
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let listed = self
            .side
            .ask(self.handle, "tools", Map::new())
            .await
            .map_err(|error| fatal(&error))?;
        let Value::Array(mut tools) = listed else {
            return Err(malformed("tools"));
        };
        let mut definitions = Vec::new();
        let mut checks = HashMap::new();
        for tool in &mut tools {
            let (definition, check) = self.read(tool)?;
            checks.insert(definition.name.clone(), check);
            definitions.push(definition);
        }
        *self.checks.lock().unwrap_or_else(PoisonError::into_inner) = checks;
        Ok(definitions)
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        let check = self
            .checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&tool.name)
            .cloned()
            .unwrap_or_default();
        // Without a schema only its form is checked here: a JSON object.
        let anything = json!({"type": "object", "properties": {}, "additionalProperties": true});
        let schema = check.accepts.as_ref().unwrap_or(&anything);
        let args = arguments::validate(raw, schema).map_err(|error| error.0)?;
        if !check.in_python {
            return Ok(args);
        }
        let payload = Map::from_iter([
            ("name".to_owned(), tool.name.as_str().into()),
            ("args".to_owned(), Value::Object(args.clone())),
        ]);
        let mut answer = self
            .side
            .ask(self.handle, "check", payload)
            .await
            .map_err(|error| Value::String(error.message))?;
        if let Some(refusal) = answer.get_mut("retry") {
            return Err(refusal.take());
        }
        if let Some(Value::Array(items)) = answer.get_mut("errors") {
            return Err(arguments::show_input_once(std::mem::take(items)));
        }
        Ok(args)
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        Ok(self.call_for_files(name, args).await?.content)
    }

    async fn call_for_files(
        &self,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<ToolOutput, ToolError> {
        let mut payload = Map::from_iter([
            ("name".to_owned(), name.into()),
            ("args".to_owned(), Value::Object(args)),
        ]);
        let step = current_step();
        if let Some(step) = &step {
            payload.insert("step".to_owned(), step.place().into());
        }
        let mut answer = self
            .side
            .ask(self.handle, "call", payload)
            .await
            .map_err(|error| fatal(&error))?;
        if let (Some(step), Some(why)) = (step, answer.get("not_json").and_then(Value::as_str)) {
            step.refuse_result(why);
            return Err(ToolError::Fatal(why.to_owned()));
        }
        let text = |answer: &Value, key: &str| match answer.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(super::arguments::python_repr(other)),
            None => None,
        };
        if let Some(text) = text(&answer, "retry") {
            return Err(ToolError::Retry(text));
        }
        if let Some(text) = text(&answer, "failed") {
            return Err(ToolError::Failed(text));
        }
        let content = answer
            .get_mut("value")
            .map(Value::take)
            .ok_or_else(|| malformed("a result"))?;
        let files = self.side.files.named_in(&content);
        Ok(ToolOutput { content, files })
    }

    async fn close(&self) {
        if let Err(error) = self.side.ask(self.handle, "close", Map::new()).await {
            tracing::warn!("{} did not close: {}", self.class, error.message);
        }
    }
}

/// A filter function of the Dag file.
pub(super) struct PythonFilter {
    pub side: PythonSide,
    pub function: Handle,
}

#[async_trait]
impl ToolFilter for PythonFilter {
    async fn keeps(&self, tool: &ToolDefinition) -> Result<bool, ToolError> {
        let payload = Map::from_iter([("tool".to_owned(), describe(tool))]);
        let kept = self
            .side
            .ask(self.function, "keeps", payload)
            .await
            .map_err(|error| fatal(&error))?;
        Ok(kept == Value::Bool(true))
    }
}

/// A tool as Dag code is told of it.
pub(super) fn describe(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "sequential": tool.sequential,
        "max_retries": tool.max_retries,
    })
}
