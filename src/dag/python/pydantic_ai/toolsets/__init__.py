"""Stand-ins for pydantic-ai's toolsets: what a Dag file builds; the worker's own toolsets do the work."""

from updraft_lazy import lazy_names

ToolsetFunc = object
AgentToolset = object

__getattr__, _names = lazy_names(
    __name__,
    {
        "pydantic_ai.toolsets.abstract": ("AbstractToolset", "ToolsetTool"),
        "pydantic_ai.toolsets.function": ("FunctionToolset",),
        "pydantic_ai.toolsets.wrappers": (
            "ApprovalRequiredToolset",
            "CombinedToolset",
            "DeferredLoadingToolset",
            "DynamicToolset",
            "ExternalToolset",
            "FilteredToolset",
            "IncludeReturnSchemasToolset",
            "PrefixedToolset",
            "PreparedToolset",
            "RenamedToolset",
            "SetMetadataToolset",
            "WrapperToolset",
        ),
    },
)
__all__ = [*_names, "AgentToolset", "ToolsetFunc"]
