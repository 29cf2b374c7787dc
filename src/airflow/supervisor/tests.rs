//! Every message of both sides, held against Airflow's own schema.

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

const SCHEMA: &str = include_str!("../../../tests/fixtures/supervisor-schema.json");

/// Every message that we send must be what the schema says about its `type`.
fn assert_valid(body: &Value) {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let kind = body["type"].as_str().unwrap();
    assert!(
        schema["$defs"].get(kind).is_some(),
        "no {kind} in the schema"
    );
    schema["$ref"] = format!("#/$defs/{kind}").into();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(body)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{body}: {errors:#?}");
}

const TI_ID: &str = "0199a0c2-7c1e-7a43-9f0e-6a1f8c2d3e4f";
const WHEN: &str = "2026-01-02T03:04:05.678901Z";

fn startup_details() -> StartupDetails {
    serde_json::from_value(json!({
        "type": "StartupDetails",
        "ti": {"id": TI_ID, "task_id": "t", "dag_id": "d", "run_id": "r", "try_number": 1},
        "dag_rel_path": "d.py", "bundle_info": {"name": "dags-folder"}, "start_date": WHEN,
        "ti_context": {"dag_run": {"dag_id": "d", "run_id": "r", "run_after": WHEN, "run_type": "manual",
            "state": "running", "logical_date": null}, "max_tries": 2, "should_retry": true},
    }))
    .unwrap()
}

fn requests() -> Vec<TaskRequest> {
    let xcom = || {
        (
            "k".to_owned(),
            "d".to_owned(),
            "r".to_owned(),
            "t".to_owned(),
        )
    };
    let (key, dag_id, run_id, task_id) = xcom();
    vec![
        TaskRequest::GetConnection {
            conn_id: "c".into(),
        },
        TaskRequest::GetVariable { key: "k".into() },
        TaskRequest::GetVariableKeys {
            prefix: None,
            limit: None,
            offset: None,
        },
        TaskRequest::PutVariable {
            key: "k".into(),
            value: None,
            description: None,
        },
        TaskRequest::DeleteVariable { key: "k".into() },
        TaskRequest::GetXCom {
            key: key.clone(),
            dag_id: dag_id.clone(),
            run_id: run_id.clone(),
            task_id: task_id.clone(),
            map_index: None,
            include_prior_dates: false,
        },
        TaskRequest::GetXComCount {
            key: key.clone(),
            dag_id: dag_id.clone(),
            run_id: run_id.clone(),
            task_id: task_id.clone(),
        },
        TaskRequest::GetXComSequenceItem {
            key: key.clone(),
            dag_id: dag_id.clone(),
            run_id: run_id.clone(),
            task_id: task_id.clone(),
            offset: -1,
        },
        TaskRequest::GetXComSequenceSlice {
            key: key.clone(),
            dag_id: dag_id.clone(),
            run_id: run_id.clone(),
            task_id: task_id.clone(),
            start: None,
            stop: None,
            step: None,
            include_prior_dates: false,
        },
        TaskRequest::SetXCom {
            key: key.clone(),
            value: json!({"a": [1, null]}),
            dag_id: dag_id.clone(),
            run_id: run_id.clone(),
            task_id: task_id.clone(),
            map_index: Some(3),
            dag_result: false,
            mapped_length: None,
        },
        TaskRequest::DeleteXCom {
            key,
            dag_id,
            run_id,
            task_id,
            map_index: None,
        },
        TaskRequest::SetRenderedFields {
            rendered_fields: Map::new(),
        },
        TaskRequest::SetRenderedMapIndex {
            rendered_map_index: "x".into(),
        },
        TaskRequest::GetTaskStateStore {
            ti_id: TI_ID.into(),
            key: "k".into(),
        },
        TaskRequest::SetTaskStateStore {
            ti_id: TI_ID.into(),
            key: "k".into(),
            value: json!(1),
            expires_at: None,
        },
        TaskRequest::DeleteTaskStateStore {
            ti_id: TI_ID.into(),
            key: "k".into(),
        },
        TaskRequest::ClearTaskStateStore {
            ti_id: TI_ID.into(),
        },
        TaskRequest::GetPrevSuccessfulDagRun {
            ti_id: TI_ID.into(),
        },
        TaskRequest::GetDagRunState {
            dag_id: "d".into(),
            run_id: "r".into(),
        },
        TaskRequest::SkipDownstreamTasks {
            tasks: vec![json!("a"), json!(["b", 1])],
        },
        TaskRequest::MaskSecret {
            value: json!("s3cr3t"),
            name: None,
        },
        TaskRequest::SucceedTask {
            end_date: WHEN.into(),
            task_outlets: vec![],
            outlet_events: vec![],
            rendered_map_index: None,
        },
        TaskRequest::RetryTask {
            end_date: WHEN.into(),
            rendered_map_index: None,
            retry_delay_seconds: Some(1.5),
            retry_reason: None,
        },
        TaskRequest::RescheduleTask {
            reschedule_date: WHEN.into(),
            end_date: WHEN.into(),
        },
        TaskRequest::DeferTask {
            classpath: "a.B".into(),
            trigger_kwargs: JsonObjectOrText::default(),
            trigger_timeout: Some(json!("PT1H")),
            queue: None,
            next_method: "resume".into(),
            next_kwargs: Map::new(),
            rendered_map_index: None,
        },
        TaskRequest::AwaitInputTask {
            timeout: None,
            next_method: "resume".into(),
            next_kwargs: Map::new(),
            rendered_map_index: None,
        },
        TaskRequest::TaskState {
            state: "failed".into(),
            end_date: Some(WHEN.into()),
            rendered_map_index: None,
        },
    ]
}

#[test]
fn every_request_is_valid_and_comes_back_as_it_was() {
    let mut types = Vec::new();
    for request in requests() {
        let body = request.to_body();
        assert_valid(&body);
        types.push(body["type"].as_str().unwrap().to_owned());
        assert_eq!(TaskRequest::from_body(body).unwrap(), request);
    }
    assert_eq!(types, TYPED_REQUESTS);
}

#[test]
fn every_reply_is_valid_and_comes_back_as_it_was() {
    let connection = Connection {
        conn_id: "c".into(),
        conn_type: "sqlite".into(),
        ..Connection::default()
    };
    let replies = [
        TaskReply::Connection(Connection {
            port: Some(5432),
            ..connection
        }),
        TaskReply::Variable {
            key: "k".into(),
            value: None,
        },
        TaskReply::VariableKeys {
            keys: vec!["k".into()],
            total_entries: 1,
        },
        TaskReply::XCom {
            key: "k".into(),
            value: json!({"a": 1.5}),
        },
        TaskReply::XComCount(3),
        TaskReply::XComItem(json!([1])),
        TaskReply::XComSlice(vec![json!(1), json!(null)]),
        TaskReply::TaskState(json!("x")),
        TaskReply::Other(json!({"type": "DagRunStateResult", "state": "running"})),
    ];
    for reply in replies {
        let body = reply.to_body();
        assert_valid(&body);
        assert_eq!(
            TaskReply::from_frame(body, Value::Null).unwrap().unwrap(),
            reply
        );
    }
    assert_eq!(
        TaskReply::from_frame(Value::Null, Value::Null).unwrap(),
        Ok(TaskReply::Done)
    );
    let ok = TaskRequest::DeleteVariable { key: "k".into() }.done_body();
    assert_valid(&ok);
    assert_eq!(
        TaskReply::from_frame(ok, Value::Null).unwrap(),
        Ok(TaskReply::Done)
    );
}

#[test]
fn an_error_is_found_in_either_slot() {
    let error = ErrorResponse::new(ErrorKind::XComNotFound, "no such XCom");
    assert_valid(&error.to_body());
    assert_eq!(
        TaskReply::from_frame(error.to_body(), Value::Null).unwrap(),
        Err(error.clone())
    );
    assert_eq!(
        TaskReply::from_frame(Value::Null, error.to_body()).unwrap(),
        Err(error)
    );
}

#[test]
fn startup_details_are_valid_even_without_dag_version_and_queue() {
    let details = startup_details();
    let body = details.to_body();
    assert_valid(&body);
    let read = StartupDetails::from_body(body).unwrap();
    assert_eq!(read.ti_context, details.ti_context);
}

#[test]
fn null_collections_of_other_runtimes_are_read_as_empty() {
    let body = json!({"type": "SucceedTask", "end_date": WHEN, "task_outlets": null, "outlet_events": null});
    let read = TaskRequest::from_body(body).unwrap().to_body();
    assert_eq!(read["task_outlets"], json!([]));
    assert_eq!(read["outlet_events"], json!([]));
}

#[test]
fn a_known_message_with_a_missing_field_names_message_and_field() {
    let error = TaskRequest::from_body(json!({"type": "GetXCom", "key": "k"}))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("GetXCom") && error.contains("dag_id"),
        "{error}"
    );
    assert!(TaskRequest::from_body(json!([1])).is_err());
}
