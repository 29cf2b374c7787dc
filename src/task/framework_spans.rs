//! Spans that Dag code tells of: those of an agent framework whose loop is Python's.
//!
//! Requests are those of `tools/openai_agents.py` among the stand-ins.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opentelemetry::global::{BoxedTracer, tracer_with_scope};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The scope under which the provider's processor makes its spans.
const SCOPE: &str = "airflow.providers.common.ai.tools.openai_agents";

/// What Dag code tells.
#[derive(Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
enum Told {
    Start {
        id: String,
        /// The span of the task when it is none of those under way.
        parent: Option<String>,
        name: String,
        /// A request to a server, and not work of this process.
        client: bool,
        /// Does it say whose task it is?
        identified: bool,
        attributes: Map<String, Value>,
    },
    End {
        id: String,
        name: Option<String>,
        attributes: Map<String, Value>,
        /// Text of an error; empty when nothing may be told of it.
        error: Option<String>,
    },
}

/// The spans of an agent framework, under the task's.
pub struct FrameworkSpans {
    tracer: BoxedTracer,
    parent: Context,
    identity: Vec<KeyValue>,
    open: Mutex<HashMap<String, Context>>,
}

impl FrameworkSpans {
    /// Spans through the global tracer provider, under the span that `parent` holds.
    #[must_use]
    pub fn new(parent: Context, identity: Vec<KeyValue>) -> Self {
        let scope = InstrumentationScope::builder(SCOPE).build();
        Self {
            tracer: tracer_with_scope(scope),
            parent,
            identity,
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, Context>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts or ends a span.
    ///
    /// # Errors
    /// It is not told in the words for it.
    pub fn tell(&self, told: &Value) -> Result<(), String> {
        match serde_json::from_value(told.clone()).map_err(|error| error.to_string())? {
            Told::Start {
                id,
                parent,
                name,
                client,
                identified,
                attributes,
            } => {
                let mut open = self.open();
                let parent = parent.and_then(|parent| open.get(&parent));
                let parent = parent.unwrap_or(&self.parent).clone();
                let identity = self.identity.iter().filter(|_| identified).cloned();
                let builder = self
                    .tracer
                    .span_builder(name)
                    .with_kind(if client {
                        SpanKind::Client
                    } else {
                        SpanKind::Internal
                    })
                    .with_attributes(identity.chain(key_values(attributes)));
                let span = self.tracer.build_with_context(builder, &parent);
                open.insert(id, parent.with_span(span));
            }
            Told::End {
                id,
                name,
                attributes,
                error,
            } => {
                if let Some(context) = self.open().remove(&id) {
                    let span = context.span();
                    if let Some(name) = name {
                        span.update_name(name);
                    }
                    span.set_attributes(key_values(attributes));
                    if let Some(error) = error {
                        span.set_status(Status::error(error));
                    }
                    span.end();
                }
            }
        }
        Ok(())
    }
}

fn key_values(attributes: Map<String, Value>) -> impl Iterator<Item = KeyValue> {
    attributes
        .into_iter()
        .filter_map(|(name, value)| match value {
            Value::Null => None,
            Value::Bool(value) => Some(KeyValue::new(name, value)),
            Value::Number(number) => Some(match number.as_i64() {
                Some(value) => KeyValue::new(name, value),
                None => KeyValue::new(name, number.as_f64().unwrap_or_default()),
            }),
            Value::String(text) => Some(KeyValue::new(name, text)),
            other => Some(KeyValue::new(name, other.to_string())),
        })
}
