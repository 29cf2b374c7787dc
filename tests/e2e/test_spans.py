"""The spans of one Dag on Updraft and on Airflow's own worker, laid side by side; and the metrics beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.model_server import ModelServer, call, say
from harness.otlp import OtlpReceiver, Span
from harness.process import wait_until
from harness.worker import KIND, Worker

# What only one side has, by the beginning of the span's name, each with its reason.
ONLY_PYTHON: dict[str, dict[str, str]] = {
    "execute_tool": {
        "pydantic_ai.tool.failure_stage": "where a call was refused, which the cause of the retry beside it says as well",
    }
}
ONLY_UPDRAFT: dict[str, dict[str, str]] = {}


@pytest.fixture(scope="module")
def python_worker(airflow: Airflow, scratch: Path, worker_dags: Path, worker_env: dict[str, str]) -> Iterator[Worker]:
    env = {**worker_env, "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "120"}
    made = Worker(airflow, scratch / "python-traced", worker_dags, "python-2", "python", kind="python", env=env)
    try:
        made.wait_until_registered()
        yield made
    finally:
        made.stop()


def spans_of(dag_id: str, airflow: Airflow, model: ModelServer, otlp: OtlpReceiver) -> list[Span]:
    """A run with an argument that is refused, a statement that is refused, one that is not, and an answer."""
    model.script(
        "traced",
        [
            call("query", statement="SELECT 1"),
            call("query", sql="SELECT * FROM orders"),
            call("query", sql="SELECT COUNT(*) AS n FROM customers"),
            say("16 customers."),
        ],
    )
    otlp.spans.clear()
    run, state = airflow.run_dag(dag_id, timeout=180)
    assert state == "success", airflow.log(run, "ask").text

    def agent() -> Span | None:
        found = (span for span in otlp.spans if span.name.startswith("invoke_agent"))
        return next((span for span in found if span.attributes.get("airflow.dag_id") == dag_id), None)

    trace = wait_until("the spans of the agent", agent, 30).trace_id
    return [span for span in otlp.spans if span.trace_id == trace]


def of_the_agent(spans: list[Span]) -> list[Span]:
    return [span for span in spans if span.name.split()[0] in ("invoke_agent", "chat", "execute_tool")]


def places(spans: list[Span]) -> Counter[tuple[str, str]]:
    """Each span's name and that of its parent, as far as the parent is the agent's as well."""
    names = {span.span_id: span.name for span in of_the_agent(spans)}
    return Counter((span.name, names.get(span.parent_id, "the task")) for span in of_the_agent(spans))


def keys(spans: list[Span], name: str) -> list[set[str]]:
    """The attribute keys of the spans of this name, in the order of their begin."""
    return [set(span.attributes) for span in sorted(spans, key=lambda span: span.start) if span.name.startswith(name)]


@pytest.mark.skipif(KIND == "python", reason="it takes one worker of each kind")
def test_spans_have_the_names_parents_and_attributes_that_they_have_on_a_python_worker(
    airflow: Airflow, worker: Worker, python_worker: Worker, model: ModelServer, otlp: OtlpReceiver
) -> None:
    there = spans_of("traced_python", airflow, model, otlp)
    here = spans_of("traced_agents", airflow, model, otlp)
    assert places(here) == places(there)
    differences = []
    for name in ("invoke_agent", "chat", "execute_tool"):
        for number, (ours, theirs) in enumerate(zip(keys(here, name), keys(there, name), strict=True)):
            missing = theirs - ours - set(ONLY_PYTHON.get(name, {}))
            added = ours - theirs - set(ONLY_UPDRAFT.get(name, {}))
            if missing or added:
                differences.append((name, number, {"missing": sorted(missing), "added": sorted(added)}))
    assert differences == []


@pytest.mark.updraft_only
def test_what_model_requests_used_and_how_long_they_took_is_counted(
    airflow: Airflow, worker: Worker, model: ModelServer, otlp: OtlpReceiver
) -> None:
    otlp.metrics.clear()
    spans_of("traced_agents", airflow, model, otlp)
    tokens = wait_until("the metrics", lambda: otlp.metrics.get("gen_ai.client.token.usage"), 20)
    assert tokens.unit == "{token}"
    request = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "traced",
        "gen_ai.response.model": "traced",
    }
    assert [(point.attributes, point.count, point.sum) for point in sorted(tokens.points, key=lambda point: -point.sum)] == [
        ({**request, "gen_ai.token.type": "input"}, 4, 80.0),
        ({**request, "gen_ai.token.type": "output"}, 4, 40.0),
    ]
    assert tokens.points[0].bounds[:5] == [1.0, 4.0, 16.0, 64.0, 256.0]
    duration = otlp.metrics["gen_ai.client.operation.duration"]
    assert duration.unit == "s"
    (point,) = duration.points
    assert (point.attributes, point.count) == (request, 4)
    assert 0 < point.sum < 20
    assert point.bounds[:3] == [0.01, 0.02, 0.04]
