"""The base of the provider's toolsets."""

from pydantic_ai.toolsets.abstract import AbstractToolset


class AirflowToolset(AbstractToolset):
    """A toolset whose subclasses define `execute_tool`."""

    agent_template_fields = ()

    async def execute_tool(self, name, tool_args, *, ctx=None, tool=None):
        """Runs a tool."""
        raise NotImplementedError

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs a tool."""
        if hasattr(type(self), "_updraft_spec"):
            return await super().call_tool(name, tool_args, ctx, tool)
        return await self.execute_tool(name, tool_args, ctx=ctx, tool=tool)

    def airflow_tools(self):
        """The tools for an agent framework other than pydantic-ai."""
        from airflow.providers.common.ai.tools._from_toolset import airflow_tools_from_toolset

        return airflow_tools_from_toolset(self)

    async def run_blocking(self, function, *args, **kwargs):
        """Calls a function that may wait; here everything waits for it."""
        return function(*args, **kwargs)

    def _get_tool_max_retries(self, ctx):
        retries = getattr(self, "_max_retries", None)
        return ctx.max_retries if retries is None else retries


def check_max_retries(max_retries):
    """Refuses a negative number of retries."""
    if max_retries is not None and max_retries < 0:
        raise ValueError(f"max_retries must not be negative, got {max_retries}.")


def check_tool_prefix(tool_prefix):
    """Refuses a prefix that can't begin a tool's name."""
    if tool_prefix and not tool_prefix.isidentifier():
        raise ValueError(f"tool_prefix must be a valid Python identifier, got {tool_prefix!r}.")


def iter_toolsets(toolset):
    """The toolsets at the ends of wrappers and combinations."""
    if hasattr(toolset, "wrapped"):
        yield from iter_toolsets(toolset.wrapped)
    elif hasattr(toolset, "toolsets"):
        for inner in toolset.toolsets:
            yield from iter_toolsets(inner)
    else:
        yield toolset
