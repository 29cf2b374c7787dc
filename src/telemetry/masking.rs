//! Masks secrets in spans on their way out.

use std::future::Future;
use std::time::Duration;

use opentelemetry::trace::Status;
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use crate::secrets::Masker;

/// An exporter that hands masked spans to another. Masking at the end catches secrets that were learnt only after the
/// span began.
#[derive(Debug)]
pub(super) struct MaskingExporter<E> {
    inner: E,
    masker: Masker,
}

impl<E> MaskingExporter<E> {
    pub(super) fn new(inner: E, masker: Masker) -> Self {
        Self { inner, masker }
    }

    fn mask(&self, mut span: SpanData) -> SpanData {
        span.name = self.masker.mask_str(&span.name).into_owned().into();
        self.mask_all(&mut span.attributes);
        for event in &mut span.events.events {
            self.mask_all(&mut event.attributes);
        }
        if let Status::Error { description } = &span.status {
            span.status = Status::error(self.masker.mask_str(description).into_owned());
        }
        span
    }

    fn mask_all(&self, attributes: &mut [KeyValue]) {
        let text = |text: &StringValue| {
            StringValue::from(self.masker.mask_str(text.as_str()).into_owned())
        };
        for attribute in attributes {
            match &mut attribute.value {
                Value::String(value) => *value = text(value),
                Value::Array(Array::String(values)) => {
                    values.iter_mut().for_each(|value| *value = text(value))
                }
                _ => {}
            }
        }
    }
}

impl<E: SpanExporter> SpanExporter for MaskingExporter<E> {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.inner
            .export(batch.into_iter().map(|span| self.mask(span)).collect())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
