"""Tools and what they are called with."""

from updraft_hold import hold
from updraft_lazy import lazy_names
from updraft_record import REQUIRED, Fresh, Record

# What has no stand-in imports, and says so when it is needed.
__getattr__, _ = lazy_names(__name__, {}, fallback=True)


class RunContext(Record):
    """What a tool knows about the run."""

    _keyword = {
        "deps": REQUIRED,
        "model": REQUIRED,
        "usage": REQUIRED,
        "usage_limits": None,
        "deadline": None,
        "agent": None,
        "prompt": None,
        "messages": Fresh(list),
        "validation_context": None,
        "tracer": None,
        "trace_include_content": False,
        "instrumentation_version": 5,
        "retries": Fresh(dict),
        "tool_call_id": None,
        "tool_name": None,
        "retry": 0,
        "max_retries": 0,
        "run_step": 0,
        "tool_call_approved": False,
        "tool_call_metadata": None,
        "partial_output": False,
        "run_id": None,
        "conversation_id": None,
        "metadata": None,
        "model_settings": None,
        "workspace": None,
        "pending_messages": None,
        "tool_manager": None,
        "realtime_session": None,
        "root_capability": None,
        "capabilities": None,
        "loaded_capability_ids": None,
        "capability_active": None,
        "discovered_tool_names": None,
    }

    def __class_getitem__(cls, item):
        return cls


class Tool:
    """A function as a tool."""

    def __init__(
        self,
        function,
        *,
        takes_ctx=None,
        max_retries=None,
        name=None,
        description=None,
        prepare=None,
        args_validator=None,
        docstring_format="auto",
        require_parameter_descriptions=False,
        schema_generator=None,
        strict=None,
        sequential=False,
        requires_approval=False,
        metadata=None,
        tool_kind=None,
        timeout=None,
        defer_loading=False,
        include_return_schema=None,
        function_schema=None,
    ):
        hold(self, locals())
        self.name = name or getattr(function, "__name__", None) or type(function).__name__

    def __class_getitem__(cls, item):
        return cls

    def arguments(self):
        """What checks a call's arguments and makes the call."""
        made = getattr(self, "_arguments", None)
        if made is None:
            if self.function_schema is not None:
                made = _GivenSchema(self.function, self.function_schema, self.takes_ctx)
            else:
                from updraft_function_schema import FunctionArguments

                made = FunctionArguments(self.function, self.takes_ctx, self.docstring_format)
            self._arguments = made
        return made

    async def prepared_definition(self, ctx):
        """The tool as the model is told of it in this step; None leaves it out."""
        arguments = self.arguments()
        description = self.description if self.description is not None else arguments.description
        definition = ToolDefinition(
            name=self.name,
            description=description,
            parameters_json_schema=arguments.json_schema,
            strict=self.strict,
            sequential=self.sequential,
            metadata=self.metadata,
        )
        if self.prepare is None:
            return definition
        prepared = self.prepare(ctx, definition)
        return await prepared if hasattr(prepared, "__await__") else prepared

    @classmethod
    def from_schema(cls, function, name, description, json_schema, takes_ctx=False, sequential=False, **kwargs):
        """A tool whose schema is given."""
        tool = cls(function, takes_ctx=takes_ctx, name=name, description=description, sequential=sequential, **kwargs)
        tool.function_schema = json_schema
        return tool


class _GivenSchema:
    """A function whose schema its author wrote: arguments are passed on as they come."""

    description = None

    def __init__(self, function, schema, takes_ctx):
        self.function = function
        self.json_schema = schema
        self.takes_ctx = takes_ctx

    def validate_python(self, args, **kwargs):
        """The arguments as they are."""
        return args

    async def call(self, checked, ctx):
        """Calls the function."""
        result = self.function(ctx, **checked) if self.takes_ctx else self.function(**checked)
        return await result if hasattr(result, "__await__") else result


class ToolDefinition(Record):
    """A tool as the model sees it."""

    _keyword = {
        "name": REQUIRED,
        "parameters_json_schema": Fresh(lambda: {"type": "object", "properties": {}}),
        "description": None,
        "outer_typed_dict_key": None,
        "strict": None,
        "sequential": False,
        "kind": "function",
        "metadata": None,
        "timeout": None,
        "defer_loading": False,
        "unless_native": None,
        "with_native": None,
        "tool_kind": None,
        "unless_tool_kind": None,
        "return_schema": None,
        "include_return_schema": None,
        "toolset_id": None,
        "capability_id": None,
    }


class DeferredToolRequests(Record):
    """Calls that wait for a person or for a result from outside."""

    _keyword = {"calls": Fresh(list), "approvals": Fresh(list), "metadata": Fresh(dict)}


class DeferredToolResults(Record):
    """What became of deferred calls."""

    _keyword = {"calls": Fresh(dict), "approvals": Fresh(dict), "metadata": Fresh(dict), "answered_by": None}


class ToolApproved(Record):
    """A call was approved."""

    _keyword = {"override_args": None, "kind": "tool-approved"}


class ToolDenied(Record):
    """A call was denied."""

    _positional = {"message": "The tool call was denied."}
    _keyword = {"kind": "tool-denied"}
