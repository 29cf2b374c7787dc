"""A Dag whose work is done in Rust: stubs for tasks, and a toolset of `harbour.rs` among an agent's.

On Airflow's server this is a Dag like any other. On the worker, the program of `harbour.rs` takes the place of `updraft`.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import dag, task


@dag(schedule=None, params={"quay": "B"})
def harbour():
    @task.stub(queue="agents")
    def berth(ship: str, nights: int = 1): ...

    @task.stub(queue="agents")
    def invoice(berths: list): ...

    @task.stub(queue="agents", retries=1, retry_delay=timedelta(seconds=1))
    def survey(basin: str): ...

    AgentOperator(
        task_id="pilot",
        queue="agents",
        llm_conn_id="pydanticai_default",
        prompt="When can the Aurora come in on day 12?",
        toolsets=["tides"],
    )
    survey("North")
    invoice(berth.expand(ship=["Aurora", "Borealis"]))


harbour()
