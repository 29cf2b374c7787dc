//! Loading and calling, with the real stand-in modules.

use std::sync::Mutex;

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;
use crate::dag::definitions::{Argument, Task, TaskKind};
use crate::dag::host::{HostError, LogRecord, XComQuery};

/// A host that has nothing and notes what is logged.
#[derive(Default)]
struct TestHost {
    logged: Mutex<Vec<String>>,
}

impl Host for TestHost {
    fn connection(&self, conn_id: &str) -> Result<Value, HostError> {
        Err(HostError::NotFound(format!(
            "The conn_id `{conn_id}` isn't defined"
        )))
    }

    fn variable(&self, _: &str) -> Result<Option<String>, HostError> {
        Ok(None)
    }

    fn set_variable(&self, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), HostError> {
        Ok(())
    }

    fn xcom_pull(&self, _: XComQuery) -> Result<Value, HostError> {
        Ok(Value::Null)
    }

    fn xcom_push(&self, _: &str, _: Value) -> Result<(), HostError> {
        Ok(())
    }

    fn config(&self, section: &str, key: &str) -> Option<String> {
        (section == "core" || key == "jwt_secret").then(|| format!("made-up-{key}"))
    }

    fn mask_secret(&self, _: &Value, _: Option<&str>) {}

    fn log(&self, record: LogRecord) {
        self.logged.lock().unwrap().push(record.message);
    }
}

struct Bundle(tempfile::TempDir);

impl Bundle {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn load_within(&self, timeout: Duration) -> Result<(DagFile, Interpreter), LoadError> {
        let options = LoadOptions {
            timeout,
            ..LoadOptions::new(self.0.path())
        };
        Interpreter::load(
            &self.0.path().join("dag.py"),
            options,
            Arc::new(TestHost::default()),
        )
    }

    fn load(&self) -> Result<(DagFile, Interpreter), LoadError> {
        self.load_within(Duration::from_secs(60))
    }
}

fn load(source: &str) -> Result<(DagFile, Interpreter), LoadError> {
    Bundle::new(&[("dag.py", source.as_bytes())]).load()
}

fn error(source: &str) -> LoadError {
    load(source).map(|(file, _)| file).unwrap_err()
}

fn context() -> Value {
    json!({
        "ti": {"task_id": "t", "dag_id": "d", "run_id": "r", "map_index": -1, "try_number": 1},
        "dag_run": {"dag_id": "d", "run_id": "r", "conf": {}, "run_type": "manual"},
        "params": {"who": "world"},
        "run_id": "r",
        "dag_id": "d",
        "task_id": "t",
        "logical_date": "2026-01-02T03:04:05+00:00",
        "data_interval_start": null,
        "data_interval_end": null,
        "templates_dict": null,
        "map_index": -1,
        "triggering_asset_events": {},
        "task_reschedule_count": 0
    })
}

const GREETING: &str = "
from airflow.sdk import dag, task
import unavailable_thing

@dag(schedule=None)
def greeting():
    @task
    def greet(name, *, punctuation='!', params=None, ds=None):
        return [f'hello {name}{punctuation}', params['who'], ds]

    @task
    def fail():
        raise ValueError('no luck')

    @task
    def needs():
        return unavailable_thing.compute()

    @task
    def forever():
        while True:
            pass

    @task
    async def later():
        import asyncio
        await asyncio.sleep(0)
        return 'later'

    greet('x') >> fail() >> needs() >> forever() >> later()

greeting()
";

fn function(tasks: &[Task], task_id: &str) -> Handle {
    let task = tasks.iter().find(|task| task.task_id == task_id).unwrap();
    match &task.kind {
        TaskKind::Python(task) => task.function.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn functions_that_stayed_are_called_with_arguments_and_context() {
    let (file, interpreter) = load(GREETING).unwrap();
    let tasks = &file.dags[0].tasks;
    assert_eq!(file.unavailable_modules, ["unavailable_thing"]);
    let TaskKind::Python(task) = &tasks[0].kind else {
        panic!()
    };
    assert_eq!(
        task.field("op_args"),
        Some(&Argument::Tuple(vec![Argument::String("x".to_owned())]))
    );

    let context = context();
    let result = interpreter
        .call(
            function(tasks, "greet"),
            json!(["x"]),
            json!({"punctuation": "?"}),
            &context,
        )
        .await;
    assert_eq!(result.unwrap(), json!(["hello x?", "world", "2026-01-02"]));
    let result = interpreter
        .call(function(tasks, "later"), json!([]), json!({}), &context)
        .await;
    assert_eq!(result.unwrap(), json!("later"));
}

#[test]
fn named_time_zones_are_there() {
    let source = "
from zoneinfo import ZoneInfo
import pendulum
from airflow.sdk import DAG
at = pendulum.datetime(2026, 7, 1, tz='Europe/Stockholm')
assert at.isoformat() == '2026-07-01T00:00:00+02:00', at
assert at.astimezone(ZoneInfo('America/New_York')).hour == 18
d = DAG('d', start_date=at)
";
    let (file, _) = load(source).unwrap();
    assert_eq!(file.dags[0].dag_id, "d");
}

#[test]
fn a_mapped_python_operator_keeps_its_function() {
    let source = "
from airflow.sdk import DAG
from airflow.providers.standard.operators.python import PythonOperator
with DAG('d'):
    PythonOperator.partial(task_id='a', python_callable=print).expand(op_args=[[1], [2]])
    PythonOperator.partial(task_id='b', python_callable=print).expand_kwargs([{'op_kwargs': {'sep': ''}}])
";
    let (file, _) = load(source).unwrap();
    for task in &file.dags[0].tasks {
        assert!(
            matches!(&task.kind, TaskKind::Python(task) if task.name == "print"),
            "{:?}",
            task.kind
        );
    }
}

#[test]
fn what_the_interpreter_is_asked_for_later_and_what_nobody_acts_on_are_named() {
    let source = "
from airflow.sdk import DAG, task
from airflow.providers.common.ai.operators.agent import AgentOperator
with DAG('d'):
    AgentOperator(task_id='a', prompt='?', llm_conn_id='m', on_failure_callback=print)
    AgentOperator.partial(task_id='b', llm_conn_id='m', on_retry_callback=[print]).expand(prompt=['?'])
    @task(email='nobody@example.com', pre_execute=print)
    def c(): pass
    c()
";
    let (file, _) = load(source).unwrap();
    let named: Vec<_> = file.dags[0]
        .tasks
        .iter()
        .map(|task| {
            (
                task.task_id.as_str(),
                task.dag_code.join(","),
                task.ignored.join(","),
            )
        })
        .collect();
    let row = |a, b: &str, c: &str| (a, b.to_owned(), c.to_owned());
    assert_eq!(
        named,
        [
            row("a", "on_failure_callback", ""),
            row("b", "on_retry_callback", ""),
            row("c", "pre_execute", "email")
        ]
    );
}

#[test]
fn dag_code_reads_the_configuration_but_not_its_secrets() {
    let source = "
from airflow.sdk import DAG
from airflow.sdk.configuration import conf
assert conf.get('core', 'dags_folder') == 'made-up-dags_folder'
assert conf.get('API_AUTH', 'jwt_secret', fallback='hidden') == 'hidden'
DAG('d')
";
    load(source).unwrap();
}

#[tokio::test]
async fn an_exception_in_a_call_comes_back_with_its_class_text_and_place() {
    let (file, interpreter) = load(GREETING).unwrap();
    let tasks = &file.dags[0].tasks;
    let error = interpreter
        .call(function(tasks, "fail"), json!([]), json!({}), &context())
        .await
        .unwrap_err();
    assert_eq!(
        (error.class.as_str(), error.message.as_str()),
        ("ValueError", "no luck")
    );
    assert!(error.is("Exception"), "{error:?}");
    assert_eq!(error.trace.last().unwrap().lineno, 13);
    assert!(error.to_string().ends_with("dag.py:13 in fail)"), "{error}");

    let error = interpreter
        .call(function(tasks, "needs"), json!([]), json!({}), &context())
        .await
        .unwrap_err();
    assert!(error.is("ImportError"), "{error:?}");
    assert!(
        error
            .message
            .starts_with("compute needs the module unavailable_thing"),
        "{error}"
    );
    assert!(error.message.contains("dag.py:3)"), "{error}");
}

#[tokio::test]
async fn a_call_that_is_given_up_is_stopped_and_the_next_one_works() {
    let (file, interpreter) = load(GREETING).unwrap();
    let tasks = &file.dags[0].tasks;
    let (no_args, no_kwargs, context) = (json!([]), json!({}), context());
    let endless = interpreter.call(
        function(tasks, "forever"),
        no_args.clone(),
        no_kwargs.clone(),
        &context,
    );
    assert!(
        tokio::time::timeout(Duration::from_millis(100), endless)
            .await
            .is_err()
    );
    let result = interpreter
        .call(function(tasks, "later"), no_args, no_kwargs, &context)
        .await;
    assert_eq!(result.unwrap(), json!("later"));
}

#[tokio::test]
async fn a_call_that_is_given_up_while_it_waits_does_not_stop_the_one_before() {
    let source = "
import time
from airflow.sdk import DAG, task

with DAG('d', schedule=None):
    @task
    def slow():
        time.sleep(1)
        return 'done'
    slow()
";
    let (file, interpreter) = load(source).unwrap();
    let slow = function(&file.dags[0].tasks, "slow");
    let context = context();
    let call = || interpreter.call(slow, json!([]), json!({}), &context);
    let given_up = tokio::time::timeout(Duration::from_millis(300), call());
    let (first, given_up) = tokio::join!(biased; call(), given_up);
    assert!(given_up.is_err());
    assert_eq!(first.unwrap(), json!("done"));
}

#[test]
fn a_file_that_loads_for_ever_is_stopped_and_the_error_says_where() {
    // Source, timeout in seconds (an unoptimised build takes its time to import asyncio), line.
    let endless = [
        ("x = 1\nwhile True: x += 1\n", 2, Some(2)),
        ("import time\ntime.sleep(10_000)\n", 2, Some(2)),
        (
            "import asyncio\nasyncio.run(asyncio.sleep(1e6))\n",
            10,
            Some(2),
        ),
        (
            "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n",
            2,
            None,
        ),
    ];
    for (source, timeout, line) in endless {
        let bundle = Bundle::new(&[("dag.py", source.as_bytes())]);
        // Where it was is told only if the first interruption finds it, which another test's interpreter can take away.
        let mut told = None;
        for _ in 0..3 {
            let start = Instant::now();
            let loaded = bundle.load_within(Duration::from_secs(timeout));
            let error = loaded.map(|(file, _)| file).unwrap_err();
            assert!(
                start.elapsed() < Duration::from_secs(timeout + 15),
                "{source}"
            );
            let LoadError::TimedOut { file, at, .. } = &error else {
                panic!("{error}")
            };
            assert_eq!(file, &bundle.file("dag.py"));
            told = at.as_ref().map(|at| at.lineno);
            if line.is_none() || told.is_some() {
                break;
            }
        }
        if line.is_some() {
            assert_eq!(told, line, "{source}");
        }
    }
}

#[test]
fn a_file_that_calls_itself_for_ever_is_an_error() {
    let call = error("def f(n):\n    return f(n + 1)\nf(0)\n");
    assert!(matches!(call, LoadError::Recursion { .. }), "{call}");
    let chain =
        error("x = 1\nclass C:\n    def __getattr__(self, n):\n        return self.n\nC().a\n");
    assert!(matches!(chain, LoadError::Recursion { .. }), "{chain}");
}

#[test]
fn a_syntax_error_has_the_file_the_line_and_pythons_words() {
    let bundle = Bundle::new(&[("dag.py", b"x = 1\ny = = 2\n")]);
    let error = bundle.load().map(|(file, _)| file).unwrap_err();
    let LoadError::Syntax {
        file, line, class, ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (file, *line, class.as_str()),
        (&bundle.file("dag.py"), 2, "SyntaxError")
    );

    let bundle = Bundle::new(&[
        ("dag.py", b"import helper\n"),
        ("helper.py", b"\n\n  x = 1\n y = 2\n"),
    ]);
    let error = bundle.load().map(|(file, _)| file).unwrap_err();
    let LoadError::Syntax { file, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(file, &bundle.file("helper.py"));
}

#[test]
fn an_exception_while_loading_names_its_place() {
    let bundle = Bundle::new(&[("dag.py", b"def f():\n    return 1 / 0\n\nf()\n")]);
    let error = bundle.load().map(|(file, _)| file).unwrap_err();
    let LoadError::Exception { error, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(error.class, "ZeroDivisionError");
    let frames: Vec<_> = error
        .trace
        .iter()
        .map(|f| (f.lineno, f.name.as_str()))
        .collect();
    assert_eq!(frames, [(4, "<module>"), (2, "f")]);
}

#[test]
fn source_is_read_as_python_reads_it() {
    let files: [&[u8]; 4] = [
        b"\xef\xbb\xbffrom airflow.sdk import DAG\r\nwith DAG('d', schedule=None):\r\n\tpass\r\n",
        b"# -*- coding: latin-1 -*-\nfrom airflow.sdk import DAG\nd = DAG('\xe9'.replace('\xe9', 'd'), schedule=None)\n",
        b"from airflow.sdk import DAG\rd = DAG('d', schedule=None)",
        b"from airflow.sdk import DAG\n\x0cd = DAG('d', schedule=None)\n",
    ];
    for source in files {
        let bundle = Bundle::new(&[("dag.py", source)]);
        let source = String::from_utf8_lossy(source);
        let (file, _) = bundle
            .load()
            .unwrap_or_else(|error| panic!("{error}: {source:?}"));
        let ids: Vec<_> = file.dags.iter().map(|dag| dag.dag_id.as_str()).collect();
        assert_eq!(ids, ["d"], "{source:?}");
    }
    let not_utf_8 = Bundle::new(&[("dag.py", b"x = 1\n# \xff\n")]);
    let error = not_utf_8.load().map(|(file, _)| file).unwrap_err();
    assert!(
        matches!(error, LoadError::NotUtf8 { offset: 8, .. }),
        "{error}"
    );
    let helper = format!("x = {}1\n", "-".repeat(200_000));
    let deep_helper = Bundle::new(&[
        ("dag.py", b"import helper\n"),
        ("helper.py", helper.as_bytes()),
    ]);
    let error = deep_helper.load().map(|(file, _)| file).unwrap_err();
    assert!(matches!(error, LoadError::Syntax { .. }), "{error}");
    let deep = error_of_deep_file();
    assert!(matches!(deep, LoadError::TooDeep { .. }), "{deep}");
}

#[test]
fn deep_nesting_that_dag_code_parses_is_an_exception_and_not_the_end_of_the_process() {
    let source = "
import ast, json
from airflow.sdk import DAG
many = 1_000_000
seen = []
for attempt in (
    lambda: json.loads('[' * many),
    lambda: json.loads('{\"a\": ' * many),
    lambda: eval('-' * many + '1'),
    lambda: exec('x = ' + '(' * many),
    lambda: ast.literal_eval('[' * many),
    lambda: compile('1' + ' + 1' * many, 'made', 'eval'),
):
    try:
        attempt()
    except (RecursionError, SyntaxError) as error:
        seen.append(type(error).__name__)
dag = DAG('-'.join(seen))

assert json.loads('[' * 900 + ']' * 900)
x = 3
def inside(y):
    exec('assert x + y == 8')
    return eval('x + y')
assert inside(5) == eval('x + 5') == 8
assert eval('y', None, {'y': 1}) == eval('y', globals={}, locals={'y': 1}) == 1
";
    let (file, _) = load(source).unwrap();
    assert_eq!(
        file.dags[0].dag_id,
        "RecursionError-RecursionError-SyntaxError-SyntaxError-SyntaxError-SyntaxError"
    );
}

fn error_of_deep_file() -> LoadError {
    error(&format!("x = {}1{}\n", "(".repeat(1000), ")".repeat(1000)))
}

#[test]
fn the_longest_expression_that_is_let_through_does_not_overflow_the_stack() {
    let chain = format!("x = 1{}\n", " + 1".repeat(4900));
    let nested = format!("y = {}1{}\n", "[".repeat(190), "]".repeat(190));
    let calls = format!("def f(*a): return f\nz = f{}\n", "(1)".repeat(3000));
    for source in [chain, nested, calls] {
        match load(&source) {
            Ok(_) | Err(LoadError::Recursion { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn an_operator_whose_module_is_unavailable_is_a_task_that_says_why_it_cannot_run() {
    let source = "
from airflow.sdk import DAG, task
from airflow.providers.acme.operators.bar import BarOperator
from acme_plugin import AcmeSensor

class Mine(BarOperator):
    pass

with DAG('d', schedule=None):
    @task
    def first():
        return 1
    one = first()
    bar = BarOperator(task_id='bar', retries=2, bar_id=one)
    wait = AcmeSensor(task_id='wait', poke_interval=3)
    mine = Mine(task_id='mine', queue='agents')
    many = BarOperator.partial(task_id='many', cluster='x').expand(bar_id=[1, 2])
    wait >> bar >> [mine, many]
";
    let (file, _) = load(source).unwrap();
    let seen: Vec<_> = file.dags[0]
        .tasks
        .iter()
        .map(|task| {
            (
                task.task_id.as_str(),
                task.operator.as_str(),
                task.location.line,
                task.upstream_task_ids.join(","),
            )
        })
        .collect();
    let expected = [
        ("first", "@task", 10, String::new()),
        ("bar", "BarOperator", 14, "first,wait".to_owned()),
        ("wait", "AcmeSensor", 15, String::new()),
        ("mine", "Mine", 16, "bar".to_owned()),
        ("many", "BarOperator", 17, "bar".to_owned()),
    ];
    assert_eq!(seen, expected);
    let TaskKind::Unsupported { reason } = &file.dags[0].tasks[1].kind else {
        panic!()
    };
    assert_eq!(
        reason,
        "the module airflow.providers.acme.operators.bar is not available in the Dag interpreter"
    );
}
