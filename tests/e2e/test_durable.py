"""Durable agents whose task process dies or fails after its third tool call: nothing is done a second time."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.airflow import Airflow
from harness.model_server import Fault, ModelServer, Script, Turn, call, say
from harness.process import wait_until
from harness.worker import KIND, Worker

JOURNAL = "__commonai_durable__"


@pytest.fixture
def ledger(airflow: Airflow, scratch: Path) -> Path:
    path = scratch / "ledger.db"
    is_new = not path.exists()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE IF NOT EXISTS lines (word TEXT)")
        database.execute("DELETE FROM lines")
        database.commit()
    if is_new:
        airflow.add_connection("ledger", conn_type="sqlite", host=str(path))
    return path


def lines(ledger: Path) -> list[str]:
    with closing(sqlite3.connect(ledger)) as database:
        return [word for (word,) in database.execute("SELECT word FROM lines ORDER BY rowid")]


def journal(airflow: Airflow) -> list[str]:
    """The keys of all journals that the server has."""
    with closing(sqlite3.connect(f"file:{airflow.home / 'airflow.db'}?mode=ro", uri=True)) as database:
        keys = database.execute("SELECT key FROM task_state_store")
        return sorted(key for (key,) in keys if key.startswith(JOURNAL))


def insert(word: str) -> Turn:
    return call("query", sql=f"INSERT INTO lines VALUES ('{word}')")


def one_refusal_after_three_lines(model: ModelServer) -> Script:
    def third(_: dict[str, Any]) -> Turn:
        script.faults.append(Fault(400))
        return insert("three")

    script = model.script("durable", [insert("one"), insert("two"), third, say("Three lines.")])
    return script


def turns_asked_for(script: Script) -> list[int]:
    """For each request, how many answers the conversation held before it."""
    return [sum(message["role"] == "assistant" for message in request["messages"]) for request in script.requests]


@pytest.mark.skipif(KIND == "python", reason="the Python worker nests its processes in another way")
def test_a_task_process_that_was_killed_after_three_tool_calls_repeats_none_of_them(
    airflow: Airflow, worker: Worker, model: ModelServer, ledger: Path
) -> None:
    asked: list[Turn] = []

    def slowly_at_first(_: dict[str, Any]) -> Turn:
        asked.append(say("Three lines.", delay=0.0 if asked else 60.0))
        return asked[-1]

    script = model.script("durable", [insert("one"), insert("two"), insert("three"), slowly_at_first])
    run = airflow.trigger("durable_operator")
    wait_until("the request after the third tool call", lambda: len(script.requests) >= 4, 60)
    (process,) = worker.task_processes()
    os.kill(process, signal.SIGKILL)
    assert airflow.wait_for_run(run, 90) == "success"

    assert lines(ledger) == ["one", "two", "three"]
    # The fourth was not answered when the process died, and is the only one to be sent again.
    assert turns_asked_for(script) == [0, 1, 2, 3, 3]
    assert airflow.task_instance(run, "ask")["try_number"] == 2
    xcoms = airflow.xcoms(run, "ask")
    assert xcoms["return_value"] == "Three lines."
    # What the second attempt used: the replayed steps cost nothing.
    assert (xcoms["usage"]["requests"], xcoms["usage"]["tool_calls"]) == (1, 0)
    log = airflow.log(run, "ask", 2)
    log.assert_groups_balance()
    assert "Durable: replayed 6 steps (3 model, 3 tool, 0 other), recorded 1 new steps (1 model, 0 tool, 0 other)" in log.events
    # Replayed calls stand in the log like others.
    assert [title for title in log.groups() if title.startswith("Tool call")] == ["Tool call: query"] * 3
    assert journal(airflow) == []


def test_an_attempt_that_the_model_failed_is_taken_up_by_the_retry(
    airflow: Airflow, worker: Worker, model: ModelServer, ledger: Path
) -> None:
    script = one_refusal_after_three_lines(model)
    run, state = airflow.run_dag("durable_operator", timeout=180)
    assert state == "success"
    assert lines(ledger) == ["one", "two", "three"]
    assert turns_asked_for(script) == [0, 1, 2, 3, 3]
    failed, succeeded = airflow.log(run, "ask", 1), airflow.log(run, "ask", 2)
    assert "Durable: replayed 0 steps (0 model, 0 tool, 0 other), recorded 6 new steps (3 model, 3 tool, 0 other)" in failed.events
    assert (
        "Durable: replayed 6 steps (3 model, 3 tool, 0 other), recorded 1 new steps (1 model, 0 tool, 0 other)"
        in succeeded.events
    )
    xcoms = airflow.xcoms(run, "ask")
    assert (xcoms["usage"]["requests"], xcoms["usage"]["tool_calls"]) == (1, 0)
    # The id of the first attempt, by which both are known.
    assert xcoms["run_id"] != airflow.task_instance(run, "ask")["id"]
    assert journal(airflow) == []


def test_an_agent_in_a_python_task_is_taken_up_as_well(
    airflow: Airflow, worker: Worker, model: ModelServer, ledger: Path
) -> None:
    script = one_refusal_after_three_lines(model)
    run, state = airflow.run_dag("durable_in_python", timeout=180)
    assert state == "success"
    assert lines(ledger) == ["one", "two", "three"]
    assert turns_asked_for(script) == [0, 1, 2, 3, 3]
    assert airflow.xcoms(run, "write")["return_value"] == "Three lines."
    assert journal(airflow) == []
