//! Logs each tool call in the task's log: a foldable group with the call's duration.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::wrapper::Wrapper;
use crate::agent::{ToolError, ToolOutput, Toolset};
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
impl Wrapper for LoggingToolset {
    fn wrapped(&self) -> &dyn Toolset {
        self.wrapped.as_ref()
    }

    async fn run(&self, name: &str, args: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let logger = self.logger.as_str();
        tracing::info!(target: "airflow.task", logger, "::group::Tool call: {name}");
        let mut group = Group(Some(logger));
        if !args.is_empty() {
            let text = dumps(&Value::Object(args.clone()), JsonStyle::LOOSE);
            tracing::debug!(target: "airflow.task", logger, "Tool args: {text}");
        }
        let started = Instant::now();
        let result = self.wrapped.call_for_files(name, args).await;
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
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::sync::Mutex;
    use std::time::Duration;

    use pretty_assertions::assert_eq;
    use serde_json::json;
    use tracing::field::{Field, Visit};
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    use super::*;
    use crate::agent::ToolDefinition;

    /// Keeps the lines of the task log.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    struct Message(String);

    impl Visit for Message {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            if field.name() == "message" {
                let _ = write!(self.0, "{value:?}");
            }
        }
    }

    impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Lines {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            if event.metadata().target() == "airflow.task" {
                let mut message = Message(format!("{} ", event.metadata().level()));
                event.record(&mut message);
                self.0.lock().unwrap().push(message.0);
            }
        }
    }

    struct Obedient;

    #[async_trait]
    impl Toolset for Obedient {
        fn id(&self) -> String {
            "obedient".to_owned()
        }

        fn label(&self) -> &'static str {
            "Obedient"
        }

        async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
            Ok(Vec::new())
        }

        async fn call(&self, name: &str, _: Map<String, Value>) -> Result<Value, ToolError> {
            match name {
                "retry" => Err(ToolError::Retry("try again".to_owned())),
                "failed" => Err(ToolError::Failed("no".to_owned())),
                "fatal" => Err(ToolError::Fatal("broken".to_owned())),
                "hang" => std::future::pending().await,
                _ => Ok(Value::Null),
            }
        }
    }

    /// The lines of one call.
    async fn lines(name: &str, args: Value) -> Vec<String> {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::registry().with(lines.clone());
        let _guard = tracing::subscriber::set_default(subscriber);
        let toolset = LoggingToolset::new(Arc::new(Obedient), "operator");
        let Value::Object(args) = args else {
            panic!("arguments are an object")
        };
        let _ = tokio::time::timeout(Duration::from_millis(20), toolset.call(name, args)).await;
        lines.0.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn a_call_is_a_group_with_its_arguments_and_its_duration() {
        assert_eq!(
            lines("query", json!({"sql": "é"})).await,
            [
                "INFO ::group::Tool call: query",
                "DEBUG Tool args: {\"sql\": \"\\u00e9\"}",
                "INFO Tool query returned in 0.00s",
                "INFO ::endgroup::",
            ]
        );
    }

    #[tokio::test]
    async fn each_kind_of_failure_has_its_line() {
        assert_eq!(
            lines("retry", json!({})).await[1],
            "INFO Tool retry requested ModelRetry after 0.00s: try again"
        );
        assert_eq!(
            lines("failed", json!({})).await[1],
            "INFO Tool failed requested ToolFailed after 0.00s: no"
        );
        assert_eq!(
            lines("fatal", json!({})).await[1..],
            ["INFO ::endgroup::", "ERROR Tool fatal failed after 0.00s"]
        );
    }

    #[tokio::test]
    async fn a_cancelled_call_closes_its_group() {
        assert_eq!(
            lines("hang", json!({})).await,
            ["INFO ::group::Tool call: hang", "INFO ::endgroup::"]
        );
    }
}
