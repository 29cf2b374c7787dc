"""Clients of MCP servers."""

from updraft_lazy import lazy_names

_TRANSPORTS = (
    "NodeStdioTransport",
    "NpxStdioTransport",
    "PythonStdioTransport",
    "SSETransport",
    "StdioTransport",
    "StreamableHttpTransport",
    "UvxStdioTransport",
)

__getattr__, __all__ = lazy_names(
    __name__,
    {"fastmcp.client.client": ("Client",), "fastmcp.client.transports": _TRANSPORTS},
    fallback=True,
)
