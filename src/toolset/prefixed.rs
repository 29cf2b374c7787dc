//! `toolset.prefixed("x")`: the same tools under names that begin with `x_`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agent::{ToolDefinition, ToolError, Toolset};

/// A toolset whose tools are called `<prefix>_<name>`.
pub struct PrefixedToolset {
    wrapped: Arc<dyn Toolset>,
    /// With the underscore.
    prefix: String,
}

impl PrefixedToolset {
    /// `prefix` as the Dag author gives it, without the underscore.
    #[must_use]
    pub fn new(wrapped: Arc<dyn Toolset>, prefix: &str) -> Self {
        Self {
            wrapped,
            prefix: format!("{prefix}_"),
        }
    }
}

#[async_trait]
impl Toolset for PrefixedToolset {
    fn id(&self) -> String {
        self.wrapped.id()
    }

    fn label(&self) -> &str {
        self.wrapped.label()
    }

    async fn open(&self) -> Result<(), ToolError> {
        self.wrapped.open().await
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        self.wrapped.instructions().await
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut tools = self.wrapped.tools().await?;
        for tool in &mut tools {
            tool.name.insert_str(0, &self.prefix);
        }
        Ok(tools)
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        let mut tool = tool.clone();
        if let Some(name) = tool.name.strip_prefix(&self.prefix) {
            tool.name = name.to_owned();
        }
        self.wrapped.validate(&tool, raw).await
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        match name.strip_prefix(&self.prefix) {
            Some(name) => self.wrapped.call(name, args).await,
            None => Err(ToolError::Fatal(format!(
                "{} has no tool {name:?}",
                self.id()
            ))),
        }
    }

    async fn close(&self) {
        self.wrapped.close().await;
    }
}
