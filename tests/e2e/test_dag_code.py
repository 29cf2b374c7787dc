"""What Dags do beside the work of their tasks, read back from Airflow."""

from __future__ import annotations

import json
from typing import Any

from harness.airflow import Airflow, Run
from harness.model_server import ModelServer, call, say
from harness.worker import Worker


def states(airflow: Airflow, run: Run) -> dict[tuple[str, int], str]:
    return {(ti["task_id"], ti["map_index"]): ti["state"] for ti in airflow.task_instances(run)}


def asset_events(airflow: Airflow, run: Run) -> list[dict[str, Any]]:
    events = airflow.get(f"/assets/events?source_dag_id={run.dag_id}&limit=100")["asset_events"]
    return [event for event in events if event["source_run_id"] == run.run_id]


def test_callbacks_are_called_with_what_happened(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    model.script("everyday", [say("Hello!")])
    run, state = airflow.run_dag("dag_code_callbacks", timeout=120)
    assert state == "failed"
    assert {task_id: state for (task_id, _), state in states(airflow, run).items()} == {
        "good": "success",
        "skipped": "skipped",
        "bad": "failed",
        "agent": "success",
        "limited": "failed",
    }

    def noted(task_id: str, try_number: int = 1) -> list[str]:
        return [event for event in airflow.log(run, task_id, try_number).events if event.startswith("callback saw")]

    assert noted("good") == [
        "callback saw ['on_execute', 'good', 1, None]",
        "callback saw ['on_success', 'good', 1, None]",
    ]
    assert noted("skipped")[1:] == ["callback saw ['on_skipped', 'skipped', 1, None]"]
    assert noted("bad", 1)[1:] == ["callback saw ['on_retry', 'bad', 1, 'RuntimeError: try 1 failed']"]
    assert noted("bad", 2)[1:] == ["callback saw ['on_failure', 'bad', 2, 'RuntimeError: try 2 failed']"]
    assert noted("agent")[1:] == ["callback saw ['on_success', 'agent', 1, None]"]
    (limited,) = noted("limited")[1:]
    assert limited.startswith("callback saw ['on_failure', 'limited', 1, 'UsageLimitExceeded: The next request would")
    log = airflow.log(run, "good")
    log.assert_groups_balance()
    broken = [record for record in log.records if record["event"] == "Failed to run task callback"]
    assert [(record["kind"], record["index"]) for record in broken] == [
        ("on_execute_callback", 0),
        ("on_success_callback", 0),
    ]
    assert broken[0]["error_detail"][0]["exc_value"] == "this callback is broken"
    assert airflow.xcoms(run, "good")["on_execute"] == ["on_execute", "good", 1, None]


def test_a_retry_policy_decides_about_retries(airflow: Airflow, worker: Worker) -> None:
    run, state = airflow.run_dag("dag_code_retry_policy", timeout=120)
    assert state == "failed"
    # The delay of the rule, not the hour of the task; then no third try although there are retries left.
    assert airflow.task_instance(run, "flaky")["try_number"] == 2
    decisions = [
        (record["action"], record["reason"])
        for number in (1, 2)
        for record in airflow.log(run, "flaky", number).records
        if record["event"] == "Retry policy decision"
    ]
    assert decisions == [("retry", "it comes and goes"), ("fail", "it stays wrong")]


def test_what_dag_code_notes_for_outlets_stands_in_the_asset_events(airflow: Airflow, worker: Worker) -> None:
    run, state = airflow.run_dag("dag_code_assets", timeout=120)
    assert state == "success", states(airflow, run)
    events = {(event["source_task_id"], event["uri"]): event["extra"] for event in asset_events(airflow, run)}
    assert events == {
        ("write", "s3://made-up/report"): {"rows": 3, "by": "write"},
        ("summarise", "s3://made-up/summary"): {"words": 12},
        ("summarise", "s3://made-up/1"): {"size": 1},
    }
    assert airflow.xcoms(run, "read")["return_value"] == [{"rows": 3, "by": "write"}]


def test_operators_of_the_author_branches_and_sensors_run(airflow: Airflow, worker: Worker) -> None:
    run, state = airflow.run_dag("dag_code_operators", timeout=120)
    assert states(airflow, run) == {
        ("polite", -1): "success",
        ("mapped", 0): "success",
        ("mapped", 1): "success",
        ("choose", -1): "success",
        ("left", -1): "success",
        ("right", -1): "skipped",
        ("maybe", -1): "success",
        ("never", -1): "skipped",
        ("patient", -1): "success",
        ("start_other", -1): "success",
    }
    assert state == "success"
    assert airflow.xcoms(run, "polite")["return_value"] == "Hello dag_code_operators, no-007"
    assert airflow.xcoms(run, "mapped", 1)["return_value"] == "Hi Hi"
    assert "before Hello dag_code_operators, no-007" in airflow.log(run, "polite").events
    assert airflow.task_instance(run, "patient")["try_number"] == 1
    other = Run("dag_code_triggered", airflow.xcoms(run, "start_other")["trigger_run_id"])
    assert airflow.xcoms(other, "report")["return_value"] == {"from": run.run_id}


def test_an_agent_that_a_function_builds_asks_what_pydantic_ai_would_ask(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    script = model.script(
        "example",
        [
            call("run_of", word="fog"),
            call("query", sql="SELECT name FROM customers ORDER BY id"),
            call("final_result", customer="Ada", orders=0),
            call("final_result", customer="Ada", orders="3"),
            call("final_result", customer="Bo", orders=4),
        ],
    )
    run, state = airflow.run_dag("agents_in_python")
    log = airflow.log(run, "judge")
    assert state == "success", log.text
    assert airflow.xcoms(run, "judge")["return_value"] == ["Ada", 4, 1, 12]
    first = script.requests[0]
    assert [tool["function"]["name"] for tool in first["tools"]] == [
        "run_of", "list_tables", "get_schema", "query", "check_query", "final_result"
    ]
    assert first["tool_choice"] == "required"
    assert [(message["role"], message["content"]) for message in first["messages"]] == [
        ("system", "You are exact."),
        ("system", "Ask the database."),
        ("system", "The shop is in Bergen."),
        ("user", "Who?"),
    ]
    last = script.requests[-1]["messages"]
    assert [message["content"] for message in last if message["role"] == "system"] == [
        "You are exact.", "Ask the database.", "The shop is in Oslo."
    ]
    results = [message["content"] for message in last if message["role"] == "tool"]
    assert results[0] == "agents_in_python in Bergen: fog"
    assert json.loads(results[1])["rows"] == [["Aldine Books"], ["Bramble & Co"]]
    assert results[2:] == ['{"error":"count again"}', "Final result processed."]
    assert [message["content"] for message in last if message["role"] == "user"] == ["Who?", "And now?"]
    assert "Tool call: query" not in log.text
