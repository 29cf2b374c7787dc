"""The connections of this Dag are stored in Airflow's database and nowhere else."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="database_connection", schedule=None):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="model_in_database",
        prompt="How many customers are there? The house style is: {{ var.value.house_style }}.",
        toolsets=[SQLToolset(db_conn_id="shop_in_database", allowed_tables=["customers"])],
    )
