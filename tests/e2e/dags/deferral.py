"""Tasks that leave their slot to wait for a trigger."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import DAG, BaseOperator, task

DEFAULTS = {"queue": "agents"}


class WaitTwice(BaseOperator):
    """Defers, and defers again when it goes on."""

    def execute(self, context):
        moment = datetime.now(tz=timezone.utc) + timedelta(seconds=1)
        self.defer(
            trigger=DateTimeTrigger(moment=moment),
            method_name="second",
            kwargs={"since": moment, "numbers": (1, 2)},
            timeout=timedelta(minutes=5),
        )

    def second(self, context, event=None, since=None, numbers=None):
        assert event == since, (event, since)
        moment = datetime.now(tz=timezone.utc) + timedelta(seconds=1)
        self.defer(trigger=DateTimeTrigger(moment=moment), method_name="last", kwargs={"numbers": numbers})

    def last(self, context, event=None, numbers=None):
        return {"numbers": list(numbers), "waited": (event - context["ti"].start_date).total_seconds() > 1}


class WaitForFile(BaseOperator):
    """Waits for what does not come."""

    def execute(self, context):
        from airflow.providers.standard.triggers.file import FileTrigger

        self.defer(
            trigger=FileTrigger(filepath="/nonexistent/file", poke_interval=1.0),
            method_name="never",
            timeout=timedelta(seconds=2),
        )

    def never(self, context, event=None):
        raise AssertionError("the file is not there")


with DAG(dag_id="deferral", schedule=None, default_args=DEFAULTS):
    WaitTwice(task_id="wait_twice")
    WaitForFile(task_id="times_out")
    TimeDeltaSensor(task_id="sensor", delta=timedelta(seconds=1), deferrable=True)

with DAG(dag_id="deferral_of_a_run", schedule=None, default_args=DEFAULTS):
    TriggerDagRunOperator(
        task_id="start",
        trigger_dag_id="deferral_started",
        wait_for_completion=True,
        deferrable=True,
        poke_interval=1,
    )

with DAG(dag_id="deferral_started", schedule=None, default_args=DEFAULTS):

    @task
    def work() -> str:
        return "done"

    work()
