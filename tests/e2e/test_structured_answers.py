"""Answers that are models of the Dag file, and who reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.model_server import ModelServer, call
from harness.worker import Worker


@pytest.fixture
def python_worker(airflow: Airflow, scratch: Path, worker_dags: Path) -> Iterator[Worker]:
    """Airflow's own edge worker beside the one under test."""
    made = Worker(airflow, scratch / "python-worker", worker_dags, "python-1", "python", kind="python")
    try:
        made.wait_until_registered()
        yield made
    finally:
        made.stop()


def test_a_python_task_reads_an_answer_as_the_class_of_the_dag_file(
    airflow: Airflow, worker: Worker, python_worker: Worker, model: ModelServer
) -> None:
    berths = [{"quay": "north ", "number": "4"}]
    script = model.script(
        "example",
        [
            call("final_result", name="aurora", berths=berths),
            call("final_result", name="Aurora", berths=[{"quay": "north ", "number": 0}]),
            call("final_result", name="Aurora", cargo="timber", berths=berths),
        ],
    )
    run, state = airflow.run_dag("structured_answers", timeout=180)
    log = airflow.log(run, "ask")
    assert state == "success", log.text + airflow.log(run, "read").text
    output = script.requests[0]["tools"][0]["function"]
    assert (output["name"], output["description"]) == ("final_result", "A ship in the harbour.")
    assert output["parameters"]["$defs"]["Cargo"] == {"enum": ["fish", "timber"], "type": "string"}
    assert script.requests[0]["tool_choice"] == "required"
    refusals = [message["content"] for message in script.requests[-1]["messages"] if message["role"] == "tool"]
    faults = [json.loads(refusal)["error"][0] for refusal in refusals]
    assert [(fault["type"], fault["loc"]) for fault in faults] == [
        ("value_error", ["name"]),
        ("greater_than_equal", ["berths", 0, "number"]),
    ]
    assert faults[0]["msg"] == "Value error, a ship's name begins with a capital letter"
    assert airflow.xcoms(run, "read")["return_value"] == ["Ship", "Cargo", "Berth", "north 5"]
