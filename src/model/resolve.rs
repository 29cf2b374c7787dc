//! From an Airflow connection and a model id to a model.

use std::sync::Arc;

use serde_json::Value;

use super::choice_error::{CONN_TYPES, ModelChoiceError};
use super::fallback::FallbackModel;
use super::llm_connection::{LOGGER, Llm, chain};
use super::prefixes::known_prefix;
use crate::agent::Model;
use crate::airflow::config::Environment;
use crate::airflow::connection::Connection;
use crate::airflow::python_text::repr_str;
use crate::control_plane::resolve::Resolver;
use crate::secrets::Masker;

/// Which model a task wants.
#[derive(Clone, Copy, Debug)]
pub struct ModelChoice<'a> {
    pub llm_conn_id: &'a str,
    /// Goes over the connection's own model.
    pub model_id: Option<&'a str>,
    /// Goes over the connection's own chain; an empty list switches it off.
    pub fallback_conn_ids: Option<&'a Value>,
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
