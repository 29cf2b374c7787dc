"""Agents as tools of other agents."""

from agents.exceptions import ModelBehaviorError, UserError
from agents.tool import FunctionTool, _Guarded, arguments_of, awaited, default_tool_error_function

_INPUT = {
    "description": "Default input schema for agent-as-tool calls.",
    "properties": {"input": {"title": "Input", "type": "string"}},
    "required": ["input"],
    "title": "AgentAsToolInput",
    "type": "object",
}


def make(
    agent,
    tool_name,
    tool_description,
    *,
    custom_output_extractor,
    is_enabled,
    on_stream,
    run_config,
    max_turns,
    hooks,
    previous_response_id,
    conversation_id,
    session,
    failure_error_function=default_tool_error_function,
    needs_approval=False,
    parameters=None,
    input_builder=None,
    include_input_schema=False,
):
    """The tool for an agent."""
    from agents.handoffs import function_name
    from updraft_unavailable import refuse

    for name, value in (
        ("parameters", parameters),
        ("input_builder", input_builder),
        ("include_input_schema", include_input_schema or None),
    ):
        if value is not None:
            refuse(f"Agent.as_tool({name}=...)")

    async def call(ctx, text):
        from agents.run import DEFAULT_MAX_TURNS, Runner

        arguments = arguments_of(ctx.tool_name, text)
        if list(arguments) != ["input"] or not isinstance(arguments["input"], str):
            raise ModelBehaviorError(f"Invalid JSON input for tool {ctx.tool_name}")
        given = {
            "context": ctx,
            "run_config": run_config if run_config is not None else ctx.run_config,
            "max_turns": max_turns if max_turns is not None else DEFAULT_MAX_TURNS,
            "hooks": hooks,
            "previous_response_id": previous_response_id,
            "conversation_id": conversation_id,
            "session": session,
        }
        if on_stream is None:
            result = await Runner.run(agent, arguments["input"], **given)
        else:
            result = Runner.run_streamed(agent, arguments["input"], **given)
            async for event in result.stream_events():
                told = {"event": event, "agent": result.current_agent, "tool_call": ctx.tool_call}
                await awaited(on_stream(told))
        if result.interruptions:
            raise UserError(
                f"a call of agent {agent.name!r}, which runs as a tool, waits for approval: that is not supported natively"
            )
        if custom_output_extractor is not None:
            return await custom_output_extractor(result)
        return _answer(result)

    name = tool_name or function_name(agent.name)
    return FunctionTool(
        name,
        tool_description or "",
        dict(_INPUT),
        _Guarded(call, name, failure_error_function),
        is_enabled=is_enabled,
        needs_approval=needs_approval,
        _failure_error_function=failure_error_function,
        _is_agent_tool=True,
        _agent_instance=agent,
    )


def _answer(result):
    """The answer; the last that was said, or that a tool gave, when there is none."""
    from agents.items import ItemHelpers

    if result.final_output is not None and result.final_output != "":
        return result.final_output
    for item in reversed(result.new_items):
        if item.type == "message_output_item" and ItemHelpers.text_message_output(item):
            return ItemHelpers.text_message_output(item)
        if item.type == "tool_call_output_item" and isinstance(item.output, str) and item.output:
            return item.output
    return result.final_output
