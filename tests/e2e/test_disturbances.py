"""Servers, workers and task processes that go away in the middle of a task."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.model_server import ModelServer, call, say
from harness.process import wait_until
from harness.worker import KIND, Worker


def slow(model: ModelServer, seconds: float):
    return model.script(
        "slow",
        [call("list_tables"), call("query", _delay=seconds, sql="SELECT COUNT(*) AS n FROM orders"), say("72 orders.")],
    )


def test_a_task_outlives_a_restart_of_the_api_server_and_a_worker_waits_for_it(
    airflow: Airflow,
    worker: Worker,
    model: ModelServer,
    scratch: Path,
    worker_dags: Path,
    worker_env: dict[str, str],
) -> None:
    script = slow(model, 8)
    run = airflow.trigger("slow_agents")
    wait_until("the second model request", lambda: len(script.requests) >= 2, 60)
    server = airflow.processes["api-server"]
    server.kill()
    assert airflow.processes["scheduler"].running()
    wait_until("the model's answer to come while the server is away", lambda: len(script.requests) >= 3, 30)
    early = Worker(airflow, scratch / "worker-early", worker_dags, "early-1", "early", env=worker_env)
    try:
        airflow.start_api_server()
        airflow.wait_for_api()
        if KIND == "updraft":
            early.wait_until_registered()
    finally:
        early.stop()
    assert airflow.wait_for_run(run, 120) == "success"
    assert airflow.xcoms(run, "ask")["return_value"] == "72 orders."
    assert airflow.task_instance(run, "ask")["try_number"] == 1
    log = airflow.log(run, "ask")
    log.assert_groups_balance()
    assert [title for title in log.groups() if title.startswith("Tool call")] == [
        "Tool call: list_tables",
        "Tool call: query",
    ]
    assert worker.process.running()


@pytest.mark.updraft_only
def test_sigterm_lets_the_running_task_finish_and_takes_the_worker_offline(
    airflow: Airflow, model: ModelServer, scratch: Path, worker_dags: Path, worker_env: dict[str, str]
) -> None:
    script = slow(model, 6)
    draining = Worker(airflow, scratch / "worker-drain", worker_dags, "drain-1", "drain", env=worker_env)
    try:
        draining.wait_until_registered()
        run = airflow.trigger("slow_drain")
        wait_until("the second model request", lambda: len(script.requests) >= 2, 60)
        draining.process.signal(signal.SIGTERM)
        later = airflow.trigger("slow_drain")
        assert draining.process.wait(60) == 0, draining.process.tail()
        assert airflow.task_instance(run, "ask")["state"] == "success"
        assert airflow.xcoms(run, "ask")["return_value"] == "72 orders."
        assert draining.state() == "offline"
        # Nothing was fetched after the signal.
        assert len(script.requests) == 3
        assert airflow.run_state(later) in ("queued", "running")
    finally:
        draining.stop()


@pytest.mark.updraft_only
def test_a_second_sigterm_ends_the_task_with_a_state_and_a_reason(
    airflow: Airflow, model: ModelServer, scratch: Path, worker_dags: Path, worker_env: dict[str, str]
) -> None:
    script = slow(model, 40)
    draining = Worker(airflow, scratch / "worker-drain-2", worker_dags, "drain-2", "drain", env=worker_env)
    try:
        draining.wait_until_registered()
        run = airflow.trigger("slow_drain")
        airflow.wait_for_task(run, "ask", {"running"})
        # The run that the worker before this one left in the queue comes first.
        wait_until("both tasks to be in the middle of a run", lambda: len(script.requests) >= 4, 60)
        draining.process.signal(signal.SIGTERM)
        # Signals of one kind that come before the first is taken count as one.
        wait_until("the first signal to be taken", lambda: draining.state() == "terminating", 20)
        draining.process.signal(signal.SIGTERM)
        draining.process.wait(45)
        assert airflow.wait_for_run(run, 30) == "failed"
        log = airflow.log(run, "ask")
        assert "The worker was told to end at once; terminating the task" in log.events
        log.assert_groups_balance()
        assert draining.state() == "offline"
    finally:
        draining.stop()


@pytest.mark.skipif(KIND == "python", reason="the Python worker nests its processes in another way")
def test_a_task_process_killed_without_a_word_is_a_failed_try_with_its_signal_in_the_log(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    script = slow(model, 30)
    run = airflow.trigger("slow_agents")
    wait_until("the second model request", lambda: len(script.requests) >= 2, 60)
    (process,) = worker.task_processes()
    os.kill(process, signal.SIGKILL)
    assert airflow.wait_for_run(run, 60) == "failed"
    log = airflow.log(run, "ask")
    assert any(
        "SIGKILL" in record["event"] and record["level"] in ("error", "critical") for record in log.records[3:]
    ), log.text
    assert worker.process.running()

    model.script("slow", [say("Still here.")])
    again, state = airflow.run_dag("slow_agents")
    assert state == "success", json.dumps(airflow.log(again, "ask").events)
