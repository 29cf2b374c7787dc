"""Return values that JSON does not know."""

from __future__ import annotations

import datetime

from airflow.sdk import DAG, task

with DAG(dag_id="xcom_values", schedule=None, default_args={"queue": "agents"}):

    @task
    def not_a_number() -> float:
        return float("nan")

    @task
    def a_set() -> set[int]:
        return {1}

    @task
    def a_date() -> datetime.date:
        return datetime.date(2026, 1, 2)

    @task
    def a_datetime() -> datetime.datetime:
        return datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)

    @task
    def a_tuple() -> tuple[int, str]:
        return (1, "two")

    @task
    def an_object() -> object:
        class Opaque:
            pass

        return Opaque()

    not_a_number()
    a_set()
    a_date()
    a_datetime()
    a_tuple()
    an_object()
