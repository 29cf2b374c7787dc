"""What an agent can call: functions, other agents, and the provider's own tools."""

import inspect
import json
import logging

from agents.exceptions import ModelBehaviorError, UserError
from updraft_record import REQUIRED, Record

_UNSET = object()
_FAILED = "An error occurred while running the tool. Please try again."
# What spans tell of a failure that may hold what must not be told.
REDACTED = "Tool execution failed. Error details are redacted."
DEFAULT_APPROVAL_REJECTION_MESSAGE = "Tool execution was not approved."

logger = logging.getLogger("openai.agents")


class _Output(Record):
    def __str__(self):
        return " ".join(f"{name}={getattr(self, name)!r}" for name in self._keyword)


class ToolOutputText(_Output):
    """Text that a tool gives."""

    _keyword = {"type": "text", "text": REQUIRED}


class ToolOutputImage(_Output):
    """A picture that a tool gives."""

    _keyword = {"type": "image", "image_url": None, "file_id": None, "detail": None}


class ToolOutputFileContent(_Output):
    """A file that a tool gives."""

    _keyword = {"type": "file", "file_data": None, "file_url": None, "file_id": None, "filename": None}


class FunctionToolResult(Record):
    """What a call of a function gave."""

    _positional = {"tool": REQUIRED, "output": REQUIRED, "run_item": REQUIRED}
    _keyword = {"interruptions": (), "agent_run_result": None}


def default_tool_error_function(ctx, error):
    """What a model is told of a failure when nothing else is said: nothing of it."""
    return _FAILED


def default_tool_timeout_error_message(*, tool_name, timeout_seconds):
    """What a model is told of a call that took too long."""
    return f"Tool '{tool_name}' timed out after {timeout_seconds:g} seconds."


class FunctionTool(Record):
    """A function that a model may call."""

    _positional = {
        "name": REQUIRED,
        "description": REQUIRED,
        "params_json_schema": REQUIRED,
        "on_invoke_tool": REQUIRED,
        "strict_json_schema": True,
        "is_enabled": True,
        "tool_input_guardrails": None,
        "tool_output_guardrails": None,
        "needs_approval": False,
        "timeout_seconds": None,
        "timeout_behavior": "error_as_result",
        "timeout_error_function": None,
        "defer_loading": False,
    }
    _keyword = {
        "custom_data_extractor": None,
        "allowed_callers": None,
        "output_json_schema": None,
        "_failure_error_function": None,
        "_is_agent_tool": False,
        "_agent_instance": None,
    }

    def _made(self):
        if self.strict_json_schema:
            from agents.strict_schema import strict_copy

            self.params_json_schema = strict_copy(self.params_json_schema)

    @property
    def qualified_name(self):
        """The name."""
        return self.name

    async def invoke(self, ctx, arguments):
        """Calls the function, for so long as it may take; what it raises is told to the model, unless it ends the run."""
        if self.timeout_seconds is None:
            return await self.on_invoke_tool(ctx, arguments)
        import asyncio

        from agents.exceptions import ToolTimeoutError

        try:
            return await asyncio.wait_for(self.on_invoke_tool(ctx, arguments), self.timeout_seconds)
        except asyncio.TimeoutError:
            error = ToolTimeoutError(self.name, self.timeout_seconds)
        if self.timeout_behavior == "raise_exception":
            raise error
        if self.timeout_error_function is not None:
            return await awaited(self.timeout_error_function(ctx, error))
        return default_tool_timeout_error_message(tool_name=self.name, timeout_seconds=self.timeout_seconds)


async def awaited(value):
    """What a function gave, which may be a coroutine."""
    return await value if inspect.isawaitable(value) else value


class _Guarded:
    """Calls a function, and tells the model of what it raises."""

    def __init__(self, call, name, failure_error_function):
        self.call = call
        self.name = name
        self.failure_error_function = failure_error_function

    async def __call__(self, ctx, arguments):
        try:
            return await self.call(ctx, arguments)
        except Exception as error:
            if self.failure_error_function is None:
                raise
            ctx._handled_error = error
            from agents.tracing import attach_error_to_current_span

            attach_error_to_current_span(
                "Error running tool (non-fatal)", {"tool_name": self.name, "error": self._shown(ctx, error)}
            )
            logger.debug("Tool %s failed", self.name)
            return await awaited(self.failure_error_function(ctx, error))

    def _shown(self, ctx, error):
        # Where the model is told nothing of a failure, nobody else is.
        config = getattr(ctx, "run_config", None)
        shown = config is None or config.trace_include_sensitive_data
        shown = shown and self.failure_error_function is not default_tool_error_function
        return str(error) if shown else REDACTED

    def with_failure_error_function(self, function):
        """The same call, with something else told."""
        return _Guarded(self.call, self.name, function)


def arguments_of(tool_name, text):
    """A call's arguments as the model wrote them.

    Raises ModelBehaviorError, without the arguments: they may hold what must not be told.
    """
    try:
        arguments = json.loads(text) if text else {}
    except ValueError:
        arguments = None
    else:
        if not isinstance(arguments, dict):
            raise ModelBehaviorError(f"Invalid JSON input for tool {tool_name}: expected a JSON object")
    if arguments is None:
        raise ModelBehaviorError(f"Invalid JSON input for tool {tool_name}")
    return arguments


def function_tool(
    func=None,
    *,
    name_override=None,
    description_override=None,
    docstring_style=None,
    use_docstring_info=True,
    failure_error_function=_UNSET,
    strict_mode=True,
    is_enabled=True,
    needs_approval=False,
    tool_input_guardrails=None,
    tool_output_guardrails=None,
    timeout=None,
    timeout_behavior="error_as_result",
    timeout_error_function=None,
    defer_loading=False,
    custom_data_extractor=None,
    allowed_callers=None,
    output_type=None,
    output_json_schema=None,
):
    """A decorator that makes a tool of a function."""
    from updraft_unavailable import refuse

    for name, value in (
        ("defer_loading", defer_loading or None),
        ("allowed_callers", allowed_callers),
        ("output_type", output_type),
        ("output_json_schema", output_json_schema),
    ):
        if value is not None:
            refuse(f"function_tool({name}=...)")

    def decorate(function):
        from agents.function_schema import function_schema

        schema = function_schema(
            function, docstring_style, name_override, description_override, use_docstring_info, strict_mode
        )
        told = default_tool_error_function if failure_error_function is _UNSET else failure_error_function

        async def call(ctx, text):
            from pydantic import ValidationError

            tool_name = ctx.tool_name
            arguments = arguments_of(tool_name, text)
            try:
                checked = schema.params_pydantic_model(**arguments)
            except ValidationError:
                checked = None
            if checked is None:
                raise ModelBehaviorError(f"Invalid JSON input for tool {tool_name}")
            args, named = schema.to_call_args(checked)
            if schema.takes_context:
                args = [ctx, *args]
            # A function that is no coroutine runs on the loop's thread: its turn comes when others wait.
            return await awaited(function(*args, **named))

        tool = FunctionTool(
            schema.name,
            schema.description or "",
            schema.params_json_schema,
            _Guarded(call, schema.name, told),
            strict_mode,
            is_enabled,
            tool_input_guardrails,
            tool_output_guardrails,
            needs_approval,
            timeout,
            timeout_behavior,
            timeout_error_function,
            custom_data_extractor=custom_data_extractor,
            _failure_error_function=told,
        )
        tool.__wrapped__ = function
        return tool

    return decorate if func is None else decorate(func)


async def is_on(tool, context, agent):
    """Is the model to be told of a tool or a handoff?"""
    enabled = getattr(tool, "is_enabled", True)
    return bool(await awaited(enabled(context, agent))) if callable(enabled) else bool(enabled)


# Tools that the provider runs: they are sent to it, and what they did comes back. -----------------------------------


class WebSearchTool(Record):
    """The provider searches the web."""

    _positional = {
        "user_location": None,
        "filters": None,
        "search_context_size": "medium",
        "external_web_access": None,
        "search_content_types": None,
        "image_settings": None,
    }
    name = "web_search"

    def _sent(self):
        sent = {
            "type": "web_search",
            "filters": _plain(self.filters),
            "user_location": self.user_location,
            "search_context_size": self.search_context_size,
        }
        for name in ("external_web_access", "search_content_types", "image_settings"):
            if getattr(self, name) is not None:
                sent[name] = _plain(getattr(self, name))
        return sent


def _plain(value):
    return value.model_dump() if hasattr(value, "model_dump") else value


class FileSearchTool(Record):
    """The provider searches its own files."""

    _positional = {
        "vector_store_ids": REQUIRED,
        "max_num_results": None,
        "include_search_results": False,
        "ranking_options": None,
        "filters": None,
    }
    name = "file_search"

    def _sent(self):
        sent = {"type": "file_search", "vector_store_ids": self.vector_store_ids}
        most = self.max_num_results
        if most is not None:
            if isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= 50:
                raise UserError("FileSearchTool max_num_results must be zero, an integer between 1 and 50, or None.")
            if most:
                sent["max_num_results"] = most
        if self.ranking_options:
            sent["ranking_options"] = _plain(self.ranking_options)
        if self.filters:
            sent["filters"] = _plain(self.filters)
        return sent


class _Configured(Record):
    _positional = {"tool_config": REQUIRED}

    def _sent(self):
        return dict(self.tool_config)


class CodeInterpreterTool(_Configured):
    """The provider runs code."""

    name = "code_interpreter"


class ImageGenerationTool(_Configured):
    """The provider makes pictures."""

    name = "image_generation"


class HostedMCPTool(Record):
    """The provider calls the tools of an MCP server."""

    _positional = {"tool_config": REQUIRED, "on_approval_request": None}
    name = "hosted_mcp"

    def _made(self):
        if self.on_approval_request is not None:
            from updraft_unavailable import refuse

            refuse("HostedMCPTool(on_approval_request=...)")

    def _sent(self):
        return dict(self.tool_config)


HOSTED = (WebSearchTool, FileSearchTool, CodeInterpreterTool, ImageGenerationTool, HostedMCPTool)
Tool = FunctionTool
