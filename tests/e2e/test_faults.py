"""What a worker and its tasks make of bad networks, bad servers, full disks and tasks that misbehave.

After each fault: every task has the state it should have, no model was asked twice, no slot is stuck, and no process,
file, descriptor or secret is left behind. The rows of the table at the end are those of docs/faults.md. What takes
minutes runs with E2E_LONG=1.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.airflow import JWT_SECRET, Airflow, Run
from harness.model_server import ModelServer, Script, call, say
from harness.process import free_port, wait_until
from harness.proxy import KINDS, Proxy
from harness.worker import Worker, updraft_binary

pytestmark = pytest.mark.updraft_only

LONG = pytest.mark.skipif(not os.environ.get("E2E_LONG"), reason="takes minutes; set E2E_LONG=1")
MODEL_KEY = "sk-made-up-key"


class Watched(Worker):
    """A worker with folders of its own, so that whatever it leaves behind is its own."""

    def __init__(self, airflow: Airflow, home: Path, dags: Path, name: str, env: dict[str, str], **more: object) -> None:
        self.temporary = home.parent / f"{home.name}-tmp"
        self.temporary.mkdir()
        env = {**env, "TMPDIR": str(self.temporary), "AIRFLOW__EDGE__API_RETRY_WAIT_MIN": "0.1", **more.pop("more", {})}
        self.port = free_port()
        env["AIRFLOW__UPDRAFT__METRICS_ADDRESS"] = f"127.0.0.1:{self.port}"
        super().__init__(airflow, home, dags, name, name, env=env, **more)
        try:
            self.wait_until_registered()
        except Exception:
            self.stop()
            raise
        self.descriptors = self.count_descriptors()

    def status(self) -> dict:
        shown = subprocess.run(
            [updraft_binary(), "worker", "status", "--json"],
            env={"AIRFLOW_HOME": str(self.home)},
            stdout=subprocess.PIPE,
            check=True,
            timeout=20,
        )
        return json.loads(shown.stdout)

    def count_descriptors(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as response:
            lines = response.read().decode().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("process_open_fds ")))

    def assert_nothing_is_left(self) -> None:
        def idle() -> bool:
            status = self.status()
            return status["job_count"] == 0 and status["free_concurrency"] == status["concurrency"]

        wait_until("every slot to be free", idle, 30, 0.3)
        assert self.process.children() == []
        assert [path for path in self.temporary.iterdir() if not path.name.startswith(".")] == []
        # Idle connections are kept for a while. (benches/soak.py sees leaks that take longer to show.)
        assert self.count_descriptors() <= self.descriptors + 40
        for file in self.home.rglob("*"):
            if file.is_file():
                text = file.read_text(errors="replace")
                assert JWT_SECRET not in text and MODEL_KEY not in text, file


@contextmanager
def watched(*arguments: object, **more: object) -> Iterator[Watched]:
    worker = Watched(*arguments, **more)
    try:
        yield worker
    finally:
        worker.stop()


@pytest.fixture(scope="module")
def proxy(airflow: Airflow) -> Iterator[Proxy]:
    made = Proxy(airflow.port)
    yield made
    made.close()


@pytest.fixture(scope="module")
def behind_proxy(
    airflow: Airflow, proxy: Proxy, scratch: Path, worker_dags: Path, worker_env: dict[str, str]
) -> Iterator[Watched]:
    through = {
        "AIRFLOW__EDGE__API_URL": f"{proxy.url}/edge_worker/v1/rpcapi",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{proxy.url}/execution/",
        "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MIN": "0.1",
        # At five, one task in a few hundred would meet an error each time that it asks.
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "10",
    }
    with watched(
        airflow, scratch / "worker-proxied", worker_dags, "proxied", worker_env, concurrency=6, more=through
    ) as worker:
        yield worker


def questions(model: ModelServer, delay: float = 0.0) -> Script:
    return model.script("faults", [call("list_tables"), call("query", _delay=delay, sql="SELECT 7"), say("Seven.")])


def assert_all_well(airflow: Airflow, run: Run, script: Script, count: int) -> None:
    """Every task succeeded at its first try, and each asked its model three times and no more."""
    tasks = [ti for ti in airflow.task_instances(run) if ti["task_id"] == "ask"]
    assert len(tasks) == count
    assert {(ti["state"], ti["try_number"]) for ti in tasks} == {("success", 1)}
    assert len(script.requests) == 3 * count
    for index in range(count):
        assert airflow.xcoms(run, "ask", index)["return_value"] == "Seven."

    def over() -> bool:
        jobs = airflow.edge(f"/ui/jobs?run_id_pattern={run.run_id}")["jobs"]
        return all(job["state"] not in ("queued", "restarting", "running") for job in jobs)

    wait_until("every job to be over", over, 30)


@pytest.mark.parametrize("kind", KINDS)
def test_every_fourth_request_meets_a_fault_of_one_kind(
    airflow: Airflow, behind_proxy: Watched, proxy: Proxy, model: ModelServer, table: list[tuple[str, ...]], kind: str
) -> None:
    script = questions(model)
    proxy.counts.clear()
    run = airflow.trigger("faults_many", {"count": 3}, queue="proxied")
    proxy.set(0.25, [kind])
    try:
        assert airflow.wait_for_run(run, 180) == "success"
    finally:
        proxy.set(0)
    assert_all_well(airflow, run, script, 3)
    behind_proxy.assert_nothing_is_left()
    met = f"{proxy.counts[kind]} of {proxy.counts['requests']}"
    table.append((f"`{kind}`, every fourth request", "4", met, "all succeed at the first try; each model asked once"))


def test_a_mapped_run_of_24_tasks_takes_five_requests_in_a_hundred_that_fail(
    airflow: Airflow, behind_proxy: Watched, proxy: Proxy, model: ModelServer, table: list[tuple[str, ...]]
) -> None:
    script = questions(model)
    proxy.counts.clear()
    run = airflow.trigger("faults_many", {"count": 24}, queue="proxied")
    proxy.set(0.05)
    try:
        assert airflow.wait_for_run(run, 240) == "success"
    finally:
        proxy.set(0)
    assert_all_well(airflow, run, script, 24)
    behind_proxy.assert_nothing_is_left()
    faults = sum(proxy.counts[kind] for kind in KINDS)
    table.append(
        ("any of these, 5 in 100 requests", "25", f"{faults} of {proxy.counts['requests']}", "all succeed at the first try")
    )


def test_a_scheduler_that_is_killed_and_comes_back_costs_no_task(
    airflow: Airflow, behind_proxy: Watched, model: ModelServer, table: list[tuple[str, ...]]
) -> None:
    script = questions(model, delay=3)
    run = airflow.trigger("faults_many", {"count": 3}, queue="proxied")
    wait_until("the tasks to be in the middle", lambda: len(script.requests) >= 6, 60)
    airflow.processes["scheduler"].kill()
    try:
        wait_until("the tasks to end without a scheduler", lambda: len(script.requests) == 9, 90)
    finally:
        airflow.start_scheduler()
    assert airflow.wait_for_run(run, 120) == "success"
    assert_all_well(airflow, run, script, 3)
    behind_proxy.assert_nothing_is_left()
    table.append(("the scheduler is killed and started again", "4", "", "tasks go on; the run ends when it is back"))


def test_nothing_survives_a_task_that_ignores_sigterm_and_forks(
    airflow: Airflow, scratch: Path, worker_dags: Path, worker_env: dict[str, str], table: list[tuple[str, ...]]
) -> None:
    shell = {"AIRFLOW__UPDRAFT__ALLOW_BASH": "True", "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1"}
    with watched(airflow, scratch / "worker-stubborn", worker_dags, "stubborn", worker_env, more=shell) as worker:
        run = airflow.trigger("faults_stubborn", queue="stubborn")
        (group,) = wait_until("the task to start", worker.task_processes, 60)
        mark = wait_until("its mark", lambda: _mark(group), 10)
        wait_until("all that it starts", lambda: len(_marked(mark)) >= 5, 30)
        began = time.monotonic()
        airflow.request(
            "PATCH", f"/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/hold_out", {"new_state": "failed"}
        )
        wait_until("everything of the task to be gone", lambda: _marked(mark) == [], 40)
        took = time.monotonic() - began
        worker.assert_nothing_is_left()
        assert airflow.task_instance(run, "hold_out")["state"] == "failed"
        assert "Task killed!" in airflow.log(run, "hold_out").events
    table.append(("a task ignores SIGTERM, forks and starts a daemon", "1", "", f"all of it gone {took:.0f} s after it was failed by hand"))


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _mark(pid: int) -> bytes | None:
    return next((variable for variable in _environment(pid) if variable.startswith(b"UPDRAFT_TASK_PROCESS=")), None)


def _marked(mark: bytes) -> list[int]:
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if mark in _environment(pid)]


def test_a_killed_worker_takes_its_tasks_along_and_leaves_nothing(
    airflow: Airflow,
    scratch: Path,
    worker_dags: Path,
    worker_env: dict[str, str],
    model: ModelServer,
    table: list[tuple[str, ...]],
) -> None:
    script = questions(model, delay=20)
    worker = Watched(airflow, scratch / "worker-killed", worker_dags, "killed", worker_env)
    try:
        airflow.trigger("faults_many", {"count": 2}, queue="killed")
        wait_until("the tasks to be in the middle", lambda: len(script.requests) >= 4, 60)
        (mark, *_) = [_mark(pid) for pid in worker.task_processes()]
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.popen.wait(10)
        wait_until("its tasks to be gone", lambda: _marked(mark) == [], 20)
        # The next worker of that name; here it is one of another, as the server keeps the name for a while.
        worker.process.kill()
        second = Watched(airflow, scratch / "worker-after-kill", worker_dags, "after-kill", worker_env)
        assert [path for path in worker.temporary.iterdir()] == []
        second.stop()
    finally:
        worker.stop()
    assert len(script.requests) == 4
    table.append(("the worker is killed with its tasks running", "2", "", "its task processes end within seconds"))


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], stderr=subprocess.DEVNULL)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_for_logs_costs_neither_the_task_nor_its_log_on_the_server(
    airflow: Airflow, scratch: Path, worker_dags: Path, worker_env: dict[str, str], table: list[tuple[str, ...]]
) -> None:
    with small_disk(scratch / "full-logs", "64k"):
        logs = {"AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(scratch / "full-logs")}
        with watched(airflow, scratch / "worker-full", worker_dags, "full", worker_env, more=logs) as worker:
            run = airflow.trigger("faults_wordy", queue="full")
            assert airflow.wait_for_run(run, 90) == "success"
            log = airflow.log(run, "say_much")
            lines = [event.split()[1] for event in log.events if event.startswith("line ")]
            assert lines == [str(number) for number in range(2000)]
            assert "can't be written" in worker.process.log.read_text()
            worker.assert_nothing_is_left()
    table.append(("the disk for logs is full", "1", "", "the task succeeds; its log is whole on the server; the worker says so"))


def test_a_full_disk_for_temporary_files_costs_no_task_that_needs_none(
    airflow: Airflow, scratch: Path, worker_dags: Path, worker_env: dict[str, str], model: ModelServer, table: list[tuple[str, ...]]
) -> None:
    script = questions(model)
    with small_disk(scratch / "worker-nospace-tmp", "16k"):
        (scratch / "worker-nospace-tmp" / ".filler").write_bytes(b"x" * 4096)
        made = scratch / "worker-nospace"
        worker = _with_full_tmp(airflow, made, worker_dags, worker_env)
        try:
            run = airflow.trigger("faults_many", {"count": 2}, queue="nospace")
            assert airflow.wait_for_run(run, 90) == "success"
            assert_all_well(airflow, run, script, 2)
        finally:
            worker.stop()
    table.append(("the disk for temporary files is full", "3", "", "agents and Python tasks succeed"))


def _with_full_tmp(airflow: Airflow, home: Path, dags: Path, env: dict[str, str]) -> Worker:
    filler = home.parent / f"{home.name}-tmp" / ".rest"
    try:
        with filler.open("wb") as file:
            while True:
                file.write(b"x" * 1024)
                file.flush()
    except OSError:
        pass
    worker = Worker(airflow, home, dags, "nospace", "nospace", env={**env, "TMPDIR": str(filler.parent)})
    worker.wait_until_registered()
    return worker


@LONG
def test_two_hundred_queued_tasks_all_run_once(
    airflow: Airflow, behind_proxy: Watched, model: ModelServer, table: list[tuple[str, ...]]
) -> None:
    script = questions(model)
    began = time.monotonic()
    run = airflow.trigger("faults_many", {"count": 200}, queue="proxied")
    assert airflow.wait_for_run(run, 900) == "success"
    took = time.monotonic() - began
    tasks = [ti for ti in airflow.task_instances(run) if ti["task_id"] == "ask"]
    assert {(ti["state"], ti["try_number"]) for ti in tasks} == {("success", 1)}
    assert len(script.requests) == 600
    behind_proxy.assert_nothing_is_left()
    table.append(("200 tasks are queued at once", "201", "", f"all succeed at the first try, in {took:.0f} s"))
