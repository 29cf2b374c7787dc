use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::control_plane::local::LocalControlPlane;
use crate::secrets::{Masker, SearchPath};

/// Resolves with connections (id, JSON) and further variables in the environment.
async fn resolved(
    choice: ModelChoice<'_>,
    connections: &[(&str, Value)],
    variables: &[(&str, &str)],
) -> Result<Arc<dyn Model>, String> {
    let environment: Environment = connections
        .iter()
        .map(|(id, json)| {
            (
                format!("AIRFLOW_CONN_{}", id.to_uppercase()),
                json.to_string(),
            )
        })
        .chain(
            variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
        .collect();
    let resolver = Resolver::new(
        SearchPath::of_environment(environment.clone()),
        Arc::new(LocalControlPlane::new()),
        Masker::new(),
    );
    resolve(choice, &resolver, &environment)
        .await
        .map_err(|error| error.to_string())
}

fn llm() -> ModelChoice<'static> {
    ModelChoice {
        llm_conn_id: "llm",
        model_id: None,
        fallback_conn_ids: None,
    }
}

fn connection(conn_type: &str, model: &str) -> Value {
    json!({
        "conn_type": conn_type, "password": "sk-made-up", "host": "http://localhost:1/v1",
        "extra": {"model": model},
    })
}

async fn error(choice: ModelChoice<'_>, connections: &[(&str, Value)]) -> String {
    resolved(choice, connections, &[]).await.err().unwrap()
}

#[tokio::test]
async fn a_chat_model_is_named_without_its_prefix_and_reached_at_the_host() {
    let model = resolved(
        llm(),
        &[("llm", connection("pydanticai", "openai-chat:gpt-5"))],
        &[],
    )
    .await
    .unwrap();
    assert_eq!((model.name(), model.provider()), ("gpt-5", "openai"));
    assert_eq!(model.server(), Some(("localhost".to_owned(), 1)));
}

#[tokio::test]
async fn the_operators_model_goes_over_the_connections() {
    let choice = ModelChoice {
        model_id: Some("anthropic:claude-sonnet-4-5"),
        ..llm()
    };
    let model = resolved(
        choice,
        &[("llm", connection("pydanticai", "openai-chat:gpt-5"))],
        &[],
    )
    .await
    .unwrap();
    assert_eq!(
        (model.name(), model.provider()),
        ("claude-sonnet-4-5", "anthropic")
    );
}

#[tokio::test]
async fn a_bare_name_takes_the_platform_of_a_vendor_connection() {
    let connection = json!({
        "conn_type": "pydanticai_azure", "password": "made-up", "host": "https://x.openai.azure.com/openai/v1/",
        "extra": {"model": "gpt-5"},
    });
    let model = resolved(llm(), &[("llm", connection)], &[]).await.unwrap();
    assert_eq!((model.name(), model.provider()), ("gpt-5", "azure"));
}

#[tokio::test]
async fn names_that_say_no_provider_are_refused_with_the_hooks_texts() {
    assert_eq!(
        error(llm(), &[("llm", connection("pydanticai", "gpt-5"))]).await,
        "Connection 'llm' has no default model provider, so the bare model name 'gpt-5' cannot be resolved. Use a \
         vendor connection type (Azure/Bedrock/Vertex) or set an explicit 'provider:model' string."
    );
    assert_eq!(
        error(llm(), &[("llm", json!({"conn_type": "pydanticai"}))]).await,
        "No model specified for connection 'llm'. Set model_id on the hook or the Model field on the connection."
    );
    assert_eq!(
        error(llm(), &[("llm", connection("http", "x"))]).await,
        "Connection 'llm' has type 'http', but a Pydantic AI hook needs one of ['pydanticai', 'pydanticai_azure', \
         'pydanticai_bedrock', 'pydanticai_vertex']. Change the connection type to 'pydanticai', put the API key in the \
         API Key field (stored as the password) and the model (e.g. 'openai:gpt-5') in Model."
    );
    assert_eq!(error(llm(), &[]).await, "The conn_id `llm` isn't defined");
}

#[tokio::test]
async fn keys_from_the_environment_are_secrets_and_placeholders_are_none() {
    let llm_of = |model: &str, host: Option<&str>| {
        json!({"conn_type": "pydanticai", "host": host, "extra": {"model": model}}).to_string()
    };
    for (connection, variable, masked) in [
        (
            llm_of("deepseek:deepseek-chat", None),
            "DEEPSEEK_API_KEY",
            "***",
        ),
        (llm_of("anthropic:claude", None), "ANTHROPIC_API_KEY", "***"),
        (
            llm_of("openai-chat:x", Some("http://localhost:1/v1")),
            "UNRELATED",
            "api-key-not-set",
        ),
    ] {
        let environment: Environment = [
            ("AIRFLOW_CONN_LLM", connection.as_str()),
            (variable, "sk-made-up"),
        ]
        .into_iter()
        .collect();
        let resolver = Resolver::new(
            SearchPath::of_environment(environment.clone()),
            Arc::new(LocalControlPlane::new()),
            Masker::new(),
        );
        assert!(resolve(llm(), &resolver, &environment).await.is_ok());
        let secret = if masked == "***" {
            "sk-made-up"
        } else {
            masked
        };
        assert_eq!(resolver.masker().mask_str(secret), masked, "{variable}");
    }
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let no_key = json!({"conn_type": "pydanticai", "extra": {"model": "deepseek:deepseek-chat"}});
    assert_eq!(
        error(llm(), &[("llm", no_key.clone())]).await,
        "Connection 'llm' has no password (the API key), and DEEPSEEK_API_KEY is not set in the worker's environment."
    );
    assert!(
        resolved(
            llm(),
            &[("llm", no_key)],
            &[("DEEPSEEK_API_KEY", "made-up")]
        )
        .await
        .is_ok()
    );
    let no_host = json!({"conn_type": "pydanticai", "extra": {"model": "ollama:qwen3"}});
    assert!(
        error(llm(), &[("llm", no_host)])
            .await
            .contains("has no host")
    );
    let no_version = json!({
        "conn_type": "pydanticai_azure", "password": "made-up", "host": "https://x.openai.azure.com",
        "extra": {"model": "gpt-5"},
    });
    assert!(
        error(llm(), &[("llm", no_version)])
            .await
            .contains("needs 'api_version'")
    );
    let elsewhere = connection("pydanticai", "huggingface:meta/llama");
    assert!(
        error(llm(), &[("llm", elsewhere)])
            .await
            .contains("has no native adapter yet")
    );
}

#[tokio::test]
async fn a_chain_forwards_a_bare_model_name_and_nothing_else() {
    let primary = json!({
        "conn_type": "pydanticai_azure", "password": "made-up", "host": "https://x.openai.azure.com/openai/v1",
        "extra": {"model": "gpt-5", "fallback_conn_ids": [" spare ", ""]},
    });
    let spare = json!({
        "conn_type": "pydanticai_azure", "password": "made-up", "host": "https://y.openai.azure.com/openai/v1",
    });
    let model = resolved(llm(), &[("llm", primary.clone()), ("spare", spare)], &[])
        .await
        .unwrap();
    assert_eq!(model.name(), "fallback:gpt-5,gpt-5");
    let generic = json!({"conn_type": "pydanticai", "password": "made-up"});
    assert_eq!(
        error(llm(), &[("llm", primary), ("spare", generic)]).await,
        "Connection 'spare' has no default model provider, so the bare model name 'gpt-5' -- forwarded from primary \
         connection 'llm' -- cannot be resolved here. Give 'llm' a 'provider:model' string, or set an explicit 'model' \
         on 'spare'."
    );
}

#[tokio::test]
async fn a_chain_that_makes_no_sense_is_refused() {
    let llm_connection = connection("pydanticai", "openai-chat:gpt-5");
    let spare = connection("pydanticai", "openai-chat:gpt-4o");
    let nested = json!({
        "conn_type": "pydanticai", "password": "made-up",
        "extra": {"model": "openai-chat:gpt-5", "fallback_conn_ids": ["llm"]},
    });
    let connections = [
        ("llm", llm_connection),
        ("spare", spare),
        ("nested", nested),
        ("db", json!({"conn_type": "sqlite"})),
    ];
    for (chain, text) in [
        (
            json!("spare"),
            "fallback_conn_ids for connection 'llm' must be a list of connection IDs, got 'spare'.",
        ),
        (json!(["spare", "spare"]), "lists 'spare' more than once"),
        (
            json!(["llm"]),
            "lists the primary connection as one of its own fallbacks",
        ),
        (
            json!(["db"]),
            "Fallback connection 'db' resolves to SqliteHook, which is not a PydanticAIHook.",
        ),
        (
            json!(["nested"]),
            "Fallback connection 'nested' declares its own fallback_conn_ids.",
        ),
    ] {
        let error = error(
            ModelChoice {
                fallback_conn_ids: Some(&chain),
                ..llm()
            },
            &connections,
        )
        .await;
        assert!(error.contains(text), "{error}");
    }
    let off = json!([]);
    let model = resolved(
        ModelChoice {
            fallback_conn_ids: Some(&off),
            ..llm()
        },
        &connections,
        &[],
    )
    .await
    .unwrap();
    assert_eq!(model.name(), "gpt-5");
}
