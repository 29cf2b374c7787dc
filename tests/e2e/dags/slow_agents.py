"""Agents that take long enough to be disturbed. One Dag for each queue that a test's own worker serves."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG


def ask(queue: str) -> None:
    AgentOperator(
        task_id="ask",
        queue=queue,
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:slow",
        prompt="Take your time.",
        toolsets=[SQLToolset(db_conn_id="shop")],
    )


with DAG(dag_id="slow_agents", schedule=None):
    ask("agents")

with DAG(dag_id="slow_drain", schedule=None):
    ask("drain")
