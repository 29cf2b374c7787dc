"""Sound here. The tests replace the worker's copy with what a worker must survive."""

from __future__ import annotations

from airflow.sdk import DAG, task

with DAG(dag_id="spoiled", schedule=None):

    @task(queue="agents")
    def work() -> str:
        return "well"

    work()
