"""`MCPHook`: an MCP server."""

from airflow.sdk.bases.hook import BaseHook
from updraft_hold import hold


class MCPHook(BaseHook):
    """Knows how to reach an MCP server; the worker talks to it."""

    conn_name_attr = "mcp_conn_id"
    default_conn_name = "mcp_default"
    conn_type = "mcp"
    hook_name = "MCP Server"

    def __init__(
        self, mcp_conn_id="mcp_default", tool_prefix=None, *, token_provider=None, env_provider=None, **kwargs
    ):
        super().__init__(**kwargs)
        hold(self, locals())
        self._server = None

    def get_conn(self):
        """The server as a toolset; the same one each time. Its connection is read when an agent opens it."""
        if self._server is None:
            from airflow.providers.common.ai.toolsets.mcp import MCPToolset

            self._server = MCPToolset(
                self.mcp_conn_id,
                tool_prefix=self.tool_prefix,
                token_provider=self.token_provider,
                env_provider=self.env_provider,
            )
        return self._server
