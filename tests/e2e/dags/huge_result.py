"""A tool result of 50 MB."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="huge_result", schedule=None):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:greedy",
        prompt="Fetch everything.",
        toolsets=[SQLToolset(db_conn_id="shop", max_result_bytes=100_000_000)],
    )
