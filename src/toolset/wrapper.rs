//! What wrappers of toolsets have in common: they pass on what they do not change.

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agent::{ToolDefinition, ToolError, ToolOutput, Toolset};

/// A toolset around another. Every method passes on what it is given, unless a wrapper says otherwise.
#[async_trait]
pub trait Wrapper: Send + Sync {
    /// The toolset inside.
    fn wrapped(&self) -> &dyn Toolset;

    /// What of the wrapped toolset's tools is offered, and how.
    ///
    /// # Errors
    /// The run fails.
    async fn offered(&self, tools: Vec<ToolDefinition>) -> Result<Vec<ToolDefinition>, ToolError> {
        Ok(tools)
    }

    /// The wrapped toolset's own name for one of [`Self::offered`].
    fn inner_name<'a>(&'a self, name: &'a str) -> &'a str {
        name
    }

    /// Calls a tool; `name` is the one that is offered.
    ///
    /// # Errors
    /// See [`ToolError`].
    async fn run(&self, name: &str, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        self.wrapped()
            .call_for_files(self.inner_name(name), args)
            .await
    }

    /// An error of the wrapped toolset, as it goes on.
    fn error(&self, error: ToolError) -> ToolError {
        error
    }
}

#[async_trait]
impl<W: Wrapper> Toolset for W {
    fn id(&self) -> String {
        self.wrapped().id()
    }

    fn label(&self) -> &str {
        self.wrapped().label()
    }

    async fn open(&self) -> Result<(), ToolError> {
        let opened = self.wrapped().open().await;
        opened.map_err(|error| self.error(error))
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        let instructions = self.wrapped().instructions().await;
        instructions.map_err(|error| self.error(error))
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let tools = self.wrapped().tools().await;
        self.offered(tools.map_err(|error| self.error(error))?)
            .await
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        let inner = self.inner_name(&tool.name);
        if inner == tool.name {
            return self.wrapped().validate(tool, raw).await;
        }
        let mut tool = tool.clone();
        tool.name = inner.to_owned();
        self.wrapped().validate(&tool, raw).await
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        Ok(self.call_for_files(name, args).await?.content)
    }

    async fn call_for_files(
        &self,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<ToolOutput, ToolError> {
        let called = self.run(name, args).await;
        called.map_err(|error| self.error(error))
    }

    fn recorded_as(&self, name: &str) -> Option<(String, String)> {
        self.wrapped().recorded_as(self.inner_name(name))
    }

    async fn close(&self) {
        self.wrapped().close().await;
    }
}
