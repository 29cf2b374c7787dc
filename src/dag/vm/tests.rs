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
            run().map_err(|error| describe(&error, vm))
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
abc argparse array ast base64 binascii bisect calendar cmath codecs collections collections.abc configparser contextlib contextvars copy csv dataclasses datetime decimal difflib email email.message email.mime.text email.utils enum errno fnmatch fractions functools gc getpass gettext glob graphlib gzip hashlib heapq hmac html html.parser http importlib importlib.metadata importlib.resources importlib.util inspect io ipaddress itertools json keyword linecache locale logging lzma math mimetypes numbers operator os os.path pathlib pickle pickletools pkgutil platform pprint queue random re reprlib sched secrets shelve shlex shutil stat statistics string struct sys sysconfig tarfile tempfile textwrap threading time timeit token tokenize tomllib traceback types typing unicodedata urllib urllib.error urllib.parse uuid warnings wave weakref xml.dom.minidom xml.etree.ElementTree zipfile zlib zoneinfo bz2
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
