"""Python functions as tools."""

from pydantic_ai.toolsets.abstract import AbstractToolset
from updraft_hold import hold


class FunctionToolset(AbstractToolset):
    """A toolset of Python functions."""

    def __init__(
        self,
        tools=[],
        *,
        max_retries=None,
        timeout=None,
        docstring_format="auto",
        require_parameter_descriptions=False,
        schema_generator=None,
        strict=None,
        sequential=False,
        requires_approval=False,
        metadata=None,
        defer_loading=False,
        include_return_schema=None,
        id=None,
        instructions=None,
    ):
        arguments = dict(locals(), tools={})
        # The class has something else under these names.
        for name in ("id", "instructions", "defer_loading"):
            setattr(self, f"_{name}", arguments.pop(name))
        hold(self, arguments)
        for tool in tools:
            if hasattr(tool, "function"):
                self.add_tool(tool)
            else:
                self.add_function(tool)

    @property
    def id(self):
        """The name of the toolset."""
        return self._id

    def add_tool(self, tool):
        """Adds a `Tool`."""
        if tool.name in self.tools:
            from pydantic_ai.exceptions import UserError

            raise UserError(f"Tool name conflicts with existing tool: {tool.name!r}")
        self.tools[tool.name] = tool

    def add_function(self, func, takes_ctx=None, **kwargs):
        """Adds a function."""
        from pydantic_ai.tools import Tool

        kwargs.setdefault("max_retries", self.max_retries)
        kwargs.setdefault("requires_approval", self.requires_approval)
        kwargs.setdefault("sequential", self.sequential)
        self.add_tool(Tool(func, takes_ctx=takes_ctx, **kwargs))

    def tool(self, func=None, /, **kwargs):
        """A decorator that adds a function that takes the run's context first."""
        return self._decorator(func, True, kwargs)

    def tool_plain(self, func=None, /, **kwargs):
        """A decorator that adds a function."""
        return self._decorator(func, False, kwargs)

    def _decorator(self, func, takes_ctx, kwargs):
        def decorate(function):
            self.add_function(function, takes_ctx, **kwargs)
            return function

        return decorate if func is None else decorate(func)

    def instructions(self, func):
        """A decorator for a function that adds to the system prompt."""
        self._instructions = func
        return func

    async def get_instructions(self, ctx):
        """What was given as instructions; functions among them are called."""
        given = self._instructions
        parts = []
        for part in given if isinstance(given, (list, tuple)) else [given]:
            if callable(part):
                from updraft_signature import parameters

                part = part(ctx) if parameters(part) else part()
                part = await part if hasattr(part, "__await__") else part
            if part:
                parts.append(part)
        return parts or None

    async def get_tools(self, ctx):
        """A tool for each function."""
        from pydantic_ai.toolsets.abstract import ToolsetTool

        found = {}
        for tool in self.tools.values():
            definition = await tool.prepared_definition(ctx)
            if definition is None:
                continue
            retries = tool.max_retries if tool.max_retries is not None else self.max_retries
            found[definition.name] = ToolsetTool(
                toolset=self,
                tool_def=definition,
                max_retries=ctx.max_retries if retries is None else retries,
                args_validator=tool.arguments(),
                args_validator_func=tool.args_validator,
            )
        return found

    async def call_tool(self, name, tool_args, ctx, tool):
        """Calls the function."""
        return await tool.args_validator.call(tool_args, ctx)

    def _updraft_obstacle(self):
        where = {"class": type(self).__name__, "module": type(self).__module__}
        waiting = [name for name, tool in self.tools.items() if tool.requires_approval]
        if waiting:
            reason = f"has tools that wait for a person's approval ({', '.join(waiting)}), which is not done natively yet"
            return {**where, "reason": reason}
        strict = [name for name, tool in self.tools.items() if tool.strict is not None]
        if strict or self.strict is not None:
            named = f" ({', '.join(strict)})" if strict else ""
            return {**where, "reason": f"has tools with strict=...{named}, which is not sent natively yet"}
        if self._defer_loading or any(tool.defer_loading for tool in self.tools.values()):
            return {**where, "reason": "has tools with defer_loading of their own: call .defer_loading() on the toolset"}
        return None
