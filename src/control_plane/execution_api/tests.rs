//! The Execution API client against a made-up server: routes, tokens, retries and refusals.

use pretty_assertions::assert_eq;
use wiremock::matchers::{any, header, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::*;

const TI: &str = "0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f";
const WHEN: &str = "2026-01-02T03:04:05.678901Z";

async fn server() -> MockServer {
    MockServer::start().await
}

fn api(server: &MockServer) -> ExecutionApi {
    api_at(&server.uri())
}

fn api_at(uri: &str) -> ExecutionApi {
    let retry = RetryPolicy {
        attempts: 3,
        wait_min: Duration::ZERO,
        wait_max: Duration::ZERO,
        outage: Duration::ZERO,
    };
    let settings = ExecutionApiSettings {
        http: Client::new(),
        base: Url::parse(&format!("{uri}/execution/")).unwrap(),
        version: ApiVersion::default(),
        retry,
        timeout: Duration::from_secs(2),
    };
    let runner = Runner {
        hostname: "w1".into(),
        unixname: "airflow".into(),
        pid: 4242,
    };
    ExecutionApi::new(settings, TI.into(), runner, "workload-token".into())
}

fn request(value: Value) -> TaskRequest {
    TaskRequest::from_body(value).unwrap()
}

/// Sends one request to a server that answers `status` and `body`, and returns what the server saw.
async fn exchange(
    body: Value,
    status: u16,
    answer: Value,
) -> (Request, Result<TaskReply, ErrorResponse>) {
    let server = server().await;
    Mock::given(any())
        .respond_with(
            ResponseTemplate::new(status)
                .set_body_json(answer)
                .insert_header("Content-Range", "map_indexes 3"),
        )
        .mount(&server)
        .await;
    let reply = api(&server).handle(request(body)).await;
    (server.received_requests().await.unwrap().remove(0), reply)
}

#[tokio::test]
async fn every_request_takes_its_route() {
    let xcom = |kind: &str, more: Value| {
        let mut body = json!({"type": kind, "key": "a/b c", "dag_id": "d", "run_id": "manual__2026-01-02T03:04:05+00:00",
            "task_id": "g.t"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let run = "manual__2026-01-02T03%3A04%3A05%2B00%3A00";
    let own = |what: &str| format!("/task-instances/{TI}/{what}");
    let asset = json!({"value": 1});
    let cases = [
        (
            json!({"type": "GetConnection", "conn_id": "a b"}),
            "GET",
            "/connections/a%20b".into(),
            Value::Null,
        ),
        (
            json!({"type": "GetVariable", "key": "a/b"}),
            "GET",
            "/variables/a/b".into(),
            Value::Null,
        ),
        (
            json!({"type": "GetVariableKeys", "prefix": "p", "limit": 5}),
            "GET",
            "/variables/keys?prefix=p&limit=5".into(),
            Value::Null,
        ),
        (
            json!({"type": "PutVariable", "key": "k", "value": "v", "description": null}),
            "PUT",
            "/variables/k".into(),
            json!({"val": "v", "description": null}),
        ),
        (
            json!({"type": "DeleteVariable", "key": "k"}),
            "DELETE",
            "/variables/k".into(),
            Value::Null,
        ),
        (
            xcom(
                "GetXCom",
                json!({"map_index": -1, "include_prior_dates": true}),
            ),
            "GET",
            format!("/xcoms/d/{run}/g.t/a/b%20c?include_prior_dates=true"),
            Value::Null,
        ),
        (
            xcom("GetXComCount", json!({})),
            "HEAD",
            format!("/xcoms/d/{run}/g.t/a/b%20c"),
            Value::Null,
        ),
        (
            xcom("GetXComSequenceItem", json!({"offset": -1})),
            "GET",
            format!("/xcoms/d/{run}/g.t/a/b%20c/item/-1"),
            Value::Null,
        ),
        (
            xcom(
                "SetXCom",
                json!({"value": [1, null], "map_index": 2, "dag_result": true, "mapped_length": 2}),
            ),
            "POST",
            format!("/xcoms/d/{run}/g.t/a/b%20c?map_index=2&dag_result=true&mapped_length=2"),
            json!([1, null]),
        ),
        (
            xcom("DeleteXCom", json!({})),
            "DELETE",
            format!("/xcoms/d/{run}/g.t/a/b%20c"),
            Value::Null,
        ),
        (
            json!({"type": "SetRenderedFields", "rendered_fields": {"prompt": "x"}}),
            "PUT",
            own("rtif"),
            json!({"prompt": "x"}),
        ),
        (
            json!({"type": "SetRenderedMapIndex", "rendered_map_index": "label"}),
            "PATCH",
            own("rendered-map-index"),
            json!("label"),
        ),
        (
            json!({"type": "GetTaskStateStore", "ti_id": TI, "key": "k"}),
            "GET",
            format!("/store/ti/{TI}/k"),
            Value::Null,
        ),
        (
            json!({"type": "SetTaskStateStore", "ti_id": TI, "key": "k", "value": 1, "expires_at": null}),
            "PUT",
            format!("/store/ti/{TI}/k"),
            json!({"value": 1, "expires_at": null}),
        ),
        (
            json!({"type": "ClearTaskStateStore", "ti_id": TI}),
            "DELETE",
            format!("/store/ti/{TI}"),
            Value::Null,
        ),
        (
            json!({"type": "SkipDownstreamTasks", "tasks": ["a", ["b", 1]]}),
            "PATCH",
            own("skip-downstream"),
            json!({"tasks": ["a", ["b", 1]]}),
        ),
        (
            json!({"type": "SucceedTask", "end_date": WHEN, "task_outlets": [], "outlet_events": []}),
            "PATCH",
            own("state"),
            json!({"state": "success", "end_date": WHEN, "task_outlets": [], "outlet_events": []}),
        ),
        (
            json!({"type": "RetryTask", "end_date": WHEN, "retry_delay_seconds": 30.0, "retry_reason": "x".repeat(600)}),
            "PATCH",
            own("state"),
            json!({"state": "up_for_retry", "end_date": WHEN, "retry_delay_seconds": 30.0, "retry_reason": "x".repeat(500)}),
        ),
        (
            json!({"type": "TaskState", "state": "skipped", "end_date": WHEN}),
            "PATCH",
            own("state"),
            json!({"state": "skipped", "end_date": WHEN}),
        ),
        (
            json!({"type": "RescheduleTask", "reschedule_date": WHEN, "end_date": WHEN}),
            "PATCH",
            own("state"),
            json!({"state": "up_for_reschedule", "reschedule_date": WHEN, "end_date": WHEN}),
        ),
        (
            json!({"type": "DeferTask", "classpath": "a.B", "next_method": "go", "trigger_timeout": null}),
            "PATCH",
            own("state"),
            json!({"state": "deferred", "classpath": "a.B", "next_method": "go", "trigger_kwargs": {}, "next_kwargs": {}}),
        ),
        (
            json!({"type": "AwaitInputTask", "next_method": "go", "timeout": "PT5M", "next_kwargs": null}),
            "PATCH",
            own("state"),
            json!({"state": "awaiting_input", "next_method": "go", "timeout": "PT5M", "next_kwargs": {}}),
        ),
        (
            json!({"type": "SetAssetStateStoreByUri", "uri": "s3://b", "key": "k", "value": 1}),
            "PUT",
            "/store/asset/by-uri/value?uri=s3%3A%2F%2Fb&key=k".into(),
            asset,
        ),
        (
            json!({"type": "GetTICount", "dag_id": "d", "task_ids": ["a", "b"], "states": [null]}),
            "GET",
            "/task-instances/count?dag_id=d&task_ids=a&task_ids=b&states=null".into(),
            Value::Null,
        ),
    ];
    for (body, verb, target, sent) in cases {
        let (seen, _) = exchange(body.clone(), 200, json!({})).await;
        let mut expected = Url::parse(&format!("http://x/execution{target}")).unwrap();
        expected.set_host(seen.url.host_str()).unwrap();
        expected.set_port(seen.url.port()).unwrap();
        assert_eq!(
            (seen.method.as_str(), seen.url.as_str()),
            (verb, expected.as_str()),
            "{body}"
        );
        let got: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        assert_eq!(got, sent, "{body}");
    }
}

#[tokio::test]
async fn answers_become_replies() {
    let connection = json!({"conn_id": "c", "conn_type": "sqlite", "host": "h", "schema": null, "login": null,
        "password": null, "port": null, "extra": null});
    let (_, reply) = exchange(
        json!({"type": "GetConnection", "conn_id": "c"}),
        200,
        connection,
    )
    .await;
    assert!(
        matches!(reply.unwrap(), TaskReply::Connection(connection) if connection.host.as_deref() == Some("h"))
    );
    let xcom =
        json!({"type": "GetXComCount", "key": "k", "dag_id": "d", "run_id": "r", "task_id": "t"});
    assert_eq!(
        exchange(xcom, 200, json!(null)).await.1,
        Ok(TaskReply::XComCount(3))
    );
    let (_, reply) = exchange(json!({"type": "GetDRCount", "dag_id": "d"}), 200, json!(7)).await;
    assert_eq!(
        reply,
        Ok(TaskReply::Other(json!({"count": 7, "type": "DRCount"})))
    );
    let item = json!({"type": "GetXCom", "key": "k", "dag_id": "d", "run_id": "r", "task_id": "t"});
    let (_, reply) = exchange(
        item.clone(),
        404,
        json!({"detail": {"reason": "not_found"}}),
    )
    .await;
    assert_eq!(
        reply,
        Ok(TaskReply::XCom {
            key: "k".into(),
            value: Value::Null
        })
    );
    let (_, reply) = exchange(item, 200, json!({"nonsense": 1})).await;
    assert!(
        reply
            .unwrap_err()
            .to_string()
            .contains("something else than expected")
    );
}

#[tokio::test]
async fn refusals_become_the_protocols_errors() {
    let detail = json!({"detail": {"reason": "r", "message": "m"}});
    let cases = [
        (
            json!({"type": "GetConnection", "conn_id": "c"}),
            404,
            ErrorKind::ConnectionNotFound,
        ),
        (
            json!({"type": "GetConnection", "conn_id": "c"}),
            403,
            ErrorKind::PermissionDenied,
        ),
        (
            json!({"type": "GetVariable", "key": "k"}),
            404,
            ErrorKind::VariableNotFound,
        ),
        (
            json!({"type": "GetTaskStateStore", "ti_id": TI, "key": "k"}),
            404,
            ErrorKind::TaskStoreNotFound,
        ),
        (
            json!({"type": "GetAssetByName", "name": "a"}),
            404,
            ErrorKind::AssetNotFound,
        ),
        (
            json!({"type": "TriggerDagRun", "dag_id": "d", "run_id": "r"}),
            409,
            ErrorKind::DagRunAlreadyExists,
        ),
        (
            json!({"type": "SetRenderedFields", "rendered_fields": {}}),
            422,
            ErrorKind::ApiServerError,
        ),
        (
            json!({"type": "GetHITLDetailResponse", "ti_id": TI}),
            200,
            ErrorKind::ApiServerError,
        ),
    ];
    for (body, status, kind) in cases {
        let server = server().await;
        Mock::given(any())
            .respond_with(ResponseTemplate::new(status).set_body_json(&detail))
            .mount(&server)
            .await;
        let error = api(&server)
            .handle(request(body.clone()))
            .await
            .unwrap_err();
        assert_eq!(error.kind, kind, "{body}");
    }
    let (_, reply) = exchange(
        json!({"type": "SetRenderedFields", "rendered_fields": {}}),
        410,
        detail,
    )
    .await;
    assert_eq!(reply, Ok(TaskReply::Done));
}

#[tokio::test]
async fn the_token_is_replaced_by_any_answer_that_carries_a_new_one() {
    let server = server().await;
    let context = json!({"dag_run": {"dag_id": "d", "run_id": "r", "run_after": WHEN, "run_type": "manual",
        "state": "running"}, "max_tries": 2, "should_retry": true});
    Mock::given(path(format!("/execution/task-instances/{TI}/run")))
        .and(header("authorization", "Bearer workload-token"))
        .and(header("airflow-api-version", "2026-06-30"))
        .respond_with(
            ResponseTemplate::new(200)
                .set_body_json(context)
                .insert_header("Refreshed-API-Token", "second"),
        )
        .mount(&server)
        .await;
    Mock::given(path("/execution/connections/c"))
        .and(header("authorization", "Bearer second"))
        .respond_with(ResponseTemplate::new(404).insert_header("Refreshed-API-Token", "third"))
        .mount(&server)
        .await;
    Mock::given(method("PUT"))
        .and(header("authorization", "Bearer third"))
        .respond_with(ResponseTemplate::new(204))
        .mount(&server)
        .await;
    let api = api(&server);
    assert!(api.run().await.unwrap().should_retry);
    assert!(
        api.handle(request(json!({"type": "GetConnection", "conn_id": "c"})))
            .await
            .is_err()
    );
    api.heartbeat().await.unwrap();
    let seen = server.received_requests().await.unwrap();
    let run: Value = serde_json::from_slice(&seen[0].body).unwrap();
    assert_eq!(
        (&run["hostname"], &run["unixname"], &run["pid"]),
        (&json!("w1"), &json!("airflow"), &json!(4242))
    );
    let beat: Value = serde_json::from_slice(&seen[2].body).unwrap();
    assert_eq!(beat, json!({"hostname": "w1", "pid": 4242}));
    assert!(
        !format!("{api:?}").contains("third"),
        "the token must not show in Debug output"
    );
}

#[tokio::test]
async fn server_errors_are_retried_and_refusals_are_not() {
    let server = server().await;
    // 429 comes from a proxy that has had enough of the whole worker.
    for status in [503, 429] {
        Mock::given(any())
            .respond_with(ResponseTemplate::new(status))
            .up_to_n_times(1)
            .mount(&server)
            .await;
    }
    Mock::given(any())
        .respond_with(ResponseTemplate::new(204))
        .mount(&server)
        .await;
    let request = || request(json!({"type": "DeleteVariable", "key": "k"}));
    api(&server).handle(request()).await.unwrap();
    assert_eq!(server.received_requests().await.unwrap().len(), 3);

    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(422))
        .mount(&server)
        .await;
    assert_eq!(
        api(&server).handle(request()).await.unwrap_err().detail["status_code"],
        422
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_unreachable_server_is_tried_as_often_as_configured() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = api_at(&uri).run().await.unwrap_err();
    assert!(
        matches!(error, ApiError::Unreachable { attempts: 3, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_retry_whose_first_answer_was_lost_counts_as_delivered() {
    let retry = || request(json!({"type": "RetryTask", "end_date": WHEN}));
    let server = server().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(502))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(404))
        .mount(&server)
        .await;
    assert_eq!(api(&server).handle(retry()).await, Ok(TaskReply::Done));
    // At the first attempt it is a refusal like any other.
    assert!(api(&server).handle(retry()).await.is_err());
}

#[tokio::test]
async fn ids_that_urls_resolve_away_are_refused_before_they_are_sent() {
    let server = server().await;
    for id in ["..", ".", ""] {
        let error = api(&server)
            .handle(request(json!({"type": "GetConnection", "conn_id": id})))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("can't be part of a URL path"),
            "{error}"
        );
    }
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for_beyond_the_attempts_but_a_broken_one_is_not() {
    let connection = || request(json!({"type": "DeleteVariable", "key": "k"}));
    let server = server().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(503))
        .up_to_n_times(5)
        .mount(&server)
        .await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(204))
        .mount(&server)
        .await;
    let mut patient = api(&server);
    patient.settings.retry.outage = Duration::from_secs(60);
    assert_eq!(patient.handle(connection()).await, Ok(TaskReply::Done));

    let server = MockServer::start().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(500))
        .mount(&server)
        .await;
    let mut patient = api(&server);
    patient.settings.retry.outage = Duration::from_secs(60);
    assert!(patient.handle(connection()).await.is_err());
    assert_eq!(server.received_requests().await.unwrap().len(), 3);
}

/// What a server of an older version is asked, and what the task hears.
async fn exchange_with(
    version: ApiVersion,
    body: Value,
) -> (Vec<Request>, Result<TaskReply, ErrorResponse>) {
    let server = server().await;
    Mock::given(any())
        .respond_with(ResponseTemplate::new(200).set_body_json(Value::Null))
        .mount(&server)
        .await;
    let mut api = api(&server);
    api.settings.version = version;
    let reply = api.handle(request(body)).await;
    (server.received_requests().await.unwrap(), reply)
}

#[tokio::test]
async fn what_an_older_server_lacks_is_said_without_asking_it() {
    for (version, body, said) in [
        (
            ApiVersion::V2026_04_06,
            json!({"type": "GetTaskStateStore", "ti_id": TI, "key": "k"}),
            "the task state store came with Airflow 3.3, and this server is of Airflow 3.2",
        ),
        (
            ApiVersion::V2025_11_05,
            json!({"type": "AwaitInputTask", "next_method": "execute_complete", "next_kwargs": {}}),
            "waiting for a person's answer came with Airflow 3.3, and this server is of Airflow 3.1",
        ),
        (
            ApiVersion::V2025_11_05,
            json!({"type": "GetDag", "dag_id": "d"}),
            "reading about a Dag came with Airflow 3.2",
        ),
    ] {
        let (requests, reply) = exchange_with(version, body).await;
        assert!(requests.is_empty());
        let text = reply.unwrap_err().to_string();
        assert!(text.contains(said), "{text}");
    }
    let body = json!({"type": "GetDag", "dag_id": "d"});
    let (requests, _) = exchange_with(ApiVersion::V2026_04_06, body).await;
    assert_eq!(requests.len(), 1);
}

#[tokio::test]
async fn an_older_server_is_told_no_more_than_it_can_read() {
    let retry = json!({"type": "RetryTask", "end_date": WHEN, "retry_delay_seconds": 3.0, "retry_reason": "r"});
    let (requests, reply) = exchange_with(ApiVersion::V2025_11_05, retry).await;
    assert_eq!(reply.unwrap(), TaskReply::Done);
    assert_eq!(
        requests[0].body_json::<Value>().unwrap(),
        json!({"end_date": WHEN, "state": "up_for_retry"})
    );
    assert_eq!(requests[0].headers["airflow-api-version"], "2025-11-05");
    let label = json!({"type": "SetRenderedMapIndex", "rendered_map_index": "one"});
    let (requests, reply) = exchange_with(ApiVersion::V2025_11_05, label).await;
    assert!(requests.is_empty() && reply.is_ok());
    let previous =
        json!({"type": "GetPreviousDagRun", "dag_id": "d", "logical_date": WHEN, "state": null});
    let (requests, _) = exchange_with(ApiVersion::V2025_11_05, previous).await;
    assert_eq!(requests[0].url.path(), "/execution/dag-runs/d/previous");
}
