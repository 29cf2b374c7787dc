use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::control_plane::local::LocalControlPlane;
use crate::model::prefixes::{obstacle_of_name, served_prefixes};
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
    let elsewhere = connection("pydanticai", "github-copilot:gpt-5");
    let error = error(llm(), &[("llm", elsewhere)]).await;
    assert!(
        error.contains("models of 'github-copilot' are not reached natively; those of alibaba, anthropic, azure, "),
        "{error}"
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

/// Every prefix: where its requests go without a host, and what a request to one looks like.
#[tokio::test]
async fn every_provider_is_reached_at_its_address_with_its_key() {
    use wiremock::matchers::method;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    const CHAT: &str = "/chat/completions";
    let bearer = ("authorization", "Bearer sk-made-up");
    for (prefix, home, path, key) in [
        ("openai", "api.openai.com", "/responses", bearer),
        ("openai-responses", "api.openai.com", "/responses", bearer),
        ("openai-chat", "api.openai.com", CHAT, bearer),
        ("meta", "api.meta.ai", "/responses", bearer),
        ("anthropic", "api.anthropic.com", "/v1/messages", bearer),
        (
            "google",
            "generativelanguage.googleapis.com",
            "/v1beta/models/m:generateContent",
            ("x-goog-api-key", "sk-made-up"),
        ),
        ("cohere", "api.cohere.com", "/v2/chat", bearer),
        ("alibaba", "dashscope-intl.aliyuncs.com", CHAT, bearer),
        ("deepseek", "api.deepseek.com", CHAT, bearer),
        ("fireworks", "api.fireworks.ai", CHAT, bearer),
        ("github", "models.github.ai", CHAT, bearer),
        ("heroku", "us.inference.heroku.com", CHAT, bearer),
        ("litellm", "", CHAT, bearer),
        ("moonshotai", "api.moonshot.ai", CHAT, bearer),
        ("nebius", "api.studio.nebius.com", CHAT, bearer),
        (
            "ovhcloud",
            "oai.endpoints.kepler.ai.cloud.ovh.net",
            CHAT,
            bearer,
        ),
        ("sambanova", "api.sambanova.ai", CHAT, bearer),
        ("together", "api.together.xyz", CHAT, bearer),
        ("vercel", "ai-gateway.vercel.sh", CHAT, bearer),
        ("vllm", "", CHAT, bearer),
        ("openrouter", "openrouter.ai", CHAT, bearer),
        ("cerebras", "api.cerebras.ai", CHAT, bearer),
        ("crusoe", "api.inference.crusoecloud.com", CHAT, bearer),
        ("ollama", "", CHAT, bearer),
        ("zai", "api.z.ai", CHAT, bearer),
        ("huggingface", "router.huggingface.co", CHAT, bearer),
        (
            "snowflake",
            "",
            "/api/v2/cortex/v1/chat/completions",
            bearer,
        ),
        (
            "groq",
            "api.groq.com",
            "/openai/v1/chat/completions",
            bearer,
        ),
        ("mistral", "api.mistral.ai", "/v1/chat/completions", bearer),
        ("xai", "api.x.ai", CHAT, bearer),
    ] {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .respond_with(ResponseTemplate::new(400).set_body_string("no"))
            .mount(&server)
            .await;
        let at = |host: Value| {
            json!({
                "conn_type": "pydanticai", "password": "sk-made-up", "host": host,
                "extra": {"model": format!("{prefix}:m")},
            })
        };
        let near = at(server.uri().into());
        let model = resolved(llm(), &[("llm", near)], &[]).await.unwrap();
        let refused = model.request(&[], &Default::default()).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "status_code: 400, model_name: m, body: no",
            "{prefix}"
        );
        let requests = server.received_requests().await.unwrap();
        assert_eq!(requests[0].url.path(), path, "{prefix}");
        assert_eq!(requests[0].headers[key.0], key.1, "{prefix}");
        let away = resolved(llm(), &[("llm", at(Value::Null))], &[]).await;
        match away {
            Ok(model) => assert_eq!(model.server(), Some((home.to_owned(), 443)), "{prefix}"),
            Err(error) => assert!(home.is_empty() && error.contains("has no host"), "{error}"),
        }
    }
    let named: Vec<&str> = served_prefixes();
    assert_eq!(
        named.len(),
        30 + 4,
        "a prefix without a line above: {named:?}"
    );
}

#[tokio::test]
async fn azure_with_responses_has_its_version_in_the_query() {
    let old = json!({
        "conn_type": "pydanticai_azure", "password": "made-up", "host": "https://x.openai.azure.com",
        "extra": {"model": "azure-responses:gpt-5", "api_version": "2026-01-01"},
    });
    let model = resolved(llm(), &[("llm", old)], &[]).await.unwrap();
    assert_eq!((model.name(), model.provider()), ("gpt-5", "azure"));
    assert_eq!(model.server(), Some(("x.openai.azure.com".to_owned(), 443)));
}

fn bedrock(extra: &Value) -> Value {
    let mut all = json!({"model": "amazon.nova-lite-v1:0", "region_name": "eu-north-1"});
    if let (Value::Object(all), Value::Object(extra)) = (&mut all, extra) {
        all.extend(extra.clone());
    }
    json!({"conn_type": "pydanticai_bedrock", "extra": all})
}

#[tokio::test]
async fn bedrock_is_reached_with_a_token_or_with_keys_that_sign() {
    use wiremock::matchers::method;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(400).set_body_string("no"))
        .mount(&server)
        .await;
    for (extra, begins) in [
        (json!({"api_key": "made-up-token"}), "Bearer made-up-token"),
        (
            json!({
                "aws_access_key_id": "AKIDMADEUP", "aws_secret_access_key": "made-up", "aws_session_token": "session",
            }),
            "AWS4-HMAC-SHA256 Credential=AKIDMADEUP/",
        ),
    ] {
        let mut extra = extra;
        extra["base_url"] = server.uri().into();
        let model = resolved(llm(), &[("llm", bedrock(&extra))], &[]).await;
        let model = model.unwrap();
        assert!(model.request(&[], &Default::default()).await.is_err());
        let requests = server.received_requests().await.unwrap();
        let request = requests.last().unwrap();
        assert_eq!(
            request.url.path(),
            "/model/amazon.nova-lite-v1%3A0/converse"
        );
        let authorization = request.headers["authorization"].to_str().unwrap();
        assert!(authorization.starts_with(begins), "{authorization}");
    }
    let requests = server.received_requests().await.unwrap();
    let signed = &requests.last().unwrap().headers;
    assert_eq!(signed["x-amz-security-token"], "session");
    assert!(signed["authorization"].to_str().unwrap().contains(
        "/eu-north-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token, "
    ));

    let keys = [
        ("AWS_ACCESS_KEY_ID", "AKIDMADEUP"),
        ("AWS_SECRET_ACCESS_KEY", "made-up"),
    ];
    let model = resolved(llm(), &[("llm", bedrock(&json!({})))], &keys).await;
    assert_eq!(
        model.unwrap().server().unwrap().0,
        "bedrock-runtime.eu-north-1.amazonaws.com"
    );
    let error = error(llm(), &[("llm", bedrock(&json!({})))]).await;
    assert!(error.contains("has no credentials for Bedrock"), "{error}");
}

#[tokio::test]
async fn vertex_is_reached_with_a_key_and_says_what_else_there_is() {
    let vertex = |extra: Value| {
        let mut extra = extra;
        extra["model"] = "gemini-2.5-flash".into();
        json!({"conn_type": "pydanticai_vertex", "extra": extra})
    };
    let with_key = vertex(json!({"api_key": "made-up"}));
    let model = resolved(llm(), &[("llm", with_key)], &[]).await.unwrap();
    assert_eq!(
        (model.name(), model.provider()),
        ("gemini-2.5-flash", "google-cloud")
    );
    assert_eq!(model.server().unwrap().0, "aiplatform.googleapis.com");
    let without = vertex(json!({"project": "harbour"}));
    let error_text = error(llm(), &[("llm", without)]).await;
    assert!(
        error_text.contains("has no credentials for Vertex AI"),
        "{error_text}"
    );
    let broken = vertex(json!({"service_account_info": {"client_email": "x"}}));
    let error_text = error(llm(), &[("llm", broken)]).await;
    assert!(
        error_text.contains("is no key of a service account"),
        "{error_text}"
    );
}

#[test]
fn a_name_tells_whether_its_provider_is_reached() {
    assert_eq!(obstacle_of_name("anthropic:claude-opus-5"), None);
    assert_eq!(obstacle_of_name("gpt-5"), None);
    assert!(
        obstacle_of_name("voyageai:x")
            .unwrap()
            .starts_with("models of 'voyageai' are not reached natively; those of alibaba, ")
    );
}

#[tokio::test]
async fn the_test_model_needs_no_provider_and_no_key() {
    let model = resolved(llm(), &[("llm", connection("pydanticai", "test"))], &[]).await;
    assert_eq!(model.unwrap().name(), "test");
}
