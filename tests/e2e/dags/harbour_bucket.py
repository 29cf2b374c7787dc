"""An agent that reads a bucket. The connection is stored in Airflow's database and nowhere else."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.object_storage import ObjectStorageToolset
from airflow.sdk import DAG

with DAG(dag_id="harbour_bucket", schedule=None):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        prompt="What does the note of the day say?",
        toolsets=[ObjectStorageToolset("s3://harbour/notes/", conn_id="harbour_store", max_files=2)],
    )
