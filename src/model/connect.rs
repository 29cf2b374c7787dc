//! From a connection to the provider it names: the address, and the credentials.

use std::sync::Arc;

use serde_json::Value;

use super::aws_signature::AwsSigner;
use super::bedrock::Bedrock;
use super::choice_error::ModelChoiceError;
use super::endpoint::Endpoint;
use super::gemini::Gemini;
use super::google_token::ServiceAccount;
use super::llm_connection::Llm;
use super::openai::OpenAiChat;
use super::openai::OpenAiResponses;
use super::openai::chat_providers::{ChatProvider, chat_provider};
use super::own_apis::{OwnApi, own_api};
use super::test_model::TestModel;
use crate::agent::Model;
use crate::airflow::config::Environment;

/// Vertex AI's region when none is named: the one with most models.
const VERTEX_LOCATION: &str = "us-central1";

impl Llm {
    /// The model `name` of the provider `prefix`.
    ///
    /// # Errors
    /// The provider is not reached from here, or something is missing.
    pub(super) fn connect(
        &self,
        prefix: &str,
        name: &str,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        if let Some(api) = own_api(prefix) {
            return self.own_api(name, api, environment);
        }
        match (prefix, chat_provider(prefix)) {
            ("test", None) if name.is_empty() => Ok(Arc::new(TestModel)),
            ("azure", Some(provider)) => {
                let endpoint = self.azure(&format!("/deployments/{name}"), environment)?;
                Ok(Arc::new(OpenAiChat::new(name, *provider, endpoint)?))
            }
            (_, Some(provider)) => self.chat(name, *provider, environment),
            ("azure-responses", None) => {
                let endpoint = self.azure("", environment)?;
                Ok(Arc::new(OpenAiResponses::new(name, "azure", endpoint)?))
            }
            ("bedrock", None) => self.bedrock(name, environment),
            ("google-cloud", None) => self.vertex(name, environment),
            _ => Err(ModelChoiceError::NotServed {
                conn_id: self.connection.conn_id.clone(),
                prefix: prefix.to_owned(),
                model: format!("{prefix}:{name}").trim_end_matches(':').to_owned(),
            }),
        }
    }

    fn own_api(
        &self,
        name: &str,
        api: &OwnApi,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let given = self.host().or_else(|| {
            environment
                .get(api.base_url_env)
                .filter(|url| !url.is_empty())
        });
        // A server of one's own may want no key.
        let placeholder =
            given.and((api.base_url_env == "OPENAI_BASE_URL").then_some("api-key-not-set"));
        let key = self.key(api.key_env, placeholder, environment)?;
        Ok(api.model(name, given.unwrap_or(api.base_url), &key)?)
    }

    fn chat(
        &self,
        name: &str,
        provider: ChatProvider,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let given = match self.host() {
            Some(host) => Some(with_suffix(host, provider.host_suffix)),
            None => environment
                .get(provider.base_url_env)
                .filter(|url| !url.is_empty())
                .map(str::to_owned),
        };
        // A server of one's own may want no key, and the SDKs send a placeholder then.
        let placeholder = provider
            .placeholder_key
            .or((provider.prefix == "openai-chat" && given.is_some()).then_some("api-key-not-set"));
        let Some(base_url) =
            given.or(Some(provider.base_url.to_owned()).filter(|url| !url.is_empty()))
        else {
            return Err(ModelChoiceError::NoHost {
                conn_id: self.connection.conn_id.clone(),
                prefix: provider.prefix.to_owned(),
            });
        };
        let key = self.key(provider.key_env, placeholder, environment)?;
        Ok(Arc::new(OpenAiChat::new(
            name,
            provider,
            Endpoint::bearer(&base_url, &key)?,
        )?))
    }

    /// Azure has three kinds of endpoints: `/v1` ones and serverless ones speak as OpenAI does; the older kind has the
    /// version in the query, a header of its own for the key, and with Chat Completions the deployment in the path.
    fn azure(&self, path: &str, environment: &Environment) -> Result<Endpoint, ModelChoiceError> {
        let conn_id = || self.connection.conn_id.clone();
        let set = |name: &str| environment.get(name).filter(|text| !text.is_empty());
        let Some(endpoint) = self.host().or_else(|| set("AZURE_OPENAI_ENDPOINT")) else {
            return Err(ModelChoiceError::NoHost {
                conn_id: conn_id(),
                prefix: "azure".to_owned(),
            });
        };
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let key = self.key(&["AZURE_OPENAI_API_KEY"], None, environment)?;
        let version = self.text("api_version");
        let like_openai = if endpoint.ends_with("/v1") {
            Some(endpoint.clone())
        } else if endpoint.ends_with(".models.ai.azure.com") {
            Some(format!("{endpoint}/v1"))
        } else {
            None
        };
        match (like_openai, version.or_else(|| set("OPENAI_API_VERSION"))) {
            (Some(_), _) if version.is_some() => Err(ModelChoiceError::NeedlessApiVersion {
                conn_id: conn_id(),
                endpoint,
            }),
            (Some(base_url), _) => Ok(Endpoint::bearer(&base_url, &key)?),
            (None, None) => Err(ModelChoiceError::NoApiVersion {
                conn_id: conn_id(),
                endpoint,
            }),
            (None, Some(version)) => {
                let base_url = format!("{endpoint}/openai{path}");
                Ok(Endpoint {
                    query: format!("?api-version={version}"),
                    ..Endpoint::with_key(&base_url, "api-key", &key)?
                })
            }
        }
    }

    /// Bedrock with a bearer token, or with IAM keys that sign each request.
    fn bedrock(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let conn_id = || self.connection.conn_id.clone();
        let set = |name: &str| environment.get(name).filter(|text| !text.is_empty());
        let region = self
            .text("region_name")
            .or_else(|| set("AWS_REGION"))
            .or_else(|| set("AWS_DEFAULT_REGION"));
        let base_url = match (self.text("base_url"), region) {
            (Some(base_url), _) => base_url.to_owned(),
            (None, Some(region)) => format!("https://bedrock-runtime.{region}.amazonaws.com"),
            (None, None) => return Err(ModelChoiceError::NoBedrockRegion { conn_id: conn_id() }),
        };
        let secret = |key: &str, variable: &str| {
            self.text(key)
                .or_else(|| self.key_from(&[variable], environment))
        };
        let keys = self
            .text("aws_access_key_id")
            .zip(self.text("aws_secret_access_key"));
        // What the connection says goes over what the environment says.
        let token = self.text("api_key").or_else(|| {
            keys.is_none()
                .then(|| self.key_from(&["AWS_BEARER_TOKEN_BEDROCK"], environment))
                .flatten()
        });
        if let Some(token) = token {
            let endpoint = Endpoint::bearer(&base_url, token)?;
            return Ok(Arc::new(Bedrock::new(name, endpoint)?));
        }
        let id = self
            .text("aws_access_key_id")
            .or_else(|| set("AWS_ACCESS_KEY_ID"));
        let key = secret("aws_secret_access_key", "AWS_SECRET_ACCESS_KEY");
        let (Some(id), Some(key)) = (id, key) else {
            return Err(ModelChoiceError::NoBedrockCredentials { conn_id: conn_id() });
        };
        let Some(region) = region else {
            return Err(ModelChoiceError::NoBedrockRegion { conn_id: conn_id() });
        };
        let signer = AwsSigner {
            access_key_id: id.to_owned(),
            secret_access_key: key.into(),
            session_token: secret("aws_session_token", "AWS_SESSION_TOKEN").map(Into::into),
            region: region.to_owned(),
            service: "bedrock",
        };
        let endpoint = Endpoint::authorized(&base_url, Arc::new(signer));
        Ok(Arc::new(Bedrock::new(name, endpoint)?))
    }

    /// Vertex AI with an API key, or as a service account.
    fn vertex(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let conn_id = || self.connection.conn_id.clone();
        let set = |name: &str| environment.get(name).filter(|text| !text.is_empty());
        let host = |area: &str| format!("https://{area}aiplatform.googleapis.com");
        let account = self.service_account(environment)?;
        let own_key = self
            .text("api_key")
            .filter(|_| self.text("project").is_none() && self.text("location").is_none());
        let key = own_key.or_else(|| {
            (account.is_none() && self.text("project").is_none())
                .then(|| self.key_from(&["GOOGLE_API_KEY", "GEMINI_API_KEY"], environment))
                .flatten()
        });
        let (endpoint, models) = match (account, key) {
            (Some(account), _) => {
                let project = self
                    .text("project")
                    .or_else(|| set("GOOGLE_CLOUD_PROJECT"))
                    .or_else(|| account.project())
                    .ok_or_else(|| ModelChoiceError::NoVertexProject { conn_id: conn_id() })?;
                let location = self
                    .text("location")
                    .or_else(|| set("GOOGLE_CLOUD_LOCATION"))
                    .unwrap_or(VERTEX_LOCATION);
                let models = format!("v1beta1/projects/{project}/locations/{location}");
                let base_url = match (self.text("base_url"), location) {
                    (Some(base_url), _) => base_url.to_owned(),
                    (None, "global") => host(""),
                    (None, "us" | "eu") => {
                        format!("https://aiplatform.{location}.rep.googleapis.com")
                    }
                    (None, _) => host(&format!("{location}-")),
                };
                (Endpoint::authorized(&base_url, Arc::new(account)), models)
            }
            (None, Some(key)) => {
                let base_url = self
                    .text("base_url")
                    .map_or_else(|| host(""), str::to_owned);
                let endpoint = Endpoint::with_key(&base_url, "x-goog-api-key", key)?;
                (endpoint, "v1beta1".to_owned())
            }
            (None, None) => {
                return Err(ModelChoiceError::NoVertexCredentials { conn_id: conn_id() });
            }
        };
        let models = format!("{models}/publishers/google/models");
        Ok(Arc::new(Gemini::new(
            name,
            "google-cloud",
            &models,
            endpoint,
        )?))
    }

    /// The connection's, or the one whose key file the environment names.
    fn service_account(
        &self,
        environment: &Environment,
    ) -> Result<Option<ServiceAccount>, ModelChoiceError> {
        let info = match self.extra.get("service_account_info") {
            // A field of a form holds text.
            Some(Value::String(text)) if !text.trim().is_empty() => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))
            }
            Some(info @ Value::Object(_)) => info.clone(),
            _ => {
                let path = environment.get("GOOGLE_APPLICATION_CREDENTIALS");
                let Some(path) = path.filter(|path| !path.is_empty()) else {
                    return Ok(None);
                };
                let unreadable =
                    |why: &dyn std::fmt::Display| ModelChoiceError::UnreadableKeyFile {
                        path: path.to_owned(),
                        why: why.to_string(),
                    };
                let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
                serde_json::from_str(&text).map_err(|error| unreadable(&error))?
            }
        };
        Ok(Some(ServiceAccount::new(&info, &self.masker)?))
    }
}

/// A connection's host as a base URL. A host that has the suffix already keeps it once.
fn with_suffix(host: &str, suffix: &str) -> String {
    let host = host.trim_end_matches('/');
    if host.ends_with(suffix) {
        host.to_owned()
    } else {
        format!("{host}{suffix}")
    }
}
