"""The tools of an agent's MCP servers."""

import json

from agents.exceptions import UserError
from agents.tool import FunctionTool, _Guarded, arguments_of, awaited, default_tool_error_function


def create_static_tool_filter(allowed_tool_names=None, blocked_tool_names=None):
    """Which tools an agent gets."""
    if allowed_tool_names is None and blocked_tool_names is None:
        return None
    made = {"allowed_tool_names": allowed_tool_names, "blocked_tool_names": blocked_tool_names}
    return {name: value for name, value in made.items() if value is not None}


async def of_servers(agent, run_context):
    """The tools of all servers of an agent."""
    from agents.tracing import mcp_tools_span

    tools, seen = [], {}
    for server in agent.mcp_servers:
        with mcp_tools_span(server=server.name) as span:
            found = []
            for one in await server.list_tools(run_context, agent):
                if _is_kept(server, one):
                    found.append(one)
            span.span_data.result = [one["name"] for one in found]
        for one in found:
            if one["name"] in seen:
                raise UserError(f"Duplicate tool names found across MCP servers: {{{one['name']!r}}}")
            seen[one["name"]] = server
            tools.append(_function_tool(agent, server, one))
    return tools


def _is_kept(server, tool):
    chosen = server.tool_filter
    if chosen is None:
        return True
    if callable(chosen):
        from updraft_unavailable import refuse

        refuse("an MCP server whose tool_filter is a function")
    allowed = chosen.get("allowed_tool_names")
    return (allowed is None or tool["name"] in allowed) and tool["name"] not in chosen.get("blocked_tool_names", ())


def _function_tool(agent, server, tool):
    name = tool["name"]
    told = agent.mcp_config.get("failure_error_function", default_tool_error_function)

    async def call(ctx, text):
        from pydantic_ai.exceptions import ModelRetry, ToolFailed

        try:
            result = await awaited(server.call_tool(name, arguments_of(name, text)))
        except (ModelRetry, ToolFailed) as error:
            # What the server says went wrong is the result.
            result = error.message
        return {"type": "text", "text": result if isinstance(result, str) else json.dumps(result)}

    strict = bool(agent.mcp_config.get("convert_schemas_to_strict"))
    schema = {"properties": {}, **tool["parameters"]}
    if strict:
        from agents.strict_schema import strict_copy

        try:
            schema = strict_copy(schema)
        except UserError:
            strict = False
    return FunctionTool(
        name, tool["description"] or "", schema, _Guarded(call, name, told), strict, _failure_error_function=told
    )
