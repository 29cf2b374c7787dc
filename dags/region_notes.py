"""One agent per sales region: eight mapped task instances of one AgentOperator."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

REGIONS = ["North", "South", "East", "West", "Coast", "Highlands", "Islands", "Capital"]

with DAG(dag_id="region_notes", schedule=None, catchup=False, tags=["example"]):
    AgentOperator.partial(
        task_id="note",
        queue="agents",
        llm_conn_id="pydanticai_default",
        system_prompt="Write one sentence for the sales manager of the region. Answer from the database only.",
        toolsets=[SQLToolset(db_conn_id="shop", allowed_tables=["customers", "orders", "products"])],
    ).expand(prompt=[f"How much revenue came from the region {region}?" for region in REGIONS])
