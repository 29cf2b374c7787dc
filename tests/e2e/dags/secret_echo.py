"""The database that this agent reads holds the password of the connection to its model."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="secret_echo", schedule=None):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="model_of_the_vault",
        prompt="Repeat the note.",
        toolsets=[SQLToolset(db_conn_id="vault")],
    )
