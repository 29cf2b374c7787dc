"""An agent whose tools are a function, a hook's method and a toolset class of this very file, composed in several ways."""

from __future__ import annotations

import logging
from typing import Any

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.providers.common.ai.toolsets.logging import LoggingToolset
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG, BaseHook, get_current_context
from pydantic_ai import ModelRetry
from pydantic_ai.toolsets import CombinedToolset, FunctionToolset, WrapperToolset

log = logging.getLogger(__name__)


class TideHook(BaseHook):
    """Made-up tides."""

    conn_name_attr = "tide_conn_id"

    def __init__(self, tide_conn_id: str = "tide"):
        super().__init__()
        self.tide_conn_id = tide_conn_id

    def tide(self, port: str, days: int = 1) -> dict[str, Any]:
        """
        Tell the tide at a port.

        :param port: Name of the port.
        :param days: How many days ahead.
        """
        return {"port": port, "days": days, "connection": self.tide_conn_id}


def berth(length: float, boat: str = "unnamed") -> str:
    """Find a berth.

    Args:
        length: Length of the boat in metres.
        boat: Name of the boat.
    """
    if length > 100:
        raise ModelRetry("no berth is longer than 100 m")
    return f"{boat}: berth {int(length // 10)} of {get_current_context()['ti'].task_id}"


class Shouting(WrapperToolset):
    """Answers in capitals."""

    async def call_tool(self, name, tool_args, ctx, tool):
        result = await super().call_tool(name, tool_args, ctx, tool)
        return result.upper() if isinstance(result, str) else result


with DAG(dag_id="own_toolsets", schedule=None, catchup=False):
    functions = FunctionToolset(tools=[berth])
    tides = HookToolset(TideHook("{{ task.task_id }}_tide"), allowed_methods=["tide"], tool_prefix="sea")
    shop = SQLToolset("shop", allowed_tables=["customers"]).filtered(lambda ctx, tool: tool.name == "query")
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        prompt="Find a berth.",
        agent_params={"retries": 2},
        toolsets=[
            CombinedToolset([functions.renamed({"find_berth": "berth"}), tides]),
            LoggingToolset(wrapped=Shouting(shop.prefixed("shop")), logger=log),
        ],
    )
