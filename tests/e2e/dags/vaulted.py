"""An agent and a task whose connections and variables stand in the worker's secrets backend only."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG, Variable, task

with DAG(dag_id="vaulted", schedule=None):

    @task(queue="vaulted")
    def look() -> int:
        print("the token is", Variable.get("shop_token"))
        return len(Variable.get("shop_token"))

    look() >> AgentOperator(
        task_id="ask",
        queue="vaulted",
        llm_conn_id="vaulted_model",
        prompt="How many orders are there?",
        toolsets=[SQLToolset(db_conn_id="vaulted_shop")],
    )
