//! Masks known secrets in what tools give back, before the model or a log sees it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::wrapper::Wrapper;
use crate::agent::{ToolError, ToolOutput, Toolset};
use crate::secrets::Masker;

/// Where the Python provider masks, and tells of tools that fail.
const LOGGER: &str = "airflow.providers.common.ai.utils.toolset_base";

/// A toolset whose results and error texts hold no known secret. Arguments pass as they are: they came from the model.
///
/// A result that is itself JSON text is masked as text, so a toolset that counts bytes or cuts its output masks its
/// values before it writes them; masking twice changes nothing.
pub struct MaskingToolset {
    wrapped: Arc<dyn Toolset>,
    masker: Masker,
}

impl MaskingToolset {
    /// Masks with everything `masker` knows at the time of a result.
    #[must_use]
    pub fn new(wrapped: Arc<dyn Toolset>, masker: Masker) -> Self {
        Self { wrapped, masker }
    }
}

#[async_trait]
impl Wrapper for MaskingToolset {
    fn wrapped(&self) -> &dyn Toolset {
        self.wrapped.as_ref()
    }

    async fn run(&self, name: &str, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let called = self.wrapped.call_for_files(name, args).await;
        if let Err(ToolError::Fatal(text)) = &called {
            let text = self.masker.mask_str(text);
            tracing::warn!(
                target: "airflow.task", logger = LOGGER, error = text.as_ref(), "Tool {name} failed"
            );
        }
        // Files pass as they are: what a masker puts into one would break it.
        called.map(|output| ToolOutput {
            content: self.masker.mask_value(output.content),
            ..output
        })
    }

    fn error(&self, error: ToolError) -> ToolError {
        let mask = |text: String| self.masker.mask_str(&text).into_owned();
        match error {
            ToolError::Retry(text) => ToolError::Retry(mask(text)),
            ToolError::Failed(text) => ToolError::Failed(mask(text)),
            ToolError::Fatal(text) => ToolError::Fatal(mask(text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::ToolDefinition;

    struct Leaky;

    #[async_trait]
    impl Toolset for Leaky {
        fn id(&self) -> String {
            "leaky".to_owned()
        }

        fn label(&self) -> &'static str {
            "Leaky"
        }

        async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
            Err(ToolError::Fatal("no tools for made-up-secret".to_owned()))
        }

        async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
            match name {
                "retry" => Err(ToolError::Retry("bad made-up-secret".to_owned())),
                "fatal" => Err(ToolError::Fatal("broken made-up-secret".to_owned())),
                _ => Ok(json!({"made-up-secret": ["x made-up-secret y", 1], "args": args})),
            }
        }
    }

    #[tokio::test]
    async fn results_and_errors_hold_no_secret_that_the_masker_knows() {
        let masker = Masker::new();
        let toolset = MaskingToolset::new(Arc::new(Leaky), masker.clone());
        let call = |name: &'static str| toolset.call(name, Map::new());
        assert_eq!(
            call("ok").await.unwrap(),
            json!({"made-up-secret": ["x made-up-secret y", 1], "args": {}})
        );
        masker.add_secret("made-up-secret");
        assert_eq!(
            call("ok").await.unwrap(),
            json!({"***": ["x *** y", 1], "args": {}})
        );
        assert!(matches!(call("retry").await, Err(ToolError::Retry(text)) if text == "bad ***"));
        assert!(matches!(call("fatal").await, Err(ToolError::Fatal(text)) if text == "broken ***"));
        assert!(
            matches!(toolset.tools().await, Err(ToolError::Fatal(text)) if text == "no tools for ***")
        );
    }
}
