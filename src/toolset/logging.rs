//! Logs each tool call in the task's log: a foldable group with the call's duration.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agent::{ToolDefinition, ToolError, Toolset};
use crate::airflow::python_text::{JsonStyle, dumps};

/// A toolset whose calls are logged: events with target `airflow.task` and the field `logger`.
pub struct LoggingToolset {
    wrapped: Arc<dyn Toolset>,
    logger: String,
}

impl LoggingToolset {
    /// `logger` is the name under which the task log shows the lines: the operator's.
    #[must_use]
    pub fn new(wrapped: Arc<dyn Toolset>, logger: &str) -> Self {
        Self {
            wrapped,
            logger: logger.to_owned(),
        }
    }
}

/// Closes the log's group even when the call is cancelled, which drops it midway.
struct Group<'a>(Option<&'a str>);

impl Group<'_> {
    fn end(&mut self) {
        if let Some(logger) = self.0.take() {
            tracing::info!(target: "airflow.task", logger, "::endgroup::");
        }
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

#[async_trait]
impl Toolset for LoggingToolset {
    fn id(&self) -> String {
        self.wrapped.id()
    }

    fn label(&self) -> &'static str {
        self.wrapped.label()
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        self.wrapped.tools().await
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let logger = self.logger.as_str();
        tracing::info!(target: "airflow.task", logger, "::group::Tool call: {name}");
        let mut group = Group(Some(logger));
        if !args.is_empty() {
            let text = dumps(&Value::Object(args.clone()), JsonStyle::LOOSE);
            tracing::debug!(target: "airflow.task", logger, "Tool args: {text}");
        }
        let started = Instant::now();
        let result = self.wrapped.call(name, args).await;
        let seconds = started.elapsed().as_secs_f64();
        let requested = |class: &str, text: &str| {
            tracing::info!(
                target: "airflow.task", logger, "Tool {name} requested {class} after {seconds:.2}s: {text}"
            );
        };
        match &result {
            Ok(_) => {
                tracing::info!(target: "airflow.task", logger, "Tool {name} returned in {seconds:.2}s")
            }
            Err(ToolError::Retry(text)) => requested("ModelRetry", text),
            Err(ToolError::Failed(text)) => requested("ToolFailed", text),
            Err(ToolError::Fatal(text)) => {
                group.end();
                tracing::error!(
                    target: "airflow.task", logger, error = text.as_str(), "Tool {name} failed after {seconds:.2}s"
                );
            }
        }
        result
    }

    async fn close(&self) {
        self.wrapped.close().await;
    }
}
