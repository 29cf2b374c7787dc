"""One agent for each kind of worker, whose spans are laid side by side."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG


def ask(queue: str) -> None:
    AgentOperator(
        task_id="ask",
        queue=queue,
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:traced",
        prompt="How many customers?",
        system_prompt="Count.",
        agent_params={"model_settings": {"temperature": 0.5, "max_tokens": 500}, "retries": 2},
        toolsets=[SQLToolset(db_conn_id="shop", allowed_tables=["customers"])],
    )


with DAG(dag_id="traced_agents", schedule=None):
    ask("agents")

with DAG(dag_id="traced_python", schedule=None):
    ask("python")
