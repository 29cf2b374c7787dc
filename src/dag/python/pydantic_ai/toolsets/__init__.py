"""Stand-ins for pydantic-ai's toolsets: what a Dag file builds; the worker's own toolsets do the work."""

from pydantic_ai.toolsets.abstract import AbstractToolset
from pydantic_ai.toolsets.function import FunctionToolset
from pydantic_ai.toolsets.wrappers import (
    ApprovalRequiredToolset,
    CombinedToolset,
    DeferredLoadingToolset,
    DynamicToolset,
    ExternalToolset,
    FilteredToolset,
    IncludeReturnSchemasToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    SetMetadataToolset,
    WrapperToolset,
)
from pydantic_ai.toolsets.abstract import ToolsetTool

ToolsetFunc = object
AgentToolset = object

__all__ = [
    "AbstractToolset",
    "AgentToolset",
    "ApprovalRequiredToolset",
    "CombinedToolset",
    "DeferredLoadingToolset",
    "DynamicToolset",
    "ExternalToolset",
    "FilteredToolset",
    "FunctionToolset",
    "IncludeReturnSchemasToolset",
    "PrefixedToolset",
    "PreparedToolset",
    "RenamedToolset",
    "SetMetadataToolset",
    "ToolsetFunc",
    "ToolsetTool",
    "WrapperToolset",
]
