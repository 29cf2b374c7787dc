"""Many agent tasks through one worker: is its memory flat, are its descriptors, is every state right?

    benches/soak.sh [--tasks 2000] [--concurrency 8]

A made-up API server stands in for Airflow, so that the worker is the only thing that is measured: it gives out jobs,
takes states and logs, and keeps what a real one would object to. The model answers at once. Prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "e2e"))

from harness.model_server import ModelServer, call, say  # noqa: E402
from harness.process import free_port  # noqa: E402

WHEN = "2026-01-02T03:04:05.678901Z"
DAG = """
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="soak", schedule=None):
    AgentOperator(
        task_id="ask",
        llm_conn_id="pydanticai_default",
        prompt="How many?",
        toolsets=[SQLToolset(db_conn_id="shop")],
    )
"""


class Server:
    """Both APIs, as far as such tasks use them."""

    def __init__(self, tasks: int) -> None:
        self.waiting = list(range(tasks))
        self.fetched: dict[str, float] = {}
        self.states: dict[str, list[str]] = {}
        self.ended: dict[str, float] = {}
        self.jobs: dict[str, str] = {}
        self.complaints: list[str] = []
        self.lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def _serve(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                text = self.rfile.read(length)
                body = json.loads(text) if text else None
                status, answer, headers = owner.answer(self.command, self.path, body)
                data = b"" if status == 204 else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = _serve

            def log_message(self, *arguments: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def answer(self, method: str, path: str, body: object) -> tuple[int, object, dict[str, str]]:
        with self.lock:
            if path.startswith("/edge_worker/v1/"):
                return self._edge(path.removeprefix("/edge_worker/v1/"), body)
            return self._execution(method, path.removeprefix("/execution/"), body)

    def _edge(self, path: str, body: dict) -> tuple[int, object, dict[str, str]]:
        kind = path.split("/")[0]
        if path.startswith("jobs/fetch/"):
            if not self.waiting:
                return 200, None, {}
            number = self.waiting.pop(0)
            ti = str(uuid.UUID(int=number + 1))
            self.fetched[ti] = time.monotonic()
            self.states[ti] = []
            run = f"r{number}"
            return 200, self._job(ti, run), {}
        if path.startswith("jobs/state/"):
            run, state = path.split("/")[4], path.split("/")[7]
            self.jobs[run] = state
            return 200, None, {}
        if kind == "worker" and "last_update" not in body:
            return 200, {"state": body["state"], "queues": body["queues"], "last_update": WHEN, "versions_match": True}, {}
        return 200, None, {}

    def _job(self, ti: str, run: str) -> dict:
        instance = {
            "id": ti, "task_id": "ask", "dag_id": "soak", "run_id": run, "try_number": 1, "map_index": -1,
            "dag_version_id": ti, "hostname": None, "context_carrier": None, "queue": "soak", "pool_slots": 1,
            "priority_weight": 1,
        }  # fmt: skip
        command = {
            "type": "ExecuteTask", "token": "made-up", "dag_rel_path": "soak.py", "ti": instance,
            "bundle_info": {"name": "dags-folder", "version": None}, "log_path": f"run_id={run}/attempt=1.log",
            "sentry_integration": "",
        }  # fmt: skip
        return {
            "dag_id": "soak", "task_id": "ask", "run_id": run, "map_index": -1, "try_number": 1,
            "concurrency_slots": 1, "task_instance_id": None, "command": command,
        }  # fmt: skip

    def _execution(self, method: str, path: str, body: object) -> tuple[int, object, dict[str, str]]:
        parts = path.split("/")
        if parts[0] == "task-instances" and parts[-1] == "run":
            ti = parts[1]
            if self.states[ti]:
                self.complaints.append(f"{ti} was begun twice")
            run = f"r{uuid.UUID(ti).int - 1}"
            context = {
                "dag_run": {"dag_id": "soak", "run_id": run, "run_after": WHEN, "run_type": "manual", "state": "running"},
                "max_tries": 0, "should_retry": False, "start_date": WHEN,
            }  # fmt: skip
            return 200, context, {"Refreshed-API-Token": "made-up-too"}
        if parts[0] == "task-instances" and parts[-1] == "state":
            self.states[parts[1]].append(body["state"])
            self.ended.setdefault(parts[1], time.monotonic())
            return 204, None, {}
        if parts[0] in ("connections", "variables"):
            return 404, {"detail": {"reason": "not_found", "message": "no"}}, {}
        if method == "POST":
            return 201, {"message": "stored"}, {}
        if parts[-1] in ("rtif", "heartbeat", "rendered-map-index"):
            return (201, {"message": "stored"}, {}) if parts[-1] == "rtif" else (204, None, {})
        return 404, {"detail": {"reason": "not_found", "message": "no"}}, {}


def read(port: int) -> dict[str, float]:
    """The worker's metrics; nothing while it starts."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
            lines = response.read().decode().splitlines()
    except OSError:
        return {}
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=8)
    arguments = parser.parse_args()
    binary = os.environ["UPDRAFT_BIN"]

    model = ModelServer()
    model.script("soak", [call("list_tables"), call("query", sql="SELECT COUNT(*) AS n FROM orders"), say("Some.")])
    server = Server(arguments.tasks)
    with tempfile.TemporaryDirectory(prefix="updraft-soak-") as name:
        folder = Path(name)
        (folder / "dags").mkdir()
        (folder / "tmp").mkdir()
        (folder / "dags" / "soak.py").write_text(DAG)
        database = folder / "shop.db"
        subprocess.run(
            [sys.executable, "-c", "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('CREATE TABLE orders (id)')", database],
            check=True,
        )
        metrics = free_port()
        env = {
            "PATH": os.environ["PATH"],
            "AIRFLOW_HOME": name,
            "TMPDIR": str(folder / "tmp"),
            "AIRFLOW__EDGE__API_URL": f"{server.url}/edge_worker/v1/rpcapi",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{server.url}/execution/",
            "AIRFLOW__API_AUTH__JWT_SECRET": "made-up-for-the-soak-" + "0" * 60,
            "AIRFLOW__EDGE__JOB_POLL_INTERVAL": "1",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
            "AIRFLOW__UPDRAFT__METRICS_ADDRESS": f"127.0.0.1:{metrics}",
            "AIRFLOW_CONN_PYDANTICAI_DEFAULT": json.dumps(
                {"conn_type": "pydanticai", "password": "sk-made-up", "host": model.base_url,
                 "extra": {"model": "openai-chat:soak"}}
            ),
            "AIRFLOW_CONN_SHOP": json.dumps({"conn_type": "sqlite", "host": str(database)}),
        }
        with (folder / "worker.log").open("wb") as log:
            worker = subprocess.Popen(
                [binary, "worker", "--queues", "soak", "--concurrency", str(arguments.concurrency), "--worker-name", "soak"],
                env=env, stdout=log, stderr=log,
            )  # fmt: skip
        samples: list[tuple[int, float, float]] = []
        began = time.monotonic()
        try:
            while len(server.jobs) < arguments.tasks or "running" in server.jobs.values():
                if worker.poll() is not None:
                    sys.exit(f"the worker ended: {(folder / 'worker.log').read_text()[-2000:]}")
                done = len(server.ended)
                figures = read(metrics)
                if figures:
                    samples.append((done, figures["process_resident_memory_bytes"], figures["process_open_fds"]))
                time.sleep(0.5)
            took = time.monotonic() - began
            figures = read(metrics)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(60)
        left = [path.name for path in (folder / "tmp").iterdir()]
        problems = (folder / "worker.log").read_text()

    wrong = {ti: states for ti, states in server.states.items() if states != ["success"]}
    jobs = {state: list(server.jobs.values()).count(state) for state in set(server.jobs.values())}
    durations = sorted(server.ended[ti] - server.fetched[ti] for ti in server.ended)

    def at(share: float) -> float:
        return durations[min(len(durations) - 1, int(share * len(durations)))] * 1000

    def of(low: float, high: float, column: int) -> float:
        values = [sample[column] for sample in samples if low * arguments.tasks <= sample[0] <= high * arguments.tasks]
        return statistics.median(values) if values else float("nan")

    print(f"| {arguments.tasks} tasks, {arguments.concurrency} at a time | |\n|---|---|")
    print(f"| tasks a minute | {arguments.tasks / took * 60:.0f} |")
    print(f"| from fetch to final state, p50 / p99 | {at(0.5):.0f} / {at(0.99):.0f} ms |")
    print(f"| of it outside the task process (mean) | {overhead(figures):.1f} ms |")
    print(f"| worker's resident memory, 10-20 % and 90-100 % of the way | {of(0.1, 0.2, 1) / 2**20:.1f} / {of(0.9, 1.0, 1) / 2**20:.1f} MiB |")
    print(f"| its descriptors, likewise | {of(0.1, 0.2, 2):.0f} / {of(0.9, 1.0, 2):.0f} |")
    print(f"| states of tasks | {len(server.states) - len(wrong)} success, {len(wrong)} other |")
    print(f"| states of jobs | {jobs} |")
    print(f"| files left in TMPDIR | {len(left)} |")
    if wrong or server.complaints or left or problems.strip():
        sys.exit(f"not well: {list(wrong.items())[:3]} {server.complaints[:3]} {left[:3]} {problems[:2000]}")


def overhead(figures: dict[str, float]) -> float:
    name = "updraft_job_overhead_seconds"
    return figures[f"{name}_sum"] / figures[f"{name}_count"] * 1000


if __name__ == "__main__":
    main()
