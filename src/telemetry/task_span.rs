//! The span of one task, as Airflow's task runner makes it: `worker.<task_id>` under the span in the job's carrier.

use std::collections::{BTreeMap, HashMap};

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanRef, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;

use super::Telemetry;
use crate::airflow::execution::TaskInstance;

/// The `tracestate` entry that asks for more spans.
const DETAIL_LEVEL: &str = "airflow/task_span_detail_level";

struct Carrier<'a>(&'a BTreeMap<String, String>);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// The headers (`traceparent`, perhaps `tracestate`) that carry the span of a context to another process.
#[must_use]
pub fn propagate(context: &Context) -> HashMap<String, String> {
    let mut headers = HashMap::new();
    TraceContextPropagator::new().inject_context(context, &mut headers);
    headers.retain(|_, value| !value.is_empty());
    headers
}

/// Who a GenAI span belongs to: set on each of them.
#[must_use]
pub fn identity(ti: &TaskInstance) -> Vec<KeyValue> {
    let mut attributes = task_attributes(ti);
    attributes.push(KeyValue::new("airflow.task_instance.id", ti.id.clone()));
    attributes
}

fn task_attributes(ti: &TaskInstance) -> Vec<KeyValue> {
    vec![
        KeyValue::new("airflow.dag_id", ti.dag_id.clone()),
        KeyValue::new("airflow.task_id", ti.task_id.clone()),
        KeyValue::new("airflow.dag_run.run_id", ti.run_id.clone()),
        KeyValue::new("airflow.task_instance.try_number", i64::from(ti.try_number)),
        KeyValue::new("airflow.task_instance.map_index", ti.map_index),
    ]
}

/// The span of a task. Ends when it is dropped.
#[derive(Debug)]
pub struct TaskSpan {
    context: Context,
    tracer: Option<SdkTracer>,
    detailed: bool,
}

impl TaskSpan {
    /// Starts the span; without telemetry there is only the carrier's context, which goes on to the servers asked.
    #[must_use]
    pub fn start(telemetry: &Telemetry, ti: &TaskInstance) -> Self {
        let parent = match &ti.context_carrier {
            Some(carrier) => TraceContextPropagator::new()
                .extract_with_context(&Context::new(), &Carrier(carrier)),
            None => Context::new(),
        };
        let detailed = parent
            .span()
            .span_context()
            .trace_state()
            .get(DETAIL_LEVEL)
            .and_then(|level| level.trim().parse::<i64>().ok())
            .is_some_and(|level| level > 1);
        let Some(tracer) = telemetry.tracer() else {
            return Self {
                context: parent,
                tracer: None,
                detailed,
            };
        };
        let mut name = format!("worker.{}", ti.task_id);
        if ti.map_index >= 0 {
            name.push_str(&format!("[{}]", ti.map_index));
        }
        let builder = tracer
            .span_builder(name)
            .with_attributes(task_attributes(ti));
        let span = tracer.build_with_context(builder, &parent);
        Self {
            context: parent.with_span(span),
            tracer: Some(tracer),
            detailed,
        }
    }

    /// The context that child spans start in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// A child span for one stage of the task (`parse`, `render_templates`, `task.execute` ...), if the Dag run asks for
    /// details; else the task's own context. The span ends when the context's last clone is dropped.
    #[must_use]
    pub fn stage(&self, name: &'static str) -> Context {
        match (&self.tracer, self.detailed) {
            (Some(tracer), true) => self
                .context
                .with_span(tracer.start_with_context(name, &self.context)),
            _ => self.context.clone(),
        }
    }

    /// Records the exception that ended the task.
    pub fn fail(&self, exc_type: &str, message: &str) {
        if self.tracer.is_none() {
            return;
        }
        let span: SpanRef<'_> = self.context.span();
        span.add_event(
            "exception",
            vec![
                KeyValue::new("exception.type", exc_type.to_owned()),
                KeyValue::new("exception.message", message.to_owned()),
                KeyValue::new("exception.escaped", "False"),
            ],
        );
        span.set_status(Status::error(format!("Exception: {exc_type}")));
    }

    /// Ends the span.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for TaskSpan {
    fn drop(&mut self) {
        // Clones of the context may outlive this; the span must not wait for them.
        if self.tracer.is_some() {
            self.context.span().end();
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use opentelemetry_proto::tonic::trace::v1::Span;
    use pretty_assertions::assert_eq;
    use prost::Message;
    use wiremock::matchers::method;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::airflow::config::Config;
    use crate::secrets::Masker;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn task_instance(carrier: Option<(&str, &str)>, map_index: i64) -> TaskInstance {
        TaskInstance {
            id: "01980000-0000-7000-8000-000000000001".to_owned(),
            task_id: "ask".to_owned(),
            dag_id: "d".to_owned(),
            run_id: "r".to_owned(),
            try_number: 2,
            dag_version_id: None,
            map_index,
            hostname: None,
            context_carrier: carrier.map(|(flags, state)| {
                BTreeMap::from([
                    (
                        "traceparent".to_owned(),
                        format!("00-{TRACE}-b7ad6b7169203331-{flags}"),
                    ),
                    ("tracestate".to_owned(), state.to_owned()),
                ])
            }),
            queue: None,
        }
    }

    /// Runs `work` with telemetry on and returns the spans that the receiver got, sorted by name.
    async fn spans_of(work: impl FnOnce(&Telemetry)) -> Vec<Span> {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(200))
            .mount(&server)
            .await;
        let variables = [
            ("AIRFLOW_HOME", "/nonexistent"),
            ("AIRFLOW__TRACES__OTEL_ON", "True"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &server.uri()),
        ];
        let telemetry = Telemetry::start(
            &Config::new(variables.into_iter().collect()),
            &Masker::new(),
        )
        .unwrap();
        work(&telemetry);
        tokio::task::spawn_blocking(move || telemetry.shutdown())
            .await
            .unwrap()
            .unwrap();
        let requests = server.received_requests().await.unwrap();
        let mut spans: Vec<_> = requests
            .iter()
            .map(|request| ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap())
            .flat_map(|export| export.resource_spans)
            .flat_map(|resource| resource.scope_spans)
            .flat_map(|scope| scope.spans)
            .collect();
        spans.sort_by(|a, b| a.name.cmp(&b.name));
        spans
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[tokio::test]
    async fn the_span_is_a_child_of_the_carriers_and_says_whose_it_is() {
        let spans = spans_of(|telemetry| {
            let span = TaskSpan::start(telemetry, &task_instance(Some(("01", "")), -1));
            let headers = propagate(span.context());
            assert!(
                headers["traceparent"].starts_with(&format!("00-{TRACE}-")),
                "{headers:?}"
            );
            assert!(
                !headers["traceparent"].contains("b7ad6b7169203331"),
                "{headers:?}"
            );
            drop(span.stage("parse"));
        })
        .await;
        assert_eq!(spans.len(), 1);
        let span = &spans[0];
        assert_eq!(span.name, "worker.ask");
        assert_eq!(hex(&span.trace_id), TRACE);
        assert_eq!(hex(&span.parent_span_id), "b7ad6b7169203331");
        let attributes: Vec<_> = span
            .attributes
            .iter()
            .map(|attribute| attribute.key.as_str())
            .collect();
        assert_eq!(
            attributes,
            [
                "airflow.dag_id",
                "airflow.task_id",
                "airflow.dag_run.run_id",
                "airflow.task_instance.try_number",
                "airflow.task_instance.map_index"
            ]
        );
    }

    #[tokio::test]
    async fn a_failure_is_an_exception_event_and_an_error_status() {
        let spans = spans_of(|telemetry| {
            let span = TaskSpan::start(telemetry, &task_instance(None, 3));
            span.fail("ValueError", "bad");
            span.end();
        })
        .await;
        assert_eq!(spans[0].name, "worker.ask[3]");
        assert_eq!(
            spans[0].status.as_ref().unwrap().message,
            "Exception: ValueError"
        );
        assert_eq!(spans[0].events[0].name, "exception");
        assert!(spans[0].parent_span_id.is_empty());
    }

    #[tokio::test]
    async fn stages_have_spans_only_when_the_dag_run_asks_for_details() {
        let spans = spans_of(|telemetry| {
            let ti = task_instance(Some(("01", "airflow/task_span_detail_level=2")), -1);
            let span = TaskSpan::start(telemetry, &ti);
            drop(span.stage("parse"));
        })
        .await;
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["parse", "worker.ask"]);
        assert_eq!(spans[0].parent_span_id, spans[1].span_id);
    }

    #[tokio::test]
    async fn an_unsampled_carrier_sends_nothing() {
        let spans = spans_of(|telemetry| {
            TaskSpan::start(telemetry, &task_instance(Some(("00", "")), -1)).end()
        })
        .await;
        assert_eq!(spans, []);
    }

    #[test]
    fn without_telemetry_the_carrier_still_goes_on_to_the_servers() {
        let span = TaskSpan::start(&Telemetry::off(), &task_instance(Some(("01", "")), -1));
        assert_eq!(
            propagate(span.context())["traceparent"],
            format!("00-{TRACE}-b7ad6b7169203331-01")
        );
        span.fail("ValueError", "bad");
        let ti = task_instance(None, -1);
        assert_eq!(
            propagate(TaskSpan::start(&Telemetry::off(), &ti).context()),
            HashMap::new()
        );
        assert_eq!(identity(&ti).len(), 6);
    }
}
