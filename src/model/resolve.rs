//! From an Airflow connection and a model id to a model.

use std::sync::Arc;

use serde_json::Value;

use super::fallback::FallbackModel;
use super::llm_connection::Llm;
use super::openai::chat_providers::{CHAT_PROVIDERS, chat_provider};
use super::own_apis::OWN_APIS;
use crate::agent::{Model, ModelError};
use crate::airflow::config::Environment;
use crate::airflow::connection::{Connection, MalformedConnection};
use crate::airflow::python_text::{repr_str, repr_value};
use crate::control_plane::resolve::{ResolveError, Resolver};
use crate::secrets::Masker;

/// The logger of the Python hook, under which these lines stand in a task log.
pub(super) const LOGGER: &str =
    "airflow.task.hooks.airflow.providers.common.ai.hooks.pydantic_ai.PydanticAIHook";

/// The connection types that name a model, in the order in which an error lists them.
const CONN_TYPES: [&str; 4] = [
    "pydanticai",
    "pydanticai_azure",
    "pydanticai_bedrock",
    "pydanticai_vertex",
];

/// Prefixes that pydantic-ai knows beside those of [`super::openai::chat_providers`].
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

/// Providers whose address and credentials are made of several fields.
const PLATFORMS: [&str; 3] = ["azure-responses", "bedrock", "google-cloud"];

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
    /// A provider that is not reached from here.
    #[error(
        "Connection '{conn_id}' asks for '{model}', and models of '{prefix}' are not reached natively; those of {} are. \
         Send the task to a queue that a Python worker serves, or reach the model through an OpenAI-compatible server \
         with 'openai-chat:<model>' and the server's address as the connection's host.",
        served_prefixes().join(", ")
    )]
    NotServed {
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
        "Connection '{conn_id}' has no credentials for Bedrock: put 'aws_access_key_id' and 'aws_secret_access_key', or \
         'api_key' (a Bedrock API key), into its extra, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or \
         AWS_BEARER_TOKEN_BEDROCK, in the worker's environment. Profiles ('profile_name') and the roles of machines are \
         not looked up natively."
    )]
    NoBedrockCredentials { conn_id: String },
    #[error(
        "Connection '{conn_id}' has no region for Bedrock: put 'region_name' into its extra, or set AWS_REGION in the \
         worker's environment."
    )]
    NoBedrockRegion { conn_id: String },
    #[error(
        "Connection '{conn_id}' has no credentials for Vertex AI: put 'service_account_info' (the JSON of a service \
         account's key) or 'api_key' into its extra, or name a key file in GOOGLE_APPLICATION_CREDENTIALS in the \
         worker's environment. Other default credentials of Google Cloud are not looked up natively."
    )]
    NoVertexCredentials { conn_id: String },
    #[error(
        "Connection '{conn_id}' has no 'project' for Vertex AI in its extra, and GOOGLE_CLOUD_PROJECT is not set in the \
         worker's environment."
    )]
    NoVertexProject { conn_id: String },
    /// `GOOGLE_APPLICATION_CREDENTIALS`.
    #[error("the key file {path} of Google Cloud can't be read: {why}")]
    UnreadableKeyFile { path: String, why: String },
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

/// The prefixes of all providers that are reached from here.
#[must_use]
pub fn served_prefixes() -> Vec<&'static str> {
    let chat = CHAT_PROVIDERS.iter().map(|provider| provider.prefix);
    let own = OWN_APIS.iter().map(|provider| provider.prefix);
    let mut all: Vec<&str> = chat.chain(own).chain(PLATFORMS).collect();
    all.sort_unstable();
    all
}

/// Why a model that a task names can't be had, as far as its name tells; `None` when it can or the connection decides.
#[must_use]
pub fn obstacle_of_name(model: &str) -> Option<String> {
    let (prefix, _) = model.split_once(':')?;
    if known_prefix(model).is_none() || served_prefixes().contains(&prefix) {
        return None;
    }
    Some(format!(
        "models of '{prefix}' are not reached natively; those of {} are",
        served_prefixes().join(", ")
    ))
}

/// The prefix of a model id, if pydantic-ai knows it as a provider.
pub(super) fn known_prefix(model: &str) -> Option<&str> {
    let (prefix, _) = model.split_once(':')?;
    let bare = prefix.strip_prefix("gateway/").unwrap_or(prefix);
    (chat_provider(bare).is_some() || OTHER_PREFIXES.contains(&bare)).then_some(prefix)
}

pub(super) fn chain(conn_id: &str, list: &Value) -> Result<Vec<String>, ModelChoiceError> {
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

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
