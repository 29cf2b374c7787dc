//! `toolset.renamed({"new": "old"})`: some tools under other names.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agent::{ToolDefinition, ToolError, Toolset};

/// A toolset in which some tools have other names.
pub struct RenamedToolset {
    wrapped: Arc<dyn Toolset>,
    /// New names to old ones.
    names: HashMap<String, String>,
}

impl RenamedToolset {
    /// `names` maps new names to old ones, as the Dag author gives them.
    #[must_use]
    pub fn new(wrapped: Arc<dyn Toolset>, names: HashMap<String, String>) -> Self {
        Self { wrapped, names }
    }

    fn old<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }
}

#[async_trait]
impl Toolset for RenamedToolset {
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
            if let Some((new, _)) = self.names.iter().find(|(_, old)| **old == tool.name) {
                tool.name.clone_from(new);
            }
        }
        Ok(tools)
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        let mut tool = tool.clone();
        tool.name = self.old(&tool.name).to_owned();
        self.wrapped.validate(&tool, raw).await
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        self.wrapped.call(self.old(name), args).await
    }

    async fn close(&self) {
        self.wrapped.close().await;
    }
}
