//! GenAI metrics of model requests, beside their spans: what pydantic-ai counts, and how long each request took.

use std::time::Instant;

use opentelemetry::metrics::Histogram;
use opentelemetry::{InstrumentationScope, KeyValue, global};

use super::message::ModelResponse;
use super::model::Model;

/// Boundaries that the GenAI conventions advise for `gen_ai.client.token.usage`.
const TOKEN_BOUNDARIES: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// The same for `gen_ai.client.operation.duration`.
const DURATION_BOUNDARIES: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/// The instruments of a run.
#[derive(Clone)]
pub struct Meters {
    tokens: Histogram<u64>,
    duration: Histogram<f64>,
    cost: Histogram<f64>,
}

impl Meters {
    /// Instruments of the global meter provider; of none they count nothing.
    #[must_use]
    pub fn global(scope: InstrumentationScope) -> Self {
        let meter = global::meter_with_scope(scope);
        Self {
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Input and output tokens of model requests")
                .with_boundaries(TOKEN_BOUNDARIES.to_vec())
                .build(),
            duration: meter
                .f64_histogram("gen_ai.client.operation.duration")
                .with_unit("s")
                .with_description("How long a model request took, its retries included")
                .with_boundaries(DURATION_BOUNDARIES.to_vec())
                .build(),
            cost: meter
                .f64_histogram("operation.cost")
                .with_unit("{USD}")
                .with_description("What model requests cost")
                .build(),
        }
    }

    /// A request begins.
    pub(super) fn request(&self, model: &dyn Model) -> RequestMetrics {
        RequestMetrics {
            meters: self.clone(),
            attributes: vec![
                KeyValue::new("gen_ai.operation.name", "chat"),
                KeyValue::new("gen_ai.provider.name", model.provider().to_owned()),
                KeyValue::new("gen_ai.system", model.provider().to_owned()),
                KeyValue::new("gen_ai.request.model", model.name().to_owned()),
            ],
            started: Instant::now(),
        }
    }
}

/// A request that is under way.
pub(super) struct RequestMetrics {
    meters: Meters,
    attributes: Vec<KeyValue>,
    started: Instant,
}

impl RequestMetrics {
    /// It was answered.
    pub(super) fn answered(mut self, response: &ModelResponse) {
        let took = self.started.elapsed().as_secs_f64();
        let model = KeyValue::new("gen_ai.response.model", response.model_name.clone());
        self.attributes.push(model);
        let usage = &response.usage;
        for (kind, tokens) in [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
        ] {
            if tokens > 0 {
                let kind = KeyValue::new("gen_ai.token.type", kind);
                let attributes = [self.attributes.as_slice(), &[kind]].concat();
                self.meters.tokens.record(tokens, &attributes);
            }
        }
        if let Some(cost) = usage.cost
            && let Ok(dollars) = cost.to_string().parse::<f64>()
        {
            self.meters.cost.record(dollars, &self.attributes);
        }
        self.meters.duration.record(took, &self.attributes);
    }

    /// It failed; `class` is the exception's.
    pub(super) fn failed(mut self, class: &'static str) {
        let took = self.started.elapsed().as_secs_f64();
        self.attributes.push(KeyValue::new("error.type", class));
        self.meters.duration.record(took, &self.attributes);
    }
}
