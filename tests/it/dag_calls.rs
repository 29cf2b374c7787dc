//! Functions of a Dag file, called with Airflow's context, and values that cross the border.

use std::sync::Arc;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use updraft::dag::Interpreter;
use updraft::dag::definitions::{Argument, DagFile, Expansion, Handle, TaskKind};

use crate::dag_host::{TestHost, load_source, task};

fn context() -> Value {
    json!({
        "ti": {
            "id": "01900000-0000-7000-8000-000000000000", "dag_id": "made", "task_id": "t", "run_id": "manual__1",
            "try_number": 1, "map_index": -1, "max_tries": 0, "start_date": "2026-01-02T03:04:06+00:00"
        },
        "dag_run": {
            "dag_id": "made", "run_id": "manual__1", "conf": {"limit": 3}, "run_type": "manual",
            "logical_date": "2026-01-02T03:04:05+00:00", "run_after": "2026-01-02T03:04:05+00:00"
        },
        "params": {"limit": 10}, "run_id": "manual__1", "dag_id": "made", "task_id": "t",
        "logical_date": "2026-01-02T03:04:05+00:00",
        "data_interval_start": "2026-01-01T00:00:00+00:00", "data_interval_end": "2026-01-02T00:00:00+00:00",
        "templates_dict": null, "map_index": -1, "triggering_asset_events": [], "task_reschedule_count": 0
    })
}

fn function(file: &DagFile, task_id: &str) -> Handle {
    match &task(file, "made", task_id).kind {
        TaskKind::Python(task) => task.function.expect("a function"),
        TaskKind::Agent(agent) => {
            agent
                .prompt_function
                .as_ref()
                .expect("a prompt function")
                .function
        }
        other => panic!("{task_id} is {other:?}"),
    }
}

/// A Dag `made` whose task `t` is the given function; `t` is called with `args` and `kwargs`.
async fn called(
    source: &str,
    host: Arc<TestHost>,
    args: Value,
    kwargs: Value,
) -> Result<Value, String> {
    let (file, interpreter) = load_source(
        &format!(
            "from __future__ import annotations\nfrom airflow.sdk import DAG, dag, task, get_current_context\n\
             {source}\nwith DAG('made'):\n    task(task_id='t')(t).override(op_kwargs={{}}).expand(**{{name: [1] for \
             name in NAMES}}) if NAMES else task(task_id='t')(t)()\n"
        ),
        host,
    )
    .expect("it loads");
    let handle = function(&file, "t");
    call(&interpreter, handle, args, kwargs).await
}

async fn call(
    interpreter: &Interpreter,
    handle: Handle,
    args: Value,
    kwargs: Value,
) -> Result<Value, String> {
    interpreter
        .call(handle, args, kwargs, &context())
        .await
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_function_gets_the_parts_of_the_context_that_it_names() {
    let source = "NAMES = ['given']\n\
        def t(given, ds=None, ti=None, params=None, dag_run=None, logical_date=None, run_id=None):\n    \
        return [given, ds, ti.task_id, ti.try_number, params['limit'], dag_run.conf['limit'], \
        logical_date.add(days=1).to_date_string(), run_id, type(dag_run.logical_date).__name__]\n";
    let answer = called(source, Arc::default(), json!([]), json!({"given": "x"})).await;
    assert_eq!(
        answer,
        Ok(json!([
            "x",
            "2026-01-02",
            "t",
            1,
            10,
            3,
            "2026-01-03",
            "manual__1",
            "DateTime"
        ]))
    );
}

#[tokio::test]
async fn a_function_with_keyword_arguments_gets_the_whole_context() {
    let source = "NAMES = []\n\
        def t(**context):\n    \
        current = get_current_context()\n    \
        return [context['ts'], context['ts_nodash'], context['ts_nodash_with_tz'], context['ds_nodash'], \
        context['task_instance_key_str'], str(context['data_interval_start']), context['dag'].dag_id, \
        context['task'].task_id, current['params'], context['macros'].ds_add('2026-01-02', 3)]\n";
    let answer = called(source, Arc::default(), json!([]), json!({})).await;
    assert_eq!(
        answer,
        Ok(json!([
            "2026-01-02T03:04:05+00:00", "20260102T030405", "20260102T030405+0000", "20260102", "made__t__20260102",
            "2026-01-01 00:00:00+00:00", "made", "t", {"limit": 10}, "2026-01-05"
        ]))
    );
}

#[tokio::test]
async fn a_context_of_a_run_without_logical_date_has_no_ds() {
    let (file, interpreter) = load_source(
        "from airflow.sdk import DAG, task\nwith DAG('made'):\n    @task\n    def t(**context):\n        return \
         ['ds' in context, context['task_instance_key_str']]\n    t()\n",
        Arc::default(),
    )
    .expect("it loads");
    let mut context = context();
    context["logical_date"] = Value::Null;
    let answer = interpreter
        .call(function(&file, "t"), json!([]), json!({}), &context)
        .await;
    assert_eq!(
        answer.expect("an answer"),
        json!([false, "made__t__manual__1"])
    );
}

#[tokio::test]
async fn xcoms_are_pulled_and_pushed_by_the_task_instance() {
    let mut host = TestHost::with_xcom("one", "return_value", vec![json!({"a": [1]})]);
    host.xcoms
        .insert(("mapped", "return_value"), vec![json!(1), json!(2)]);
    let host = Arc::new(host);
    let source = "NAMES = []\n\
        def t(ti=None):\n    \
        ti.xcom_push(key='k', value=(1, 'x'))\n    \
        return [ti.xcom_pull(task_ids='one'), ti.xcom_pull('mapped'), ti.xcom_pull(task_ids=['one', 'mapped']), \
        ti.xcom_pull('mapped', map_indexes=1), ti.xcom_pull('mapped', map_indexes=[0, 1]), \
        ti.xcom_pull('missing', default='d'), ti.xcom_pull('missing')]\n";
    let answer = called(source, host.clone(), json!([]), json!({})).await;
    assert_eq!(
        answer,
        Ok(json!([{"a": [1]}, [1, 2], [{"a": [1]}, 1, 2], 2, [1, 2], "d", null]))
    );
    let tuple = json!({"__classname__": "builtins.tuple", "__version__": 1, "__data__": [1, "x"]});
    assert_eq!(*host.pushed.lock().unwrap(), [("k".to_owned(), tuple)]);
}

#[tokio::test]
async fn values_return_in_the_wire_form_of_airflow() {
    let source = "import datetime, decimal, uuid, enum\n\
        from dataclasses import dataclass\n\
        from pydantic import BaseModel\n\
        import pendulum\n\
        NAMES = []\n\
        class Model(BaseModel):\n    a: int\n    b: datetime.date = datetime.date(2026, 1, 2)\n\
        class Colour(str, enum.Enum):\n    RED = 'red'\n\
        @dataclass\nclass Point:\n    x: int\n    y: tuple = (1,)\n\
        def t():\n    \
        utc = datetime.timezone.utc\n    \
        return {1: (1, 2), 'set': {3}, 'when': datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=utc), \
        'day': datetime.date(2026, 1, 2), 'span': datetime.timedelta(days=1, seconds=1.5), \
        'decimal': [decimal.Decimal('1.10'), decimal.Decimal(10)], 'id': uuid.UUID(int=5), 'colour': Colour.RED, \
        'point': Point(1), 'model': Model(a=1), 'moment': pendulum.datetime(2026, 1, 2)}\n";
    let answer = called(source, Arc::default(), json!([]), json!({}))
        .await
        .expect("an answer");
    let envelope = |class: &str, version: u8, data: Value| json!({"__classname__": class, "__version__": version, "__data__": data});
    let zone = |class: &str| envelope("builtins.tuple", 1, json!(["UTC", class, 1, true]));
    assert_eq!(answer["1"], envelope("builtins.tuple", 1, json!([1, 2])));
    assert_eq!(answer["set"], envelope("builtins.set", 1, json!([3])));
    assert_eq!(
        answer["when"],
        envelope(
            "datetime.datetime",
            2,
            json!({"timestamp": 1_767_323_045.0, "tz": zone("pendulum.tz.timezone.FixedTimezone")})
        )
    );
    assert_eq!(
        answer["day"],
        envelope("datetime.date", 2, json!("2026-01-02"))
    );
    assert_eq!(
        answer["span"],
        envelope("datetime.timedelta", 2, json!(86401.5))
    );
    assert_eq!(
        answer["decimal"],
        json!([
            envelope("decimal.Decimal", 1, json!(1.1)),
            envelope("decimal.Decimal", 1, json!(10))
        ])
    );
    assert_eq!(
        answer["id"],
        envelope(
            "uuid.UUID",
            1,
            json!("00000000-0000-0000-0000-000000000005")
        )
    );
    assert_eq!(answer["colour"], json!("red"));
    assert_eq!(answer["point"]["__version__"], json!(0));
    assert_eq!(
        answer["point"]["__data__"],
        json!({"x": 1, "y": envelope("builtins.tuple", 1, json!([1]))})
    );
    assert_eq!(
        answer["model"]["__data__"],
        json!({"a": 1, "b": "2026-01-02"})
    );
    let class = answer["model"]["__classname__"].as_str().expect("a name");
    assert!(
        class.starts_with("unusual_prefix_") && class.ends_with("_made.Model"),
        "{class}"
    );
    assert_eq!(
        answer["moment"],
        envelope(
            "pendulum.datetime.DateTime",
            2,
            json!({"timestamp": 1_767_312_000.0, "tz": zone("pendulum.tz.timezone.Timezone")})
        )
    );
}

#[tokio::test]
async fn arguments_in_wire_form_arrive_as_the_python_values_they_were() {
    let source = "from pydantic import BaseModel\n\
        NAMES = ['value']\n\
        class Model(BaseModel):\n    a: int\n\
        def t(value):\n    return [type(item).__name__ for item in value] + [value[3].a]\n";
    let envelope = |class: &str, version: u8, data: Value| json!({"__classname__": class, "__version__": version, "__data__": data});
    let value = json!([
        envelope("builtins.tuple", 1, json!([1])),
        envelope("datetime.timedelta", 2, json!(1.5)),
        envelope("decimal.Decimal", 1, json!(1.1)),
        // Another machine's copy of the file: its path, and so the hash of it, differs.
        envelope(
            "unusual_prefix_0123456789012345678901234567890123456789_made.Model",
            1,
            json!({"a": "7"})
        ),
        envelope("elsewhere.Unknown", 1, json!({"a": 1})),
    ]);
    let answer = called(source, Arc::default(), json!([]), json!({"value": value})).await;
    assert_eq!(
        answer,
        Ok(json!(["tuple", "timedelta", "Decimal", "Model", "dict", 7]))
    );
}

#[tokio::test]
async fn what_airflow_puts_into_no_xcom_is_refused() {
    for (value, text) in [
        (
            "float('nan')",
            "Out of range float values are not JSON compliant",
        ),
        (
            "[1, {'x': float('inf')}]",
            "Out of range float values are not JSON compliant",
        ),
        ("b'bytes'", "Cannot serialize object of type"),
        ("object()", "Cannot serialize object of type"),
        (
            "{'__classname__': 1}",
            "reserved key __classname__ found in dict to serialize",
        ),
    ] {
        let source = format!("NAMES = []\ndef t():\n    return {value}\n");
        let error = called(&source, Arc::default(), json!([]), json!({}))
            .await
            .expect_err(value);
        assert!(error.contains(text), "{value}: {error}");
    }
}

#[tokio::test]
async fn coroutines_and_generators_run_to_their_end() {
    let source = "NAMES = []\nasync def inner():\n    return 5\nasync def t():\n    return await inner() + 1\n";
    assert_eq!(
        called(source, Arc::default(), json!([]), json!({})).await,
        Ok(json!(6))
    );
    let source = "NAMES = []\nasync def t():\n    import asyncio\n    await asyncio.sleep(0)\n    return 7\n";
    assert_eq!(
        called(source, Arc::default(), json!([]), json!({})).await,
        Ok(json!(7))
    );
    let source = "NAMES = []\ndef t():\n    yield 1\n    return 'end'\n";
    assert_eq!(
        called(source, Arc::default(), json!([]), json!({})).await,
        Ok(json!("end"))
    );
}

#[tokio::test]
async fn an_exception_keeps_its_class_its_bases_its_cause_and_its_place() {
    let (file, interpreter) = load_source(
        "from airflow.sdk import DAG, task\nfrom airflow.exceptions import AirflowSkipException\n\
         with DAG('made'):\n    @task\n    def t():\n        try:\n            {}['k']\n        except KeyError as e:\n            \
         raise AirflowSkipException('nothing to do') from e\n    t()\n",
        Arc::default(),
    )
    .expect("it loads");
    let error = interpreter
        .call(function(&file, "t"), json!([]), json!({}), &context())
        .await
        .expect_err("it raises");
    assert_eq!(error.class, "airflow.sdk.exceptions.AirflowSkipException");
    assert_eq!(
        error.bases.iter().map(String::as_str).collect::<Vec<_>>(),
        [
            "airflow.sdk.exceptions.AirflowException",
            "Exception",
            "BaseException"
        ]
    );
    assert_eq!(error.message, "nothing to do");
    let cause = error.cause.expect("a cause");
    assert_eq!(
        (cause.class.as_str(), cause.message.as_str()),
        ("KeyError", "'k'")
    );
    let frame = error.trace.last().expect("a frame");
    assert_eq!((frame.lineno, frame.name.as_str()), (9, "t"));
}

#[tokio::test]
async fn print_and_logging_go_to_the_task_log() {
    let host = Arc::new(TestHost::default());
    let source = "import logging\nlog = logging.getLogger('shop')\nNAMES = []\n\
        def t():\n    print('a', 1)\n    log.warning('low on %s', 'apples')\n    log.debug('hidden')\n    \
        try:\n        1 / 0\n    except ZeroDivisionError:\n        log.exception('failed')\n";
    called(source, host.clone(), json!([]), json!({}))
        .await
        .expect("it runs");
    assert_eq!(host.messages("task.stdout"), ["a 1"]);
    let logged = host.logged.lock().unwrap();
    let shop: Vec<_> = logged
        .iter()
        .filter(|record| record.logger == "shop")
        .collect();
    assert_eq!(
        shop.iter()
            .map(|record| (record.level.as_str(), record.message.as_str()))
            .collect::<Vec<_>>(),
        [("warning", "low on apples"), ("error", "failed")]
    );
    let detail = &shop[1].fields["error_detail"][0];
    assert_eq!(detail["exc_type"], "ZeroDivisionError");
    assert_eq!(detail["frames"][0]["name"], "t");
}

#[tokio::test]
async fn variables_connections_and_hooks_ask_the_worker() {
    let mut host = TestHost::default();
    host.variables.insert("limits", "{\"rows\": 5}");
    let source = "from airflow.sdk import Variable, BaseHook, Connection\n\
        from airflow.exceptions import AirflowNotFoundException\n\
        NAMES = []\n\
        def t(var=None, conn=None):\n    \
        shop = BaseHook.get_connection('shop')\n    \
        try:\n        Connection.get('nowhere')\n    except AirflowNotFoundException as e:\n        missing = str(e)\n    \
        return [Variable.get('limits', deserialize_json=True), Variable.get('none', default=1), var['json'].limits, \
        shop.extra_dejson['sslmode'], shop.get_uri(), conn.shop.login, conn.get('nowhere', 'd'), missing]\n";
    let answer = called(source, Arc::new(host), json!([]), json!({})).await;
    assert_eq!(
        answer,
        Ok(json!([
            {"rows": 5}, 1, {"rows": 5}, "require", "postgres://reader:made-up-password@db/?sslmode=require", "reader", "d",
            "The conn_id `nowhere` isn't defined"
        ]))
    );
}

#[tokio::test]
async fn values_made_of_xcoms_are_resolved_when_the_task_runs() {
    let mut host = TestHost::with_xcom("names", "return_value", vec![json!(["a", "b"])]);
    host.xcoms
        .insert(("numbers", "return_value"), vec![json!([1, 2, 3])]);
    let (file, interpreter) = load_source(
        "from airflow.sdk import DAG, task\nwith DAG('made'):\n    @task\n    def names(): ...\n    @task\n    def numbers(): \
         ...\n    @task\n    def use(value): ...\n    n, m = names(), numbers()\n    \
         use.override(task_id='mapped').expand(value=n.map(str.upper))\n    \
         use.override(task_id='zipped').expand(value=n.zip(m))\n    \
         use.override(task_id='filled').expand(value=n.zip(m, fillvalue='-'))\n    \
         use.override(task_id='concatenated').expand(value=n.concat(m))\n",
        Arc::new(host),
    )
    .expect("it loads");
    let tuple = |items: Value| json!({"__classname__": "builtins.tuple", "__version__": 1, "__data__": items});
    for (task_id, wanted) in [
        ("mapped", json!(["A", "B"])),
        (
            "zipped",
            json!([tuple(json!(["a", 1])), tuple(json!(["b", 2]))]),
        ),
        (
            "filled",
            json!([
                tuple(json!(["a", 1])),
                tuple(json!(["b", 2])),
                tuple(json!(["-", 3]))
            ]),
        ),
        ("concatenated", json!(["a", "b", 1, 2, 3])),
    ] {
        let Expansion::Product(arguments) = &task(&file, "made", task_id).expansions[0] else {
            panic!("a product was expected");
        };
        let Argument::Object {
            handle, resolve, ..
        } = arguments[0].1
        else {
            panic!("an object was expected, not {:?}", arguments[0].1);
        };
        assert!(resolve);
        let answer = interpreter.resolve(handle, &context()).await;
        assert_eq!(answer.expect("a value"), wanted, "{task_id}");
    }
}

#[test]
fn mistakes_fail_with_the_texts_of_airflow() {
    for (body, text) in [
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m', durable=True, enable_hitl_review=True)",
            "durable=True and enable_hitl_review=True cannot be used together.",
        ),
        (
            "from pydantic_ai.toolsets import FunctionToolset; AgentOperator(task_id='a', prompt='p', llm_conn_id='m', \
             durable=True, toolsets=[FunctionToolset().prefixed('x')])",
            "durable=True records tool calls by the id of their toolset, and there is none on a FunctionToolset.",
        ),
        (
            "from pydantic_ai.toolsets import FunctionToolset; AgentOperator(task_id='a', prompt='p', llm_conn_id='m', \
             durable=True, toolsets=[FunctionToolset(id='x'), FunctionToolset(id='x')])",
            "several toolsets have the id 'x'",
        ),
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m', durable=True, toolsets=[lambda ctx: SQLToolset('db')])",
            "there is none on a DynamicToolset.",
        ),
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m', message_history=[], enable_hitl_review=True)",
            "message_history and enable_hitl_review=True cannot be used together.",
        ),
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m', on_tool_approval_timeout='x')",
            "on_tool_approval_timeout must be 'fail' or 'deny', got 'x'.",
        ),
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m', on_tool_approval_timeout='deny')",
            "on_tool_approval_timeout='deny' needs a tool_approval_timeout to fire.",
        ),
        (
            "AgentOperator(task_id='a', prompt='p')",
            "missing keyword argument 'llm_conn_id'",
        ),
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m', promt='x')",
            "Invalid arguments were passed to AgentOperator (task_id: a). Invalid arguments were:\n**kwargs: {'promt': 'x'}",
        ),
        (
            "AgentOperator(task_id='a b', prompt='p', llm_conn_id='m')",
            "The key 'a b' has to be made of alphanumeric characters, dashes, dots, and underscores exclusively",
        ),
        (
            "AgentOperator.partial(task_id='a', promt='p')",
            "AgentOperator.partial() got an unexpected keyword argument 'promt'",
        ),
        (
            "AgentOperator.partial(task_id='a').expand()",
            "no arguments to expand against",
        ),
        (
            "AgentOperator.partial(task_id='a').expand(prompt='x')",
            "AgentOperator.expand() got an unexpected type 'str' for keyword argument prompt",
        ),
        (
            "SQLToolset('db', allowed_tables=[])",
            "allowed_tables must name at least one table, got []. Omit the argument",
        ),
        (
            "SQLToolset('db', max_retries=-1)",
            "max_retries must not be negative, got -1.",
        ),
        (
            "SQLToolset('db', tool_prefix='x')",
            "unexpected keyword argument 'tool_prefix'",
        ),
        ("t(1, 2)", "too many positional arguments"),
        ("t()", "missing a required argument: 'x'"),
        ("t(x=1, y=2)", "got an unexpected keyword argument 'y'"),
        (
            "t.expand(ds=[1])",
            "cannot call expand() on task context variable 'ds'",
        ),
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m'); AgentOperator(task_id='a', prompt='p', llm_conn_id='m')",
            "Task id 'a' has already been added to the Dag",
        ),
        ("a = t(1); b = t(a); b >> a", "Cycle detected in Dag: made."),
        (
            "AgentOperator(task_id='a', prompt='p', llm_conn_id='m', trigger_rule='never')",
            "The trigger_rule must be one of",
        ),
        ("[x for x in t(1)]", "'XComArg' object is not iterable"),
    ] {
        let source = format!(
            "from airflow.sdk import DAG, task\n\
             from airflow.providers.common.ai.operators.agent import AgentOperator\n\
             from airflow.providers.common.ai.toolsets.sql import SQLToolset\n\
             @task\ndef t(x): ...\nwith DAG('made'):\n    {body}\n"
        );
        let error = load_source(&source, Arc::default())
            .map(|(file, _)| file)
            .expect_err(body);
        assert!(error.to_string().contains(text), "{body}: {error}");
    }
}

#[test]
fn an_xcom_in_an_f_string_is_the_template_that_airflow_writes() {
    let (file, _) = load_source(
        "from airflow.sdk import DAG, task\n\
         from airflow.providers.common.ai.operators.agent import AgentOperator\n\
         with DAG('made'):\n    @task\n    def one(): ...\n    a = one()\n    \
         AgentOperator(task_id='ask', prompt=f\"say {a} {a['k']}\", llm_conn_id='m')\n",
        Arc::default(),
    )
    .expect("it loads");
    let TaskKind::Agent(agent) = &task(&file, "made", "ask").kind else {
        panic!("an agent was expected");
    };
    let pull = |key: &str| {
        format!("{{{{ task_instance.xcom_pull(task_ids='one', dag_id='made', key='{key}') }}}}")
    };
    assert_eq!(
        agent.prompt,
        Argument::String(format!("say {} {}", pull("return_value"), pull("k")))
    );
    assert!(task(&file, "made", "ask").upstream_task_ids.is_empty());
}
