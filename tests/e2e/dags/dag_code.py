"""Dag code beside a task's own work: callbacks, retry policies, what goes with asset events, branches, sensors."""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Asset, AssetAlias, BaseOperator, Metadata, task
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule

REPORT = Asset("dag_code_report", uri="s3://made-up/report")
SUMMARY = Asset("dag_code_summary", uri="s3://made-up/summary")
FILES = AssetAlias("dag_code_files")


def note(kind: str):
    """A callback that leaves an XCom behind."""

    def callback(context):
        ti = context["ti"]
        error = context.get("exception")
        seen = [kind, ti.task_id, ti.try_number, f"{type(error).__name__}: {error}" if error else None]
        print("callback saw", seen)
        ti.xcom_push(key=kind, value=seen)

    return callback


def broken(context):
    raise ValueError("this callback is broken")


ALL = {
    f"on_{kind}_callback": [broken, note(f"on_{kind}")]
    for kind in ("execute", "success", "failure", "retry", "skipped")
}

with DAG(
    dag_id="dag_code_callbacks",
    schedule=None,
    default_args={"queue": "agents", "retry_delay": timedelta(seconds=1), **ALL},
):

    @task
    def good():
        return 1

    @task
    def skipped():
        from airflow.sdk.exceptions import AirflowSkipException

        raise AirflowSkipException("nothing to do")

    @task(retries=1)
    def bad(ti=None):
        raise RuntimeError(f"try {ti.try_number} failed")

    good()
    skipped()
    bad()
    model = {"llm_conn_id": "pydanticai_default", "model_id": "openai-chat:everyday"}
    AgentOperator(task_id="agent", prompt="Hello.", **model)
    AgentOperator(task_id="limited", prompt="Hello.", usage_limits={"request_limit": 0}, **model)

with DAG(dag_id="dag_code_retry_policy", schedule=None, default_args={"queue": "agents", "retries": 3}):
    policy = ExceptionRetryPolicy(
        rules=[
            RetryRule(KeyError, RetryAction.RETRY, timedelta(seconds=1), reason="it comes and goes"),
            RetryRule("builtins.ValueError", RetryAction.FAIL, reason="it stays wrong"),
        ]
    )

    @task(retry_policy=policy, retry_delay=timedelta(hours=1))
    def flaky(ti=None):
        raise KeyError("first") if ti.try_number == 1 else ValueError("second")

    flaky()

with DAG(dag_id="dag_code_assets", schedule=None, default_args={"queue": "agents"}):

    @task(outlets=[REPORT])
    def write(*, outlet_events):
        outlet_events[REPORT].extra = {"rows": 3}
        outlet_events[REPORT].extra["by"] = "write"

    @task(outlets=[SUMMARY, FILES])
    def summarise(*, outlet_events):
        outlet_events[FILES].add(Asset("dag_code_file_1", uri="s3://made-up/1"), extra={"size": 1})
        yield Metadata(SUMMARY, extra={"words": 12})

    @task(inlets=[REPORT])
    def read(*, inlet_events):
        return [event.extra for event in inlet_events[REPORT].limit(1).ascending(False)]

    write() >> [summarise(), read()]


class Greeting(BaseOperator):
    """An operator of the Dag author's."""

    template_fields = ("greeting",)

    def __init__(self, *, greeting: str, times: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.greeting = greeting
        self.times = times

    def pre_execute(self, context):
        print("before", context["task"].greeting)

    def execute(self, context):
        return " ".join([self.greeting] * self.times)


with DAG(dag_id="dag_code_operators", schedule=None, default_args={"queue": "agents"}):
    polite = Greeting(task_id="polite", greeting="Hello {{ dag.dag_id }}, {{ '%s-%03d' % ('no', 7) }}")
    mapped = Greeting.partial(task_id="mapped", greeting="Hi").expand(times=[1, 2])

    @task.branch
    def choose():
        return ["left", "maybe"]

    @task.short_circuit
    def maybe():
        return False

    @task.sensor(poke_interval=1, mode="reschedule")
    def patient(task_reschedule_count=0):
        return task_reschedule_count > 0

    @task
    def left():
        return "left"

    @task
    def right():
        return "right"

    @task
    def never():
        return "never"

    choose() >> [left(), right(), maybe() >> never()]
    patient()
    polite >> mapped
    TriggerDagRunOperator(
        task_id="start_other",
        trigger_dag_id="dag_code_triggered",
        conf={"from": "{{ run_id }}"},
        wait_for_completion=True,
        poke_interval=1,
    )

with DAG(dag_id="dag_code_triggered", schedule=None, default_args={"queue": "agents"}):

    @task
    def report(dag_run=None):
        return dag_run.conf

    report()
