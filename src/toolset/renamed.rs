//! `toolset.renamed({"new": "old"})`: some tools under other names.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::wrapper::Wrapper;
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
}

#[async_trait]
impl Wrapper for RenamedToolset {
    fn wrapped(&self) -> &dyn Toolset {
        self.wrapped.as_ref()
    }

    async fn offered(
        &self,
        mut tools: Vec<ToolDefinition>,
    ) -> Result<Vec<ToolDefinition>, ToolError> {
        for tool in &mut tools {
            if let Some((new, _)) = self.names.iter().find(|(_, old)| **old == tool.name) {
                tool.name.clone_from(new);
            }
        }
        Ok(tools)
    }

    fn inner_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.names.get(name).map_or(name, String::as_str)
    }
}
