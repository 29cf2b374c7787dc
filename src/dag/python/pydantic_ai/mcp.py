"""MCP servers as toolsets. The worker talks to the servers: these classes say how they are reached."""

from pydantic_ai.toolsets.abstract import AbstractToolset

_UNSET = object()

# What is given only to be called, or is an object of a library that is not here.
_FOREIGN = (
    "process_tool_call",
    "sampling_model",
    "sampling_handler",
    "elicitation_handler",
    "elicitation_callback",
    "log_handler",
    "progress_handler",
    "message_handler",
    "http_client",
    "include_return_schema",
    "roots",
)


class MCPToolset(AbstractToolset):
    """The tools of an MCP server."""

    def __init__(
        self,
        client,
        *,
        id=None,
        max_retries=None,
        tool_error_behavior="retry",
        process_tool_call=None,
        prefer_tasks=True,
        cache_tools=True,
        cache_resources=True,
        cache_prompts=True,
        include_instructions=False,
        include_return_schema=None,
        sampling_model=None,
        sampling_handler=None,
        elicitation_handler=None,
        log_handler=None,
        log_level=None,
        progress_handler=None,
        message_handler=None,
        client_info=None,
        init_timeout=_UNSET,
        read_timeout=_UNSET,
        roots=None,
        auth=None,
        verify=None,
        headers=None,
        http_client=None,
    ):
        given = {
            "sampling_handler": sampling_handler,
            "sampling_model": sampling_model,
            "elicitation_handler": elicitation_handler,
            "log_handler": log_handler,
            "progress_handler": progress_handler,
            "message_handler": message_handler,
            "client_info": client_info,
            "roots": roots,
            "auth": auth,
            "verify": verify,
            "headers": headers,
            "http_client": http_client,
            "init_timeout": None if init_timeout is _UNSET else (init_timeout,),
            "read_timeout": None if read_timeout is _UNSET else (read_timeout,),
        }
        _check(client, [name for name, value in given.items() if value is not None])
        self.client = client
        self.max_retries = max_retries
        self.tool_error_behavior = tool_error_behavior
        self.cache_tools = cache_tools
        self.include_instructions = include_instructions
        self._settings = {
            "process_tool_call": process_tool_call,
            "include_return_schema": include_return_schema or None,
            "sampling_model": sampling_model,
            "sampling_handler": sampling_handler,
            "elicitation_handler": elicitation_handler,
            "log_handler": log_handler,
            "progress_handler": progress_handler,
            "message_handler": message_handler,
            "http_client": http_client,
            "roots": roots,
            "init_timeout": 5 if init_timeout is _UNSET else init_timeout,
            "read_timeout": 300 if read_timeout is _UNSET else read_timeout,
            "auth": auth,
            "verify": verify,
            "headers": headers,
        }
        self._id = id

    @property
    def id(self):
        """The name of the toolset: the one that it was given, or the host of its server."""
        if self._id is not None:
            return self._id
        try:
            url = self._server()["http"]["url"]
        except (KeyError, TypeError, _NotHere):
            return None
        from urllib.parse import urlparse

        host = urlparse(url).hostname
        return host.replace(":", "-") if host else None

    @id.setter
    def id(self, value):
        self._id = value

    def _server(self):
        """How the server is reached, as plain data."""
        settings = self._settings
        for name in _FOREIGN:
            if settings.get(name) is not None:
                raise _NotHere(f"has {name}, which only pydantic-ai's own client can use")
        reached = _reached(self.client, settings)
        return {
            **reached,
            "init_timeout": reached.get("init_timeout", settings["init_timeout"]),
            "read_timeout": reached.get("read_timeout", settings["read_timeout"]),
        }

    def _updraft_spec(self, describe):
        try:
            server = self._server()
        except _NotHere as reason:
            return {"unsupported": {"class": type(self).__name__, "module": __name__, "reason": str(reason)}}
        spec = {
            "mcp_server": {
                "class": type(self).__name__,
                "id": self.id,
                "server": server,
                "max_retries": self.max_retries,
                "tool_error_behavior": self.tool_error_behavior,
                "include_instructions": bool(self.include_instructions),
                "cache_tools": bool(self.cache_tools),
            }
        }
        prefix = getattr(self, "tool_prefix", None)
        return {"prefixed": {"prefix": prefix, "wrapped": spec}} if prefix else spec


class _NotHere(Exception):
    """Says what there is no counterpart for."""


def _check(client, given):
    """Refuses arguments that the client has no use for, as pydantic-ai does."""
    if _is_fastmcp_client(client):
        if given:
            raise ValueError(
                f"{', '.join(repr(name) for name in given)} can't be given beside a `fastmcp.Client`: set that on the client."
            )
        return
    if "sampling_model" in given and "sampling_handler" in given:
        raise ValueError("`sampling_model` and `sampling_handler` are mutually exclusive.")
    if "headers" in given and "http_client" in given:
        raise ValueError(
            "`headers` and `http_client` are mutually exclusive: set the headers on the `http_client` instead."
        )
    is_url = isinstance(client, str) and client.startswith(("http://", "https://"))
    only_http = [name for name in given if name in ("auth", "verify", "headers", "http_client")]
    if only_http and not is_url:
        raise ValueError(
            f"{', '.join(repr(name) for name in only_http)} can only be given beside an address: set that on the "
            "transport or the `fastmcp.Client` instead."
        )


def _is_fastmcp_client(client):
    return type(client).__module__ == "fastmcp.client.client"


def _reached(client, settings):
    """The server behind what `MCPToolset` takes as its client."""
    name = type(client).__name__
    if _is_fastmcp_client(client):
        foreign = [key for key in client.settings if key not in ("timeout", "init_timeout")]
        if foreign:
            raise _NotHere(f"is made of a fastmcp.Client with {foreign[0]}")
        # It has no time-outs but its own.
        return {
            **_reached(client.transport, settings),
            "init_timeout": _seconds(client.settings.get("init_timeout")),
            "read_timeout": _seconds(client.settings.get("timeout")),
        }
    if type(client).__module__ == "fastmcp.client.transports":
        if hasattr(client, "url"):
            if client.httpx_client_factory is not None:
                raise _NotHere(f"is made of a {name} with httpx_client_factory")
            return _http(client.url, client.__dict__, sse=name == "SSETransport")
        return _stdio(client.command, client.args, client.env, client.cwd)
    if hasattr(client, "__fspath__"):
        client = client.__fspath__()
    if not isinstance(client, str):
        origin = getattr(client, "_unavailable_origin", None)
        raise _NotHere(f"is made of {origin[1] if origin else name}, and not of an address, a command or a script")
    if client.startswith(("http://", "https://")):
        return _http(client, settings)
    if client.endswith(".py"):
        return _stdio("python3", [client], None, None)
    if client.endswith(".js"):
        return _stdio("node", [client], None, None)
    raise ValueError(f"Could not infer a valid transport from: {client}")


def _seconds(value):
    return value.total_seconds() if hasattr(value, "total_seconds") else value


def _http(url, settings, sse=None):
    import re
    from urllib.parse import urlparse

    url = str(url)
    headers = settings.get("headers")
    auth = settings.get("auth")
    if callable(headers):
        raise _NotHere("has a function for its headers")
    if auth == "oauth" or auth is not None and not isinstance(auth, str):
        raise _NotHere("signs in with OAuth or an object of its own, and not with a token")
    if settings.get("verify") not in (None, True):
        raise _NotHere("has verify: certificates are checked against the system's")
    headers = {str(name): str(value) for name, value in (headers or {}).items()}
    if auth is not None:
        headers["Authorization"] = f"Bearer {auth}"
    if sse is None:
        sse = re.search(r"/sse(/|\?|&|$)", urlparse(url).path) is not None
    silence = _silence(settings, headers or auth is not None or settings.get("verify") is not None) if sse else None
    return {"http": {"url": url, "headers": headers, "sse": bool(sse), "sse_read_timeout": silence}}


def _silence(settings, explicit):
    """How long the older protocol's stream may be silent: of an address with settings, as long as an answer may take."""
    if "sse_read_timeout" in settings:
        seconds = settings["sse_read_timeout"]
    else:
        seconds = settings["read_timeout"] if explicit else None
    return 300 if seconds is None else _seconds(seconds)


def _stdio(command, args, env, cwd):
    return {
        "stdio": {
            "command": str(command),
            "args": [str(arg) for arg in args or ()],
            "env": {str(name): str(value) for name, value in (env or {}).items()},
            "cwd": str(cwd) if cwd is not None else None,
        }
    }


class _MCPServer(MCPToolset):
    """The classes that pydantic-ai had before version 2, with the defaults that they had."""

    def __init__(self, client, *, tool_prefix, timeout, read_timeout, max_retries, settings):
        allow_sampling = settings.pop("allow_sampling", True)
        for name in ("sse_read_timeout", "elicitation_callback"):
            if name in settings and settings[name] is not None:
                if name == "elicitation_callback":
                    settings["elicitation_handler"] = settings[name]
                else:
                    read_timeout = _seconds(settings[name])
            settings.pop(name, None)
        if not allow_sampling:
            settings.pop("sampling_model", None)
        # These classes take it beside the address.
        http_client = settings.pop("http_client", None)
        super().__init__(
            client, init_timeout=timeout, read_timeout=read_timeout, max_retries=max_retries, **settings
        )
        self._settings["http_client"] = http_client
        self.tool_prefix = tool_prefix


class MCPServerStdio(_MCPServer):
    """A server that is started as a command."""

    def __init__(
        self,
        command,
        args=(),
        *,
        env=None,
        cwd=None,
        tool_prefix=None,
        timeout=5,
        read_timeout=300,
        max_retries=1,
        **settings,
    ):
        from fastmcp.client.transports import StdioTransport

        self.command = command
        self.args = list(args)
        self.env = env
        self.cwd = cwd
        super().__init__(
            StdioTransport(command, list(args), env, cwd),
            tool_prefix=tool_prefix,
            timeout=timeout,
            read_timeout=read_timeout,
            max_retries=max_retries,
            settings=settings,
        )


class MCPServerStreamableHTTP(_MCPServer):
    """A server behind an address."""

    _sse = False

    def __init__(
        self,
        url,
        *,
        headers=None,
        tool_prefix=None,
        timeout=5,
        read_timeout=300,
        max_retries=1,
        **settings,
    ):
        from fastmcp.client.transports import SSETransport, StreamableHttpTransport

        self.url = url
        self.headers = headers
        if self._sse:
            silence = settings.get("sse_read_timeout")
            client = SSETransport(url, headers, None, read_timeout if silence is None else silence)
        else:
            client = StreamableHttpTransport(url, headers)
        super().__init__(
            client,
            tool_prefix=tool_prefix,
            timeout=timeout,
            read_timeout=read_timeout,
            max_retries=max_retries,
            settings=settings,
        )


class MCPServerSSE(MCPServerStreamableHTTP):
    """A server behind an address, of the older protocol."""

    _sse = True


class MCPServerHTTP(MCPServerSSE):
    """The first name of `MCPServerSSE`."""


def load_mcp_toolsets(config_path):
    """The servers of a file with `mcpServers`, each with its name before its tools' names."""
    import json
    from pathlib import Path

    path = Path(config_path)
    if not path.exists():
        raise FileNotFoundError(f"Config file {config_path} not found")
    config = _expanded(json.loads(path.read_text()))
    toolsets = []
    for name, server in config["mcpServers"].items():
        if "command" in server:
            from fastmcp.client.transports import StdioTransport

            client = StdioTransport(
                server["command"], list(server.get("args") or ()), server.get("env"), server.get("cwd")
            )
            toolset = MCPToolset(client, id=name)
        elif "url" in server:
            toolset = MCPToolset(server["url"], id=name, headers=server.get("headers"))
        else:
            raise ValueError(f"MCP server config {name!r} must have either `command` or `url`")
        toolsets.append(toolset.prefixed(name))
    return toolsets


def load_mcp_servers(config_path):
    """The servers of a file with `mcpServers`; the name it had before version 2."""
    return load_mcp_toolsets(config_path)


def _expanded(value):
    """`${NAME}` and `${NAME:-default}` stand for variables of the environment."""
    import os
    import re

    if isinstance(value, dict):
        return {key: _expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if not isinstance(value, str):
        return value

    def found(match):
        name, default = match.group(1), match.group(3)
        if name in os.environ:
            return os.environ[name]
        if match.group(2) is None:
            raise ValueError(f"Environment variable ${{{name}}} is not defined")
        return default or ""

    return re.sub(r"\$\{([^}:]+)(:-([^}]*))?\}", found, value)
