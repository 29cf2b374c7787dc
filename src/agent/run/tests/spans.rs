//! The spans of a run.

use pretty_assertions::assert_eq;

use super::*;

/// Keeps the spans that end.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<opentelemetry_sdk::trace::SpanData>>>);

impl opentelemetry_sdk::trace::SpanExporter for Kept {
    async fn export(
        &self,
        batch: Vec<opentelemetry_sdk::trace::SpanData>,
    ) -> opentelemetry_sdk::error::OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

#[tokio::test]
async fn spans_nest_under_the_run_and_hold_no_content_unless_asked() {
    use opentelemetry::global::BoxedTracer;
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry::{Context, KeyValue};
    use opentelemetry_sdk::trace::SdkTracerProvider;

    let exporter = Kept::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let telemetry = Telemetry {
        tracer: Arc::new(BoxedTracer::new(Box::new(provider.tracer("pydantic-ai")))),
        meters: crate::agent::metrics::Meters::global(
            opentelemetry::InstrumentationScope::builder("pydantic-ai").build(),
        ),
        parent: Context::new(),
        identity: vec![KeyValue::new("airflow.task_id", "ask")],
        capture_content: false,
    };
    let model = Playback::new(vec![
        calls("a", &[("work", &how("well")), ("work", &how("badly"))]),
        text("a secret answer"),
    ]);
    let agent = agent(&model, vec![Arc::new(Workshop::default())]);
    agent
        .run(RunInput {
            telemetry: Some(telemetry),
            ..input()
        })
        .await
        .output
        .unwrap();

    let spans = exporter.0.lock().unwrap().clone();
    let names: HashSet<&str> = spans.iter().map(|span| span.name.as_ref()).collect();
    assert_eq!(
        names,
        HashSet::from(["invoke_agent agent", "chat mock-model", "execute_tool work"])
    );
    assert_eq!(spans.len(), 5);
    let root = spans
        .iter()
        .find(|span| span.name == "invoke_agent agent")
        .unwrap();
    for span in &spans {
        if span.name != root.name {
            assert_eq!(
                span.parent_span_id,
                root.span_context.span_id(),
                "{}",
                span.name
            );
        }
        assert!(
            span.attributes
                .iter()
                .any(|kv| kv.key.as_str() == "airflow.task_id"),
            "{}",
            span.name
        );
        for kv in &span.attributes {
            let value = kv.value.as_str();
            assert!(
                !value.contains("secret answer") && !value.contains("Do the task"),
                "{kv:?}"
            );
        }
    }
    let retried = spans
        .iter()
        .filter(|span| span.name == "execute_tool work")
        .find(|span| !span.events.is_empty());
    let attempts: Vec<_> = retried
        .unwrap()
        .attributes
        .iter()
        .filter(|kv| kv.key.as_str() == "pydantic_ai.tool.retry.attempt")
        .collect();
    assert_eq!(attempts.len(), 1);
}
