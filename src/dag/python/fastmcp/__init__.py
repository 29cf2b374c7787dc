"""Stand-in for FastMCP: how MCP servers are reached. The worker talks to them; it does not make any."""

from updraft_lazy import lazy_names

__getattr__, __all__ = lazy_names(__name__, {"fastmcp.client.client": ("Client",)}, fallback=True)
