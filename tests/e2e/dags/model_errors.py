"""An agent whose model answers 500 for a while; one retry."""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG

with DAG(dag_id="model_errors", schedule=None):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:unwell",
        prompt="Say hello.",
        retries=1,
        retry_delay=timedelta(seconds=1),
    )
