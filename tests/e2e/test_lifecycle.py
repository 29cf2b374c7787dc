"""A worker's life as administrators see and lead it: from Airflow's pages, and from its own machine."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.model_server import ModelServer, call, say
from harness.process import free_port, wait_until
from harness.worker import Worker, updraft_binary

pytestmark = pytest.mark.updraft_only


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def led(
    airflow: Airflow, scratch: Path, worker_dags: Path, worker_env: dict[str, str], port: int
) -> Iterator[Worker]:
    env = {**worker_env, "AIRFLOW__UPDRAFT__METRICS_ADDRESS": f"127.0.0.1:{port}", "AIRFLOW__EDGE__HEARTBEAT_INTERVAL": "1"}
    made = Worker(airflow, scratch / "worker-led", worker_dags, "led-1", "led", concurrency=2, env=env)
    made.wait_until_registered()
    yield made
    made.stop()


def told(worker: Worker, *words: str) -> str:
    shown = subprocess.run(
        [updraft_binary(), "worker", *words],
        env={"AIRFLOW_HOME": str(worker.home), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert shown.returncode == 0, shown.stdout
    return shown.stdout


def shown_by_airflow(airflow: Airflow, worker: Worker) -> dict:
    return next(w for w in airflow.edge("/ui/worker")["workers"] if w["worker_name"] == worker.name)


def ask(airflow: Airflow, model: ModelServer) -> str:
    model.script("faults", [call("list_tables"), say("Done.")])
    return airflow.run_dag("faults_many", 60, conf={"count": 1}, queue="led")[1]


def test_maintenance_is_begun_and_ended_on_the_workers_machine(airflow: Airflow, led: Worker, model: ModelServer) -> None:
    out = told(led, "maintenance", "on", "--comments", "a disk is changed", "--wait")
    assert "a disk is changed" in out
    wait_until("Airflow to know", lambda: led.state() == "maintenance mode", 20)
    assert "a disk is changed" in shown_by_airflow(airflow, led)["maintenance_comments"]
    model.script("faults", [say("Done.")])
    run = airflow.trigger("faults_many", {"count": 1}, queue="led")
    waiting = airflow.wait_for_task(run, "numbers", {"queued"})
    assert waiting["state"] == "queued"
    status = json.loads(told(led, "status", "--json"))
    assert (status["maintenance"], status["job_count"], status["state"]) == (True, 0, "maintenance mode")
    told(led, "maintenance", "off", "--wait")
    assert airflow.wait_for_run(run, 60) == "success"
    assert shown_by_airflow(airflow, led)["maintenance_comments"] is None


def test_maintenance_slots_and_queues_are_set_on_airflows_pages(airflow: Airflow, led: Worker, model: ModelServer) -> None:
    def of(key: str) -> object:
        return json.loads(told(led, "status", "--json"))[key]

    path = "/ui/worker/led-1"
    airflow.request("POST", f"{path}/maintenance", {"maintenance_comment": "from the page"}, base="/edge_worker")
    wait_until("the worker to follow", lambda: of("maintenance"), 20)
    wait_until("Airflow to know", lambda: led.state() == "maintenance mode", 20)
    assert "from the page" in str(of("maintenance_comments"))
    airflow.request("DELETE", f"{path}/maintenance", base="/edge_worker")
    wait_until("the worker to go on", lambda: not of("maintenance"), 20)

    airflow.request("PATCH", f"{path}/concurrency", {"concurrency": 5}, base="/edge_worker")
    wait_until("five slots", lambda: of("concurrency") == 5, 20)
    airflow.request("PUT", f"{path}/queues/led-too", base="/edge_worker")
    wait_until("another queue", lambda: sorted(of("queues")) == ["led", "led-too"], 20)
    model.script("faults", [say("Done.")])
    assert airflow.run_dag("faults_many", 60, conf={"count": 1}, queue="led-too")[1] == "success"


def test_health_and_metrics_are_served(airflow: Airflow, led: Worker, model: ModelServer, port: int) -> None:
    assert ask(airflow, model) == "success"

    def get(path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.read().decode()

    assert json.loads(get("/health"))["status"] == "healthy"
    figures = dict(line.rsplit(" ", 1) for line in get("/metrics").splitlines() if not line.startswith("#"))
    assert int(figures['updraft_jobs_total{state="success"}']) >= 2
    assert float(figures["updraft_heartbeat_age_seconds"]) < 10
    assert figures["updraft_slots"] == "5"
    assert float(figures["updraft_job_overhead_seconds_sum"]) > 0


def test_a_worker_is_shut_down_on_airflows_page(airflow: Airflow, led: Worker) -> None:
    airflow.request("POST", "/ui/worker/led-1/shutdown", base="/edge_worker")
    assert led.process.wait(30) == 0, led.process.tail()
    assert led.state() == "offline"
