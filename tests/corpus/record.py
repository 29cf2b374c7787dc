"""Records runs of the Python operators for `parity/`: see its README for the fields.

    python tests/corpus/record.py tests/corpus/parity/NAME.json ...

with the Python of the end-to-end tests. A file needs what goes in (`about`, `python`, `connection`, `setup`, `responses`);
what comes out (`requests`, `result`, `log`) is written into it.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HEADERS = ("authorization", "content-type", "user-agent")
MODULES = {
    "LLMSQLQueryOperator": "airflow.providers.common.ai.operators.llm_sql",
    "LLMFileAnalysisOperator": "airflow.providers.common.ai.operators.llm_file_analysis",
    "LLMSchemaCompareOperator": "airflow.providers.common.ai.operators.llm_schema_compare",
    "DataSourceConfig": "airflow.providers.common.sql.config",
}


class Server(ThreadingHTTPServer):
    """Answers from a list and keeps what it was asked."""

    def __init__(self, responses: list) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.responses = iter(responses)
        self.requests: list = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name: self.headers[name] for name in HEADERS if self.headers[name]}
        request = {"method": "POST", "path": self.path, "headers": headers, "body": json.loads(body)}
        self.server.requests.append(request)
        answer = next(self.server.responses)
        data = json.dumps(answer["body"]).encode()
        self.send_response(answer["status"])
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


class Lines(logging.Handler):
    """Keeps the messages of Airflow's own loggers."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("airflow") and not record.name.startswith(("airflow.settings", "airflow.config")):
            self.lines.append(record.getMessage())

    def attach(self) -> None:
        """Listens. Airflow sets its logging up while it is imported, so not before that."""
        import structlog

        def keep(_logger: object, _method: str, event: dict) -> dict:
            # It is called without a task runner.
            if "outside of the Task Runner" not in event["event"]:
                self.lines.append(event["event"])
            return event

        logging.getLogger().addHandler(self)
        *processors, renderer = structlog.get_config()["processors"]
        structlog.configure(processors=[*processors, keep, renderer])


class TaskInstance:
    """What operators ask of their task instance."""

    id = "01890000-0000-7000-8000-000000000001"
    task_id, dag_id, run_id, map_index, try_number, max_tries = "ask", "parity", "run", -1, 1, 0

    def __init__(self) -> None:
        self.xcoms: dict = {}

    def xcom_push(self, key: str, value: object) -> None:
        self.xcoms[key] = value


def set_up(setup: dict, folder: Path) -> None:
    for name, statements in setup.get("sqlite", {}).items():
        with sqlite3.connect(folder / name) as database:
            for statement in statements:
                database.execute(statement)
    for name, content in setup.get("files", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content["text"].encode() if "text" in content else base64.b64decode(content["base64"]))


def made(value: object, names: dict) -> object:
    """A recorded argument."""
    if isinstance(value, list):
        return [made(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    if "expr" in value:
        return eval(value["expr"], names)  # noqa: S307 (the project's own files)
    if "class" in value:
        return names[value["class"]](**{name: made(item, names) for name, item in value["kwargs"].items()})
    return {name: made(item, names) for name, item in value.items()}


def classes(value: object) -> set[str]:
    """The classes that an argument is made of."""
    found: set[str] = {value["class"]} if isinstance(value, dict) and "class" in value else set()
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found |= classes(item)
    return found


def record(path: Path) -> None:
    """Runs one scenario in this process, and writes what came of it."""
    import importlib

    scenario = json.loads(path.read_text())
    server = Server(scenario["responses"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        set_up(scenario.get("setup", {}), Path(folder))

        def replaced(value: object) -> object:
            return json.loads(json.dumps(value).replace("<url>", server.url).replace("<path>", folder))

        def restored(value: object) -> object:
            return json.loads(json.dumps(value).replace(server.url, "<url>").replace(folder, "<path>"))

        for name, connection in scenario["connection"].items():
            os.environ[f"AIRFLOW_CONN_{name.upper()}"] = json.dumps(replaced(connection))
        python = replaced(scenario["python"])
        names: dict = {"__name__": "parity_dag"}
        exec(python.get("module", ""), names)  # noqa: S102 (the project's own files)
        for name in {python["operator"]} | classes(python["kwargs"]):
            names[name] = getattr(importlib.import_module(MODULES[name]), name)
        operator = names[python["operator"]](task_id="ask", **made(python["kwargs"], names))
        if python.get("render"):
            operator.render_template_fields({"ds": "2026-01-01"}, operator.get_template_env())
        for name in ("airflow", "airflow.task"):
            logging.getLogger(name).setLevel(logging.INFO)
            logging.getLogger(name).propagate = True
        lines = Lines()
        lines.attach()
        ti = TaskInstance()
        result: dict = {}
        try:
            value = operator.execute({"ti": ti, "task_instance": ti})
            if hasattr(value, "model_dump"):
                value = value.model_dump(mode="json")
            ti.xcoms["return_value"] = value
        except Exception as error:
            kind = type(error)
            result["error"] = {"type": f"{kind.__module__}.{kind.__qualname__}", "message": str(error)}
        if ti.xcoms or "error" not in result:
            result["xcom"] = ti.xcoms
        scenario["requests"], scenario["result"] = restored(server.requests), restored(result)
        scenario["log"] = restored([re.sub(r"\b\d+\.\d\ds\b", "0.00s", line) for line in lines.lines])
    path.write_text(json.dumps(scenario, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    files = sys.argv[1:]
    if len(files) == 1:
        record(Path(files[0]))
        return
    for file in files:
        # What one run leaves in the process, the next must not find.
        subprocess.run([sys.executable, __file__, file], check=True)


if __name__ == "__main__":
    main()
