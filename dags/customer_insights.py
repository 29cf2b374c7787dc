"""An agent answers a question about customers by querying the shop's database.

The agent may read three tables and nothing else. Runs on Airflow's own workers and on Updraft alike: only the queue
decides. Needs two connections: `pydanticai_default` (the model) and `shop` (the database in data/shop.db).
"""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

with DAG(dag_id="customer_insights", schedule=None, catchup=False, tags=["example"]):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        system_prompt=(
            "You are the analyst of a small mail-order shop. Answer from the database only. "
            "Leave returned orders out of revenue. Name the figures your answer rests on."
        ),
        prompt=(
            "Which three customers brought in the most revenue, "
            "and which of them have not ordered since {{ params.quiet_since }}?"
        ),
        toolsets=[
            SQLToolset(
                db_conn_id="shop",
                allowed_tables=["customers", "orders", "products"],
                max_rows=20,
            )
        ],
        params={"quiet_since": "2026-10-01"},
    )
