"""Tasks that wait in Airflow's triggerer and go on here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.airflow import Airflow
from harness.worker import Worker


@pytest.fixture(scope="module")
def triggerer(airflow: Airflow) -> Iterator[None]:
    airflow.start_triggerer()
    yield
    airflow.processes.pop("triggerer").stop()


def test_a_task_defers_twice_and_goes_on_with_what_the_triggers_and_it_left(
    airflow: Airflow, worker: Worker, triggerer: None
) -> None:
    run = airflow.trigger("deferral")
    assert airflow.wait_for_run(run, 120) == "failed"
    states = {ti["task_id"]: ti["state"] for ti in airflow.task_instances(run)}
    log = airflow.log(run, "wait_twice")
    assert states["wait_twice"] == "success", log.text
    assert airflow.xcoms(run, "wait_twice")["return_value"] == {"numbers": [1, 2], "waited": True}
    assert airflow.task_instance(run, "wait_twice")["try_number"] == 1
    assert log.events.count("Pausing task as DEFERRED. ") == 2, log.text

    # A trigger that takes too long fails the task in its own words.
    assert states["times_out"] == "failed"
    log = airflow.log(run, "times_out")
    details = [record["error_detail"][0] for record in log.records if record.get("error_detail")]
    assert [(detail["exc_type"], detail["exc_value"]) for detail in details] == [
        ("TaskDeferralTimeout", "Trigger timeout")
    ], log.text

    assert states["sensor"] == "success", airflow.log(run, "sensor").text


def test_a_run_of_another_dag_is_waited_for_without_a_slot(airflow: Airflow, worker: Worker, triggerer: None) -> None:
    run, state = airflow.run_dag("deferral_of_a_run", 120)
    log = airflow.log(run, "start")
    assert state == "success", log.text
    assert "Pausing task as DEFERRED. " in log.events
    assert any("finished with allowed state success" in event for event in log.events), log.text
