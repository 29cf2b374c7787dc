"""An agent that asks for a table it may not see, and is told so."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="refused_query", schedule=None):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:curious",
        prompt="What does the shop pay its staff?",
        toolsets=[SQLToolset(db_conn_id="shop", allowed_tables=["customers"])],
    )
