"""Tasks for the tests of faults: many small agents, and a task that does not let itself be ended."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, task

with DAG(dag_id="faults_many", schedule=None):

    @task
    def numbers(count: int) -> list[str]:
        return [f"Question {number}?" for number in range(int(count))]

    AgentOperator.partial(
        task_id="ask",
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:faults",
        toolsets=[SQLToolset(db_conn_id="shop")],
    ).expand(prompt=numbers("{{ dag_run.conf['count'] }}"))

with DAG(dag_id="faults_stubborn", schedule=None):
    BashOperator(
        task_id="hold_out",
        bash_command="""
            trap '' TERM INT HUP
            setsid sh -c "trap '' TERM; while true; do sleep 1; done" </dev/null >/dev/null 2>&1 &
            (while true; do sleep 1; done) &
            echo holding out
            while true; do sleep 1; done
        """,
    )

with DAG(dag_id="faults_wordy", schedule=None):

    @task
    def say_much() -> int:
        for number in range(2000):
            print(f"line {number} " + "x" * 100)
        return 2000

    say_much()
