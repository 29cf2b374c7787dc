"""An agent looks through a folder of files and says which delivery went wrong, and why.

The files lie in data/deliveries; a bucket would do as well: `ObjectStorageToolset("s3://my_conn@bucket/deliveries")`. Needs
one connection: `pydanticai_default` (the model).
"""

from __future__ import annotations

from pathlib import Path

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.object_storage import ObjectStorageToolset
from airflow.sdk import DAG

DELIVERIES = Path(__file__).parent / "data" / "deliveries"

with DAG(dag_id="delivery_notes", schedule=None, catchup=False, tags=["example"]):
    AgentOperator(
        task_id="explain",
        queue="agents",
        llm_conn_id="pydanticai_default",
        system_prompt="You read the files of a delivery service. Look around before you answer.",
        prompt="Which parcels of {{ params.month }} did not arrive, and what do the drivers say about them?",
        toolsets=[ObjectStorageToolset(f"file://{DELIVERIES}", max_files=50)],
        params={"month": "2026-11"},
    )
