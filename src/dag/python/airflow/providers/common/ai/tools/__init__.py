"""Tools that any agent framework can use."""

import logging
import time

from updraft_record import REQUIRED, Record

log = logging.getLogger(__name__)


class ToolCallError(Exception):
    """A call failed in a way that the model can't mend. Secrets are masked in its text."""


class ToolResult(Record):
    """What a call gave; `is_error`: the model can mend what went wrong."""

    _positional = {"content": REQUIRED, "is_error": False}


class AirflowTool(Record):
    """A tool: its name, description, schema and function."""

    _positional = {"name": REQUIRED, "description": REQUIRED, "parameters": REQUIRED, "function": REQUIRED}

    async def call(self, arguments):
        """Calls the function. The call stands in the task log, and known secrets do not stand in what comes of it.

        Raises ToolCallError when the function raises.
        """
        from updraft_tool_results import mask

        log.info("::group::Tool call: %s", self.name)
        start = time.monotonic()
        failure = None
        try:
            result = await self.function(arguments)
        except Exception as error:
            log.warning("Tool %s failed after %.2fs", self.name, time.monotonic() - start, exc_info=True)
            known = isinstance(error, ToolCallError)
            failure = str(error) if known else f"{self.name} failed: {type(error).__name__}: {error}"
        else:
            outcome = "returned an error" if result.is_error else "returned"
            log.info("Tool %s %s in %.2fs", self.name, outcome, time.monotonic() - start)
        finally:
            log.info("::endgroup::")
        if failure is not None:
            # Not within the `except`: what was raised is not to travel on.
            raise ToolCallError(mask(failure))
        return ToolResult(mask(result.content), result.is_error)


class ToolProvider:
    """Something that gives tools."""

    def airflow_tools(self):
        """The tools."""
        raise NotImplementedError


def collect_tools(sources):
    """The tools of several sources.

    Raises ValueError when two have one name.
    """
    tools = []
    for source in sources:
        tools.extend([source] if isinstance(source, AirflowTool) else source.airflow_tools())
    names = [tool.name for tool in tools]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"More than one tool is named {', '.join(twice)}. Give the toolsets different tool_prefix values, where they "
            "take one, so the model can call each of them."
        )
    return tools
