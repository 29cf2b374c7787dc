//! `toolset.filtered(function)`: only the tools that a function keeps.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agent::{ToolDefinition, ToolError, Toolset};

/// Which tools stay. Asked anew for every request.
#[async_trait]
pub trait ToolFilter: Send + Sync {
    /// Does the agent get this tool?
    ///
    /// # Errors
    /// The filter itself failed: the run fails.
    async fn keeps(&self, tool: &ToolDefinition) -> Result<bool, ToolError>;
}

#[async_trait]
impl<F: Fn(&ToolDefinition) -> bool + Send + Sync> ToolFilter for F {
    async fn keeps(&self, tool: &ToolDefinition) -> Result<bool, ToolError> {
        Ok(self(tool))
    }
}

/// A toolset without the tools that a filter leaves out.
pub struct FilteredToolset {
    wrapped: Arc<dyn Toolset>,
    filter: Arc<dyn ToolFilter>,
}

impl FilteredToolset {
    /// Keeps what `filter` keeps.
    #[must_use]
    pub fn new(wrapped: Arc<dyn Toolset>, filter: Arc<dyn ToolFilter>) -> Self {
        Self { wrapped, filter }
    }
}

#[async_trait]
impl Toolset for FilteredToolset {
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
        let mut kept = Vec::new();
        for tool in self.wrapped.tools().await? {
            if self.filter.keeps(&tool).await? {
                kept.push(tool);
            }
        }
        Ok(kept)
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        self.wrapped.validate(tool, raw).await
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        self.wrapped.call(name, args).await
    }

    async fn close(&self) {
        self.wrapped.close().await;
    }
}
