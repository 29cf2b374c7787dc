"""The tools of a toolset for agent frameworks other than pydantic-ai's."""

import asyncio
import contextlib
import copy
import time
from contextvars import ContextVar

from airflow.providers.common.ai.tools import AirflowTool, ToolCallError, ToolResult

_scope = ContextVar("common_ai_tool_call_scope", default=(None, None))


@contextlib.contextmanager
def tool_call_scope(*, run, turn=None):
    """Says whose calls those in the block are: a tool's retries count anew in each run, and once a turn."""
    token = _scope.set((run, turn))
    try:
        yield
    finally:
        _scope.reset(token)


class _Retries:
    """How often a tool has failed in a row.

    Failures of one turn count once; of calls whose turn is not known, those that ran side by side.
    """

    def __init__(self, most):
        self.most = most
        self.count = 0
        self._run = None
        self._failed_turn = None
        self._counted_until = float("-inf")

    def begin(self, run):
        if run is not None and run is not self._run:
            self._run = run
            self.count = 0
            self._failed_turn = None

    def succeeded(self, turn):
        if turn is None or turn != self._failed_turn:
            self.count = 0

    def are_spent(self, started, turn):
        """Counts a failure of a call that began then."""
        is_new = turn != self._failed_turn if turn is not None else started >= self._counted_until
        if is_new:
            self.count += 1
            self._failed_turn = turn
            self._counted_until = time.monotonic()
        if self.count <= self.most:
            return False
        self.count = 0
        return True


class _Line:
    """Calls that run one at a time, in the order in which they were made."""

    def __init__(self):
        self._last = None

    async def __call__(self, call):
        before, mine = self._last, asyncio.get_running_loop().create_future()
        self._last = mine
        try:
            if before is not None and before.get_loop() is mine.get_loop():
                await asyncio.shield(before)
            return await call()
        finally:
            if not mine.done():
                mine.set_result(None)


def airflow_tools_from_toolset(toolset, *, deps=None):
    """The tools of a toolset, each with its own retries."""
    from pydantic_ai.tools import RunContext
    from pydantic_ai.usage import RunUsage
    from updraft_context import run_coroutine

    ctx = RunContext(deps=deps, model=None, usage=RunUsage(), max_retries=1)
    tools = run_coroutine(toolset.get_tools(ctx))
    line = _Line()
    return [_airflow_tool(toolset, name, tool, ctx, line) for name, tool in tools.items()]


def _airflow_tool(toolset, name, tool, ctx, line):
    from pydantic import ValidationError
    from pydantic_ai.exceptions import ModelRetry, ToolFailed

    retries = _Retries(tool.max_retries)

    def correctable(started, turn, message):
        if retries.are_spent(started, turn):
            raise ToolCallError(f"{name} kept failing after {retries.most} correction(s): {message}")
        return ToolResult(message, True)

    async def call(arguments, started, turn):
        own = copy.copy(ctx)
        own.retry, own.max_retries, own.tool_name = retries.count, tool.max_retries, name
        try:
            arguments = _checked(tool, arguments, own)
        except ModelRetry as retry:
            return correctable(started, turn, retry.message)
        except ValidationError as error:
            return correctable(started, turn, str(error))
        try:
            result = await toolset.call_tool(name, arguments, own, tool)
        except ModelRetry as retry:
            return correctable(started, turn, retry.message)
        except ToolFailed as failed:
            return ToolResult(failed.message, True)
        retries.succeeded(turn)
        return ToolResult(result)

    async def function(arguments):
        started = time.monotonic()
        run, turn = _scope.get()
        retries.begin(run)
        if not tool.tool_def.sequential:
            # Calls of one turn begin together, before the first of them fails.
            await asyncio.sleep(0)
            return await call(arguments, started, turn)
        return await line(lambda: call(arguments, started, turn))

    definition = tool.tool_def
    return AirflowTool(name, definition.description or name, definition.parameters_json_schema, function)


def _checked(tool, arguments, ctx):
    """A call's arguments as the tool takes them.

    Raises ModelRetry or pydantic's ValidationError for those that it does not take.
    """
    schema = getattr(tool.args_validator, "schema", None)
    checked = _by_schema(schema, arguments) if isinstance(schema, dict) else tool.args_validator.validate_python(arguments)
    more = getattr(tool, "args_validator_func", None)
    if more is not None:
        more(ctx, **(checked if isinstance(checked, dict) else arguments))
    return checked


def _by_schema(schema, arguments):
    import _updraft
    import updraft_values
    from pydantic import ValidationError

    answer = _updraft.checked_arguments(updraft_values.to_json(schema), updraft_values.to_json(arguments))
    answer = updraft_values.from_json(answer)
    if "errors" in answer:
        # What is the same for several is said with the first of them.
        faults = [{"input": arguments, **fault} for fault in answer["errors"]]
        raise ValidationError.from_exception_data("typed-dict", faults)
    return answer["args"]
