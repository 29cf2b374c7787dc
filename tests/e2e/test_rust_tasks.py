"""`examples/harbour.rs` as the worker of a queue: tasks, a toolset and an agent in Rust under a real Airflow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.airflow import Airflow
from harness.model_server import ModelServer, Turn, call, say
from harness.worker import Worker, updraft_binary

QUEUE = "rust"
SURVEY = [
    call("sound", number=1),
    call("sound", number=2),
    call("sound", number=3),
    call("final_result", depths=[11, 12, 13]),
]
PILOT = [call("high_water", day=31), call("high_water", day=12), say("At 10 o'clock.")]


def is_survey(request: dict[str, Any]) -> bool:
    return any(message["content"] == "Survey the basin North." for message in request["messages"])


def turn(number: int) -> Any:
    def answer(request: dict[str, Any]) -> Turn:
        return (SURVEY if is_survey(request) else PILOT)[number]

    return answer


@pytest.fixture(scope="module")
def harbour(
    airflow: Airflow, scratch: Path, worker_dags: Path, worker_env: dict[str, str]
) -> Iterator[Worker]:
    program = Path(updraft_binary()).parent / "examples" / "harbour"
    env = {**worker_env, "AIRFLOW_VAR_HARBOUR_QUAY": "B"}
    worker = Worker(airflow, scratch / QUEUE, worker_dags, QUEUE, QUEUE, env=env, program=str(program))
    worker.wait_until_registered()
    yield worker
    worker.stop()


@pytest.mark.updraft_only
def test_tasks_toolsets_and_agents_in_rust_are_tasks_like_others(
    airflow: Airflow, harbour: Worker, model: ModelServer
) -> None:
    script = model.script("example", [turn(number) for number in range(4)])
    run, state = airflow.run_dag("harbour", timeout=120)
    assert state == "success", [airflow.log(run, "survey", try_number=number).text for number in (1, 2)]
    berths = [airflow.xcoms(run, "berth", map_index=index) for index in range(2)]
    assert berths[1]["return_value"] == {"ship": "Borealis", "quay": "B", "price": 40}
    assert berths[0]["quay"] == "B"
    assert airflow.xcoms(run, "invoice")["return_value"] == 80
    assert airflow.xcoms(run, "pilot")["return_value"] == "At 10 o'clock."
    assert "::group::Tool call: high_water" in airflow.log(run, "pilot").events

    # The survey's first try broke at the third mark; the second one asked for nothing again.
    instances = {ti["task_id"]: ti for ti in airflow.task_instances(run) if ti["map_index"] == -1}
    assert instances["survey"]["try_number"] == 2
    assert airflow.xcoms(run, "survey")["return_value"] == {"depths": [11, 12, 13]}
    assert len([request for request in script.requests if is_survey(request)]) == 4
    assert "the line broke" in airflow.log(run, "survey", try_number=1).text
    events = airflow.log(run, "survey", try_number=2).events
    assert "Durable: replayed 5 steps (3 model, 2 tool, 0 other), recorded 2 new steps (1 model, 1 tool, 0 other)" in events
