"""MCP servers: the SDK's classes over the worker's own clients."""

from agents.exceptions import UserError

class MCPServer:
    """A server whose tools an agent has."""

    def __init__(
        self,
        params,
        cache_tools_list=False,
        name=None,
        client_session_timeout_seconds=5,
        tool_filter=None,
        use_structured_content=False,
        max_retry_attempts=0,
        retry_backoff_seconds_base=1.0,
        **more,
    ):
        from updraft_unavailable import refuse

        for given, value in more.items():
            if value is not None:
                refuse(f"{type(self).__name__}({given}=...)")
        self.params = dict(params)
        self.name = name or self._default_name()
        self.cache_tools_list = cache_tools_list
        self.tool_filter = tool_filter
        self._timeout = client_session_timeout_seconds
        self._toolset = None
        self._tools = None

    def _default_name(self):
        raise NotImplementedError

    def _made(self, mcp):
        raise NotImplementedError

    async def connect(self):
        """Connects to the server."""
        import pydantic_ai.mcp
        from updraft_toolsets import native

        if self._toolset is None:
            toolset = self._made(pydantic_ai.mcp)
            native(toolset, "open")
            self._toolset = toolset

    async def cleanup(self):
        """Ends the connection."""
        from updraft_toolsets import native

        toolset, self._toolset = self._toolset, None
        if toolset is not None:
            native(toolset, "close")

    async def __aenter__(self):
        await self.connect()
        return self

    async def __aexit__(self, *exception):
        await self.cleanup()

    def _connected(self):
        if self._toolset is None:
            raise UserError("Server not initialized. Make sure you call `connect()` first.")
        return self._toolset

    async def list_tools(self, run_context=None, agent=None):
        """The tools, as the worker describes them."""
        from updraft_toolsets import native

        toolset = self._connected()
        if self._tools is None or not self.cache_tools_list:
            self._tools = native(toolset, "tools")
        return self._tools

    async def call_tool(self, tool_name, arguments, meta=None):
        """What a tool gives."""
        from updraft_toolsets import native

        return native(self._connected(), "call", name=tool_name, args=arguments or {})

    def invalidate_tools_cache(self):
        """The tools are asked for anew."""
        self._tools = None


class MCPServerStdio(MCPServer):
    """A server that is started as a command."""

    def _default_name(self):
        return f"stdio: {self.params['command']}"

    def _made(self, mcp):
        given = self.params
        return mcp.MCPServerStdio(
            given["command"],
            given.get("args") or (),
            env=given.get("env"),
            cwd=given.get("cwd"),
            timeout=self._timeout or 5,
        )


class _Remote(MCPServer):
    def _of(self, cls):
        given = {name: value for name, value in self.params.items() if value is not None}
        url = given.pop("url")
        headers = given.pop("headers", None)
        timeout = given.pop("timeout", 5)
        given.pop("terminate_on_close", None)
        read_timeout = given.pop("sse_read_timeout", 300)
        if given:
            from updraft_unavailable import refuse

            refuse(f"{type(self).__name__} with {', '.join(given)} among its params")
        return cls(url, headers=headers, timeout=_seconds(timeout), read_timeout=_seconds(read_timeout))


def _seconds(value):
    return value.total_seconds() if hasattr(value, "total_seconds") else value


class MCPServerSse(_Remote):
    """A server behind an address, of the older protocol."""

    def _default_name(self):
        return f"sse: {self.params['url']}"

    def _made(self, mcp):
        return self._of(mcp.MCPServerSSE)


class MCPServerStreamableHttp(_Remote):
    """A server behind an address."""

    def _default_name(self):
        return f"streamable_http: {self.params['url']}"

    def _made(self, mcp):
        return self._of(mcp.MCPServerStreamableHTTP)
