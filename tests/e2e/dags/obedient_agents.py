"""Agents on database servers. One of them does what the rows that it reads tell it to."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="obedient_agents", schedule=None):
    for kind in ("postgres", "mysql"):
        AgentOperator(
            task_id=f"ask_{kind}",
            queue="agents",
            llm_conn_id="pydanticai_default",
            model_id=f"openai-chat:obedient-{kind}",
            prompt="What do the notes of the orders say?",
            toolsets=[SQLToolset(db_conn_id=f"harbour_{kind}", allowed_tables=["orders"], max_retries=50)],
        )
