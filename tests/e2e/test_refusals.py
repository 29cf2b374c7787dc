"""Servers that refuse a worker: each ends in a message that says what to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.airflow import Airflow
from harness.worker import Worker

pytestmark = pytest.mark.updraft_only

REFUSED = {
    "another_version": (["--airflow-version", "3.3.1"], {}, ["3.3.1", "--airflow-version"]),
    "another_secret": ([], {"AIRFLOW__API_AUTH__JWT_SECRET": "made-up-and-not-the-servers" * 4}, ["jwt_secret"]),
    "a_name_that_is_taken": (["--worker-name", "agents-1"], {}, ["agents-1", "--worker-name"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_worker_that_is_refused_ends_and_says_what_to_change(
    airflow: Airflow, worker: Worker, scratch: Path, worker_dags: Path, name: str
) -> None:
    arguments, env, said = REFUSED[name]
    refused = Worker(
        airflow, scratch / f"worker-{name}", worker_dags, f"refused-{name}", "refused", env=env, arguments=arguments
    )
    try:
        assert refused.process.wait(30) != 0
        log = refused.process.log.read_text()
        for text in said:
            assert text in log, log
        assert "made-up" not in log
    finally:
        refused.stop()
    assert worker.process.running()
