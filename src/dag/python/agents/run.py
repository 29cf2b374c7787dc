"""`Runner`: runs an agent to its answer.

The loop is Python, over one thing that the worker does: the request to the model (`openai/client.py`). Every step of it
is in the hands of what a Dag file gives: hooks, guardrails, filters, functions as tools, sessions, models of one's own. A
loop on the other side of the border would come back at each of them, and the items that it passes around are the Dag's
too.
"""

from agents.run_config import (
    CallModelData,
    ModelInputData,
    RunConfig,
    ToolErrorFormatterArgs,
    ToolExecutionConfig,
)

DEFAULT_MAX_TURNS = 10

_OPTIONS = (
    "context",
    "max_turns",
    "hooks",
    "run_config",
    "error_handlers",
    "previous_response_id",
    "auto_previous_response_id",
    "conversation_id",
    "session",
)


class Runner:
    """Runs an agent to its answer."""

    @classmethod
    async def run(cls, starting_agent, input, **options):
        """Runs an agent to its answer."""
        return await _run(starting_agent, input, options).go()

    @classmethod
    def run_sync(cls, starting_agent, input, **options):
        """As `run`, for code that is no coroutine."""
        import asyncio

        if asyncio._get_running_loop() is not None:
            raise RuntimeError("AgentRunner.run_sync() cannot be called when an event loop is already running.")
        return asyncio.run(_run(starting_agent, input, options).go())

    @classmethod
    def run_streamed(cls, starting_agent, input, **options):
        """Begins a run whose events can be read as it goes on."""
        return _run(starting_agent, input, options).streamed()


AgentRunner = Runner


def _run(agent, input, options):
    from agents.loop import Run

    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"Runner.run() got an unexpected keyword argument {name!r}")
    return Run(agent, input, **{"max_turns": DEFAULT_MAX_TURNS, **options})


__all__ = [
    "AgentRunner",
    "CallModelData",
    "DEFAULT_MAX_TURNS",
    "ModelInputData",
    "RunConfig",
    "Runner",
    "ToolErrorFormatterArgs",
    "ToolExecutionConfig",
]
