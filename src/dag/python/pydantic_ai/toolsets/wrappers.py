"""Toolsets around toolsets.

Around the worker's own toolsets the worker has wrappers of its own; what stands here runs when Dag code is among them.
"""

from copy import copy

from pydantic_ai.toolsets.abstract import AbstractToolset


def _renamed(toolset, tool, name):
    tool = copy(tool)
    tool.toolset = toolset
    tool.tool_def = copy(tool.tool_def)
    tool.tool_def.name = name
    return tool


def _has_metadata(toolset):
    if isinstance(toolset, SetMetadataToolset):
        return True
    tools = getattr(toolset, "tools", None)
    if isinstance(tools, dict) and any(getattr(tool, "metadata", None) for tool in tools.values()):
        return True
    inner = [toolset.wrapped] if hasattr(toolset, "wrapped") else getattr(toolset, "toolsets", None) or ()
    return any(_has_metadata(item) for item in inner)


class WrapperToolset(AbstractToolset):
    """Passes everything on to another toolset."""

    def __init__(self, wrapped):
        self.wrapped = wrapped

    @property
    def id(self):
        """None: the wrapped toolset has the name."""
        return None

    @property
    def label(self):
        """Names the wrapper and what it wraps."""
        return f"{type(self).__name__}({self.wrapped.label})"

    async def __aenter__(self):
        await self.wrapped.__aenter__()
        return self

    async def __aexit__(self, *args):
        return await self.wrapped.__aexit__(*args)

    async def for_run(self, ctx):
        """The wrapper around the wrapped toolset's one for the run."""
        wrapped = await self.wrapped.for_run(ctx)
        if wrapped is self.wrapped:
            return self
        own = copy(self)
        own.wrapped = wrapped
        return own

    async def for_run_step(self, ctx):
        """The wrapper around the wrapped toolset's one for the step."""
        wrapped = await self.wrapped.for_run_step(ctx)
        if wrapped is self.wrapped:
            return self
        own = copy(self)
        own.wrapped = wrapped
        return own

    async def get_instructions(self, ctx):
        """The wrapped toolset's."""
        return await self.wrapped.get_instructions(ctx)

    async def get_tools(self, ctx):
        """The wrapped toolset's."""
        return await self.wrapped.get_tools(ctx)

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs the wrapped toolset's tool."""
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)

    def apply(self, visitor):
        """Visits the toolsets inside."""
        self.wrapped.apply(visitor)

    def visit_and_replace(self, visitor):
        """Replaces the toolsets inside."""
        replaced = copy(self)
        replaced.wrapped = self.wrapped.visit_and_replace(visitor)
        return replaced

    def __repr__(self):
        return f"{type(self).__name__}({self.wrapped!r})"


class PrefixedToolset(WrapperToolset):
    """Tools with a prefix before their names."""

    def __init__(self, wrapped, prefix):
        super().__init__(wrapped)
        self.prefix = prefix

    @property
    def tool_name_conflict_hint(self):
        """What to do about two tools of one name."""
        return "Change the `prefix` attribute to avoid name conflicts."

    def _updraft_spec(self, describe):
        if not isinstance(self.prefix, str):
            return None
        return {"prefixed": {"prefix": self.prefix, "wrapped": describe(self.wrapped)}}

    async def get_tools(self, ctx):
        """The wrapped toolset's, with the prefix."""
        tools = await super().get_tools(ctx)
        return {f"{self.prefix}_{name}": _renamed(self, tool, f"{self.prefix}_{name}") for name, tool in tools.items()}

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs the tool behind the name."""
        inner = name.removeprefix(f"{self.prefix}_")
        return await super().call_tool(inner, tool_args, ctx, _renamed(self, tool, inner))


class FilteredToolset(WrapperToolset):
    """Tools for which a function is true."""

    def __init__(self, wrapped, filter_func):
        super().__init__(wrapped)
        self.filter_func = filter_func

    def _updraft_spec(self, describe):
        # The worker's filter is told of no metadata.
        if _has_metadata(self.wrapped):
            return None
        from updraft_values import keep

        return {"filtered": {"function": keep(self.filter_func), "wrapped": describe(self.wrapped)}}

    async def get_tools(self, ctx):
        """Those of the wrapped toolset's that the function keeps."""
        found = {}
        for name, tool in (await super().get_tools(ctx)).items():
            kept = self.filter_func(ctx, tool.tool_def)
            if await kept if hasattr(kept, "__await__") else kept:
                found[name] = tool
        return found


class PreparedToolset(WrapperToolset):
    """Tools as a function changes them before each step."""

    def __init__(self, wrapped, prepare_func):
        super().__init__(wrapped)
        self.prepare_func = prepare_func

    async def get_tools(self, ctx):
        """The wrapped toolset's, as the function gives them."""
        tools = await super().get_tools(ctx)
        given = self.prepare_func(ctx, [copy(tool.tool_def) for tool in tools.values()])
        given = (await given if hasattr(given, "__await__") else given) or []
        found = {}
        for definition in given:
            if definition.name not in tools:
                from pydantic_ai.exceptions import UserError

                raise UserError(
                    "Prepare function cannot add or rename tools. Use `FunctionToolset.add_function()` or "
                    "`RenamedToolset` instead."
                )
            tool = copy(tools[definition.name])
            tool.tool_def = definition
            found[definition.name] = tool
        return found


class RenamedToolset(WrapperToolset):
    """Tools under other names."""

    def __init__(self, wrapped, name_map):
        super().__init__(wrapped)
        self.name_map = name_map

    def _updraft_spec(self, describe):
        plain = all(isinstance(name, str) for pair in self.name_map.items() for name in pair)
        if not plain:
            return None
        return {"renamed": {"names": dict(self.name_map), "wrapped": describe(self.wrapped)}}

    async def get_tools(self, ctx):
        """The wrapped toolset's, under their new names."""
        new_names = {old: new for new, old in self.name_map.items()}
        tools = {}
        for name, tool in (await super().get_tools(ctx)).items():
            new = new_names.get(name, name)
            tools[new] = _renamed(self, tool, new)
        return tools

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs the tool behind the name."""
        inner = self.name_map.get(name, name)
        return await super().call_tool(inner, tool_args, ctx, _renamed(self, tool, inner))


def _always(ctx, tool_def, tool_args):
    return True


class ApprovalRequiredToolset(WrapperToolset):
    """Tools that wait for a person's approval."""

    _updraft_reason = "waits for a person's approval of each call, which is not done natively yet"

    def __init__(self, wrapped, approval_required_func=_always):
        super().__init__(wrapped)
        self.approval_required_func = approval_required_func


class DeferredLoadingToolset(WrapperToolset):
    """Tools that the model finds by searching."""

    def __init__(self, wrapped, *, tool_names=None):
        super().__init__(wrapped)
        self.tool_names = None if tool_names is None else frozenset(tool_names)

    def _updraft_spec(self, describe):
        names = None if self.tool_names is None else sorted(self.tool_names)
        return {"deferred": {"tool_names": names, "wrapped": describe(self.wrapped)}}


class IncludeReturnSchemasToolset(WrapperToolset):
    """Tools with the schemas of what they return."""

    _updraft_reason = "tells the model what each tool returns, which is not done natively yet"


class SetMetadataToolset(WrapperToolset):
    """Tools with more metadata, for the functions that filter and prepare them."""

    def __init__(self, wrapped, metadata):
        super().__init__(wrapped)
        self.metadata = metadata

    async def get_tools(self, ctx):
        """The wrapped toolset's, each with the metadata."""
        tools = {}
        for name, tool in (await super().get_tools(ctx)).items():
            tool = copy(tool)
            tool.tool_def = copy(tool.tool_def)
            tool.tool_def.metadata = {**(tool.tool_def.metadata or {}), **self.metadata}
            tools[name] = tool
        return tools


class CombinedToolset(AbstractToolset):
    """Several toolsets as one."""

    def __init__(self, toolsets):
        self.toolsets = toolsets

    def _updraft_spec(self, describe):
        return {"combined": {"toolsets": [describe(toolset) for toolset in self.toolsets]}}

    async def __aenter__(self):
        for toolset in self.toolsets:
            await toolset.__aenter__()
        return self

    async def __aexit__(self, *args):
        for toolset in self.toolsets:
            await toolset.__aexit__(*args)

    async def for_run(self, ctx):
        """All of them, each for the run."""
        return CombinedToolset([await toolset.for_run(ctx) for toolset in self.toolsets])

    async def for_run_step(self, ctx):
        """All of them, each for the step."""
        stepped = [await toolset.for_run_step(ctx) for toolset in self.toolsets]
        if all(new is old for new, old in zip(stepped, self.toolsets)):
            return self
        return CombinedToolset(stepped)

    async def get_instructions(self, ctx):
        """What all of them add to the system prompt."""
        parts = []
        for toolset in self.toolsets:
            given = await toolset.get_instructions(ctx)
            parts.extend(given if isinstance(given, (list, tuple)) else [given] if given is not None else [])
        return parts or None

    async def get_tools(self, ctx):
        """All tools; two of one name are refused."""
        tools = {}
        for toolset in self.toolsets:
            for name, tool in (await toolset.get_tools(ctx)).items():
                if name in tools:
                    from pydantic_ai.exceptions import UserError

                    raise UserError(
                        f"{toolset.label} defines a tool whose name conflicts with existing tool from "
                        f"{tools[name].toolset.label}: {name!r}. {toolset.tool_name_conflict_hint}"
                    )
                tools[name] = tool
        return tools

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs the tool with the toolset that it came from."""
        return await tool.toolset.call_tool(name, tool_args, ctx, tool)

    @property
    def label(self):
        """Names all of them."""
        return f"CombinedToolset({', '.join(toolset.label for toolset in self.toolsets)})"

    def apply(self, visitor):
        """Visits the toolsets inside."""
        for toolset in self.toolsets:
            toolset.apply(visitor)

    def visit_and_replace(self, visitor):
        """Replaces the toolsets inside."""
        return CombinedToolset([toolset.visit_and_replace(visitor) for toolset in self.toolsets])


class DynamicToolset(AbstractToolset):
    """A toolset that a function makes for each run or step; the function may make none."""

    def __init__(self, toolset_func, *, per_run_step=True, id=None):
        self.toolset_func = toolset_func
        self.per_run_step = per_run_step
        self._id = id
        self._toolset = None

    @property
    def id(self):
        """The name of the toolset."""
        return self._id

    async def _make(self, ctx):
        made = self.toolset_func(ctx)
        return await made if hasattr(made, "__await__") else made

    async def for_run(self, ctx):
        """A toolset of its own for the run; the function is asked now unless it is asked for each step."""
        own = DynamicToolset(self.toolset_func, per_run_step=self.per_run_step, id=self._id)
        if not self.per_run_step:
            own._toolset = await own._make(ctx)
        return own

    async def for_run_step(self, ctx):
        """Asks the function again; what it made before ends when it makes another."""
        if self.per_run_step:
            made = await self._make(ctx)
            if made is not self._toolset:
                await self.__aexit__(None, None, None)
                await self._enter(made)
        return self

    async def _enter(self, toolset):
        # Only what could be entered is left again.
        self._toolset = None
        if toolset is not None:
            await toolset.__aenter__()
            self._toolset = toolset

    async def __aenter__(self):
        await self._enter(self._toolset)
        return self

    async def __aexit__(self, *args):
        toolset, self._toolset = self._toolset, None
        if toolset is not None:
            return await toolset.__aexit__(*args)

    async def get_instructions(self, ctx):
        """Those of what the function made."""
        return None if self._toolset is None else await self._toolset.get_instructions(ctx)

    async def get_tools(self, ctx):
        """Those of what the function made."""
        return {} if self._toolset is None else await self._toolset.get_tools(ctx)

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs the tool of what the function made."""
        return await self._toolset.call_tool(name, tool_args, ctx, tool)

    def apply(self, visitor):
        """Visits what the function made."""
        visitor(self) if self._toolset is None else self._toolset.apply(visitor)


class ExternalToolset(AbstractToolset):
    """Tools that run outside."""

    _updraft_reason = "has tools whose results come from outside the run, which no Airflow task waits for"

    def __init__(self, tool_defs, *, id=None):
        self.tool_defs = tool_defs
        self._id = id

    @property
    def id(self):
        """The name of the toolset."""
        return self._id
