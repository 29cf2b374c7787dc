"""Capabilities of agents: what Dag files pass on."""

from updraft_lazy import lazy_names
from updraft_record import REQUIRED, Record

# What has no stand-in imports, and says so when it is needed.
__getattr__, _ = lazy_names(__name__, {}, fallback=True)


class AbstractCapability:
    """The base of capabilities."""

    id = None

    def __class_getitem__(cls, item):
        return cls

    def apply(self, visitor):
        """Visits the capabilities inside."""
        visitor(self)


class WrapperCapability(Record, AbstractCapability):
    """A capability around another."""

    _positional = {"wrapped": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class NativeOrLocalTool(Record, AbstractCapability):
    """A provider's tool, or one of ours."""

    _positional = {}
    _keyword = {"native": True, "local": None, "id": None, "defer_loading": False, "description": None}


class BatchModelRequests(Record, AbstractCapability):
    """Requests in batches."""

    _positional = {}
    _keyword = {
        "id": None,
        "description": None,
        "defer_loading": False,
        "max_requests": 1000,
        "max_wait": None,
        "max_resubmissions": 2,
        "poll_interval": None,
        "max_poll_interval": None,
    }


class Caching(Record, AbstractCapability):
    """Prompt caching."""

    _positional = {"retention": True}
    _keyword = {"id": "caching", "description": None, "defer_loading": False, "messages": True}


class Capability(Record, AbstractCapability):
    """Instructions, tools and toolsets together."""

    _positional = {}
    _keyword = {
        "instructions": None,
        "toolsets": None,
        "tools": (),
        "id": None,
        "description": None,
        "defer_loading": False,
    }


class Citations(Record, AbstractCapability):
    """Citations."""

    _positional = {}
    _keyword = {"id": "citations", "description": None, "defer_loading": False}


class CombinedCapability(Record, AbstractCapability):
    """Several capabilities as one."""

    _positional = {"capabilities": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class DynamicCapability(Record, AbstractCapability):
    """A capability that a function makes per run."""

    _positional = {"capability_func": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class FileUnderstanding(Record, AbstractCapability):
    """Files that another model reads."""

    _positional = {"fallback_subagent_model": REQUIRED}
    _keyword = {"id": "file_understanding", "description": None, "defer_loading": False, "instructions": None}


class HandleDeferredToolCalls(Record, AbstractCapability):
    """Answers deferred calls by a function."""

    _positional = {"handler": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class Hooks(Record, AbstractCapability):
    """Functions at the steps of a run."""

    _positional = {}
    _keyword = {
        "before_run": None,
        "after_run": None,
        "run": None,
        "run_error": None,
        "before_node_run": None,
        "after_node_run": None,
        "node_run": None,
        "node_run_error": None,
        "run_event_stream": None,
        "event": None,
        "before_model_request": None,
        "prepare_model_request": None,
        "after_model_request": None,
        "model_request": None,
        "model_request_error": None,
        "prepare_tools": None,
        "prepare_output_tools": None,
        "before_tool_validate": None,
        "after_tool_validate": None,
        "tool_validate": None,
        "tool_validate_error": None,
        "before_tool_execute": None,
        "after_tool_execute": None,
        "tool_execute": None,
        "tool_execute_error": None,
        "before_output_validate": None,
        "after_output_validate": None,
        "output_validate": None,
        "output_validate_error": None,
        "before_output_process": None,
        "after_output_process": None,
        "output_process": None,
        "output_process_error": None,
        "deferred_tool_calls": None,
        "ordering": None,
        "id": None,
        "description": None,
        "defer_loading": False,
    }


class ImageGeneration(NativeOrLocalTool):
    """Images."""

    _positional = {}
    _keyword = {
        "native": True,
        "local": None,
        "fallback_subagent_model": None,
        "fallback_image_model": None,
        "action": None,
        "background": None,
        "input_fidelity": None,
        "moderation": None,
        "image_model": None,
        "output_compression": None,
        "output_format": None,
        "quality": None,
        "size": None,
        "dimensions": None,
        "aspect_ratio": None,
        "id": "image_generation",
        "defer_loading": False,
        "description": None,
        "fallback_model": None,
    }


class IncludeToolReturnSchemas(Record, AbstractCapability):
    """Schemas of what tools return."""

    _positional = {"tools": "all"}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class Instrumentation(Record, AbstractCapability):
    """Spans."""

    _positional = {"settings": None}
    _keyword = {"id": "instrumentation", "description": None, "defer_loading": False}


class LocalWorkspace(Record, AbstractCapability):
    """A folder to work in."""

    _positional = {"working_dir": REQUIRED}
    _keyword = {
        "id": "local_workspace",
        "description": None,
        "defer_loading": False,
        "read_only": False,
        "authority": "operator",
        "path_authority": None,
        "env": None,
    }


class MCP(NativeOrLocalTool):
    """An MCP server."""

    _positional = {"url": None}
    _keyword = {
        "native": False,
        "local": None,
        "id": None,
        "authorization_token": None,
        "headers": None,
        "allowed_tools": None,
        "tool_prefix": None,
        "description": None,
        "include_instructions": True,
        "defer_loading": False,
    }


class NativeTool(Record, AbstractCapability):
    """A provider's tool."""

    _positional = {"tool": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class PrefixTools(WrapperCapability):
    """A prefix before the names of tools."""

    _positional = {"wrapped": REQUIRED, "prefix": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class PrepareOutputTools(Record, AbstractCapability):
    """Output tools as a function changes them."""

    _positional = {"prepare_func": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class PrepareTools(Record, AbstractCapability):
    """Tools as a function changes them."""

    _positional = {"prepare_func": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class ProcessEventStream(Record, AbstractCapability):
    """Events for a function."""

    _positional = {"handler": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class ProcessHistory(Record, AbstractCapability):
    """Messages as a function changes them."""

    _positional = {"processor": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class RaiseContentFilterError(Record, AbstractCapability):
    """An error when the content filter strikes."""

    _positional = {}
    _keyword = {"id": "raise_content_filter_error", "description": None, "defer_loading": False}


class ReinjectSystemPrompt(Record, AbstractCapability):
    """The system prompt again."""

    _positional = {"replace_existing": False}
    _keyword = {"id": "reinject_system_prompt", "description": None, "defer_loading": False}


class RequestInput(Record, AbstractCapability):
    """Questions to a person."""

    _positional = {"ask": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False, "timeout": None, "name": "deferred_tool_calls"}


class ResolveModelId(Record, AbstractCapability):
    """Model names as a function reads them."""

    _positional = {"resolver": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class SelectModel(Record, AbstractCapability):
    """A model that a function chooses."""

    _positional = {"selector": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class Thinking(Record, AbstractCapability):
    """Thoughts."""

    _positional = {"effort": True}
    _keyword = {"id": "thinking", "description": None, "defer_loading": False}


class ToolSearch(Record, AbstractCapability):
    """Tools that the model searches for."""

    _positional = {"strategy": None, "max_results": 10, "tool_description": None, "parameter_description": None}
    _keyword = {"id": "tool_search", "description": None, "defer_loading": False}


class Toolset(Record, AbstractCapability):
    """A toolset."""

    _positional = {"toolset": REQUIRED}
    _keyword = {"id": None, "description": None, "defer_loading": False}


class UseThreadExecutor(Record, AbstractCapability):
    """Threads."""

    _positional = {"executor": REQUIRED}
    _keyword = {"id": "use_thread_executor", "description": None, "defer_loading": False}


class WebFetch(NativeOrLocalTool):
    """Pages of the web."""

    _positional = {}
    _keyword = {
        "native": True,
        "local": None,
        "allowed_domains": None,
        "blocked_domains": None,
        "max_uses": None,
        "enable_citations": None,
        "max_content_tokens": None,
        "id": "web_fetch",
        "defer_loading": False,
        "description": None,
    }


class WebSearch(NativeOrLocalTool):
    """Searches of the web."""

    _positional = {}
    _keyword = {
        "native": True,
        "local": None,
        "search_context_size": None,
        "user_location": None,
        "blocked_domains": None,
        "allowed_domains": None,
        "max_uses": None,
        "external_web_access": None,
        "id": "web_search",
        "defer_loading": False,
        "description": None,
    }


class XSearch(NativeOrLocalTool):
    """Searches of X."""

    _positional = {}
    _keyword = {
        "native": True,
        "local": None,
        "fallback_subagent_model": None,
        "allowed_x_handles": None,
        "excluded_x_handles": None,
        "from_date": None,
        "to_date": None,
        "enable_image_understanding": None,
        "enable_video_understanding": None,
        "include_output": None,
        "id": "x_search",
        "description": None,
        "defer_loading": False,
        "fallback_model": None,
    }
