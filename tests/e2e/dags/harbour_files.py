"""An agent that asks about files beside this one."""

from __future__ import annotations

from pathlib import Path

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.datafusion import DataFusionToolset
from airflow.providers.common.sql.config import DataSourceConfig
from airflow.sdk import DAG

FILES = Path(__file__).parent / "harbour_files"

with DAG(dag_id="harbour_files", schedule=None, catchup=False):
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        prompt="How much was landed where?",
        toolsets=[
            DataFusionToolset(
                datasource_configs=[
                    DataSourceConfig(
                        conn_id="not_looked_up",
                        table_name="ports",
                        uri=f"file://{FILES}/ports.csv",
                        format="csv",
                    ),
                    DataSourceConfig(
                        conn_id="not_looked_up",
                        table_name="landings",
                        uri=f"file://{FILES}/landings.csv",
                        format="csv",
                        options={"delimiter": ";"},
                    ),
                ],
                max_rows=2,
            )
        ],
    )
