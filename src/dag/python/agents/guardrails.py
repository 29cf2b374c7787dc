"""Runs the checks of a run's input and of its answer."""

import asyncio

from agents.exceptions import InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered
from agents.tracing import attach_error_to_current_span, guardrail_span


async def check_input(checks, agent, given, ctx, found):
    """Runs checks side by side; the first that trips ends the others."""
    await _check([_one(check, check.run(agent, given, ctx)) for check in checks], found, InputGuardrailTripwireTriggered)


async def check_output(checks, agent, output, ctx, found):
    """As `check_input`, of an answer."""
    await _check([_one(check, check.run(ctx, agent, output)) for check in checks], found, OutputGuardrailTripwireTriggered)


async def _one(check, checking):
    with guardrail_span(check.get_name(), False) as span:
        result = await checking
        span.span_data.triggered = result.output.tripwire_triggered
        return result


async def _check(checking, found, tripped):
    tasks = [asyncio.ensure_future(one) for one in checking]
    try:
        for done in asyncio.as_completed(tasks):
            result = await done
            found.append(result)
            if result.output.tripwire_triggered:
                name = result.guardrail.get_name()
                attach_error_to_current_span("Guardrail tripwire triggered", {"guardrail": name})
                raise tripped(result)
    finally:
        for task in tasks:
            if not task.done():
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
