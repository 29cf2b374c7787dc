"""The calls of one turn: side by side, each with its checks and its span, and each with one result in its place."""

import asyncio

import agents.tracing as tracing
from agents.exceptions import (
    AgentsException,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    UserError,
)
from agents.items import ItemHelpers, ToolApprovalItem, ToolCallOutputItem
from agents.tool import REDACTED, FunctionToolResult, arguments_of, awaited
from agents.tool_context import ToolContext
from agents.tool_guardrails import (
    ToolInputGuardrailData,
    ToolInputGuardrailResult,
    ToolOutputGuardrailData,
    ToolOutputGuardrailResult,
)

async def call_tools(turn, calls):
    """The results of calls, in their order."""
    if not calls:
        return []
    limit = getattr(turn.run.config.tool_execution, "max_function_tool_concurrency", None)
    room = asyncio.Semaphore(limit) if limit else None

    async def call(one, tool):
        if room is None:
            return await _call(turn, one, tool)
        async with room:
            return await _call(turn, one, tool)

    tasks = [asyncio.ensure_future(call(one, tool)) for one, tool in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            if not task.done():
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _call(turn, call, tool):
    run = turn.run
    shown = run.config.trace_include_sensitive_data
    is_told = not turn.goes_on or run.ctx.is_tool_approved(tool.name, call.call_id) is not False
    with tracing.function_span(tool.name, disabled=not is_told) as span:
        if shown:
            span.span_data.input = call.arguments
        # The calls of a turn begin together.
        await asyncio.sleep(0)
        try:
            output, item = await _answered(turn, call, tool, span)
        except Exception as error:
            told = str(error) if shown else REDACTED
            tracing.attach_error_to_current_span("Error running tool", {"tool_name": tool.name, "error": told})
            if isinstance(error, AgentsException):
                raise
            raise UserError(f"Error running tool {tool.name}: {error}") from error
        if shown:
            span.span_data.output = output
        return FunctionToolResult(tool, output, item)


async def _answered(turn, call, tool, span):
    """What the call gave, and the item that says so."""
    run, agent = turn.run, turn.agent
    approved = run.ctx.is_tool_approved(tool.name, call.call_id)
    if approved is None and await _needs_approval(tool, run.ctx, call):
        return None, ToolApprovalItem(agent, call, tool.name)
    if approved is False:
        told = await turn.rejected(call)
        shown = run.config.trace_include_sensitive_data
        why = f"Tool execution for {call.call_id} was manually rejected by user."
        span.set_error(
            tracing.SpanError(
                message=told if shown else "Tool execution rejected", data={"tool_name": tool.name, "error": why}
            )
        )
        return told, _item(agent, call, told)
    ctx = ToolContext.from_agent_context(run.ctx, call.call_id, call, agent, run_config=run.config)
    told = await _check_input(turn, tool, ctx)
    if told is not None:
        return told, _item(agent, call, told)
    await run.hooks.on_tool_start(ctx, agent, tool)
    if agent.hooks is not None:
        await agent.hooks.on_tool_start(ctx, agent, tool)
    output = await tool.invoke(ctx, call.arguments)
    output = await _check_output(turn, tool, ctx, output)
    item = _item(agent, call, output)
    await run.hooks.on_tool_end(ctx, agent, tool, output)
    if agent.hooks is not None:
        await agent.hooks.on_tool_end(ctx, agent, tool, output)
    return output, item


def _item(agent, call, output):
    return ToolCallOutputItem(agent, ItemHelpers.tool_call_output_item(call, output), output)


async def _needs_approval(tool, ctx, call):
    needs = tool.needs_approval
    if not callable(needs):
        return bool(needs)
    return bool(await awaited(needs(ctx, arguments_of(tool.name, call.arguments), call.call_id)))


async def _check_input(turn, tool, ctx):
    """What the model is told in the tool's place; None when it may run."""
    for guardrail in tool.tool_input_guardrails or ():
        found = await guardrail.run(ToolInputGuardrailData(ctx, turn.agent))
        turn.run.guardrail_results["tool_input"].append(ToolInputGuardrailResult(guardrail, found))
        if found.behavior["type"] == "raise_exception":
            raise ToolInputGuardrailTripwireTriggered(guardrail, found)
        if found.behavior["type"] == "reject_content":
            return found.behavior["message"]
    return None


async def _check_output(turn, tool, ctx, output):
    for guardrail in tool.tool_output_guardrails or ():
        found = await guardrail.run(ToolOutputGuardrailData(ctx, turn.agent, output))
        turn.run.guardrail_results["tool_output"].append(ToolOutputGuardrailResult(guardrail, found))
        if found.behavior["type"] == "raise_exception":
            raise ToolOutputGuardrailTripwireTriggered(guardrail, found)
        if found.behavior["type"] == "reject_content":
            return found.behavior["message"]
    return output
