//! `CombinedToolset([a, b])`: several toolsets as one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agent::{ToolDefinition, ToolError, ToolOutput, Toolset};
use crate::airflow::python_text::repr_str;

/// Several toolsets as one. Two tools of one name are refused.
pub struct CombinedToolset {
    toolsets: Vec<Arc<dyn Toolset>>,
    /// Which toolset has a tool: of the last listing.
    owners: Mutex<HashMap<String, usize>>,
}

impl CombinedToolset {
    /// The tools of all of them, in their order.
    #[must_use]
    pub fn new(toolsets: Vec<Arc<dyn Toolset>>) -> Self {
        Self {
            toolsets,
            owners: Mutex::default(),
        }
    }

    fn owner(&self, name: &str) -> Result<&Arc<dyn Toolset>, ToolError> {
        let index = self
            .owners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .copied();
        index
            .and_then(|index| self.toolsets.get(index))
            .ok_or_else(|| ToolError::Fatal(format!("Unknown tool: {}", repr_str(name))))
    }
}

#[async_trait]
impl Toolset for CombinedToolset {
    fn id(&self) -> String {
        String::new()
    }

    fn label(&self) -> &str {
        "CombinedToolset"
    }

    async fn open(&self) -> Result<(), ToolError> {
        for toolset in &self.toolsets {
            toolset.open().await?;
        }
        Ok(())
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        let mut parts = Vec::new();
        for toolset in &self.toolsets {
            parts.extend(toolset.instructions().await?);
        }
        Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut all = Vec::new();
        let mut owners: HashMap<String, usize> = HashMap::new();
        for (index, toolset) in self.toolsets.iter().enumerate() {
            for tool in toolset.tools().await? {
                if let Some(other) = owners.insert(tool.name.clone(), index) {
                    let label = |index: usize| match self.toolsets.get(index) {
                        Some(toolset) if toolset.id().is_empty() => toolset.label().to_owned(),
                        Some(toolset) => format!("{} {}", toolset.label(), repr_str(&toolset.id())),
                        None => String::new(),
                    };
                    return Err(ToolError::Fatal(format!(
                        "{} defines a tool whose name conflicts with existing tool from {}: {}. Rename the tool or \
                         wrap the toolset in a `PrefixedToolset` to avoid name conflicts.",
                        label(index),
                        label(other),
                        repr_str(&tool.name)
                    )));
                }
                all.push(tool);
            }
        }
        *self.owners.lock().unwrap_or_else(PoisonError::into_inner) = owners;
        Ok(all)
    }

    async fn validate(
        &self,
        tool: &ToolDefinition,
        raw: &str,
    ) -> Result<Map<String, Value>, Value> {
        match self.owner(&tool.name) {
            Ok(toolset) => toolset.validate(tool, raw).await,
            Err(error) => Err(error.to_string().into()),
        }
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        Ok(self.call_for_files(name, args).await?.content)
    }

    async fn call_for_files(
        &self,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<ToolOutput, ToolError> {
        self.owner(name)?.call_for_files(name, args).await
    }

    fn recorded_as(&self, name: &str) -> Option<(String, String)> {
        self.owner(name).ok()?.recorded_as(name)
    }

    async fn close(&self) {
        futures::future::join_all(self.toolsets.iter().map(|toolset| toolset.close())).await;
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::toolset::filtered::FilteredToolset;
    use crate::toolset::prefixed::PrefixedToolset;
    use crate::toolset::renamed::RenamedToolset;

    /// Two tools that say who they are.
    struct Letters(&'static str);

    #[async_trait]
    impl Toolset for Letters {
        fn id(&self) -> String {
            self.0.to_owned()
        }

        fn label(&self) -> &str {
            "Letters"
        }

        async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
            let tool = |name: &str| ToolDefinition {
                name: name.to_owned(),
                description: None,
                parameters: json!({"type": "object", "properties": {}}),
                sequential: false,
                max_retries: None,
            };
            Ok(vec![tool("a"), tool("b")])
        }

        async fn call(&self, name: &str, _: Map<String, Value>) -> Result<Value, ToolError> {
            Ok(format!("{} {name}", self.0).into())
        }
    }

    async fn names(toolset: &dyn Toolset) -> Vec<String> {
        let tools = toolset.tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name).collect()
    }

    #[tokio::test]
    async fn a_call_reaches_its_tool_through_every_wrapper() {
        let one: Arc<dyn Toolset> = Arc::new(Letters("one"));
        let renamed =
            RenamedToolset::new(one, HashMap::from([("first".to_owned(), "a".to_owned())]));
        let two: Arc<dyn Toolset> = Arc::new(PrefixedToolset::new(Arc::new(Letters("two")), "x"));
        let without_b = |tool: &ToolDefinition| tool.name != "x_b";
        let filtered = FilteredToolset::new(two, Arc::new(without_b));
        let both = CombinedToolset::new(vec![Arc::new(renamed), Arc::new(filtered)]);
        assert_eq!(names(&both).await, ["first", "b", "x_a"]);
        for (name, answer) in [("first", "one a"), ("b", "one b"), ("x_a", "two a")] {
            assert_eq!(both.call(name, Map::new()).await.unwrap(), json!(answer));
        }
        assert!(both.call("a", Map::new()).await.is_err());
    }

    #[tokio::test]
    async fn two_tools_of_one_name_are_refused() {
        let both = CombinedToolset::new(vec![Arc::new(Letters("one")), Arc::new(Letters("two"))]);
        let error = both.tools().await.unwrap_err().to_string();
        assert!(
            error.starts_with(
                "Letters 'two' defines a tool whose name conflicts with existing tool from Letters 'one': 'a'."
            ),
            "{error}"
        );
    }
}
