//! OTLP over HTTP: where spans and metrics are sent, and how the last of them get there.

use std::sync::mpsc;
use std::time::Duration;

use opentelemetry::InstrumentationScope;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use super::masking::MaskingExporter;
use crate::airflow::config::{Config, ConfigError, Environment};
use crate::secrets::Masker;

/// The longest that a task waits at its end for its spans to be taken.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// Why spans can't be sent. Never a reason for a task to fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// An option can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The environment asks for an exporter or a protocol that Updraft does not have.
    #[error(
        "{variable} is {value}, but Updraft sends OTLP over HTTP with protobuf only: set it to {instead}, and the \
         endpoint to the collector's HTTP port (usually 4318)"
    )]
    Unsupported {
        variable: &'static str,
        value: String,
        instead: &'static str,
    },
    /// The exporter could not be built: usually the endpoint is no URL.
    #[error("spans can't be sent to {endpoint}: {reason}")]
    Exporter { endpoint: String, reason: String },
    /// The last spans or metrics did not arrive.
    #[error("the last spans of the task were not taken by {endpoint}: {reason}")]
    NotFlushed { endpoint: String, reason: String },
}

/// What the GenAI spans of an agent may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenAi {
    /// `[common.ai] capture_content`: prompts, answers, arguments and results too.
    pub capture_content: bool,
}

/// Sends the spans of this process. Dropping it flushes them, for at most five seconds.
#[derive(Debug, Default)]
pub struct Telemetry {
    running: Option<Running>,
    gen_ai: Option<GenAi>,
}

#[derive(Debug)]
struct Running {
    provider: SdkTracerProvider,
    /// Of GenAI metrics; `None` when there are none to send.
    meters: Option<SdkMeterProvider>,
    endpoint: String,
    limit: Duration,
}

impl Telemetry {
    /// Telemetry that sends nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Starts sending spans if `[traces] otel_on` says so, masked by `masker`.
    ///
    /// May be called on a thread of an asynchronous runtime: sending happens on a thread of its own.
    ///
    /// # Errors
    /// See [`TelemetryError`]. The caller goes on with [`Telemetry::off`].
    pub fn start(config: &Config, masker: &Masker) -> Result<Self, TelemetryError> {
        if !config.get_bool("traces", "otel_on")? || !wants_otlp(config.environment())? {
            return Ok(Self::off());
        }
        let gen_ai = if config.get_bool("common.ai", "otel_export_enabled")? {
            Some(GenAi {
                capture_content: config.get_bool("common.ai", "capture_content")?,
            })
        } else {
            None
        };
        let limit = config.get_uint("traces", "task_runner_flush_timeout_milliseconds")?;
        let endpoint = endpoint(config, Signal::Traces)?;
        let resource = resource(config)?;
        let meters = match gen_ai {
            Some(_) if wants_metrics(config.environment())? => {
                Some(meters(config, resource.clone())?)
            }
            _ => None,
        };
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&endpoint)
            .build()
            .map_err(|error| TelemetryError::Exporter {
                endpoint: endpoint.clone(),
                reason: error.to_string(),
            })?;
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_batch_exporter(MaskingExporter::new(exporter, masker.clone()))
            .build();
        let limit = Duration::from_millis(limit).min(FLUSH_LIMIT);
        Ok(Self {
            running: Some(Running {
                provider,
                meters,
                endpoint,
                limit,
            }),
            gen_ai,
        })
    }

    /// Makes this the process's global provider of tracers and meters.
    pub fn install(&self) {
        if let Some(running) = &self.running {
            opentelemetry::global::set_tracer_provider(running.provider.clone());
            if let Some(meters) = &running.meters {
                opentelemetry::global::set_meter_provider(meters.clone());
            }
        }
    }

    /// Whether spans are sent at all.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.running.is_some()
    }

    /// What GenAI spans to make: `None` unless tracing is on and `[common.ai] otel_export_enabled`.
    #[must_use]
    pub fn gen_ai(&self) -> Option<GenAi> {
        self.gen_ai
    }

    /// The tracer of Updraft's own spans; `None` when nothing is sent.
    #[must_use]
    pub fn tracer(&self) -> Option<SdkTracer> {
        let scope = InstrumentationScope::builder("updraft")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        self.running
            .as_ref()
            .map(|running| running.provider.tracer_with_scope(scope))
    }

    /// Sends what has not been sent yet and stops. Blocks the calling thread for at most five seconds, and not longer
    /// than `[traces] task_runner_flush_timeout_milliseconds`.
    ///
    /// # Errors
    /// [`TelemetryError::NotFlushed`].
    pub fn shutdown(mut self) -> Result<(), TelemetryError> {
        self.running.take().map_or(Ok(()), Running::flush)
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(running) = self.running.take()
            && let Err(error) = running.flush()
        {
            tracing::warn!("{error}");
        }
    }
}

impl Running {
    fn flush(self) -> Result<(), TelemetryError> {
        let Self {
            provider,
            meters,
            endpoint,
            limit,
        } = self;
        let (sender, receiver) = mpsc::channel();
        // Its own thread, because the provider's waits can't be cut short and the exporter must not meet a runtime.
        let thread = std::thread::Builder::new()
            .name("otlp-flush".to_owned())
            .spawn(move || {
                let flushed = provider.force_flush();
                let stopped = provider.shutdown_with_timeout(limit);
                // Sends what was counted since it last did.
                let counted = meters.map_or(Ok(()), |meters| meters.shutdown_with_timeout(limit));
                // Nobody listens any more when the time is over.
                let _ = sender.send(flushed.and(stopped).and(counted));
            });
        let reason = match thread {
            Err(error) => error.to_string(),
            Ok(_) => match receiver.recv_timeout(limit) {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} ms", limit.as_millis()),
            },
        };
        Err(TelemetryError::NotFlushed { endpoint, reason })
    }
}

/// A variable's text; empty counts as unset, as the OpenTelemetry specification has it.
fn set<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment
        .get(name)
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

/// What is sent.
#[derive(Clone, Copy)]
enum Signal {
    Traces,
    Metrics,
}

/// False when the environment asks for no exporter at all.
fn wants_otlp(environment: &Environment) -> Result<bool, TelemetryError> {
    let own_protocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
    wants(environment, "OTEL_TRACES_EXPORTER", own_protocol)
}

/// The same for metrics.
fn wants_metrics(environment: &Environment) -> Result<bool, TelemetryError> {
    let own_protocol = "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL";
    wants(environment, "OTEL_METRICS_EXPORTER", own_protocol)
}

fn wants(
    environment: &Environment,
    exporter: &'static str,
    own_protocol: &'static str,
) -> Result<bool, TelemetryError> {
    match set(environment, exporter).unwrap_or("otlp") {
        "none" => return Ok(false),
        "otlp" | "otlp_proto_http" => {}
        other => {
            return Err(TelemetryError::Unsupported {
                variable: exporter,
                value: other.to_owned(),
                instead: "otlp_proto_http",
            });
        }
    }
    for variable in [own_protocol, "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match set(environment, variable) {
            None => {}
            Some("http/protobuf") => break,
            Some(other) => {
                let value = other.to_owned();
                return Err(TelemetryError::Unsupported {
                    variable,
                    value,
                    instead: "http/protobuf",
                });
            }
        }
    }
    Ok(true)
}

/// Sends metrics once a minute, and at the end.
fn meters(config: &Config, resource: Resource) -> Result<SdkMeterProvider, TelemetryError> {
    let endpoint = endpoint(config, Signal::Metrics)?;
    let exporter = opentelemetry_otlp::MetricExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(&endpoint)
        .build()
        .map_err(|error| TelemetryError::Exporter {
            endpoint,
            reason: error.to_string(),
        })?;
    Ok(SdkMeterProvider::builder()
        .with_resource(resource)
        .with_periodic_exporter(exporter)
        .build())
}

/// Where spans or metrics go: the OpenTelemetry variables, else Airflow's old `otel_host` and `otel_port`, else this
/// machine.
fn endpoint(config: &Config, signal: Signal) -> Result<String, ConfigError> {
    let environment = config.environment();
    let (own, path) = match signal {
        Signal::Traces => ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "v1/traces"),
        Signal::Metrics => ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "v1/metrics"),
    };
    if let Some(endpoint) = set(environment, own) {
        return Ok(endpoint.to_owned());
    }
    if let Some(endpoint) = set(environment, "OTEL_EXPORTER_OTLP_ENDPOINT") {
        return Ok(format!("{}/{path}", endpoint.trim_end_matches('/')));
    }
    if let (Some(host), Some(port)) = (
        config.text("traces", "otel_host")?,
        config.text("traces", "otel_port")?,
    ) {
        let scheme = if config.get_bool("traces", "otel_ssl_active")? {
            "https"
        } else {
            "http"
        };
        return Ok(format!("{scheme}://{host}:{port}/{path}"));
    }
    Ok(format!("http://localhost:4318/{path}"))
}

/// `service.name` and whatever `OTEL_RESOURCE_ATTRIBUTES` adds (which the SDK reads by itself).
fn resource(config: &Config) -> Result<Resource, ConfigError> {
    let environment = config.environment();
    let from_environment = set(environment, "OTEL_SERVICE_NAME").is_some()
        || set(environment, "OTEL_RESOURCE_ATTRIBUTES").is_some();
    let service = if from_environment {
        None
    } else {
        config.text("traces", "otel_service")?
    };
    let builder = Resource::builder();
    Ok(match (service, set(environment, "OTEL_SERVICE_NAME")) {
        (Some(name), _) => builder.with_service_name(name).build(),
        (None, Some(name)) => builder.with_service_name(name.to_owned()).build(),
        (None, None) => builder.build(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use opentelemetry::KeyValue;
    use opentelemetry::trace::{Span, Tracer};
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
    use pretty_assertions::assert_eq;
    use prost::Message;
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    fn config(options: &[(&str, &str)]) -> Config {
        Config::new(
            options
                .iter()
                .copied()
                .chain([("AIRFLOW_HOME", "/nonexistent")])
                .collect(),
        )
    }

    fn start(options: &[(&str, &str)]) -> Result<Telemetry, TelemetryError> {
        let on = ("AIRFLOW__TRACES__OTEL_ON", "True");
        let config = Config::new(
            options
                .iter()
                .copied()
                .chain([on, ("AIRFLOW_HOME", "/nonexistent")])
                .collect(),
        );
        Telemetry::start(&config, &Masker::new())
    }

    #[test]
    fn nothing_is_sent_unless_airflow_says_so() {
        let telemetry = Telemetry::start(&config(&[]), &Masker::new()).unwrap();
        assert!(!telemetry.is_on() && telemetry.tracer().is_none() && telemetry.gen_ai().is_none());
        assert!(!start(&[("OTEL_TRACES_EXPORTER", "none")]).unwrap().is_on());
    }

    #[test]
    fn the_endpoint_comes_from_opentelemetrys_variables_then_from_airflows_old_options() {
        let at = |options: &[(&str, &str)]| endpoint(&config(options), Signal::Traces).unwrap();
        let old = [
            ("AIRFLOW__TRACES__OTEL_HOST", "h"),
            ("AIRFLOW__TRACES__OTEL_PORT", "8889"),
        ];
        assert_eq!(at(&[]), "http://localhost:4318/v1/traces");
        assert_eq!(at(&old), "http://h:8889/v1/traces");
        assert_eq!(at(&old[..1]), "http://localhost:4318/v1/traces");
        assert_eq!(
            at(&[old[0], old[1], ("AIRFLOW__TRACES__OTEL_SSL_ACTIVE", "True")]),
            "https://h:8889/v1/traces"
        );
        assert_eq!(
            at(&[
                old[0],
                old[1],
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/")
            ]),
            "http://c:1/v1/traces"
        );
        assert_eq!(
            at(&[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "x"),
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:1/t")
            ]),
            "http://c:1/t"
        );
        let metrics =
            |options: &[(&str, &str)]| endpoint(&config(options), Signal::Metrics).unwrap();
        assert_eq!(metrics(&[]), "http://localhost:4318/v1/metrics");
        assert_eq!(metrics(&old), "http://h:8889/v1/metrics");
        assert_eq!(
            metrics(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/")]),
            "http://c:1/v1/metrics"
        );
    }

    #[test]
    fn the_service_is_named_by_the_environment_or_by_airflow() {
        let name = |options: &[(&str, &str)]| {
            let resource = resource(&config(options)).unwrap();
            resource
                .get(&opentelemetry::Key::new("service.name"))
                .map(|value| value.to_string())
                .unwrap()
        };
        let old = ("AIRFLOW__TRACES__OTEL_SERVICE", "old");
        assert_eq!(name(&[old]), "old");
        assert_eq!(name(&[old, ("OTEL_SERVICE_NAME", "new")]), "new");
    }

    #[test]
    fn what_updraft_can_not_send_is_refused_with_what_to_set() {
        let text = start(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")])
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with(
                "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, but Updraft sends OTLP over HTTP"
            ),
            "{text}"
        );
        assert!(matches!(
            start(&[("OTEL_TRACES_EXPORTER", "console")]),
            Err(TelemetryError::Unsupported { .. })
        ));
        let both = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ];
        assert!(start(&both).unwrap().is_on());
    }

    #[test]
    fn gen_ai_spans_have_two_switches_of_their_own() {
        let enabled = ("AIRFLOW__COMMON_AI__OTEL_EXPORT_ENABLED", "True");
        let content = ("AIRFLOW__COMMON_AI__CAPTURE_CONTENT", "True");
        assert_eq!(start(&[]).unwrap().gen_ai(), None);
        assert_eq!(start(&[content]).unwrap().gen_ai(), None);
        assert_eq!(
            start(&[enabled]).unwrap().gen_ai(),
            Some(GenAi {
                capture_content: false
            })
        );
        assert_eq!(
            start(&[enabled, content]).unwrap().gen_ai(),
            Some(GenAi {
                capture_content: true
            })
        );
    }

    #[tokio::test]
    async fn spans_of_an_asynchronous_task_arrive_masked_and_complete_at_shutdown() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path("/v1/traces"))
            .respond_with(ResponseTemplate::new(200))
            .mount(&server)
            .await;
        let config = config(&[
            ("AIRFLOW__TRACES__OTEL_ON", "True"),
            ("AIRFLOW__TRACES__OTEL_SERVICE", "Airflow"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &server.uri()),
        ]);
        let masker = Masker::new();
        let telemetry = Telemetry::start(&config, &masker).unwrap();
        let tracer = telemetry.tracer().unwrap();
        for number in 0..100 {
            let mut span = tracer.start(format!("span {number}"));
            span.set_attribute(KeyValue::new("text", "say made-up-secret"));
            span.end();
        }
        masker.add_secret("made-up-secret");
        tokio::task::spawn_blocking(move || telemetry.shutdown())
            .await
            .unwrap()
            .unwrap();

        let mut names = Vec::new();
        for request in server.received_requests().await.unwrap() {
            let export = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
            for resource in export.resource_spans {
                let attributes = format!("{:?}", resource.resource.unwrap().attributes);
                assert!(
                    attributes.contains("service.name") && attributes.contains("Airflow"),
                    "{attributes}"
                );
                for span in resource
                    .scope_spans
                    .into_iter()
                    .flat_map(|scope| scope.spans)
                {
                    let text = format!("{:?}", span.attributes);
                    assert!(
                        text.contains("say ***") && !text.contains("made-up"),
                        "{text}"
                    );
                    names.push(span.name);
                }
            }
        }
        assert_eq!(
            names,
            (0..100)
                .map(|number| format!("span {number}"))
                .collect::<Vec<_>>()
        );
    }

    #[tokio::test]
    async fn metrics_arrive_beside_the_spans_at_shutdown() {
        use opentelemetry::metrics::MeterProvider as _;
        use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;

        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path("/v1/metrics"))
            .respond_with(ResponseTemplate::new(200))
            .mount(&server)
            .await;
        let telemetry = start(&[
            ("AIRFLOW__COMMON_AI__OTEL_EXPORT_ENABLED", "True"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &server.uri()),
        ])
        .unwrap();
        let meters = telemetry.running.as_ref().unwrap().meters.clone();
        let meter = meters.unwrap().meter("made");
        meter.u64_histogram("made.tokens").build().record(7, &[]);
        tokio::task::spawn_blocking(move || telemetry.shutdown())
            .await
            .unwrap()
            .unwrap();
        let requests = server.received_requests().await.unwrap();
        let export = ExportMetricsServiceRequest::decode(requests[0].body.as_slice()).unwrap();
        let metric = &export.resource_metrics[0].scope_metrics[0].metrics[0];
        assert_eq!((metric.name.as_str(), requests.len()), ("made.tokens", 1));
    }

    #[test]
    fn metrics_go_with_gen_ai_spans_unless_they_are_switched_off() {
        let enabled = ("AIRFLOW__COMMON_AI__OTEL_EXPORT_ENABLED", "True");
        let counts = |options: &[(&str, &str)]| {
            let telemetry = start(options).unwrap();
            telemetry.running.as_ref().unwrap().meters.is_some()
        };
        assert!(counts(&[enabled]));
        assert!(!counts(&[]));
        assert!(!counts(&[enabled, ("OTEL_METRICS_EXPORTER", "none")]));
    }

    #[test]
    fn no_configuration_holds_a_task_for_more_than_five_seconds() {
        let limit = "AIRFLOW__TRACES__TASK_RUNNER_FLUSH_TIMEOUT_MILLISECONDS";
        let telemetry = start(&[(limit, "60000")]).unwrap();
        assert_eq!(
            telemetry.running.as_ref().unwrap().limit,
            Duration::from_secs(5)
        );
    }

    #[test]
    fn a_receiver_that_never_answers_holds_the_task_no_longer_than_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let telemetry = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            (
                "AIRFLOW__TRACES__TASK_RUNNER_FLUSH_TIMEOUT_MILLISECONDS",
                "300",
            ),
        ])
        .unwrap();
        telemetry.tracer().unwrap().start("lost").end();
        let begin = Instant::now();
        let text = telemetry.shutdown().unwrap_err().to_string();
        assert!(
            begin.elapsed() < Duration::from_secs(3),
            "{:?}",
            begin.elapsed()
        );
        assert!(text.ends_with("no answer within 300 ms"), "{text}");
    }

    #[test]
    fn a_receiver_that_is_not_there_is_reported() {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let telemetry = start(&[(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            &format!("http://127.0.0.1:{port}"),
        )])
        .unwrap();
        telemetry.tracer().unwrap().start("lost").end();
        let text = telemetry.shutdown().unwrap_err().to_string();
        assert!(
            text.contains(&format!("not taken by http://127.0.0.1:{port}/v1/traces")),
            "{text}"
        );
    }
}
