//! Against a made-up Vault for what a real one does not do on request; `tests/it` asks a real server.

use pretty_assertions::assert_eq;
use serde_json::json;
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;

fn backend(server: &str, more: Value) -> Result<VaultBackend, BackendError> {
    let mut kwargs = json!({"url": server, "token": "made-up-token"});
    if let (Value::Object(kwargs), Value::Object(more)) = (&mut kwargs, more) {
        kwargs.extend(more);
    }
    let kwargs = kwargs.to_string();
    let config = Config::new(
        [
            ("AIRFLOW_HOME", "/nonexistent"),
            ("AIRFLOW__WORKERS__SECRETS_BACKEND_KWARGS", &kwargs),
        ]
        .into_iter()
        .collect(),
    );
    let kwargs = Kwargs::read(&config, "workers", "secrets_backend_kwargs")?;
    VaultBackend::new(kwargs, &config)
}

fn secret(value: Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!({"data": {"data": value, "metadata": {}}}))
}

async fn serve(server: &MockServer, at: &str, answer: ResponseTemplate) {
    Mock::given(method("GET"))
        .and(path(at))
        .respond_with(answer)
        .mount(server)
        .await;
}

#[tokio::test]
async fn a_connection_is_a_uri_or_the_fields_of_the_secret() {
    let server = MockServer::start().await;
    let uri = json!({"conn_uri": "mysql://ada:made-up@db", "host": "not this"});
    serve(&server, "/v1/secret/data/connections/a", secret(uri)).await;
    let fields = json!({"conn_type": "postgresql", "port": 5432, "extra": {"sslmode": "require"}});
    serve(&server, "/v1/secret/data/connections/b", secret(fields)).await;
    let vault = backend(&server.uri(), json!({})).unwrap();
    let a = vault.connection("a").await.unwrap().unwrap();
    assert_eq!(
        (a.conn_id.as_str(), a.host.as_deref(), a.login.as_deref()),
        ("a", Some("db"), Some("ada"))
    );
    let b = vault.connection("b").await.unwrap().unwrap();
    assert_eq!(
        (b.conn_type.as_str(), b.port, b.extra.as_deref()),
        ("postgres", Some(5432), Some(r#"{"sslmode": "require"}"#))
    );
    assert_eq!(vault.connection("c").await.unwrap(), None);
}

#[tokio::test]
async fn folders_are_asked_in_order_and_null_ones_not_at_all() {
    let server = MockServer::start().await;
    serve(&server, "/v1/kv/team/x", kv1(json!({"value": "team's"}))).await;
    serve(&server, "/v1/kv/common/x", kv1(json!({"value": "all's"}))).await;
    serve(&server, "/v1/kv/common/y", kv1(json!({"value": 5}))).await;
    serve(&server, "/v1/kv/z", kv1(json!({"other": "z"}))).await;
    let kwargs = json!({"variables_path": ["team/", "common"], "connections_path": null, "mount_point": "kv",
        "kv_engine_version": "1"});
    let vault = backend(&server.uri(), kwargs).unwrap();
    let found = |key| vault.variable(key);
    assert_eq!(found("x").await.unwrap().as_deref(), Some("team's"));
    assert_eq!(found("y").await.unwrap().as_deref(), Some("5"));
    assert_eq!(found("z").await.unwrap(), None);
    let before = server.received_requests().await.unwrap().len();
    assert_eq!(vault.connection("x").await.unwrap(), None);
    assert_eq!(server.received_requests().await.unwrap().len(), before);
}

fn kv1(value: Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(json!({ "data": value }))
}

#[tokio::test]
async fn without_a_mount_point_the_key_names_it() {
    let server = MockServer::start().await;
    serve(
        &server,
        "/v1/own/data/variables/deep/key",
        secret(json!({"value": "v"})),
    )
    .await;
    let vault = backend(&server.uri(), json!({"mount_point": null})).unwrap();
    assert_eq!(
        vault.variable("own/deep/key").await.unwrap().as_deref(),
        Some("v")
    );
    assert_eq!(vault.variable("lonely").await.unwrap(), None);
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_by_another_login() {
    let server = MockServer::start().await;
    let login = |token: &str| {
        ResponseTemplate::new(200).set_body_json(json!({"auth": {"client_token": token}}))
    };
    let credentials = json!({"role_id": "r", "secret_id": "made-up-secret-id"});
    for (token, times) in [("made-up-1", 1), ("made-up-2", 1)] {
        Mock::given(method("POST"))
            .and(path("/v1/auth/workers/login"))
            .and(body_json(&credentials))
            .respond_with(login(token))
            .up_to_n_times(times)
            .mount(&server)
            .await;
    }
    Mock::given(method("GET"))
        .and(header("x-vault-token", "made-up-1"))
        .respond_with(ResponseTemplate::new(403).set_body_json(json!({"errors": ["denied"]})))
        .mount(&server)
        .await;
    Mock::given(method("GET"))
        .and(header("x-vault-token", "made-up-2"))
        .and(header("x-vault-namespace", "team"))
        .respond_with(secret(json!({"value": "v"})))
        .mount(&server)
        .await;
    let kwargs = json!({"auth_type": "approle", "role_id": "r", "secret_id": "made-up-secret-id",
        "auth_mount_point": "workers", "namespace": "team"});
    let vault = backend(&server.uri(), kwargs).unwrap();
    for _ in 0..2 {
        assert_eq!(vault.variable("x").await.unwrap().as_deref(), Some("v"));
    }
    // Two logins, one refusal, two answers: the second look uses the token that was good.
    assert_eq!(server.received_requests().await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_token_that_stays_refused_is_an_error_that_shows_no_secret() {
    let server = MockServer::start().await;
    let denied = ResponseTemplate::new(403).set_body_json(json!({"errors": ["permission denied"]}));
    Mock::given(method("GET"))
        .respond_with(denied)
        .mount(&server)
        .await;
    let address = server.uri().replace("http://", "http://ada:made-up-pw@");
    let vault = backend(&address, json!({})).unwrap();
    let error = vault.connection("x").await.unwrap_err();
    assert!(error.to_string().contains("(403)"), "{error}");
    assert!(!format!("{error} {error:?} {vault:?}").contains("made-up"));
    assert_eq!(server.received_requests().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_server_that_is_not_well_is_asked_a_few_times() {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(503))
        .up_to_n_times(3)
        .mount(&server)
        .await;
    serve(
        &server,
        "/v1/secret/data/variables/x",
        secret(json!({"value": "v"})),
    )
    .await;
    let vault = backend(&server.uri(), json!({})).unwrap();
    assert_eq!(vault.variable("x").await.unwrap().as_deref(), Some("v"));
    server.reset().await;
    Mock::given(method("GET"))
        .respond_with(
            ResponseTemplate::new(503).set_body_json(json!({"errors": ["Vault is sealed"]})),
        )
        .mount(&server)
        .await;
    let text = vault.variable("x").await.unwrap_err().to_string();
    assert!(
        text.contains("503") && text.contains("Vault is sealed"),
        "{text}"
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let vault = backend("http://127.0.0.1:9", json!({})).unwrap();
    let text = vault.variable("x").await.unwrap_err().to_string();
    assert!(text.starts_with("Vault at http://127.0.0.1:9"), "{text}");
}

#[tokio::test]
async fn answers_that_hold_no_secret_are_errors() {
    let server = MockServer::start().await;
    serve(
        &server,
        "/v1/secret/data/variables/one",
        kv1(json!({"value": "v"})),
    )
    .await;
    serve(
        &server,
        "/v1/secret/data/variables/text",
        ResponseTemplate::new(200).set_body_string("made-up"),
    )
    .await;
    let vault = backend(&server.uri(), json!({})).unwrap();
    let text = vault.variable("one").await.unwrap_err().to_string();
    assert!(text.contains("kv_engine_version"), "{text}");
    let text = vault.variable("text").await.unwrap_err().to_string();
    assert!(
        text.contains("no JSON object") && !text.contains("made-up"),
        "{text}"
    );
}

#[tokio::test]
async fn ids_never_lead_out_of_their_folder() {
    let server = MockServer::start().await;
    let vault = backend(&server.uri(), json!({})).unwrap();
    for key in ["../../sys/mounts", "a/./b", ".."] {
        assert!(vault.variable(key).await.is_err(), "{key}");
    }
    let teams = Config::new(
        [
            ("AIRFLOW__CORE__MULTI_TEAM", "True"),
            ("VAULT_TOKEN", "made-up-token"),
            ("VAULT_ADDR", &server.uri()),
        ]
        .into_iter()
        .collect(),
    );
    let kwargs = Kwargs::read(&teams, "workers", "secrets_backend_kwargs").unwrap();
    let vault = VaultBackend::new(kwargs, &teams).unwrap();
    assert_eq!(vault.variable("team1/password").await.unwrap(), None);
    assert_eq!(server.received_requests().await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_pods_own_token_logs_in_to_kubernetes_auth() {
    let server = MockServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "made-up-service-token\n").unwrap();
    Mock::given(method("POST"))
        .and(path("/v1/auth/kubernetes/login"))
        .and(body_json(
            json!({"role": "agents", "jwt": "made-up-service-token"}),
        ))
        .respond_with(
            ResponseTemplate::new(200)
                .set_body_json(json!({"auth": {"client_token": "made-up-1"}})),
        )
        .mount(&server)
        .await;
    Mock::given(method("GET"))
        .and(header("x-vault-token", "made-up-1"))
        .respond_with(secret(json!({"value": "v"})))
        .mount(&server)
        .await;
    let kwargs = json!({"auth_type": "kubernetes", "kubernetes_role": "agents",
        "kubernetes_jwt_path": token.to_string_lossy()});
    let vault = backend(&server.uri(), kwargs).unwrap();
    assert_eq!(vault.variable("x").await.unwrap().as_deref(), Some("v"));
}

#[test]
fn arguments_that_make_no_sense_are_refused_at_once() {
    for (kwargs, name) in [
        (json!({"auth_type": "aws_iam"}), "auth_type"),
        (json!({"auth_type": "approle"}), "role_id"),
        (json!({"auth_type": "kubernetes"}), "kubernetes_role"),
        (json!({"token": ""}), "token"),
        (json!({"kv_engine_version": 3}), "kv_engine_version"),
        (json!({"connections_path": [1]}), "connections_path"),
        (json!({"url": "ftp://made-up"}), "url"),
        (json!({"url": "made-up"}), "url"),
        (json!({"timeout": -1}), "timeout"),
        (json!({"verify": "/nonexistent/made-up.pem"}), "verify"),
        (json!({"mount": "kv"}), "mount"),
    ] {
        let text = backend("http://127.0.0.1:9", kwargs.clone())
            .unwrap_err()
            .to_string();
        assert!(text.contains(&format!("{name:?}")), "{kwargs}: {text}");
    }
}
