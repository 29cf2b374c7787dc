"""The cluster policy that the README shows, taken from the README."""

from __future__ import annotations

from harness.airflow import Airflow
from harness.model_server import ModelServer, say
from harness.worker import Worker


def test_the_policy_routes_every_agent_to_the_queue(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    model.script("hello", [say("Hello.")])
    run, state = airflow.run_dag("policy_routed")
    assert state == "success", [(ti["task_id"], ti["state"]) for ti in airflow.task_instances(run)]
    instances = airflow.task_instances(run)
    assert len(instances) == 4
    assert {ti["queue"] for ti in instances} == {"agents"}
