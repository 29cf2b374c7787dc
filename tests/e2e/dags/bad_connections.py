"""Connections that can't be read, or are not there."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG

with DAG(dag_id="bad_connections", schedule=None):
    for name in ("bad_uri", "bad_json", "not_there"):
        AgentOperator(
            task_id=name,
            queue="agents",
            llm_conn_id=name,
            model_id="openai-chat:never-asked",
            prompt="Nobody will answer this.",
        )
