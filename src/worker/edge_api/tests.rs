//! The Edge API client against a made-up server.

use jsonwebtoken::{DecodingKey, Validation};
use pretty_assertions::assert_eq;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::airflow::edge::WorkerState;

const SECRET: &str = "made-up-secret-made-up-secret-made-up-secret-made-up-secret-1234";

fn api(server: &MockServer) -> EdgeApi {
    let signing = Signing {
        secret: SECRET.into(),
        algorithm: Algorithm::HS512,
        kid: "not-used".into(),
        issuer: None,
        leeway: Duration::from_secs(10),
    };
    let retry = RetryPolicy {
        attempts: 3,
        wait_min: Duration::ZERO,
        wait_max: Duration::ZERO,
        outage: Duration::ZERO,
    };
    let url = Url::parse(&format!("{}/edge_worker/v1/rpcapi", server.uri())).unwrap();
    EdgeApi::new(Client::new(), url, signing, retry)
}

async fn answering(response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(response)
        .mount(&server)
        .await;
    server
}

fn body() -> WorkerStateBody {
    WorkerStateBody {
        state: WorkerState::Starting,
        jobs_active: 0,
        queues: Some(vec!["agents".into()]),
        team_name: None,
        maintenance_comments: None,
        sysinfo: serde_json::Map::new(),
    }
}

fn key(dag_id: &str) -> JobKey {
    JobKey {
        dag_id: dag_id.into(),
        task_id: "t".into(),
        run_id: "manual__2026-01-02T03:04:05+00:00".into(),
        map_index: -1,
        try_number: 1,
        task_instance_id: None,
    }
}

#[tokio::test]
async fn each_request_is_signed_for_its_own_decoded_path() {
    let server = answering(ResponseTemplate::new(200).set_body_string("null")).await;
    api(&server).register("w 1", &body()).await.unwrap();
    api(&server)
        .set_job_state(&key("d?#\\"), "success")
        .await
        .unwrap();
    let seen = server.received_requests().await.unwrap();
    let expected = [
        ("/edge_worker/v1/worker/w%201", "worker/w 1"),
        (
            "/edge_worker/v1/jobs/state/d%3F%23%5C/t/manual__2026-01-02T03%3A04%3A05%2B00%3A00/1/-1/success",
            "jobs/state/d%3F%23%5C/t/manual__2026-01-02T03:04:05+00:00/1/-1/success",
        ),
    ];
    let mut ids = Vec::new();
    for (request, (path, method)) in seen.iter().zip(expected) {
        assert_eq!(request.url.path(), path);
        let token = request.headers["authorization"].to_str().unwrap();
        let mut validation = Validation::new(Algorithm::HS512);
        validation.set_audience(&["api"]);
        validation.set_required_spec_claims(&["exp", "nbf", "aud"]);
        let key = DecodingKey::from_secret(SECRET.as_bytes()).unwrap();
        let token = jsonwebtoken::decode::<Value>(token, &key, &validation).unwrap();
        assert_eq!(token.header.kid.as_deref(), Some("not-used"));
        assert_eq!(token.claims["method"], method);
        let number = |name: &str| token.claims[name].as_i64().unwrap();
        assert_eq!(
            (number("exp") - number("iat"), number("nbf")),
            (10, number("iat"))
        );
        ids.push(token.claims["jti"].as_str().unwrap().to_owned());
    }
    assert_ne!(ids[0], ids[1]);
    assert_eq!(ids[0].len(), 32);
    assert!(seen[1].body.is_empty() && !seen[1].headers.contains_key("content-type"));
}

#[tokio::test]
async fn a_task_instance_id_is_echoed() {
    let server = answering(ResponseTemplate::new(200).set_body_string("null")).await;
    let key = JobKey {
        task_instance_id: Some("0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f".into()),
        ..key("d")
    };
    api(&server).set_job_state(&key, "running").await.unwrap();
    api(&server).push_log(&key, Utc::now, "ä\n").await.unwrap();
    let seen = server.received_requests().await.unwrap();
    let sent: Vec<Value> = seen
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    assert_eq!(sent[0], json!({"task_instance_id": key.task_instance_id}));
    assert_eq!(sent[1]["task_instance_id"], json!(key.task_instance_id));
    assert_eq!(sent[1]["log_chunk_data"], "ä\n");
}

#[tokio::test]
async fn every_refusal_says_what_to_change() {
    let late = "Fri, 02 Jan 2026 03:04:05 GMT";
    let now = Utc::now().to_rfc2822();
    let detail = |status: u16, detail: &str| {
        ResponseTemplate::new(status).set_body_json(json!({ "detail": detail }))
    };
    let cases = [
        (detail(400, "3.3.1 is not 3.3.2"), "--airflow-version"),
        (detail(409, "taken"), "--worker-name"),
        (
            detail(403, "Forbidden").insert_header("Date", late),
            "clocks are",
        ),
        (
            detail(403, "Forbidden").insert_header("Date", now.as_str()),
            "AIRFLOW__API_AUTH__JWT_SECRET",
        ),
        (detail(403, "Forbidden"), "AIRFLOW__API_AUTH__JWT_SECRET"),
        (detail(404, "Not Found"), "[edge] api_enabled"),
        (ResponseTemplate::new(405), "[edge] api_enabled"),
    ];
    for (response, advice) in cases {
        let server = answering(response).await;
        let error = api(&server).register("w", &body()).await.unwrap_err();
        assert!(error.to_string().contains(advice), "{error}");
        assert!(!error.is_transient(), "{error}");
        assert_eq!(server.received_requests().await.unwrap().len(), 1);
    }
    let server = answering(detail(404, "Worker not found")).await;
    let error = api(&server).heartbeat("w", &body()).await.unwrap_err();
    assert!(matches!(error, EdgeError::UnknownWorker), "{error}");
}

#[tokio::test]
async fn credentials_in_the_servers_url_are_not_shown() {
    let server = answering(ResponseTemplate::new(404)).await;
    let mut api = api(&server);
    api.base.set_username("ada").unwrap();
    api.base.set_password(Some("made-up-password")).unwrap();
    let gone = api.register("w", &body()).await.unwrap_err();
    assert!(gone.is_a_proxys(), "{gone}");
    drop(server);
    api.base.set_port(Some(9)).unwrap();
    let unreachable = api.register("w", &body()).await.unwrap_err();
    assert!(unreachable.is_transient(), "{unreachable}");
    for error in [gone, unreachable] {
        let text = format!("{error} {error:?}");
        assert!(
            text.contains("127.0.0.1") && !text.contains("made-up"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn reports_about_jobs_are_repeated_while_the_server_is_down_and_not_when_it_refuses() {
    for (status, requests) in [
        (500, 2),
        (502, 2),
        (503, 2),
        (504, 2),
        (429, 2),
        (422, 1),
        (403, 1),
    ] {
        let server = MockServer::start().await;
        let refusal = ResponseTemplate::new(status).insert_header("Retry-After", "0");
        Mock::given(any())
            .respond_with(refusal)
            .up_to_n_times(1)
            .mount(&server)
            .await;
        Mock::given(any())
            .respond_with(ResponseTemplate::new(200).set_body_string("null"))
            .mount(&server)
            .await;
        let result = api(&server).set_job_state(&key("d"), "failed").await;
        assert_eq!(result.is_ok(), requests == 2, "{status}");
        assert_eq!(
            server.received_requests().await.unwrap().len(),
            requests,
            "{status}"
        );
    }
}

#[tokio::test]
async fn an_id_with_a_slash_is_an_error_and_not_a_request() {
    let server = answering(ResponseTemplate::new(200).set_body_string("null")).await;
    let error = api(&server)
        .set_job_state(&key("a/b"), "failed")
        .await
        .unwrap_err();
    assert!(matches!(error, EdgeError::Unaddressable(_)), "{error}");
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_fetch_without_a_job_is_null() {
    let server = answering(ResponseTemplate::new(200).set_body_string("null")).await;
    let body = WorkerQueuesBody {
        queues: None,
        team_name: None,
        free_concurrency: 3,
        supports_task_instance_uuid: true,
    };
    assert!(api(&server).fetch("w", &body).await.unwrap().is_none());
}
