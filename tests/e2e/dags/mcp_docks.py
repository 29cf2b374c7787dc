"""An agent with the tools of MCP servers: one over a template and with a secret from another connection, one filtered."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.mcp import MCPToolset
from airflow.sdk import DAG, BaseHook


def vault() -> dict[str, str]:
    return {"DOCK_TOKEN": BaseHook.get_connection("dock_vault").password}


with DAG(dag_id="mcp_docks", schedule=None):
    AgentOperator(
        task_id="ask",
        llm_conn_id="pydanticai_default",
        prompt="Which ship lies at the berth?",
        agent_params={"retries": 3},
        toolsets=[
            MCPToolset("{{ 'dock' }}", tool_prefix="north", env_provider=vault),
            MCPToolset("dock").filtered(lambda ctx, tool: tool.name == "wait"),
        ],
    )
