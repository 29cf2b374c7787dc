//! Providers whose APIs are their own: where they are, and which API they have.

use std::sync::Arc;

use super::anthropic::Anthropic;
use super::cohere::Cohere;
use super::endpoint::Endpoint;
use super::gemini::Gemini;
use super::openai::OpenAiResponses;
use crate::agent::{Model, ModelError};

/// An API that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Api {
    Responses,
    Messages,
    GenerateContent,
    CohereChat,
}

/// A provider prefix of a model id whose API is not Chat Completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnApi {
    /// The prefix of a model id.
    pub prefix: &'static str,
    /// As `gen_ai.provider.name`.
    provider_name: &'static str,
    api: Api,
    /// Base URL when the connection has no host.
    pub base_url: &'static str,
    /// Environment variable that holds a base URL.
    pub base_url_env: &'static str,
    /// Environment variables that hold the key, for a connection without a password.
    pub key_env: &'static [&'static str],
    /// What a base URL may end with though the API adds it.
    needless_suffix: &'static str,
}

const RESPONSES: OwnApi = OwnApi {
    prefix: "openai",
    provider_name: "openai",
    api: Api::Responses,
    base_url: "https://api.openai.com/v1",
    base_url_env: "OPENAI_BASE_URL",
    key_env: &["OPENAI_API_KEY"],
    needless_suffix: "",
};

/// All of them.
pub const OWN_APIS: &[OwnApi] = &[
    RESPONSES,
    OwnApi {
        prefix: "openai-responses",
        ..RESPONSES
    },
    OwnApi {
        prefix: "meta",
        provider_name: "meta",
        base_url: "https://api.meta.ai/v1",
        base_url_env: "",
        key_env: &["META_API_KEY"],
        ..RESPONSES
    },
    OwnApi {
        prefix: "cohere",
        provider_name: "cohere",
        api: Api::CohereChat,
        base_url: "https://api.cohere.com",
        base_url_env: "CO_BASE_URL",
        key_env: &["CO_API_KEY"],
        needless_suffix: "/v1",
    },
    OwnApi {
        prefix: "anthropic",
        provider_name: "anthropic",
        api: Api::Messages,
        base_url: "https://api.anthropic.com",
        base_url_env: "ANTHROPIC_BASE_URL",
        key_env: &["ANTHROPIC_API_KEY"],
        needless_suffix: "/v1",
    },
    OwnApi {
        prefix: "google",
        provider_name: "google",
        api: Api::GenerateContent,
        base_url: "https://generativelanguage.googleapis.com",
        base_url_env: "GOOGLE_GEMINI_BASE_URL",
        key_env: &["GOOGLE_API_KEY", "GEMINI_API_KEY"],
        needless_suffix: "/v1beta",
    },
];

/// The provider of a prefix, if it has an API of its own.
#[must_use]
pub fn own_api(prefix: &str) -> Option<&'static OwnApi> {
    OWN_APIS.iter().find(|provider| provider.prefix == prefix)
}

impl OwnApi {
    /// A model at a base URL.
    ///
    /// # Errors
    /// No HTTP client can be made, or the key can't be sent.
    pub fn model(
        &self,
        name: &str,
        base_url: &str,
        key: &str,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let base_url = base_url.trim_end_matches('/');
        let base_url = base_url
            .strip_suffix(self.needless_suffix)
            .unwrap_or(base_url);
        let provider = self.provider_name;
        Ok(match self.api {
            Api::Responses => {
                let endpoint = Endpoint::bearer(base_url, key)?;
                Arc::new(OpenAiResponses::new(name, provider, endpoint)?)
            }
            Api::Messages => {
                let endpoint = Endpoint::bearer(base_url, key)?;
                Arc::new(Anthropic::new(name, provider, endpoint)?)
            }
            Api::CohereChat => {
                let endpoint = Endpoint::bearer(base_url, key)?;
                Arc::new(Cohere::new(name, endpoint)?)
            }
            Api::GenerateContent => {
                let endpoint = Endpoint::with_key(base_url, "x-goog-api-key", key)?;
                Arc::new(Gemini::new(name, provider, "v1beta/models", endpoint)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_there_once() {
        for provider in OWN_APIS {
            assert_eq!(own_api(provider.prefix), Some(provider));
        }
        assert_eq!(own_api("openai-chat"), None);
    }

    #[test]
    fn a_base_url_may_end_with_the_version_that_the_api_adds() {
        for base_url in ["http://localhost:1", "http://localhost:1/v1/"] {
            let model = own_api("anthropic").unwrap();
            let model = model.model("claude-x", base_url, "made-up").unwrap();
            assert_eq!(model.server(), Some(("localhost".to_owned(), 1)));
        }
    }
}
