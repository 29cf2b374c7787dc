//! The wrapper around each toolset whose calls are steps of durable runs.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::step::current_step;
use crate::agent::{ToolDefinition, ToolError, ToolOutput, Toolset};

/// A toolset whose calls are recorded in durable runs, and replayed there. It belongs right around the toolset that does
/// the work and its masking: what wraps it from outside, such as the log, sees replayed calls like others.
pub struct RecordedToolset {
    wrapped: Arc<dyn Toolset>,
    /// `airflow_toolset__sql-warehouse`
    name: String,
}

impl RecordedToolset {
    /// `kind` is `airflow_toolset` for the provider's own and other classes, else pydantic-ai's word: `function_toolset`,
    /// `dynamic_toolset`, `mcp_server`.
    #[must_use]
    pub fn new(wrapped: Arc<dyn Toolset>, kind: &str) -> Self {
        let id = match wrapped.id() {
            id if id.is_empty() => wrapped.label().to_owned(),
            id => id,
        };
        Self {
            name: format!("{kind}__{id}"),
            wrapped,
        }
    }
}

#[async_trait]
impl Toolset for RecordedToolset {
    fn id(&self) -> String {
        self.wrapped.id()
    }

    fn label(&self) -> &str {
        self.wrapped.label()
    }

    fn recorded_as(&self, name: &str) -> Option<(String, String)> {
        Some((format!("{}.call_tool:{name}", self.name), name.to_owned()))
    }

    async fn open(&self) -> Result<(), ToolError> {
        self.wrapped.open().await
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        self.wrapped.instructions().await
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        self.wrapped.tools().await
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        self.wrapped.validate(tool, raw).await
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        Ok(self.call_for_files(name, args).await?.content)
    }

    async fn call_for_files(
        &self,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<ToolOutput, ToolError> {
        let call = self.wrapped.call_for_files(name, args);
        match current_step() {
            Some(step) => step.run(call).await,
            None => call.await,
        }
    }

    async fn close(&self) {
        self.wrapped.close().await;
    }
}
