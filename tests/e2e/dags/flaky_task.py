"""Fails on its first try, succeeds on its second."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, get_current_context, task

with DAG(dag_id="flaky_task", schedule=None):

    @task(queue="agents", retries=2, retry_delay=timedelta(seconds=4))
    def flaky() -> str:
        try_number = get_current_context()["ti"].try_number
        if try_number == 1:
            raise ValueError("not on the first try")
        return f"done on try {try_number}"

    flaky()
