//! The trait that every toolset implements.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments;
use super::binary_content::ToolOutput;

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of the arguments: an object schema.
    pub parameters: Value,
    /// A sequential tool is a barrier among the parallel calls of one turn.
    pub sequential: bool,
    /// `None`: the run's own budget.
    pub max_retries: Option<u32>,
}

/// How a tool call can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// pydantic-ai's `ModelRetry`: the model sees the text; counts against the tool's retries.
    #[error("{0}")]
    Retry(String),
    /// pydantic-ai's `ToolFailed`: the model sees the text; no counter moves.
    #[error("{0}")]
    Failed(String),
    /// Anything else: the run fails.
    #[error("{0}")]
    Fatal(String),
}

/// Something that offers tools.
#[async_trait]
pub trait Toolset: Send + Sync {
    /// `sql-<conn id>` and the like; used in error messages. Empty for a toolset without one.
    fn id(&self) -> String;

    /// The class name a Dag author knows, e.g. `SQLToolset`.
    fn label(&self) -> &str;

    /// Gets ready for one run: connects, fetches what is to be offered. Called once, before anything else of the
    /// toolset is asked for; [`Self::close`] follows, however this ends.
    ///
    /// # Errors
    /// A toolset that can't be opened fails the run.
    async fn open(&self) -> Result<(), ToolError> {
        Ok(())
    }

    /// What the toolset adds to the system prompt, as a part of its own. Asked for before every request.
    ///
    /// # Errors
    /// The run fails.
    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        Ok(None)
    }

    /// The tools, in the order in which the model is told of them.
    ///
    /// # Errors
    /// A toolset that can't list its tools fails the run.
    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError>;

    /// Reads a call's arguments, before any call of the turn is made. `tool` is one of [`Self::tools`], `raw` what the
    /// model wrote.
    ///
    /// # Errors
    /// What the model is told instead: the call counts against the tool's retries.
    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        arguments::validate(raw, &tool.parameters).map_err(|error| error.0)
    }

    /// Calls a tool with the arguments that [`Self::validate`] made.
    ///
    /// # Errors
    /// See [`ToolError`].
    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError>;

    /// The same for a toolset whose tools give files, and for what wraps one: the agent calls this.
    ///
    /// # Errors
    /// See [`ToolError`].
    async fn call_for_files(
        &self,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<ToolOutput, ToolError> {
        self.call(name, args).await.map(ToolOutput::from)
    }

    /// What a durable run records calls of a tool under, and the name by which the toolset that does the work knows the
    /// tool; `None` for one whose calls are made anew on every attempt.
    fn recorded_as(&self, _name: &str) -> Option<(String, String)> {
        None
    }

    /// Ends connections and child processes. Called once, at the end of the run.
    async fn close(&self) {}
}
