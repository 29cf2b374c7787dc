"""Two agents look at the shop from two sides in a task group; a third reads both answers and writes the review."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG, TaskGroup

QUESTIONS = {
    "customers": "Which customers placed their first order in the seven days before {{ ds }}?",
    "products": "Which product sold most in the seven days before {{ ds }}?",
}

with DAG(
    dag_id="weekly_review",
    schedule=None,
    catchup=False,
    default_args={"queue": "agents", "llm_conn_id": "pydanticai_default"},
    tags=["example"],
):
    with TaskGroup("look_at") as look_at:
        for name, question in QUESTIONS.items():
            AgentOperator(
                task_id=name,
                prompt=question,
                toolsets=[SQLToolset(db_conn_id="shop", allowed_tables=["customers", "orders", "products"])],
            )

    review = AgentOperator(
        task_id="review",
        prompt=(
            "Write the weekly review of {{ ds }} in two sentences.\n"
            "Customers: {{ ti.xcom_pull(task_ids='look_at.customers') }}\n"
            "Products: {{ ti.xcom_pull(task_ids='look_at.products') }}"
        ),
    )

    look_at >> review
