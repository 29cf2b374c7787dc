//! What Python code can and can't do in the interpreter.

use std::path::Path;
use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use rustpython_vm::compiler::Mode;
use serde_json::{Value, json};

use super::*;
use crate::dag::files::ReadableFiles;
use crate::dag::host::{Host, HostError, LogRecord, XComQuery};
use crate::dag::world::World;

/// A host that knows one connection and one variable, and notes what it is told.
#[derive(Default)]
struct TestHost {
    logged: Mutex<Vec<LogRecord>>,
}

impl Host for TestHost {
    fn connection(&self, conn_id: &str) -> Result<Value, HostError> {
        match conn_id {
            "db" => Ok(json!({"conn_id": "db", "conn_type": "sqlite"})),
            other => Err(HostError::NotFound(format!(
                "The conn_id `{other}` isn't defined"
            ))),
        }
    }

    fn variable(&self, key: &str) -> Result<Option<String>, HostError> {
        match key {
            "broken" => Err(HostError::Other("server away".to_owned())),
            "here" => Ok(Some("value".to_owned())),
            _ => Ok(None),
        }
    }

    fn set_variable(&self, _: &str, _: Option<&str>, _: Option<&str>) -> Result<(), HostError> {
        Ok(())
    }

    fn xcom_pull(&self, query: XComQuery) -> Result<Value, HostError> {
        Ok(json!([query.task_ids, query.key, query.map_indexes]))
    }

    fn xcom_push(&self, _: &str, _: Value) -> Result<(), HostError> {
        Ok(())
    }

    fn config(&self, section: &str, key: &str) -> Option<String> {
        (section == "core").then(|| key.to_owned())
    }

    fn mask_secret(&self, _: &Value, _: Option<&str>) {}

    fn log(&self, record: LogRecord) {
        self.logged.lock().unwrap().push(record);
    }
}

/// Runs `source` as the file `dag.py` of `bundle`; gives the text in its variable `answer`, or the traceback.
fn python_in(bundle: &Path, source: &str, host: Arc<TestHost>) -> Result<String, String> {
    let dag_file = bundle.join("dag.py");
    std::fs::write(&dag_file, source).unwrap();
    let world = Arc::new(World {
        host,
        files: ReadableFiles::new(bundle, &[]),
        dag_file: dag_file.clone(),
        source: source.to_owned(),
        bundle_root: bundle.to_owned(),
        environment: vec![("GREETING".to_owned(), "hello".to_owned())],
    });
    let source = source.to_owned();
    let run = move || {
        let (vm, _signals) = Vm::start(world).unwrap();
        let answer = vm.interpreter.enter(|vm| {
            let run = || -> PyResult<String> {
                vm.insert_sys_path(
                    vm.ctx
                        .new_str(dag_file.parent().unwrap().to_str().unwrap())
                        .into(),
                )?;
                let scope = vm.new_scope_with_builtins();
                scope
                    .globals
                    .set_item("__name__", vm.ctx.new_str("dag").into(), vm)?;
                let file = dag_file.to_str().unwrap().to_owned();
                scope
                    .globals
                    .set_item("__file__", vm.ctx.new_str(file.clone()).into(), vm)?;
                let code = vm
                    .compile(&source, Mode::Exec, file)
                    .map_err(|error| vm.new_syntax_error(&error, Some(&source)))?;
                vm.run_code_obj(code, scope.clone())?;
                Ok(match scope.globals.get_item_opt("answer", vm)? {
                    Some(answer) => answer.str(vm)?.to_string(),
                    None => String::new(),
                })
            };
            let answer = run().map_err(|error| describe(&error, vm));
            flush(vm);
            answer
        });
        vm.end();
        answer
    };
    std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(run)
        .unwrap()
        .join()
        .unwrap()
}

fn python(source: &str) -> Result<String, String> {
    python_in(tempfile::tempdir().unwrap().path(), source, Arc::default())
}

/// The modules that Dag files import at their top, whether or not they can do anything here.
const IMPORTABLE: &str = "
abc argparse array ast asyncio base64 binascii bisect calendar cmath codecs collections collections.abc
concurrent.futures configparser contextlib contextvars copy csv dataclasses datetime decimal difflib email
email.message email.mime.text email.utils enum errno fnmatch fractions ftplib functools gc getpass gettext glob graphlib
gzip hashlib heapq hmac html html.parser http http.client http.server importlib importlib.metadata importlib.resources
importlib.util inspect io ipaddress itertools json keyword linecache locale logging logging.config logging.handlers
lzma math mimetypes multiprocessing multiprocessing.pool numbers operator os os.path pathlib pickle pickletools pkgutil
platform pprint queue random re reprlib sched secrets select selectors shelve shlex shutil signal smtplib socket
socketserver sqlite3 ssl stat statistics string struct subprocess sys sysconfig tarfile tempfile textwrap threading time
timeit token tokenize tomllib traceback types typing unicodedata unittest unittest.mock urllib urllib.error urllib.parse
urllib.request uuid warnings wave weakref webbrowser xml.dom.minidom xml.etree.ElementTree zipfile zlib zoneinfo bz2
";

#[test]
fn the_standard_library_that_dag_files_import_is_importable() {
    let source = format!(
        "
import importlib, traceback
answer = ''
for name in '''{IMPORTABLE}'''.split():
    try:
        importlib.import_module(name)
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        answer += f'{{name}}: {{error!r}} at {{last.filename}}:{{last.lineno}}\\n'
"
    );
    assert_eq!(python(&source).unwrap(), "");
}

#[test]
fn the_importers_of_files_are_loaded_only_for_a_dag_file_that_imports_files() {
    let bundle = tempfile::tempdir().unwrap();
    std::fs::write(bundle.path().join("helper.py"), "word = 'well'").unwrap();
    let source = "
import sys
import json
there = ['_frozen_importlib_external' in sys.modules]
import helper
there.append('_frozen_importlib_external' in sys.modules)
answer = f'{there} {helper.word} {helper.__file__}'
";
    let answer = python_in(bundle.path(), source, Arc::default()).unwrap();
    let file = bundle.path().join("helper.py");
    assert_eq!(answer, format!("[False, True] well {}", file.display()));
}

#[test]
fn coroutines_run_on_the_interpreters_thread() {
    let source = "
import asyncio

async def double(n, after):
    await asyncio.sleep(after)
    return 2 * n

async def main():
    lock = asyncio.Lock()
    async with lock:
        numbers = await asyncio.gather(double(1, 0.02), double(2, 0.01))
    try:
        await asyncio.wait_for(double(3, 10), 0.01)
    except TimeoutError:
        numbers.append('late')
    task = asyncio.create_task(double(4, 0))
    numbers.append(await task)
    numbers.append(await asyncio.to_thread(lambda: 'thread'))
    async with asyncio.timeout(1), asyncio.TaskGroup() as group:
        group.create_task(double(5, 0))
    return numbers

answer = asyncio.run(main())
loop = asyncio.new_event_loop()
answer += [loop.run_until_complete(double(6, 0)), asyncio.iscoroutinefunction(double)]
loop.close()
";
    assert_eq!(
        python(source).unwrap(),
        "[2, 4, 'late', 8, 'thread', 12, True]"
    );
}

#[test]
fn files_beside_the_dag_file_can_be_read_in_every_usual_way() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/a.csv"), "n,m\r\n1,é\r\n").unwrap();
    std::fs::write(folder.path().join("helper.py"), "\u{feff}VALUE = 3\r\n").unwrap();
    let source = "
import csv, glob, os, json, shutil, sys
from pathlib import Path
import helper
here = Path(__file__).parent
data = here / 'data' / 'a.csv'
rows = list(csv.DictReader(open(data, newline='', encoding='utf-8')))
checks = {
    'rows': rows == [{'n': '1', 'm': 'é'}],
    'text': data.read_text() == 'n,m\\n1,é\\n',
    'bytes': data.read_bytes() == 'n,m\\r\\n1,é\\r\\n'.encode(),
    'exists': data.exists() and data.is_file() and not (here / 'absent').exists(),
    'glob': [p.name for p in here.glob('**/*.csv')] == ['a.csv'] and len(glob.glob('data/*')) == 1,
    'iterdir': sorted(p.name for p in here.iterdir()) == ['dag.py', 'data', 'helper.py'],
    'walk': [len(files) for _, _, files in os.walk(here)] == [2, 1],
    'scandir': [(e.name, e.is_dir()) for e in os.scandir('.')][1] == ('data', True),
    'stat': os.stat(data).st_size == os.path.getsize(data) == 11 and data.stat().st_mtime > 1e9,
    'relative': open('data/a.csv', 'rb').read(3) == b'n,m',
    'resolve': data.resolve() == data and os.path.realpath('data') == str(here / 'data'),
    'seek': (lambda f: (f.seek(2), f.read(1), f.tell()))(open(data, 'rb'))[1:] == (b'm', 3),
    'cwd': os.getcwd() == str(here),
    'module': helper.VALUE == 3 and helper.__file__ == str(here / 'helper.py'),
    'environment': os.environ['GREETING'] == os.getenv('GREETING') == 'hello',
    'descriptor': os.fdopen(os.open(data, os.O_RDONLY)).readline() == 'n,m\\n',
}
answer = [name for name, fine in checks.items() if not fine]
try:
    here.joinpath('absent').read_text()
except FileNotFoundError as error:
    answer.append(error.errno)
try:
    open(here)
except IsADirectoryError as error:
    answer.append(error.errno)
";
    assert_eq!(
        python_in(folder.path(), source, Arc::default()).unwrap(),
        "[2, 21]"
    );
}

#[test]
fn dag_code_has_no_ambient_authority() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside.py");
    std::fs::write(&outside, "secret = 1").unwrap();
    let bundle = folder.path().join("bundle");
    std::fs::create_dir(&bundle).unwrap();
    std::os::unix::fs::symlink(&outside, bundle.join("link.py")).unwrap();
    let source = "
import os, pathlib, shutil, signal, socket, sqlite3, subprocess, tempfile, urllib.request, linecache, sys
def refused(f, *classes):
    try:
        return f'allowed: {f()!r}'
    except classes or PermissionError as error:
        return None
here = pathlib.Path(__file__).parent
attempts = [
    lambda: open('/etc/passwd').read(),
    lambda: pathlib.Path('/etc/passwd').read_text(),
    lambda: open(here / 'link.py').read(),
    lambda: open(here / '..' / 'outside.py').read(),
    lambda: os.listdir('/'),
    lambda: os.stat('/etc/passwd'),
    lambda: open(here / 'new.txt', 'w'),
    lambda: open(here / 'dag.py', 'r+'),
    lambda: (here / 'new.txt').write_text('x'),
    lambda: (here / 'folder').mkdir(),
    lambda: os.open(here / 'new.txt', os.O_CREAT | os.O_WRONLY),
    lambda: os.remove(here / 'dag.py'),
    lambda: shutil.rmtree(here),
    lambda: os.system('true'),
    lambda: os.popen('true'),
    lambda: subprocess.run(['true']),
    lambda: subprocess.check_output('true', shell=True),
    lambda: os.kill(os.getpid(), 9),
    lambda: os.fork(),
    lambda: socket.socket(),
    lambda: socket.create_connection(('127.0.0.1', 80)),
    lambda: signal.alarm(1),
]
answer = [n for n, f in enumerate(attempts) if refused(f)]
answer += [refused(lambda: sqlite3.connect(':memory:'), sqlite3.Error)]
answer += [refused(lambda: urllib.request.urlopen('http://127.0.0.1/'), OSError)]
answer += [refused(tempfile.mkdtemp, OSError)]
answer += [refused(lambda: os._exit(0), SystemExit)]
answer += [os.path.exists('/etc/passwd'), linecache.getline('/etc/passwd', 1)]
sys.path.insert(0, str(here.parent))
import outside
answer.append(type(outside).__name__)
";
    assert_eq!(
        python_in(&bundle, source, Arc::default()).unwrap(),
        "[None, None, None, None, False, '', 'UnavailableModule']"
    );
    assert!(bundle.join("dag.py").exists());
}

#[test]
fn what_python_prints_logs_and_warns_of_becomes_records_of_the_task_log() {
    let host = Arc::new(TestHost::default());
    let folder = tempfile::tempdir().unwrap();
    let source = "
import sys
print('one', 2)
print('part', end='')
print(' of a line')
sys.stderr.write('oops\\n')
import logging, warnings, threading
log = logging.getLogger('my.logger')
log.info('%s items', 3)
log.debug('unseen')
try:
    1 / 0
except ZeroDivisionError as error:
    try:
        raise ValueError('no') from error
    except ValueError:
        log.exception('failed')
warnings.warn('careful', UserWarning)
def boom():
    raise KeyError('k')
thread = threading.Thread(target=boom, name='T')
thread.start()
thread.join()
print('unfinished', end='')
";
    python_in(folder.path(), source, host.clone()).unwrap();
    let logged = host.logged.lock().unwrap();
    let seen: Vec<_> = logged
        .iter()
        .map(|r| (r.logger.as_str(), r.level.as_str(), r.message.as_str()))
        .collect();
    let expected = [
        ("task.stdout", "info", "one 2"),
        ("task.stdout", "info", "part of a line"),
        ("task.stderr", "error", "oops"),
        ("my.logger", "info", "3 items"),
        ("my.logger", "error", "failed"),
        ("py.warnings", "warning", "careful"),
        ("task.stderr", "error", "Exception in thread T"),
        ("task.stdout", "info", "unfinished"),
    ];
    assert_eq!(seen, expected);
    let file = folder.path().join("dag.py").display().to_string();
    let frame = |lineno: u32, name: &str| json!({"filename": file, "lineno": lineno, "name": name});
    let detail = |kind: &str, text: &str, is_cause: bool, frames: Value| {
        json!({
            "exc_type": kind, "exc_value": text, "exc_notes": [], "syntax_error": null, "is_cause": is_cause,
            "frames": frames, "is_group": false, "exceptions": []
        })
    };
    assert_eq!(
        logged[4].fields["error_detail"],
        json!([
            detail("ValueError", "no", false, json!([frame(15, "<module>")])),
            detail(
                "ZeroDivisionError",
                "division by zero",
                true,
                json!([frame(12, "<module>")])
            ),
        ])
    );
    assert_eq!(logged[5].fields["lineno"], json!(18));
    assert_eq!(
        logged[6].fields["error_detail"][0]["exc_type"],
        json!("KeyError")
    );
}

#[test]
fn the_host_answers_through_the_native_module() {
    let source = "
import _updraft, json
answer = [_updraft.connection('db'), _updraft.variable('here'), _updraft.variable('no'), _updraft.config('core', 'x')]
answer.append(_updraft.xcom_pull(json.dumps({'task_ids': ['a'], 'key': 'k', 'map_indexes': None})))
for call in (lambda: _updraft.connection('none'), lambda: _updraft.variable('broken')):
    try:
        call()
    except (LookupError, RuntimeError) as error:
        answer.append(type(error).__name__ + ': ' + str(error))
";
    assert_eq!(
        python(source).unwrap(),
        r#"['{"conn_id":"db","conn_type":"sqlite"}', 'value', None, 'x', '[["a"],"k",null]', "#
            .to_owned()
            + r#""LookupError: The conn_id `none` isn't defined", 'RuntimeError: server away']"#
    );
}

#[test]
fn a_module_without_a_stand_in_is_unavailable_and_says_so_only_when_it_is_needed() {
    let source = "
import pandas as pd
import acme.deep.tools
from acme import Thing, helper, decorate, TOO_MUCH, AcmeError

class Mine(Thing):
    def __init__(self, n):
        super().__init__(n=n)
        self.n = n

@decorate(retries=3)
def work():
    return 1

@decorate
def other():
    return 1

answer = [Mine(4).n, isinstance(Mine(4), Mine), issubclass(Mine, Thing), isinstance(3, pd.DataFrame)]
with helper.session() as session:
    session.add(1)
try:
    raise AcmeError('x')
except AcmeError as error:
    answer.append(str(error))
for need in (lambda: list(pd.read_csv('x')), lambda: TOO_MUCH < 3, lambda: int(helper())):
    try:
        need()
    except ImportError as error:
        answer.append(error.name)
import updraft_unavailable
updraft_unavailable.running = True
for use in (lambda: pd.read_csv('x'), other, lambda: Mine(3)):
    try:
        use()
    except ModuleNotFoundError as error:
        answer.append(str(error).replace(__file__, 'dag.py'))
answer = '\\n'.join(map(str, answer))
";
    let answer = python(source).unwrap();
    let advice = "run this task on a Python worker";
    let expected = format!(
        "4\nTrue\nTrue\nFalse\nx\npandas\nacme\nacme\n\
         read_csv needs the module pandas, which the Dag interpreter does not have (imported at dag.py:2); {advice}\n\
         decorate() needs the module acme, which the Dag interpreter does not have (imported at dag.py:3); {advice}\n\
         Thing needs the module acme, which the Dag interpreter does not have (imported at dag.py:3); {advice}"
    );
    assert_eq!(answer, expected);
}

#[test]
fn an_import_whose_failure_is_handled_fails() {
    let source = "
import importlib.util
answer = []
try:
    import pandas
except ImportError:
    answer.append('no pandas')
try:
    from polars import (
        DataFrame,
    )
except Exception as error:
    answer.append(type(error).__name__)
answer.append(importlib.util.find_spec('numpy'))
try:
    import torch
except ValueError:
    pass
answer.append(type(torch).__name__)
try:
    import _nothing
except ValueError:
    pass
";
    let error = python(source).unwrap_err();
    assert!(error.contains("No module named '_nothing'"), "{error}");
    let source = source.replace("import _nothing", "pass");
    assert_eq!(
        python(&source).unwrap(),
        "['no pandas', 'ModuleNotFoundError', None, 'UnavailableModule']"
    );
}

#[test]
fn a_class_that_takes_a_task_id_becomes_what_the_operator_factory_makes() {
    let source = "
import updraft_unavailable
made = []
def factory(module, name, kwargs, mapped):
    made.append((module, name, kwargs['task_id'], mapped))
    return made[-1]
updraft_unavailable.operator_factory = factory
from acme.operators import RunOperator
class Mine(RunOperator):
    pass
RunOperator(task_id='a')
Mine(task_id='b')
RunOperator.partial(task_id='c')
Mine.partial(task_id='d')
answer = made
";
    assert_eq!(
        python(source).unwrap(),
        "[('acme.operators', 'RunOperator', 'a', False), ('acme.operators', 'Mine', 'b', False), \
         ('acme.operators', 'RunOperator', 'c', True), ('acme.operators', 'Mine', 'd', True)]"
    );
}

#[test]
fn endless_recursion_is_an_error_however_high_the_limit_is_set() {
    let source = "
import sys
sys.setrecursionlimit(10**9)
def f(n):
    return f(n + 1)
class C:
    def __repr__(self):
        return repr(self)
    def __getattr__(self, name):
        return getattr(self, name + 'x')
answer = []
for attempt in (lambda: f(0), lambda: repr(C()), lambda: C().a, lambda: sorted([1, 2], key=f)):
    try:
        attempt()
    except RecursionError:
        answer.append(sys.getrecursionlimit())
";
    assert_eq!(python(source).unwrap(), "[10000, 10000, 10000, 10000]");
}
