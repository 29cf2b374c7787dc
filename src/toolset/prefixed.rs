//! `toolset.prefixed("x")`: the same tools under names that begin with `x_`.

use std::sync::Arc;

use async_trait::async_trait;

use super::wrapper::Wrapper;
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
impl Wrapper for PrefixedToolset {
    fn wrapped(&self) -> &dyn Toolset {
        self.wrapped.as_ref()
    }

    async fn offered(
        &self,
        mut tools: Vec<ToolDefinition>,
    ) -> Result<Vec<ToolDefinition>, ToolError> {
        for tool in &mut tools {
            tool.name.insert_str(0, &self.prefix);
        }
        Ok(tools)
    }

    fn inner_name<'a>(&'a self, name: &'a str) -> &'a str {
        name.strip_prefix(&self.prefix).unwrap_or(name)
    }
}
