"""`MCPToolset`: the tools of an MCP server."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset


class MCPToolset(AirflowToolset):
    """Exposes the tools of the server behind a connection."""

    agent_template_fields = ("_mcp_conn_id",)

    def __init__(self, mcp_conn_id, *, tool_prefix=None, token_provider=None, env_provider=None):
        self._mcp_conn_id = mcp_conn_id
        self._tool_prefix = tool_prefix
        self._token_provider = token_provider
        self._env_provider = env_provider

    @property
    def id(self):
        """`mcp-` and the connection."""
        return f"mcp-{self._mcp_conn_id}"
