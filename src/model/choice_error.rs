//! Why there is no model.

use serde_json::Value;

use super::prefixes::served_prefixes;
use crate::agent::ModelError;
use crate::airflow::connection::MalformedConnection;
use crate::airflow::python_text::{repr_str, repr_value};
use crate::control_plane::resolve::ResolveError;

/// The connection types that name a model, in the order in which an error lists them.
pub(super) const CONN_TYPES: [&str; 4] = [
    "pydanticai",
    "pydanticai_azure",
    "pydanticai_bedrock",
    "pydanticai_vertex",
];

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
