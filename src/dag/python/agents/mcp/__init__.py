"""MCP servers of an agent: the worker speaks to them."""

from updraft_lazy import lazy_names

__getattr__, _ = lazy_names(
    __name__,
    {
        "agents.mcp.server": ("MCPServer", "MCPServerSse", "MCPServerStdio", "MCPServerStreamableHttp"),
        "agents.mcp.tools": ("create_static_tool_filter",),
    },
    fallback=True,
)
