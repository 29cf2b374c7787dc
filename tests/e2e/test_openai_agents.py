"""Agents of the OpenAI Agents SDK: through a real Airflow, and what the real SDK does with the agents of the fixture."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.airflow import Airflow
from harness.model_server import Fault, ModelServer, Turn, call, say
from harness.otlp import OtlpReceiver
from harness.process import wait_until
from harness.worker import KIND, Worker

TESTS = Path(__file__).parent.parent
JOURNAL = "__commonai_durable__"
QUESTION = "SELECT name FROM customers ORDER BY arr DESC LIMIT 1"

# What release 0.20 does in another way than the newest, which is the one that Updraft stands in for. Each with the reason.
OTHERWISE_IN_0_20 = {
    "a_tool_with_star_arguments": "the schema of **kwargs lets arguments through that nobody takes",
    "a_tool_fails": "the model is told the exception's text",
    "an_agent_as_a_tool_fails": "the model is told the exception's text",
    "arguments_that_do_not_fit": "the model is told the exception's text",
    "hosted_tools_need_the_newer_api": "a web search has fewer settings, which the error shows",
    "the_server_refuses": "version 2 of the client library puts the whole body into its errors",
    "the_server_is_busy": "version 2 of the client library puts the whole body into its errors",
    "the_key_is_wrong": "version 2 of the client library puts the whole body into its errors",
    "the_server_is_gone": "version 2 of the client library puts the body into its errors",
}


def environment(name: str) -> Path:
    cache = Path(os.environ.get("UPDRAFT_CACHE", Path.home() / ".cache/updraft"))
    python = cache / name / "bin/python"
    assert python.exists(), f"{python} is missing: tests/run.sh makes it"
    return python


def told_by(venv: str) -> dict[str, dict[str, Any]]:
    """What the SDK of an environment does with each agent of the fixture."""
    done = subprocess.run(
        [environment(venv), TESTS / "servers/openai_agents.py"], capture_output=True, text=True, timeout=600, check=True
    )
    return agents_in(done.stdout)


def agents_in(text: str) -> dict[str, dict[str, Any]]:
    agents = [json.loads(line) for line in text.splitlines()[1:]]
    return {agent["name"]: agent for agent in agents}


def recorded() -> dict[str, dict[str, Any]]:
    return agents_in((TESTS / "fixtures/openai_agents/recorded.jsonl").read_text())


def in_any_order(agent: dict[str, Any]) -> dict[str, Any]:
    """Calls that overlap end in an order that nobody can foresee."""
    return {**agent, "ended": sorted(json.dumps(one, sort_keys=True) for one in agent["ended"])}


def asked_and_came(agent: dict[str, Any]) -> list[Any]:
    return [[[one["path"], one["request"]] for one in agent["exchanges"]], agent["outcome"]]


def test_the_recorded_agents_are_what_the_newest_sdk_does() -> None:
    told, expected = told_by("venv-agents"), recorded()
    assert list(told) == list(expected)
    differing = [name for name in expected if in_any_order(told[name]) != in_any_order(expected[name])]
    assert differing == []


def test_release_0_20_differs_in_what_is_listed_and_in_nothing_else() -> None:
    told, expected = told_by("venv-agents-0.20"), recorded()
    differing = {name for name in expected if asked_and_came(told[name]) != asked_and_came(expected[name])}
    assert differing == set(OTHERWISE_IN_0_20)


def database(airflow: Airflow, path: Path, conn_id: str, statements: str) -> None:
    is_new = not path.exists()
    with closing(sqlite3.connect(path)) as made:
        made.executescript(statements)
    if is_new:
        airflow.add_connection(conn_id, conn_type="sqlite", host=str(path))


@pytest.fixture
def shop(airflow: Airflow, scratch: Path) -> None:
    rows = "CREATE TABLE IF NOT EXISTS customers (name TEXT, arr INT); DELETE FROM customers;"
    database(airflow, scratch / "agents_shop.db", "agents_shop", f"{rows} INSERT INTO customers VALUES ('Ada', 5), ('Bob', 7);")


@pytest.fixture
def ledger(airflow: Airflow, scratch: Path) -> Path:
    path = scratch / "agents_ledger.db"
    database(airflow, path, "agents_ledger", "CREATE TABLE IF NOT EXISTS lines (word TEXT); DELETE FROM lines;")
    return path


def lines(ledger: Path) -> list[str]:
    with closing(sqlite3.connect(ledger)) as found:
        return [word for (word,) in found.execute("SELECT word FROM lines ORDER BY rowid")]


def journal(airflow: Airflow) -> list[str]:
    with closing(sqlite3.connect(f"file:{airflow.home / 'airflow.db'}?mode=ro", uri=True)) as found:
        return [key for (key,) in found.execute("SELECT key FROM task_state_store") if key.startswith(JOURNAL)]


@pytest.mark.skipif(KIND == "python", reason="the Python worker has no SDK")
def test_the_documented_agent_answers_and_its_spans_are_the_tasks(
    airflow: Airflow, worker: Worker, model: ModelServer, otlp: OtlpReceiver, shop: None
) -> None:
    script = model.script("openai-agents", [call("list_tables"), call("query", sql=QUESTION), say("Bob.")])
    otlp.spans.clear()
    run, state = airflow.run_dag("openai_agent", timeout=120)
    assert state == "success", airflow.log(run, "run_openai_agent").text
    assert airflow.xcoms(run, "run_openai_agent")["return_value"] == "Bob."
    assert [message["role"] for message in script.requests[-1]["messages"]] == [
        "system",
        "user",
        *["assistant", "tool"] * 2,
    ]
    log = airflow.log(run, "run_openai_agent")
    log.assert_groups_balance()
    assert [title for title in log.groups() if title.startswith("Tool call")] == [
        "Tool call: list_tables",
        "Tool call: query",
    ]

    def workflow() -> Any:
        return next((span for span in otlp.spans if span.name == "Agent workflow"), None)

    root = wait_until("the spans of the agent", workflow, 30)
    spans = [span for span in otlp.spans if span.trace_id == root.trace_id]
    names = {span.span_id: span.name for span in spans}
    places = {(span.name, names.get(span.parent_id)) for span in spans}
    assert ("Agent workflow", "worker.run_openai_agent") in places
    assert ("openai_agents.task Agent workflow", "Agent workflow") in places
    assert ("invoke_agent analyst", "openai_agents.task Agent workflow") in places
    assert ("openai_agents.turn 1", "invoke_agent analyst") in places
    assert ("chat openai-agents", "openai_agents.turn 1") in places
    assert ("execute_tool query", "openai_agents.turn 2") in places
    for span in spans:
        if span.name.startswith(("chat", "execute_tool", "invoke_agent")):
            assert span.attributes["airflow.dag_id"] == "openai_agent"
            assert not any("messages" in key or "arguments" in key for key in span.attributes)
    chat = next(span for span in spans if span.name.startswith("chat"))
    assert chat.attributes["gen_ai.usage.input_tokens"] == 20


def insert(word: str) -> Turn:
    return call("query", sql=f"INSERT INTO lines VALUES ('{word}')")


@pytest.mark.skipif(KIND == "python", reason="the Python worker has no SDK")
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_task_process_that_is_killed_repeats_no_completed_call(
    airflow: Airflow, worker: Worker, model: ModelServer, ledger: Path, after: int
) -> None:
    words = ["one", "two", "three"]
    asked: list[int] = []

    def turn(number: int) -> Any:
        def answer(_: dict[str, Any]) -> Turn:
            asked.append(number)
            slow = number == after and asked.count(number) == 1
            if number == len(words):
                return say("Three lines.", delay=60.0 if slow else 0.0)
            return call("query", _delay=60.0 if slow else 0.0, sql=f"INSERT INTO lines VALUES ('{words[number]}')")

        return answer

    model.script("openai-agents", [turn(number) for number in range(4)])
    run = airflow.trigger("openai_agent_durable")
    wait_until("the request that is not answered", lambda: after in asked, 60)
    (process,) = worker.task_processes()
    os.kill(process, signal.SIGKILL)
    assert airflow.wait_for_run(run, 120) == "success"
    assert lines(ledger) == words
    assert asked == sorted([*range(4), after])
    assert airflow.xcoms(run, "publish")["return_value"] == "published: Three lines."
    assert journal(airflow) == []


@pytest.mark.skipif(KIND == "python", reason="the Python worker has no SDK")
def test_a_refused_request_is_the_only_one_that_a_retry_makes_again(
    airflow: Airflow, worker: Worker, model: ModelServer, ledger: Path
) -> None:
    def second(_: dict[str, Any]) -> Turn:
        script.faults.append(Fault(400))
        return insert("two")

    script = model.script("openai-agents", [insert("one"), second, say("Two lines.")])
    run, state = airflow.run_dag("openai_agent_durable", timeout=120)
    assert state == "success"
    assert lines(ledger) == ["one", "two"]
    turns = [sum(message["role"] == "assistant" for message in request["messages"]) for request in script.requests]
    assert turns == [0, 1, 2, 2]
    assert airflow.task_instance(run, "answer")["try_number"] == 2
    assert journal(airflow) == []
