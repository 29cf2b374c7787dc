//! A chain of models: when one's provider fails, the next is asked.

use std::sync::Arc;

use async_trait::async_trait;

use crate::agent::message::{Message, ModelResponse};
use crate::agent::model::RequestParameters;
use crate::agent::{Model, ModelError};

/// Asks its models in order. Every request starts again at the first.
pub struct FallbackModel {
    first: Arc<dyn Model>,
    others: Vec<Arc<dyn Model>>,
    name: String,
}

impl FallbackModel {
    /// `others` are asked in order when `first` and those before them fail.
    #[must_use]
    pub fn new(first: Arc<dyn Model>, others: Vec<Arc<dyn Model>>) -> Self {
        let names: Vec<&str> = std::iter::once(&first)
            .chain(&others)
            .map(|model| model.name())
            .collect();
        let name = format!("fallback:{}", names.join(","));
        Self {
            first,
            others,
            name,
        }
    }
}

#[async_trait]
impl Model for FallbackModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> &str {
        self.first.provider()
    }

    fn server(&self) -> Option<(String, u16)> {
        self.first.server()
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        let mut errors = Vec::new();
        for model in std::iter::once(&self.first).chain(&self.others) {
            match model.request(messages, parameters).await {
                Err(error) if error.is_api_error() => {
                    tracing::warn!(target: "updraft.model", model = model.name(), %error, "a model of the chain failed");
                    errors.push(error);
                }
                answer => return answer,
            }
        }
        Err(ModelError::AllFailed { errors })
    }
}
