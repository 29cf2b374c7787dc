"""The toolsets of the provider's documentation as it writes them, where no example Dag has them already."""

import logging

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.datafusion import DataFusionToolset
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.providers.common.ai.toolsets.logging import LoggingToolset
from airflow.providers.common.ai.toolsets.mcp import MCPToolset
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.providers.common.sql.config import DataSourceConfig
from airflow.providers.http.hooks.http import HttpHook
from airflow.sdk import DAG

my_logger = logging.getLogger("my.toolsets")

http_hook = HttpHook(http_conn_id="my_api")
sql_toolset = SQLToolset(db_conn_id="my_database")

TOOLSETS = {
    "hook": HookToolset(http_hook, allowed_methods=["run"], tool_name_prefix="http_"),
    "several_schemas": SQLToolset(
        db_conn_id="snowflake_hq",
        allowed_tables=["MODEL_ASTRO.DEPLOYMENT_IMAGE_DETAILS", "MODEL_CRM.SF_ASTRO_ORGS"],
    ),
    "files": DataFusionToolset(
        datasource_configs=[
            DataSourceConfig(
                conn_id="aws_default", table_name="sales", uri="s3://my-bucket/data/sales/", format="parquet"
            ),
            DataSourceConfig(
                conn_id="aws_default", table_name="returns", uri="s3://my-bucket/data/returns/", format="csv"
            ),
        ],
        max_rows=100,
    ),
    "logged": LoggingToolset(wrapped=sql_toolset, logger=my_logger),
    "mcp": MCPToolset(mcp_conn_id="my_mcp_server", tool_prefix="weather"),
}

with DAG(dag_id="documented_toolsets", schedule=None):
    for name, toolset in TOOLSETS.items():
        AgentOperator(
            task_id=name, prompt=f"Documented: {name}", llm_conn_id="pydanticai_default", toolsets=[toolset]
        )
