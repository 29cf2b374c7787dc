"""`MCPToolset`: the tools of an MCP server."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset
from updraft_hold import hold


class MCPToolset(AirflowToolset):
    """Exposes the tools of the server behind a connection."""

    agent_template_fields = ("_mcp_conn_id",)

    def __init__(self, mcp_conn_id, *, tool_prefix=None, token_provider=None, env_provider=None):
        hold(self, locals(), "_")

    @property
    def id(self):
        """`mcp-` and the connection."""
        return f"mcp-{self._mcp_conn_id}"

    def airflow_tools(self):
        """Not for other frameworks: they have MCP clients of their own."""
        raise NotImplementedError(
            "MCPToolset works in Pydantic AI agents and through the LangChain bridge, not through the framework-neutral "
            "tools. Connect your framework's own MCP client to the server instead, such as Strands' MCPClient or ADK's "
            "McpToolset."
        )

    def _updraft_spec(self, describe):
        from updraft_values import argument, keep

        providers = (self._token_provider, self._env_provider)
        token, env = (None if provider is None else keep(provider) for provider in providers)
        return {
            "mcp": {
                "mcp_conn_id": argument(self._mcp_conn_id),
                "tool_prefix": self._tool_prefix or None,
                "token_provider": token,
                "env_provider": env,
            }
        }
