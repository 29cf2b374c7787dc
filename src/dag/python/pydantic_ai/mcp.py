"""MCP servers as toolsets."""

from pydantic_ai.toolsets.abstract import AbstractToolset


class MCPToolset(AbstractToolset):
    """The tools of an MCP server."""

    def __init__(self, client, *, id=None, **kwargs):
        self.client = client
        self._id = id
        self._settings = kwargs

    @property
    def id(self):
        """The name of the toolset."""
        return self._id


class MCPServerStdio(MCPToolset):
    """A server that is started as a command."""

    def __init__(self, command, args=(), **kwargs):
        super().__init__((command, *args), **kwargs)


class MCPServerStreamableHTTP(MCPToolset):
    """A server behind an address."""

    def __init__(self, url, **kwargs):
        super().__init__(url, **kwargs)


MCPServerHTTP = MCPServerSSE = MCPServerStreamableHTTP
