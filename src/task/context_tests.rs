//! Templates over a whole context, with values that the real Airflow renders.

use std::collections::BTreeMap;
use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::context::{Context, params};
use super::services::Services;
use super::templates::{Options, TemplateError, Templates};
use crate::airflow::config::{Config, Environment};
use crate::airflow::connection::Connection;
use crate::airflow::execution::{DagRun, TaskInstance, TiRunContext};
use crate::airflow::supervisor::TaskRequest;
use crate::control_plane::ControlPlane;
use crate::control_plane::local::LocalControlPlane;
use crate::control_plane::resolve::Resolver;
use crate::dag::definitions::{Dag, DagFile, Task};
use crate::secrets::{Masker, SearchPath};

pub(super) fn dag(tasks: &Value, dag_params: &Value, schema: &Value) -> Dag {
    let file: DagFile = serde_json::from_value(json!({"dags": [{
        "dag_id": "d",
        "location": {"file": "d.py", "line": 1},
        "params": dag_params,
        "params_schema": schema,
        "user_defined_macros": [["greeting", "hello"]],
        "tasks": tasks,
    }]}))
    .expect("a Dag");
    file.dags.into_iter().next().expect("one Dag")
}

pub(super) fn task_json(task_id: &str) -> Value {
    json!({
        "task_id": task_id,
        "operator": "AgentOperator",
        "module": "airflow.providers.common.ai.operators.agent",
        "location": {"file": "d.py", "line": 3},
        "kind": "empty",
    })
}

pub(super) fn task_instance(task_id: &str, map_index: i64) -> TaskInstance {
    TaskInstance {
        id: "0199c9a0-0000-7000-8000-000000000001".to_owned(),
        task_id: task_id.to_owned(),
        dag_id: "d".to_owned(),
        run_id: "r".to_owned(),
        try_number: 1,
        dag_version_id: None,
        map_index,
        hostname: None,
        context_carrier: Some(BTreeMap::new()),
        queue: Some("agents".to_owned()),
    }
}

pub(super) fn run_context() -> TiRunContext {
    TiRunContext {
        dag_run: DagRun {
            dag_id: "d".to_owned(),
            run_id: "r".to_owned(),
            logical_date: Some("2026-01-02T03:04:05Z".to_owned()),
            data_interval_start: Some("2026-01-01T03:04:05Z".to_owned()),
            data_interval_end: Some("2026-01-02T03:04:05Z".to_owned()),
            run_after: "2026-01-02T03:04:05Z".to_owned(),
            run_type: "manual".to_owned(),
            state: "running".to_owned(),
            conf: json!({"who": "Ada"}).as_object().cloned(),
            ..DagRun::default()
        },
        max_tries: 2,
        ..TiRunContext::default()
    }
}

/// A task's services over this control plane, with an empty environment.
pub(super) fn services(plane: LocalControlPlane, ti: TaskInstance) -> Services {
    let environment: Environment = [("AIRFLOW_HOME", "/nowhere")].into_iter().collect();
    let plane: Arc<dyn ControlPlane> = Arc::new(plane);
    let resolver = Resolver::new(
        SearchPath::of_environment(environment.clone()),
        Arc::clone(&plane),
        Masker::new(),
    );
    Services::new(
        plane,
        Arc::new(Config::new(environment)),
        resolver,
        Arc::new(ti),
    )
}

async fn xcom(
    plane: &LocalControlPlane,
    task_id: &str,
    key: &str,
    map_index: Option<i64>,
    value: Value,
) {
    plane
        .handle(TaskRequest::SetXCom {
            key: key.to_owned(),
            value,
            dag_id: "d".to_owned(),
            run_id: "r".to_owned(),
            task_id: task_id.to_owned(),
            map_index,
            dag_result: false,
            mapped_length: None,
        })
        .await
        .expect("pushed");
}

async fn render_all(sources: Vec<String>) -> Vec<Result<String, TemplateError>> {
    let plane = LocalControlPlane::new();
    plane.set_variable("region", "north");
    plane.set_variable("limits", r#"{"rows": 5, "list": [1, "a"]}"#);
    plane.set_connection(Connection {
        conn_id: "shop".to_owned(),
        conn_type: "sqlite".to_owned(),
        host: Some("shop.db".to_owned()),
        extra: Some(r#"{"mode": "ro"}"#.to_owned()),
        ..Connection::default()
    });
    xcom(
        &plane,
        "up",
        "return_value",
        None,
        json!({"total": 3, "names": ["x", "y"]}),
    )
    .await;
    xcom(&plane, "up", "other", None, json!("o")).await;
    xcom(&plane, "mapped", "return_value", Some(0), json!("m0")).await;
    xcom(&plane, "mapped", "return_value", Some(1), json!(["m1"])).await;
    let services = services(plane, task_instance("t", -1));
    tokio::task::spawn_blocking(move || {
        let dag = dag(&json!([task_json("t")]), &json!({"n": 1}), &json!({}));
        let run = run_context();
        let task = dag.tasks.first().expect("a task");
        let context = Context {
            dag: &dag,
            task,
            run: &run,
            services: &services,
            params: params(&dag, task, run.dag_run.conf.as_ref(), true).expect("valid"),
            start_date: "2026-01-02T03:05:00Z",
        };
        let call: super::templates::objects::CallFunction =
            Arc::new(|_, _, _| Err("not here".to_owned()));
        let templates = Templates::new(
            Options::default(),
            context.for_templates(&call, &Map::new()),
        );
        sources
            .iter()
            .map(|source| templates.render_text("prompt", source))
            .collect()
    })
    .await
    .expect("no panic")
}

#[tokio::test]
async fn templates_render_as_airflow_renders_them() {
    let cases = [
        (
            "{{ ds }} {{ ds_nodash }} {{ ts }} {{ ts_nodash }} {{ ts_nodash_with_tz }}",
            "2026-01-02 20260102 2026-01-02T03:04:05+00:00 20260102T030405 20260102T030405+0000",
        ),
        (
            "{{ logical_date }} {{ data_interval_start | ds }}",
            "2026-01-02 03:04:05+00:00 2026-01-01",
        ),
        (
            "{{ logical_date.add(days=1, months=1) }}",
            "2026-02-03 03:04:05+00:00",
        ),
        (
            "{{ logical_date.subtract(weeks=1).to_date_string() }}",
            "2025-12-26",
        ),
        (
            "{{ (logical_date - macros.timedelta(days=1)).strftime('%Y/%m/%d %f') }}",
            "2026/01/01 000000",
        ),
        (
            "{{ (logical_date + macros.timedelta(hours=2)) | ts }}",
            "2026-01-02T05:04:05+00:00",
        ),
        (
            "{{ (data_interval_end - data_interval_start).days + 1 }}",
            "2",
        ),
        (
            "{{ logical_date.in_timezone('Europe/Stockholm') }}",
            "2026-01-02 04:04:05+01:00",
        ),
        (
            "{{ logical_date.format('YYYY-MM-DD dddd HH:mm:ss ZZ z [at] D MMM YY') }}",
            "2026-01-02 Friday 03:04:05 +0000 UTC at 2 Jan 26",
        ),
        (
            "{{ logical_date.end_of('month') }}",
            "2026-01-31 23:59:59.999999+00:00",
        ),
        (
            "{{ logical_date.start_of('week') }} {{ logical_date.day_of_week }}",
            "2025-12-29 00:00:00+00:00 4",
        ),
        ("{{ logical_date.next(0) }}", "2026-01-05 00:00:00+00:00"),
        (
            "{{ logical_date.to_iso8601_string() }} {{ logical_date.date() }}",
            "2026-01-02T03:04:05Z 2026-01-02",
        ),
        (
            "{{ logical_date.to_day_datetime_string() }}",
            "Fri, Jan 2, 2026 3:04 AM",
        ),
        (
            "{{ macros.ds_add(ds, -5) }} {{ macros.ds_format(ds, '%Y-%m-%d', '%m/%y') }}",
            "2025-12-28 01/26",
        ),
        (
            "{{ macros.datetime(2026, 1, 1) < macros.datetime(2026, 1, 2) }}",
            "True",
        ),
        (
            "{{ params.n }} {{ params.who }} {{ dag_run.conf['who'] }} {{ dag_run.conf.get('x', 'none') }}",
            "1 Ada Ada none",
        ),
        (
            "{{ var.value.region }} {{ var.value.get('nope', 'd') }} {{ var.json.limits.rows }} {{ var.json.limits['list'][1] }}",
            "north d 5 a",
        ),
        (
            "{{ conn.shop.host }} {{ conn.shop.extra_dejson.mode }} {{ conn.get('no', 'default') }}",
            "shop.db ro default",
        ),
        (
            "{{ ti.xcom_pull(task_ids='up')['total'] }} {{ ti.xcom_pull('up').names }}",
            "3 ['x', 'y']",
        ),
        (
            "{{ ti.xcom_pull(task_ids=['up', 'mapped', 'gone']) }}",
            "[{'total': 3, 'names': ['x', 'y']}, 'm0', ['m1'], None]",
        ),
        (
            "{{ ti.xcom_pull('up', key='other') }} {{ task_instance.xcom_pull(task_ids='gone') }}",
            "o None",
        ),
        (
            "{{ ti.xcom_pull('mapped', map_indexes=1) }} {{ ti.xcom_pull('mapped', map_indexes=[0, 7], default='-') }}",
            "['m1'] ['m0', '-']",
        ),
        ("{{ ti.xcom_pull('mapped', map_indexes=[1]) }}", "[['m1']]"),
        (
            "{{ run_id }} {{ ti.task_id }} {{ ti.try_number }} {{ ti.map_index }} {{ task.task_id }} {{ dag.dag_id }}",
            "r t 1 -1 t d",
        ),
        (
            "{{ task_instance_key_str }} {{ dag }} {{ greeting }}",
            "d__t__20260102 <DAG: d> hello",
        ),
        (
            "{{ none }} {{ true }} {{ 1.0 }} {{ [1, 'a', none] }} {{ {'k': true} }}",
            "None True 1.0 [1, 'a', None] {'k': True}",
        ),
        (
            "{% do ti.xcom_push('k', 1) %}{% for n in range(3) %}{{ n - 1 }},{% endfor %}",
            "-1,0,1,",
        ),
        (
            "{{ params | tojson }} {{ ['a', 1, none] | join('-') }}",
            "{\"n\": 1, \"who\": \"Ada\"} a-1-None",
        ),
        ("line\n", "line"),
        ("{{ prev_start_date_success }}", "None"),
        (
            "{{ macros.json.dumps({'b': 1, 'a': 'é'}, sort_keys=True) }}",
            "{\"a\": \"\\u00e9\", \"b\": 1}",
        ),
    ];
    let rendered = render_all(
        cases
            .iter()
            .map(|(source, _)| (*source).to_owned())
            .collect(),
    )
    .await;
    for ((source, expected), rendered) in cases.iter().zip(rendered) {
        assert_eq!(
            rendered.unwrap_or_else(|error| error.to_string()),
            *expected,
            "{source}"
        );
    }
}

#[tokio::test]
async fn undefined_names_and_missing_lookups_say_what_is_missing() {
    let cases = [
        ("{{ nope }}", "prompt: 'nope' is undefined"),
        ("{{ params.nope }}", "prompt: 'params.nope' is undefined"),
        ("{% if nope %}x{% endif %}", "prompt: 'nope' is undefined"),
        ("{{ var.value.nope }}", "Variable nope does not exist"),
        ("{{ conn.nope.host }}", "The conn_id `nope` isn't defined"),
        ("{{ unclosed", "prompt: "),
    ];
    let rendered = render_all(
        cases
            .iter()
            .map(|(source, _)| (*source).to_owned())
            .collect(),
    )
    .await;
    for ((source, expected), rendered) in cases.iter().zip(rendered) {
        let text = rendered.expect_err(source).to_string();
        assert!(text.contains(expected), "{source}: {text}");
    }
}

#[test]
fn params_are_checked_against_their_schemas_after_the_conf_has_had_its_say() {
    let dag = dag(
        &json!([task_json("t")]),
        &json!({"n": 1}),
        &json!({"n": {"type": "integer", "maximum": 5}}),
    );
    let task: &Task = &dag.tasks[0];
    let conf = json!({"n": 9, "extra": true}).as_object().cloned();
    let refused = params(&dag, task, conf.as_ref(), true)
        .expect_err("too large")
        .to_string();
    assert!(
        refused.starts_with("Invalid input for param n: 9 is greater than the maximum of 5"),
        "{refused}"
    );
    assert_eq!(
        params(&dag, task, conf.as_ref(), false).unwrap(),
        *json!({"n": 1}).as_object().unwrap()
    );
}
