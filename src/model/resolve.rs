//! From an Airflow connection and a model id to a model.

use std::sync::Arc;

use reqwest::header::HeaderMap;
use serde_json::{Map, Value};

use super::chat_providers::{ChatProvider, chat_provider};
use super::fallback::FallbackModel;
use super::genai::{GenaiModel, GenaiProvider, genai_provider};
use super::openai_chat::{Endpoint, OpenAiChat, secret_header};
use crate::agent::{Model, ModelError};
use crate::airflow::config::Environment;
use crate::airflow::connection::{Connection, MalformedConnection};
use crate::airflow::python_text::{repr_str, repr_value};
use crate::control_plane::resolve::{ResolveError, Resolver};
use crate::secrets::Masker;

/// The logger of the Python hook, under which these lines stand in a task log.
const LOGGER: &str =
    "airflow.task.hooks.airflow.providers.common.ai.hooks.pydantic_ai.PydanticAIHook";

/// The connection types that name a model, in the order in which an error lists them.
const CONN_TYPES: [&str; 4] = [
    "pydanticai",
    "pydanticai_azure",
    "pydanticai_bedrock",
    "pydanticai_vertex",
];

/// Prefixes that pydantic-ai knows beside those of [`super::chat_providers`].
const OTHER_PREFIXES: &[&str] = &[
    "openai",
    "openai-responses",
    "openai-decisions",
    "openai-codex",
    "openai-chatgpt",
    "azure-responses",
    "google",
    "google-decisions",
    "google-cloud",
    "bedrock",
    "bedrock-mantle",
    "anthropic",
    "cohere",
    "system-one",
    "elevenlabs",
    "meta",
    "huggingface",
    "github-copilot",
    "sentence-transformers",
    "snowflake",
    "typesafe",
    "voyageai",
];

/// Which model a task wants.
#[derive(Clone, Copy, Debug)]
pub struct ModelChoice<'a> {
    pub llm_conn_id: &'a str,
    /// Goes over the connection's own model.
    pub model_id: Option<&'a str>,
    /// Goes over the connection's own chain; an empty list switches it off.
    pub fallback_conn_ids: Option<&'a Value>,
}

/// Why there is no model. Where the Python hook has a text, it is that one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelChoiceError {
    #[error(transparent)]
    Connection(#[from] ResolveError),
    #[error(transparent)]
    Malformed(#[from] MalformedConnection),
    /// A connection of another kind.
    #[error(
        "Connection {} has type {}, but a Pydantic AI hook needs one of {}. Change the connection type to \
         'pydanticai', put the API key in the API Key field (stored as the password) and the model (e.g. \
         'openai:gpt-5') in Model.",
        repr_str(conn_id), repr_str(conn_type), repr_value(&Value::from(CONN_TYPES.to_vec()))
    )]
    WrongType { conn_id: String, conn_type: String },
    #[error(
        "No model specified for connection '{conn_id}'. Set model_id on the hook or the Model field on the connection."
    )]
    NoModel { conn_id: String },
    #[error(
        "Connection '{conn_id}' has no default model provider, so the bare model name '{model}' cannot be resolved. \
         Use a vendor connection type (Azure/Bedrock/Vertex) or set an explicit 'provider:model' string."
    )]
    BareName { conn_id: String, model: String },
    #[error(
        "Connection '{conn_id}' has no default model provider, so the bare model name '{model}' -- forwarded from \
         primary connection '{primary}' -- cannot be resolved here. Give '{primary}' a 'provider:model' string, or \
         set an explicit 'model' on '{conn_id}'."
    )]
    ForwardedBareName {
        conn_id: String,
        model: String,
        primary: String,
    },
    #[error(
        "Connection '{conn_id}' has no default model provider, and '{prefix}' is not a provider pydantic-ai \
         recognizes, so '{model}' cannot be resolved. If this is a vendor's own model id containing a ':' (e.g. a \
         Bedrock-style version-suffixed id), use a vendor connection type (Azure/Bedrock/Vertex) instead; if \
         '{prefix}' is meant to be a provider prefix, check it for a typo."
    )]
    UnknownPrefix {
        conn_id: String,
        prefix: String,
        model: String,
    },
    #[error(
        "fallback_conn_ids for connection '{conn_id}' must be a list of connection IDs, got {got}."
    )]
    MalformedChain { conn_id: String, got: String },
    #[error(
        "Fallback chain for connection '{conn_id}' lists the primary connection as one of its own fallbacks; every \
         fallback must differ from the primary."
    )]
    ChainHoldsPrimary { conn_id: String },
    #[error(
        "Fallback chain for connection '{conn_id}' lists '{fallback}' more than once; every entry must be distinct."
    )]
    ChainRepeats { conn_id: String, fallback: String },
    #[error(
        "Fallback connection '{fallback}' resolves to {hook}, which is not a PydanticAIHook. Only pydanticai \
         connection types can be used as fallbacks for '{conn_id}'."
    )]
    FallbackOfOtherKind {
        conn_id: String,
        fallback: String,
        hook: String,
    },
    #[error(
        "Fallback connection '{fallback}' declares its own fallback_conn_ids. Chains are not resolved recursively -- \
         list every provider directly on '{conn_id}' instead."
    )]
    NestedChain { conn_id: String, fallback: String },
    /// A provider that has no adapter here.
    #[error(
        "Connection '{conn_id}' asks for '{model}', and the provider '{prefix}' has no native adapter yet: send the \
         task to a queue that a Python worker serves, or reach the model through an OpenAI-compatible server with \
         'openai-chat:<model>' and the server's address as the connection's host."
    )]
    NoAdapter {
        conn_id: String,
        prefix: String,
        model: String,
    },
    #[error(
        "Connection '{conn_id}' has no password (the API key), and {} not set in the worker's environment.",
        match variables.as_slice() { [one] => format!("{one} is"), all => format!("{} are", all.join(" and ")) }
    )]
    NoKey {
        conn_id: String,
        variables: Vec<String>,
    },
    #[error(
        "Connection '{conn_id}' has no 'api_key' (a Bedrock API key) in its extra, and AWS_BEARER_TOKEN_BEDROCK is not \
         set in the worker's environment. IAM credentials can't be used here yet: make a Bedrock API key, or send the \
         task to a queue that a Python worker serves."
    )]
    NoBedrockToken { conn_id: String },
    #[error(
        "Connection '{conn_id}' has no host, and the provider '{prefix}' has no fixed address: set the connection's \
         host to the server's base URL, such as http://localhost:8000/v1."
    )]
    NoHost { conn_id: String, prefix: String },
    #[error(
        "Connection '{conn_id}' needs 'api_version' in its extra (or OPENAI_API_VERSION in the worker's environment) \
         for the Azure endpoint {endpoint}; endpoints that end in /v1 need none."
    )]
    NoApiVersion { conn_id: String, endpoint: String },
    #[error(
        "Connection '{conn_id}' sets 'api_version', which the Azure endpoint {endpoint} does not accept: remove it \
         from the connection's extra."
    )]
    NeedlessApiVersion { conn_id: String, endpoint: String },
    #[error(transparent)]
    Adapter(#[from] ModelError),
}

/// A model by its name alone, such as `openai:gpt-5`: the key is the provider's variable in the environment.
///
/// # Errors
/// See [`ModelChoiceError`].
pub fn named(
    model: &str,
    masker: &Masker,
    environment: &Environment,
) -> Result<Arc<dyn Model>, ModelChoiceError> {
    let nowhere = Connection {
        conn_id: model.to_owned(),
        conn_type: "pydanticai".to_owned(),
        host: None,
        schema: None,
        login: None,
        password: None,
        port: None,
        extra: None,
    };
    Llm::of(nowhere, masker)?.resolve(Some(model), None, environment)
}

/// The model of a connection, or the chain of models when there are fallbacks.
///
/// # Errors
/// See [`ModelChoiceError`].
pub async fn resolve(
    choice: ModelChoice<'_>,
    resolver: &Resolver,
    environment: &Environment,
) -> Result<Arc<dyn Model>, ModelChoiceError> {
    let masker = resolver.masker();
    let primary = Llm::of(resolver.connection(choice.llm_conn_id).await?, masker)?;
    let conn_id = choice.llm_conn_id;
    let configured = choice
        .model_id
        .filter(|id| !id.is_empty())
        .or(primary.model());
    let model = primary.resolve(configured, None, environment)?;
    let fallbacks = match choice.fallback_conn_ids {
        Some(list) => chain(conn_id, list)?,
        None => primary.own_chain()?,
    };
    if fallbacks.is_empty() {
        return Ok(model);
    }
    tracing::info!(
        target: "airflow.task", logger = LOGGER, "Resolving LLM fallback chain: {conn_id} -> {}", fallbacks.join(" -> ")
    );
    let mut others: Vec<Arc<dyn Model>> = Vec::new();
    for (index, fallback) in fallbacks.iter().enumerate() {
        if fallback == conn_id {
            return Err(ModelChoiceError::ChainHoldsPrimary {
                conn_id: conn_id.to_owned(),
            });
        }
        if fallbacks
            .iter()
            .take(index)
            .any(|earlier| earlier == fallback)
        {
            return Err(ModelChoiceError::ChainRepeats {
                conn_id: conn_id.to_owned(),
                fallback: fallback.clone(),
            });
        }
        let connection = resolver.connection(fallback).await?;
        if !CONN_TYPES.contains(&connection.conn_type.as_str()) {
            return Err(ModelChoiceError::FallbackOfOtherKind {
                conn_id: conn_id.to_owned(),
                fallback: fallback.clone(),
                hook: hook_class(&connection.conn_type),
            });
        }
        let spare = Llm::of(connection, masker)?;
        if !spare.own_chain()?.is_empty() {
            return Err(ModelChoiceError::NestedChain {
                conn_id: conn_id.to_owned(),
                fallback: fallback.clone(),
            });
        }
        // A bare name says which model, not whose, so the fallback may offer it too. A name with a colon of its own
        // (Bedrock's) means something only on the platform it came from.
        let forwarded = configured.filter(|name| {
            known_prefix(name).is_none()
                && (!name.contains(':') || spare.platform == primary.platform)
        });
        others.push(match spare.model() {
            Some(own) => spare.resolve(Some(own), None, environment)?,
            None => spare.resolve(forwarded, Some(conn_id), environment)?,
        });
    }
    Ok(Arc::new(FallbackModel::new(model, others)))
}

/// The prefix of a model id, if pydantic-ai knows it as a provider.
fn known_prefix(model: &str) -> Option<&str> {
    let (prefix, _) = model.split_once(':')?;
    let bare = prefix.strip_prefix("gateway/").unwrap_or(prefix);
    (chat_provider(bare).is_some() || OTHER_PREFIXES.contains(&bare)).then_some(prefix)
}

fn chain(conn_id: &str, list: &Value) -> Result<Vec<String>, ModelChoiceError> {
    let malformed = || ModelChoiceError::MalformedChain {
        conn_id: conn_id.to_owned(),
        got: repr_value(list),
    };
    let Value::Array(items) = list else {
        return Err(malformed());
    };
    let mut ids = Vec::new();
    for item in items {
        let id = item.as_str().ok_or_else(malformed)?.trim();
        if !id.is_empty() {
            ids.push(id.to_owned());
        }
    }
    Ok(ids)
}

/// The class a connection type's hook has in Airflow, for the one message that shows it.
fn hook_class(conn_type: &str) -> String {
    match conn_type {
        "sqlite" => "SqliteHook",
        "postgres" => "PostgresHook",
        "mysql" => "MySqlHook",
        "mssql" => "MsSqlHook",
        "snowflake" => "SnowflakeHook",
        "http" => "HttpHook",
        "aws" => "AwsGenericHook",
        "google_cloud_platform" => "GoogleBaseHook",
        "mcp" => "MCPHook",
        "ssh" => "SSHHook",
        "fs" => "FSHook",
        other => return format!("a hook for {}", repr_str(other)),
    }
    .to_owned()
}

/// A connection that names a model.
struct Llm {
    connection: Connection,
    extra: Map<String, Value>,
    /// The prefix of bare model names.
    platform: Option<&'static str>,
    /// Learns the keys that come from the environment.
    masker: Masker,
}

impl Llm {
    fn of(connection: Connection, masker: &Masker) -> Result<Self, ModelChoiceError> {
        let platform = match connection.conn_type.as_str() {
            "pydanticai" => None,
            "pydanticai_azure" => Some("azure"),
            "pydanticai_bedrock" => Some("bedrock"),
            "pydanticai_vertex" => Some("google-cloud"),
            other => {
                return Err(ModelChoiceError::WrongType {
                    conn_type: other.to_owned(),
                    conn_id: connection.conn_id,
                });
            }
        };
        let extra = connection.extra_json()?;
        Ok(Self {
            connection,
            extra,
            platform,
            masker: masker.clone(),
        })
    }

    fn model(&self) -> Option<&str> {
        self.text("model")
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.extra
            .get(key)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    fn own_chain(&self) -> Result<Vec<String>, ModelChoiceError> {
        match self.extra.get("fallback_conn_ids") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(list) => chain(&self.connection.conn_id, list),
        }
    }

    fn host(&self) -> Option<&str> {
        self.connection
            .host
            .as_deref()
            .filter(|host| !host.is_empty())
    }

    fn password(&self) -> Option<&str> {
        self.connection
            .password
            .as_deref()
            .filter(|password| !password.is_empty())
    }

    /// `primary` is the connection a name was forwarded from.
    fn resolve(
        &self,
        model: Option<&str>,
        primary: Option<&str>,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let conn_id = &self.connection.conn_id;
        let Some(model) = model else {
            return Err(ModelChoiceError::NoModel {
                conn_id: conn_id.clone(),
            });
        };
        let qualified = self.qualify(model, primary)?;
        let given = self.given_credentials();
        if !given.is_empty() {
            let given = repr_value(&Value::from(given));
            tracing::info!(
                target: "airflow.task",
                logger = LOGGER,
                "Using explicit credentials for provider with model '{qualified}': {given}"
            );
        }
        let Some((prefix, name)) = qualified.split_once(':') else {
            return Err(ModelChoiceError::NoAdapter {
                conn_id: conn_id.clone(),
                prefix: qualified.clone(),
                model: qualified.clone(),
            });
        };
        match (chat_provider(prefix), genai_provider(prefix)) {
            (Some(provider), _) if prefix == "azure" => self.azure(name, *provider, environment),
            (Some(provider), _) => self.chat(name, *provider, environment),
            (None, Some(provider)) if prefix == "bedrock" => {
                self.bedrock(name, *provider, environment)
            }
            (None, Some(provider)) => {
                let key = self.key(provider.key_env, None, environment)?;
                let base_url = match self.host() {
                    Some(host) => with_suffix(host, provider.host_suffix),
                    None => provider.base_url.to_owned(),
                };
                Ok(Arc::new(GenaiModel::new(name, *provider, &base_url, &key)?))
            }
            (None, None) => Err(ModelChoiceError::NoAdapter {
                conn_id: conn_id.clone(),
                prefix: prefix.to_owned(),
                model: qualified.clone(),
            }),
        }
    }

    /// Bedrock with a bearer token; requests signed with IAM keys have no adapter here.
    fn bedrock(
        &self,
        name: &str,
        provider: GenaiProvider,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let set = |name: &str| environment.get(name).filter(|text| !text.is_empty());
        let token = self
            .text("api_key")
            .or_else(|| self.key_from(provider.key_env, environment));
        let Some(token) = token else {
            return Err(ModelChoiceError::NoBedrockToken {
                conn_id: self.connection.conn_id.clone(),
            });
        };
        let region = self
            .text("region_name")
            .or_else(|| set("AWS_REGION"))
            .or_else(|| set("AWS_DEFAULT_REGION"));
        let base_url = match self.text("base_url") {
            Some(base_url) => base_url.to_owned(),
            None => format!(
                "https://bedrock-runtime.{}.amazonaws.com",
                region.unwrap_or("us-east-1")
            ),
        };
        Ok(Arc::new(GenaiModel::new(name, provider, &base_url, token)?))
    }

    fn qualify(&self, model: &str, primary: Option<&str>) -> Result<String, ModelChoiceError> {
        if model == "test" || known_prefix(model).is_some() {
            return Ok(model.to_owned());
        }
        let conn_id = self.connection.conn_id.clone();
        let prefix = model.split_once(':').map(|(prefix, _)| prefix);
        match (self.platform, primary, prefix) {
            (Some(platform), _, prefix) => {
                if let Some(prefix) = prefix.filter(|prefix| looks_like_a_provider(prefix)) {
                    tracing::warn!(
                        target: "airflow.task",
                        logger = LOGGER,
                        "Model name '{model}' on connection '{conn_id}' contains ':' but its prefix '{prefix}' is not \
                         a provider pydantic-ai recognizes; treating the whole string as a bare {platform} model id \
                         and resolving it as '{platform}:{model}'. If '{prefix}' was meant to be a provider prefix, \
                         this looks like it might be a typo."
                    );
                }
                Ok(format!("{platform}:{model}"))
            }
            (None, Some(primary), _) => Err(ModelChoiceError::ForwardedBareName {
                conn_id,
                model: model.to_owned(),
                primary: primary.to_owned(),
            }),
            (None, None, Some(prefix)) => Err(ModelChoiceError::UnknownPrefix {
                conn_id,
                prefix: prefix.to_owned(),
                model: model.to_owned(),
            }),
            (None, None, None) => Err(ModelChoiceError::BareName {
                conn_id,
                model: model.to_owned(),
            }),
        }
    }

    /// The names of the arguments that the Python hook would hand to the provider, for the log line.
    fn given_credentials(&self) -> Vec<&'static str> {
        let fields: &[(&str, bool)] = match self.platform {
            None => &[
                ("api_key", self.password().is_some()),
                ("base_url", self.host().is_some()),
            ],
            Some("azure") => &[
                ("api_key", self.password().is_some()),
                ("azure_endpoint", self.host().is_some()),
                ("api_version", self.text("api_version").is_some()),
            ],
            Some(_) => &[],
        };
        fields
            .iter()
            .filter(|(_, given)| *given)
            .map(|(name, _)| *name)
            .collect()
    }

    /// A key from the worker's environment, which is a secret like any other from now on.
    fn key_from<'a>(&self, variables: &[&str], environment: &'a Environment) -> Option<&'a str> {
        let key = variables
            .iter()
            .find_map(|name| environment.get(name).filter(|key| !key.is_empty()))?;
        self.masker.add_secret(key);
        Some(key)
    }

    /// The connection's password, or a variable of the worker's environment, or a placeholder.
    fn key(
        &self,
        variables: &[&str],
        placeholder: Option<&str>,
        environment: &Environment,
    ) -> Result<String, ModelChoiceError> {
        self.password()
            .or_else(|| self.key_from(variables, environment))
            .or(placeholder)
            .map(str::to_owned)
            .ok_or_else(|| ModelChoiceError::NoKey {
                conn_id: self.connection.conn_id.clone(),
                variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            })
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
    /// deployment in the path, the version in the query, and a header of its own for the key.
    fn azure(
        &self,
        name: &str,
        provider: ChatProvider,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, ModelChoiceError> {
        let conn_id = || self.connection.conn_id.clone();
        let Some(endpoint) = self.host().or_else(|| {
            environment
                .get(provider.base_url_env)
                .filter(|url| !url.is_empty())
        }) else {
            return Err(ModelChoiceError::NoHost {
                conn_id: conn_id(),
                prefix: provider.prefix.to_owned(),
            });
        };
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let key = self.key(provider.key_env, None, environment)?;
        let version = self.text("api_version");
        let like_openai = if endpoint.ends_with("/v1") {
            Some(endpoint.clone())
        } else if endpoint.ends_with(".models.ai.azure.com") {
            Some(format!("{endpoint}/v1"))
        } else {
            None
        };
        let endpoint = match (
            like_openai,
            version.or_else(|| environment.get("OPENAI_API_VERSION")),
        ) {
            (Some(_), _) if version.is_some() => {
                return Err(ModelChoiceError::NeedlessApiVersion {
                    conn_id: conn_id(),
                    endpoint,
                });
            }
            (Some(base_url), _) => Endpoint::bearer(&base_url, &key)?,
            (None, None) => {
                return Err(ModelChoiceError::NoApiVersion {
                    conn_id: conn_id(),
                    endpoint,
                });
            }
            (None, Some(version)) => {
                let mut headers = HeaderMap::new();
                headers.insert("api-key", secret_header(&key)?);
                Endpoint {
                    base_url: format!("{endpoint}/openai/deployments/{name}"),
                    query: format!("?api-version={version}"),
                    headers,
                }
            }
        };
        Ok(Arc::new(OpenAiChat::new(name, provider, endpoint)?))
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

/// Lower-case words with hyphens: the form of a provider's name, misspelt perhaps.
fn looks_like_a_provider(prefix: &str) -> bool {
    prefix.starts_with(|c: char| c.is_ascii_lowercase())
        && prefix.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
