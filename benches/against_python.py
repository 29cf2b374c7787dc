"""Measures Updraft against Airflow's own edge worker: the same Airflow, the same Dags, one worker after the other.

    benches/against_python.sh [--runs 5] [--mapped 24] [--only updraft|python] [--keep]

Prints a table of medians and ratios. Wants a quiet machine; nothing here is a test, and no figure makes it fail.

What is measured, and how:

- time: from the answer that hands the worker a job to the answer that takes the task's final state, seen by a relay
  between the worker and Airflow. No sampling runs meanwhile.
- peak PSS: the sum over all processes below the worker, sampled every few milliseconds, in runs of their own.
- Dag load: what the worker itself reports in the task log (`dag_file_parse_ms`).
- idle worker: RSS of the worker and what it keeps running, before its first job.

The Python worker starts a new interpreter for each task: in a process forked from its event loop pydantic-ai does not
run at all. The model answers at once, so that what is left is the worker's own time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import worker as harness_worker  # noqa: E402
from harness.airflow import Airflow, Run  # noqa: E402
from harness.process import Process, free_port, wait_until  # noqa: E402

KINDS = ("python", "updraft")
CONCURRENCY = 4

DAGS = '''
"""One agent task, and many of them: for each kind of worker a Dag of its own queue."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

ARGUMENTS = {
    "llm_conn_id": "pydanticai_default",
    "system_prompt": "You are the analyst of a small mail-order shop. Answer from the database only.",
}


def toolset():
    return SQLToolset(db_conn_id="shop", allowed_tables=["customers", "orders", "products"], max_rows=20)


for queue in ("python", "updraft"):
    with DAG(dag_id=f"one_{queue}", schedule=None, catchup=False):
        AgentOperator(
            task_id="ask",
            queue=queue,
            prompt="Which three customers brought in the most revenue?",
            toolsets=[toolset()],
            **ARGUMENTS,
        )
    with DAG(dag_id=f"many_{queue}", schedule=None, catchup=False, max_active_tasks=MAPPED):
        AgentOperator.partial(task_id="ask", queue=queue, toolsets=[toolset()], **ARGUMENTS).expand(
            prompt=[f"What did customer {number} order?" for number in range(MAPPED)]
        )
'''

# Four answers of the model: the tables, one schema, a query, the answer.
TRANSCRIPT = {
    "turns": [
        {"tool_calls": [{"name": "list_tables", "args": {}}]},
        {"tool_calls": [{"name": "get_schema", "args": {"table_name": "orders"}}]},
        {"tool_calls": [{"name": "query", "args": {"sql": "SELECT count(*) AS orders FROM orders"}}]},
        {"text": "The three best customers are in the table above."},
    ]
}


@dataclass
class Timeline:
    """When jobs were handed out and when final task states were taken."""

    fetched: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)


class Relay:
    """Forwards TCP between a worker and Airflow and notes when the two interesting answers pass."""

    REQUEST = re.compile(rb"^(GET|POST|PUT|PATCH|DELETE|HEAD) (\S+) HTTP/1\.1\r\n")
    FETCH = re.compile(rb"/edge_worker/v1/jobs/fetch/")
    FINAL = re.compile(rb"/execution/task-instances/[0-9a-f-]+/state")

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.timeline = Timeline()
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        threading.Thread(target=self._serve, args=(ready,), daemon=True).start()
        if not ready.wait(10):
            raise TimeoutError("the relay did not start")

    def _serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._connection, "127.0.0.1", self.port))
        ready.set()
        self._loop.run_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.close()
            return
        # What the answer that comes next belongs to: "fetch", "final" or nothing of interest.
        awaited: dict[str, object] = {"kind": None, "text": b""}

        async def upwards() -> None:
            while data := await reader.read(65536):
                if request := self.REQUEST.match(data):
                    path = request.group(2)
                    kind = "fetch" if self.FETCH.search(path) else None
                    if request.group(1) == b"PATCH" and self.FINAL.search(path):
                        kind = "final"
                    awaited.update(kind=kind, text=b"")
                    if kind == "fetch":
                        # Compressed, a job could not be told from the answer that there is none.
                        data = re.sub(rb"accept-encoding:", b"x-unused-header:", data, count=1, flags=re.I)
                far_writer.write(data)
                await far_writer.drain()
            far_writer.close()

        async def downwards() -> None:
            while data := await far_reader.read(65536):
                if awaited["kind"] == "final":
                    self.timeline.ended.append(time.monotonic())
                    awaited["kind"] = None
                elif awaited["kind"] == "fetch":
                    awaited["text"] += data
                    if b'"command"' in awaited["text"]:
                        self.timeline.fetched.append(time.monotonic())
                        awaited["kind"] = None
                writer.write(data)
                await writer.drain()
            writer.close()

        await asyncio.gather(upwards(), downwards(), return_exceptions=True)
        for end in (writer, far_writer):
            end.close()


def below(pid: int) -> list[int]:
    """All processes below one, children before grandchildren."""
    found: list[int] = []
    due = [pid]
    while due:
        for task in Path(f"/proc/{due.pop()}/task").glob("*/children"):
            try:
                children = [int(child) for child in task.read_text().split()]
            except OSError:
                continue
            found += children
            due += children
    return found


def memory(pid: int, file: str, name: str) -> int:
    """One figure of a process in bytes; 0 when the process is gone."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.M)
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


class PssSampler:
    """Keeps the highest sum of PSS over the processes below a worker that were not there at the start."""

    def __init__(self, worker_pid: int) -> None:
        self.peak = 0
        self._pid = worker_pid
        self._there_before = set(below(worker_pid))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            pids = set(below(self._pid)) - self._there_before
            self.peak = max(self.peak, sum(memory(pid, "smaps_rollup", "Pss") for pid in pids))
            self._stop.wait(0.003)

    def __enter__(self) -> PssSampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@dataclass
class Figures:
    """What was measured of one kind of worker; seconds and bytes."""

    one_task: list[float] = field(default_factory=list)
    many_tasks: list[float] = field(default_factory=list)
    peak_pss: list[float] = field(default_factory=list)
    dag_load: list[float] = field(default_factory=list)
    idle_rss: list[float] = field(default_factory=list)


class Bench:
    def __init__(self, scratch: Path, runs: int, mapped: int) -> None:
        self.scratch = scratch
        self.runs = runs
        self.mapped = mapped
        self.dags = scratch / "dags"
        self.dags.mkdir(parents=True)
        (self.dags / "bench.py").write_text(DAGS.replace("MAPPED", str(mapped)))
        shutil.copy(ROOT / "dags" / "data" / "shop.db", scratch / "shop.db")

    @contextmanager
    def model(self) -> Iterator[str]:
        """A scripted model in a process of its own, so that it shares no interpreter lock with the relay."""
        transcript = self.scratch / "transcript.json"
        transcript.write_text(json.dumps(TRANSCRIPT))
        port = free_port()
        process = Process(
            "model",
            [sys.executable, "-m", "harness.model_server", str(transcript), "--port", str(port)],
            {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "e2e")},
            self.scratch / "model.log",
        )
        try:
            wait_until("the model", lambda: process.require_running() or "is served" in process.log.read_text(), 20)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.stop(2)

    @contextmanager
    def airflow(self) -> Iterator[Airflow]:
        server = Airflow(self.scratch / "server", self.dags, 0, "")
        server.env["AIRFLOW__TRACES__OTEL_ON"] = "False"
        try:
            server.start()
            server.wait_for_dags({f"{size}_{kind}" for size in ("one", "many") for kind in KINDS})
            yield server
        finally:
            server.stop()

    def measure(self, kind: str, airflow: Airflow, model_url: str) -> Figures:
        figures = Figures()
        relay = Relay(airflow.port)
        harness_worker.KIND = kind
        worker = harness_worker.Worker(
            airflow,
            self.scratch / f"worker-{kind}",
            self.dags,
            f"bench-{kind}",
            kind,
            CONCURRENCY,
            {
                "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{relay.url}/execution/",
                "AIRFLOW__EDGE__API_URL": f"{relay.url}/edge_worker/v1/rpcapi",
                "AIRFLOW_CONN_PYDANTICAI_DEFAULT": json.dumps(
                    {
                        "conn_type": "pydanticai",
                        "password": "sk-made-up-key",
                        "host": model_url,
                        "extra": {"model": "openai-chat:example"},
                    }
                ),
                "AIRFLOW_CONN_SHOP": json.dumps({"conn_type": "sqlite", "host": str(self.scratch / "shop.db")}),
            },
        )
        try:
            worker.wait_until_registered()
            time.sleep(3)
            pids = [worker.process.pid, *below(worker.process.pid)]
            figures.idle_rss.append(sum(memory(pid, "status", "VmRSS") for pid in pids))

            # The first run warms the page cache and writes bytecode; it counts nowhere.
            self.run(airflow, relay, f"one_{kind}", 1)
            for _ in range(self.runs):
                seconds, run = self.run(airflow, relay, f"one_{kind}", 1)
                figures.one_task.append(seconds)
                figures.dag_load += dag_load(airflow, run)
            for _ in range(min(self.runs, 3)):
                with PssSampler(worker.process.pid) as sampler:
                    self.run(airflow, relay, f"one_{kind}", 1)
                figures.peak_pss.append(sampler.peak)
            for _ in range(min(self.runs, 3)):
                figures.many_tasks.append(self.run(airflow, relay, f"many_{kind}", self.mapped)[0])
        finally:
            worker.stop()
        return figures

    def run(self, airflow: Airflow, relay: Relay, dag_id: str, tasks: int) -> tuple[float, Run]:
        """Runs a Dag; seconds from its first job to its last final state."""
        relay.timeline = Timeline()
        run, state = airflow.run_dag(dag_id, timeout=60 + 15 * tasks)
        if state != "success":
            raise RuntimeError(f"{run} ended as {state}:\n" + airflow.log(run, "ask", map_index=-1 if tasks == 1 else 0).text)
        seen = relay.timeline
        if (len(seen.fetched), len(seen.ended)) != (tasks, tasks):
            raise RuntimeError(f"{run}: {len(seen.fetched)} jobs and {len(seen.ended)} final states passed, not {tasks}")
        return max(seen.ended) - min(seen.fetched), run


def dag_load(airflow: Airflow, run: Run) -> list[float]:
    """What the worker's task log says about the time that loading the Dag file took."""
    for record in airflow.log(run, "ask").records:
        if "dag_file_parse_ms" in record:
            return [float(record["dag_file_parse_ms"]) / 1000]
    return []


def seconds(value: float) -> str:
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s"


def megabytes(value: float) -> str:
    return f"{value / 1e6:.0f} MB"


def table(figures: dict[str, Figures], mapped: int) -> str:
    rows = [
        ("one task, from fetch to final state", "one_task", seconds),
        ("peak PSS of what is started for a task", "peak_pss", megabytes),
        (f"{mapped} mapped tasks at concurrency {CONCURRENCY}", "many_tasks", seconds),
        ("idle worker, RSS", "idle_rss", megabytes),
        ("loading the Dag file", "dag_load", seconds),
    ]
    lines = ["| | Python edge worker | Updraft | ratio |", "|---|---|---|---|"]
    for title, name, show in rows:
        medians = {}
        for kind in KINDS:
            values = getattr(figures[kind], name) if kind in figures else []
            medians[kind] = statistics.median(values) if values else None
        cells = [show(medians[kind]) if medians[kind] is not None else "–" for kind in KINDS]
        both = all(medians[kind] for kind in KINDS)
        ratio = f"{medians['python'] / medians['updraft']:.1f}" if both else "–"
        lines.append(f"| {title} | {cells[0]} | {cells[1]} | {ratio} |")
    return "\n".join(lines)


def machine() -> str:
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    total = memory(os.getpid(), "../meminfo", "MemTotal")
    return f"{os.cpu_count()} cores ({cpu.group(1) if cpu else platform.machine()}), {total / 1e9:.0f} GB, Linux {platform.release()}"


def versions() -> str:
    from importlib.metadata import version

    names = ["apache-airflow", "apache-airflow-providers-edge3", "apache-airflow-providers-common-ai", "pydantic-ai-slim"]
    python = ", ".join(f"{name.removeprefix('apache-airflow-providers-')} {version(name)}" for name in names)
    updraft = "Updraft not measured"
    if os.environ.get("UPDRAFT_BIN"):
        found = subprocess.run([os.environ["UPDRAFT_BIN"], "--version"], capture_output=True, text=True, check=True)
        updraft = found.stdout.strip()
    return f"{updraft}; Python {platform.python_version()}, {python}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of the single task (default 5)")
    parser.add_argument("--mapped", type=int, default=24, help="mapped tasks in the larger Dag (default 24)")
    parser.add_argument("--only", choices=KINDS, help="measure one kind of worker only")
    parser.add_argument("--keep", action="store_true", help="keep the scratch folder with all logs")
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="updraft-bench-"))
    bench = Bench(scratch, arguments.runs, arguments.mapped)
    figures: dict[str, Figures] = {}
    complete = False
    try:
        with bench.model() as model_url, bench.airflow() as airflow:
            for kind in [arguments.only] if arguments.only else KINDS:
                print(f"measuring {kind} ...", file=sys.stderr, flush=True)
                figures[kind] = bench.measure(kind, airflow, model_url)
                print(f"{kind}: {figures[kind]}", file=sys.stderr, flush=True)
        complete = True
    finally:
        if arguments.keep or not complete:
            print(f"logs: {scratch}", file=sys.stderr)
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    print(table(figures, arguments.mapped))
    print(f"\nMedians of {arguments.runs} runs. {machine()}. {versions()}.")


if __name__ == "__main__":
    main()
