"""The base of toolsets."""

from abc import ABC

from updraft_record import REQUIRED, Record


def _native(toolset, operation, **payload):
    """The worker's own toolset does it: a stand-in describes itself with `_updraft_spec`."""
    from updraft_toolsets import native

    return native(toolset, operation, **payload)


class AbstractToolset(ABC):
    """A set of tools for an agent. Subclasses define `get_tools` and `call_tool`."""

    def __class_getitem__(cls, item):
        return cls

    @property
    def id(self):
        """The name of the toolset, unique within an agent; None without one."""
        return None

    @property
    def label(self):
        """The name for messages."""
        label = type(self).__name__
        if self.id:
            label += f" {self.id!r}"
        return label

    @property
    def tool_name_conflict_hint(self):
        """What to do about two tools of one name."""
        return "Rename the tool or wrap the toolset in a `PrefixedToolset` to avoid name conflicts."

    async def __aenter__(self):
        if hasattr(type(self), "_updraft_spec"):
            _native(self, "open")
        return self

    async def __aexit__(self, *args):
        if hasattr(type(self), "_updraft_spec"):
            _native(self, "close")

    async def for_run(self, ctx):
        """The toolset for one run."""
        return self

    async def for_run_step(self, ctx):
        """The toolset for one step of a run."""
        return self

    async def get_instructions(self, ctx):
        """What the toolset adds to the system prompt."""
        return _native(self, "instructions") if hasattr(type(self), "_updraft_spec") else None

    async def get_tools(self, ctx):
        """The tools by name."""
        if not hasattr(type(self), "_updraft_spec"):
            raise NotImplementedError
        from updraft_toolsets import native_tools

        return native_tools(self, ctx)

    async def call_tool(self, name, tool_args, ctx, tool):
        """Runs a tool."""
        if not hasattr(type(self), "_updraft_spec"):
            raise NotImplementedError
        return _native(self, "call", name=name, args=tool_args)

    def apply(self, visitor):
        """Visits the toolsets inside."""
        visitor(self)

    def visit_and_replace(self, visitor):
        """Replaces the toolsets inside."""
        return visitor(self)

    def filtered(self, filter_func):
        """Only the tools for which the function is true."""
        from pydantic_ai.toolsets.wrappers import FilteredToolset

        return FilteredToolset(self, filter_func)

    def prefixed(self, prefix):
        """The tools with `prefix_` before their names."""
        from pydantic_ai.toolsets.wrappers import PrefixedToolset

        return PrefixedToolset(self, prefix)

    def prepared(self, prepare_func):
        """The tools as a function changes them before each step."""
        from pydantic_ai.toolsets.wrappers import PreparedToolset

        return PreparedToolset(self, prepare_func)

    def renamed(self, name_map):
        """The tools under other names: new name to old name."""
        from pydantic_ai.toolsets.wrappers import RenamedToolset

        return RenamedToolset(self, name_map)

    def approval_required(self, approval_required_func=None):
        """The tools, with a person's approval before each call for which the function is true."""
        from pydantic_ai.toolsets.wrappers import ApprovalRequiredToolset

        if approval_required_func is None:
            return ApprovalRequiredToolset(self)
        return ApprovalRequiredToolset(self, approval_required_func)

    def defer_loading(self, tool_names=None):
        """The tools, shown to the model only when it searches for them."""
        from pydantic_ai.toolsets.wrappers import DeferredLoadingToolset

        return DeferredLoadingToolset(self, tool_names=tool_names)

    def include_return_schemas(self):
        """The tools, with the schemas of what they return."""
        from pydantic_ai.toolsets.wrappers import IncludeReturnSchemasToolset

        return IncludeReturnSchemasToolset(self)

    def with_metadata(self, **metadata):
        """The tools, with more metadata."""
        from pydantic_ai.toolsets.wrappers import SetMetadataToolset

        return SetMetadataToolset(self, metadata)


class ToolsetTool(Record):
    """A tool as a toolset hands it out."""

    _keyword = {
        "toolset": REQUIRED,
        "tool_def": REQUIRED,
        "max_retries": REQUIRED,
        "args_validator": REQUIRED,
        "args_validator_func": None,
    }

    def __class_getitem__(cls, item):
        return cls
