//! `toolset.filtered(function)`: only the tools that a function keeps.

use std::sync::Arc;

use async_trait::async_trait;

use super::wrapper::Wrapper;
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
impl Wrapper for FilteredToolset {
    fn wrapped(&self) -> &dyn Toolset {
        self.wrapped.as_ref()
    }

    async fn offered(&self, tools: Vec<ToolDefinition>) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut kept = Vec::new();
        for tool in tools {
            if self.filter.keeps(&tool).await? {
                kept.push(tool);
            }
        }
        Ok(kept)
    }
}
