"""Toolsets around toolsets."""

from pydantic_ai.toolsets.abstract import AbstractToolset


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
        import copy

        replaced = copy.copy(self)
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
        if type(self) is not PrefixedToolset or not isinstance(self.prefix, str):
            return None
        return {"prefixed": {"prefix": self.prefix, "wrapped": describe(self.wrapped)}}


class FilteredToolset(WrapperToolset):
    """Tools for which a function is true."""

    def __init__(self, wrapped, filter_func):
        super().__init__(wrapped)
        self.filter_func = filter_func


class PreparedToolset(WrapperToolset):
    """Tools as a function changes them before each step."""

    def __init__(self, wrapped, prepare_func):
        super().__init__(wrapped)
        self.prepare_func = prepare_func


class RenamedToolset(WrapperToolset):
    """Tools under other names."""

    def __init__(self, wrapped, name_map):
        super().__init__(wrapped)
        self.name_map = name_map


def _always(ctx, tool_def, tool_args):
    return True


class ApprovalRequiredToolset(WrapperToolset):
    """Tools that wait for a person's approval."""

    def __init__(self, wrapped, approval_required_func=_always):
        super().__init__(wrapped)
        self.approval_required_func = approval_required_func


class DeferredLoadingToolset(WrapperToolset):
    """Tools that the model finds by searching."""

    def __init__(self, wrapped, *, tool_names=None):
        super().__init__(wrapped)
        self.tool_names = None if tool_names is None else frozenset(tool_names)


class IncludeReturnSchemasToolset(WrapperToolset):
    """Tools with the schemas of what they return."""


class SetMetadataToolset(WrapperToolset):
    """Tools with more metadata."""

    def __init__(self, wrapped, metadata):
        super().__init__(wrapped)
        self.metadata = metadata


class CombinedToolset(AbstractToolset):
    """Several toolsets as one."""

    def __init__(self, toolsets):
        self.toolsets = toolsets

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
    """A toolset that a function makes for each run or step."""

    def __init__(self, toolset_func, *, per_run_step=True, id=None):
        self.toolset_func = toolset_func
        self.per_run_step = per_run_step
        self._id = id

    @property
    def id(self):
        """The name of the toolset."""
        return self._id


class ExternalToolset(AbstractToolset):
    """Tools that run outside."""

    def __init__(self, tool_defs, *, id=None):
        self.tool_defs = tool_defs
        self._id = id

    @property
    def id(self):
        """The name of the toolset."""
        return self._id
