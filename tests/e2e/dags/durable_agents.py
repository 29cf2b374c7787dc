"""Agents whose retries take up where the attempt before them ended. Each tool call leaves a line in a ledger."""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.ai.durable import AirflowDurability
from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG, task

AGAIN = {"queue": "agents", "retries": 2, "retry_delay": timedelta(seconds=1)}

with DAG(dag_id="durable_operator", schedule=None):
    AgentOperator(
        task_id="ask",
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:durable",
        prompt="Write three lines.",
        durable=True,
        usage_limits={"request_limit": 6},
        toolsets=[SQLToolset(db_conn_id="ledger", allow_writes=True)],
        **AGAIN,
    )

with DAG(dag_id="durable_in_python", schedule=None):

    @task(**AGAIN)
    def write() -> str:
        agent = PydanticAIHook("pydanticai_default", model_id="openai-chat:durable").create_agent(
            name="writer",
            instructions="Write.",
            toolsets=[SQLToolset(db_conn_id="ledger", allow_writes=True)],
            capabilities=[AirflowDurability()],
        )
        return agent.run_sync("Write three lines.").output

    write()
