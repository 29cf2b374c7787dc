"""What Dags do around their agents."""

from __future__ import annotations

from harness.airflow import Airflow
from harness.model_server import ModelServer, say
from harness.worker import Worker


def echo(model: ModelServer):
    return model.script("everyday", [lambda request: say(f"[{request['messages'][-1]['content']}]")])


def test_an_agent_is_mapped_over_the_list_of_an_upstream_task(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    echo(model)
    run, state = airflow.run_dag("everyday_mapping", timeout=120)
    states = {(ti["task_id"], ti["map_index"]): ti["state"] for ti in airflow.task_instances(run)}
    assert state == "success", states
    assert set(states) == {("list_regions", -1), ("ask", 0), ("ask", 1), ("ask", 2), ("collect", -1)}
    assert airflow.xcoms(run, "list_regions")["return_value"] == ["North", "South", "Islands"]
    assert airflow.xcoms(run, "collect")["return_value"] == {
        "answers": ["[How was 2026 in North? (0)]", "[How was 2026 in South? (1)]", "[How was 2026 in Islands? (2)]"],
        "run": run.run_id,
    }


def test_conf_overrides_params_in_a_run_without_a_logical_date(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    script = echo(model)
    run, state = airflow.run_dag("everyday_conf", conf={"topic": "ink", "note": "hurry"}, dated=False)
    assert state == "success", airflow.log(run, "ask").text
    assert script.requests[0]["messages"][-1]["content"] == "INK 4 hurry True"


def test_skips_failures_and_several_outputs_end_as_airflow_expects(airflow: Airflow, worker: Worker) -> None:
    run, state = airflow.run_dag("everyday_outcomes", timeout=120)
    assert state == "failed"
    instances = {ti["task_id"]: ti for ti in airflow.task_instances(run)}
    assert {task_id: ti["state"] for task_id, ti in instances.items()} == {
        "skip": "skipped",
        "after_skip": "skipped",
        "fail_for_good": "failed",
        "several": "success",
        "uses": "success",
    }
    assert instances["fail_for_good"]["try_number"] == 1
    assert "nothing to do today" in airflow.log(run, "skip").text
    assert "no retry will help" in airflow.log(run, "fail_for_good").text
    assert airflow.xcoms(run, "several") == {
        "first": 1,
        "second": [2, 2],
        "return_value": {"first": 1, "second": [2, 2]},
    }
    assert airflow.xcoms(run, "uses")["return_value"] == 5
    printed = [r for r in airflow.log(run, "uses").records if r["event"] == "printed by the task"]
    assert [record["logger"] for record in printed] == ["task.stdout"]


def test_dags_from_a_factory_are_found_by_their_id(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    echo(model)
    run, state = airflow.run_dag("everyday_made_two")
    assert state == "success", airflow.log(run, "ask").text
    assert airflow.xcoms(run, "ask")["return_value"] == "[I am two.]"
