"""An agent over PostgreSQL. Its connections are stored in Airflow's database and nowhere else."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="postgres_harbour", schedule=None):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="harbour_model",
        agent_params={"retries": 5},
        prompt="Which customer has paid the most, and what lies in the depot?",
        toolsets=[SQLToolset(db_conn_id="harbour", allowed_tables=["customers", "orders", "depot.stock"])],
    )
