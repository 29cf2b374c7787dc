//! What `updraft check` sees of the bodies of tasks, and what becomes of those that need it all the same.

use std::path::Path;

use pretty_assertions::assert_eq;
use serde_json::Value;

use crate::local_run::{run, task, updraft};

const DAG: &str = r#"from __future__ import annotations
import subprocess
from typing import TYPE_CHECKING
import pandas
import requests as http
from airflow.sdk import DAG, BaseOperator, task
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.standard.operators.python import PythonOperator
from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset
from beside import reader
from beside.reader import Reader, read_frame

try:
    import polars
except ImportError:
    polars = None
if TYPE_CHECKING:
    import numpy

helper = Agent("test", max_concurrency=3)

def tool(word: str) -> str:
    return http.get(word).text

class Load(BaseOperator):
    def execute(self, context):
        return self.load()
    def load(self):
        import torch
        return torch

with DAG(dag_id="bodies"):
    @task
    def plain(frame: pandas.DataFrame = None):
        import json
        from datetime import datetime
        note: numpy.ndarray = []
        return json.dumps([datetime.now().year > 0, polars is None, len(note)])

    @task
    def guarded():
        try:
            import sklearn
            return sklearn.fit()
        except ImportError:
            return "without"

    @task
    def imports():
        import pandas as pd
        from scipy.stats import norm
        return pd, norm

    @task
    def names():
        return pandas.DataFrame()

    @task
    def through_a_module_beside():
        return read_frame()

    @task
    def through_a_package_beside():
        return reader.read_frame(), Reader()

    @task
    def starts_a_process():
        subprocess.run(["ls"])

    @task
    def asks_the_network():
        from urllib.request import urlopen
        return urlopen("http://example.invalid")

    @task
    def asks_an_agent():
        return helper.run_sync("Hello").output

    PythonOperator(task_id="of_a_lambda", python_callable=lambda: http.get("x"))
    Load(task_id="of_an_operator")
    AgentOperator(task_id="of_a_tool", llm_conn_id="m", prompt="p", toolsets=[FunctionToolset(tools=[tool])])
    plain(); guarded(); imports(); names(); through_a_module_beside(); through_a_package_beside()
    starts_a_process(); asks_the_network(); asks_an_agent()

    @task
    def by_another_name():
        import subprocess as sp
        from beside.reader import read_frame as frame
        sp.run(["ls"])
        return frame()

    @task
    def asks_a_hook():
        import raises_at_once
        from beside.ports import hook, ports
        return hook.get_df("SELECT 1"), ports.depth.fathoms, raises_at_once.nothing

    by_another_name(); asks_a_hook()
"#;

fn write(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("bodies.py");
    std::fs::write(&file, DAG).unwrap();
    std::fs::create_dir(folder.join("beside")).unwrap();
    std::fs::write(folder.join("beside/__init__.py"), "").unwrap();
    std::fs::write(folder.join("raises_at_once.py"), "raise ValueError(7)\n").unwrap();
    std::fs::write(
        folder.join("beside/ports.py"),
        "from airflow.providers.sqlite.hooks.sqlite import SqliteHook\nhook = SqliteHook('db')\n\n\
         class Ports:\n    @property\n    def depth(self):\n        raise SystemExit(7)\n\nports = Ports()\n",
    )
    .unwrap();
    std::fs::write(
        folder.join("beside/reader.py"),
        "import pyarrow\n\ndef read_frame():\n    return helper()\n\ndef helper():\n    return pyarrow.table({})\n\n\
         class Reader:\n    def __init__(self):\n        from .missing import nothing\n",
    )
    .unwrap();
    file
}

#[test]
fn check_names_what_the_code_of_a_task_needs_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path());
    let output = updraft(&["check", "--json", &file.display().to_string()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["files"][0]["error"], Value::Null, "{report:#}");
    let tasks = report["files"][0]["dags"][0]["tasks"].as_array().unwrap();
    let reason = |task_id: &str| {
        let task = tasks
            .iter()
            .find(|task| task["task_id"] == task_id)
            .unwrap_or_else(|| panic!("no {task_id}"));
        assert_eq!(task["native"], task["reason"].is_null(), "{task:#}");
        task["reason"]
            .as_str()
            .unwrap_or_default()
            .replace(&format!("{}/", folder.path().display()), "")
    };
    let not_here = "which the Dag interpreter does not have";
    for (task_id, wanted) in [
        ("plain", String::new()),
        ("guarded", String::new()),
        (
            "imports",
            format!(
                "its code needs the module pandas, {not_here} (bodies.py:51); the module scipy, {not_here} (bodies.py:52)"
            ),
        ),
        (
            "names",
            format!("its code needs the module pandas, {not_here} (bodies.py:57)"),
        ),
        (
            "through_a_module_beside",
            format!("its code needs the module pyarrow, {not_here} (beside/reader.py:7)"),
        ),
        (
            "through_a_package_beside",
            format!(
                "its code needs the module pyarrow, {not_here} (beside/reader.py:7); \
                 the module beside.missing, {not_here} (beside/reader.py:11)"
            ),
        ),
        (
            "starts_a_process",
            "its code needs processes, which Dag code does not start here (subprocess.run) (bodies.py:69)".to_owned(),
        ),
        (
            "asks_the_network",
            "its code needs the network, which Dag code reaches through hooks only (urllib.request.urlopen) \
             (bodies.py:73)"
                .to_owned(),
        ),
        (
            "asks_an_agent",
            "its code needs an Agent with max_concurrency=, which is not supported natively (bodies.py:78)"
                .to_owned(),
        ),
        (
            "by_another_name",
            format!(
                "its code needs processes, which Dag code does not start here (subprocess.run) (bodies.py:90); \
                 the module pyarrow, {not_here} (beside/reader.py:7)"
            ),
        ),
        (
            "asks_a_hook",
            "its code needs SqliteHook.get_df, which is not done here: it needs pandas or polars, which the worker does \
             not have (bodies.py:97)"
                .to_owned(),
        ),
        (
            "of_a_lambda",
            format!("its code needs the module requests, {not_here} (bodies.py:80)"),
        ),
        (
            "of_an_operator",
            format!("its code needs the module torch, {not_here} (bodies.py:30)"),
        ),
        (
            "of_a_tool",
            format!("its code needs the module requests, {not_here} (bodies.py:24)"),
        ),
    ] {
        assert_eq!(reason(task_id), wanted, "{task_id}");
    }
}

#[test]
fn a_task_that_needs_what_is_not_here_says_where_and_is_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.py");
    let source = r#"from airflow.sdk import DAG, task
from pydantic_ai import Agent
import pandas
with DAG(dag_id="made"):
    @task(retries=3)
    def agent():
        return Agent("openai:gpt-5").run_sync("Hello", timeout=3)
    @task(retries=3)
    def frame():
        return pandas.DataFrame()
    agent(); frame()
"#;
    std::fs::write(&file, source).unwrap();
    let (_, report) = run(&file, &[]);
    for (task_id, wanted) in [("agent", "made.py:7"), ("frame", "made.py:3")] {
        let task = task(&report, task_id, -1);
        assert_eq!(task["state"], "failed", "{report:#}");
        assert_eq!(task["try_number"], 1, "{report:#}");
        let error = task["error"].as_str().unwrap();
        assert!(error.contains(wanted), "{error}");
        assert!(error.contains("Python worker"), "{error}");
    }
}
