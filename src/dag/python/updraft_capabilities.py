"""What capabilities of agents come to: settings of the model, toolsets, and tools that run at the provider."""

from pydantic_ai import capabilities as known


def resolve(capabilities):
    """`settings`, `native_tools` and `toolsets` of capabilities; `unsupported` names the first that does not run here."""
    found = {"settings": {}, "native_tools": [], "toolsets": [], "unsupported": None}
    for capability in capabilities or ():
        _add(capability, found)
    return found


def _add(capability, found):
    # A class that derives from one of these is the Dag's own and may do anything.
    add = _KINDS.get(type(capability))
    why = _name(capability) if add is None else None
    if why is None and getattr(capability, "defer_loading", False):
        why = f"{_name(capability)}(defer_loading=True)"
    if why is None:
        why = add(capability, found)
    if why is not None and found["unsupported"] is None:
        found["unsupported"] = why


def _name(capability):
    origin = getattr(capability, "_unavailable_origin", None)
    if origin is not None:
        return f"{origin[1].removesuffix('()')} of {origin[0]}"
    return getattr(capability, "__name__", None) or type(capability).__name__


def _thinking(capability, found):
    found["settings"]["thinking"] = capability.effort


def _web_search(capability, found):
    if capability.native is not True:
        return f"WebSearch(native={capability.native!r})"
    if capability.external_web_access is not None:
        return "WebSearch(external_web_access=...)"
    names = ("search_context_size", "user_location", "blocked_domains", "allowed_domains", "max_uses")
    given = {name: getattr(capability, name) for name in names}
    found["native_tools"].append({"web_search": {name: value for name, value in given.items() if value is not None}})
    return None


def _toolset(capability, found):
    found["toolsets"].append(capability.toolset)


def _mcp(capability, found):
    if capability.native is not False:
        return "MCP(native=...)"
    toolset = _mcp_toolset(capability)
    if toolset is None:
        return f"MCP(local={capability.local!r})"
    if capability.allowed_tools is not None:
        allowed = set(capability.allowed_tools)
        toolset = toolset.filtered(lambda ctx, tool: tool.name in allowed)
    prefix = capability.id if capability.tool_prefix is True else capability.tool_prefix
    found["toolsets"].append(toolset.prefixed(prefix) if prefix else toolset)
    return None


def _mcp_toolset(capability):
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.toolsets.abstract import AbstractToolset

    local = capability.local
    if isinstance(local, AbstractToolset):
        return local
    client = capability.url if local in (None, True) else local
    token, headers = capability.authorization_token, capability.headers
    if client is None or client is False or callable(client) or callable(token) or callable(headers):
        return None
    headers = dict(headers or {})
    if token:
        headers["Authorization"] = token
    return MCPToolset(
        client,
        headers=headers or None,
        include_instructions=capability.include_instructions,
        id=capability.id,
    )


def _prefix_tools(capability, found):
    inner = resolve([capability.wrapped])
    found["settings"].update(inner["settings"])
    found["native_tools"].extend(inner["native_tools"])
    found["toolsets"].extend(toolset.prefixed(capability.prefix) for toolset in inner["toolsets"])
    return inner["unsupported"]


def _combined(capability, found):
    for inner in capability.capabilities:
        _add(inner, found)


def _tool_search(capability, found):
    # Hidden tools can be searched for without it; what it changes of the search is not known here.
    if (capability.strategy, capability.max_results, capability.tool_description) != (None, 10, None):
        return "ToolSearch with arguments"
    return "ToolSearch with arguments" if capability.parameter_description is not None else None


_KINDS = {
    known.Thinking: _thinking,
    known.WebSearch: _web_search,
    known.Toolset: _toolset,
    known.MCP: _mcp,
    known.PrefixTools: _prefix_tools,
    known.CombinedCapability: _combined,
    known.ToolSearch: _tool_search,
}
