"""Airflow's tools for an agent of the OpenAI Agents SDK, and the SDK's traces as spans of the task."""

import copy
import json

import _updraft
import updraft_values
from agents.exceptions import AgentsException
from agents.tool import FunctionTool
from agents.tracing import TracingProcessor
from airflow.providers.common.ai.tools import ToolCallError, collect_tools
from airflow.providers.common.ai.tools._from_toolset import tool_call_scope
from airflow.providers.common.ai.utils.tool_definition import serialize_for_llm

__all__ = ["AirflowTools", "AirflowTraceProcessor"]


class AirflowTools(list):
    """Toolsets and tools as function tools, in a list to give an `Agent`."""

    def __init__(self, *sources):
        for source in sources:
            _check(source)
        super().__init__(_function_tool(tool) for tool in collect_tools(sources))


def _check(source):
    from airflow.providers.common.ai.exceptions import MCPToolsetNotSupportedError
    from airflow.providers.common.ai.toolsets.mcp import MCPToolset

    if isinstance(source, MCPToolset):
        raise MCPToolsetNotSupportedError(
            "MCPToolset works in Pydantic AI agents and through the LangChain bridge, not through AirflowTools. Pass the "
            "server to the agent's mcp_servers with one of the SDK's MCPServer classes, such as MCPServerStreamableHttp, "
            "instead."
        )


class _FailedToolCall(ToolCallError, AgentsException):
    """One that the runner raises as it is: what is none of its own it would put into another exception."""


def _function_tool(tool):
    async def call(ctx, arguments):
        try:
            given = json.loads(arguments) if arguments else {}
        except ValueError as error:
            return serialize_for_llm({"error": f"The arguments are not valid JSON: {error}"})
        if not isinstance(given, dict):
            return serialize_for_llm({"error": "The arguments must be a JSON object."})
        try:
            # Every run has a usage of its own, and gives it to each of its calls.
            with tool_call_scope(run=ctx.usage):
                result = await tool.call(given)
        except ToolCallError as error:
            failure = str(error)
        else:
            return serialize_for_llm({"error": result.content} if result.is_error else result.content)
        raise _FailedToolCall(failure)

    return FunctionTool(
        tool.name, tool.description, copy.deepcopy(tool.parameters), call, strict_json_schema=False
    )


class AirflowTraceProcessor(TracingProcessor):
    """Records the SDK's traces as spans under the task's."""

    def __init__(self, tracer_provider=None):
        if tracer_provider is not None:
            from updraft_unavailable import refuse

            refuse("AirflowTraceProcessor(tracer_provider=...)")
        # Spans under way, and the trace that each belongs to.
        self._trace_of = {}

    def on_trace_start(self, trace):
        """The trace is a span of its own."""
        self._start(trace.trace_id, None, trace.name, {"openai_agents.trace_id": trace.trace_id})

    def on_trace_end(self, trace):
        """Spans that the SDK never ended end with their trace."""
        for span_id in [one for one, trace_id in self._trace_of.items() if trace_id == trace.trace_id]:
            del self._trace_of[span_id]
            _tell({"operation": "end", "id": span_id, "attributes": {}})
        _tell({"operation": "end", "id": trace.trace_id, "attributes": {}})

    def on_span_start(self, span):
        """A span begins."""
        name, _ = _described(span.span_data, False)
        is_request = span.span_data.type in ("generation", "response")
        self._trace_of[span.span_id] = span.trace_id
        self._start(span.span_id, span.parent_id or span.trace_id, name, {}, is_request)

    def on_span_end(self, span):
        """What the span is about is known only now."""
        self._trace_of.pop(span.span_id, None)
        capture = _captures_content()
        name, attributes = _described(span.span_data, capture)
        error = None
        if span.error is not None:
            error = _content(span.error["message"]) if capture else ""
        _tell({"operation": "end", "id": span.span_id, "name": name, "attributes": attributes, "error": error})

    def _start(self, id, parent, name, attributes, is_request=False):
        from airflow.providers.common.ai.tools.tracing import is_identified

        _tell(
            {
                "operation": "start",
                "id": id,
                "parent": parent,
                "name": name,
                "client": is_request,
                "identified": is_identified(),
                "attributes": attributes,
            }
        )

    def shutdown(self):
        """The worker sends spans."""

    def force_flush(self):
        """The worker sends spans."""


def _tell(span):
    _updraft.agent(updraft_values.to_json({"span": span}))


def _captures_content():
    return all(
        (_updraft.config("common.ai", key) or "").strip().lower() in ("t", "true", "1")
        for key in ("otel_export_enabled", "capture_content")
    )


def _described(data, capture):
    """The name of a span and its attributes, by what it is about."""
    describe = _KINDS.get(data.type)
    if describe is None:
        return f"openai_agents.{data.type}", {}
    name, attributes, content = describe(data)
    if capture:
        attributes.update((key, _content(value)) for key, value in content.items() if value is not None)
    return name, {key: value for key, value in attributes.items() if value is not None}


def _agent(data):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": data.name}
    return f"invoke_agent {data.name}", attributes, {}


def _generation(data):
    attributes = {"gen_ai.operation.name": "chat", **_usage(data.usage), "gen_ai.request.model": data.model}
    base_url = (data.model_config or {}).get("base_url")
    if base_url:
        from urllib.parse import urlsplit

        # Which provider it is can't be said: many servers speak this API.
        attributes["server.address"] = urlsplit(str(base_url)).hostname
    content = {"gen_ai.input.messages": data.input, "gen_ai.output.messages": data.output}
    return f"chat {data.model}" if data.model else "chat", attributes, content


def _response(data):
    answer = data.response
    model = answer.model if answer is not None else None
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", **_usage(data.usage)}
    output = None
    if answer is not None:
        attributes["gen_ai.response.id"] = answer.id
        attributes["gen_ai.response.model"] = model
        output = [item.model_dump(mode="json") for item in answer.output]
    content = {"gen_ai.input.messages": data.input, "gen_ai.output.messages": output}
    return f"chat {model}" if model else "chat", attributes, content


def _function(data):
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": data.name}
    content = {"gen_ai.tool.call.arguments": data.input, "gen_ai.tool.call.result": data.output}
    return f"execute_tool {data.name}", attributes, content


def _turn(data):
    attributes = {"gen_ai.agent.name": data.agent_name, "openai_agents.turn": data.turn}
    return f"openai_agents.turn {data.turn}", attributes, {}


def _handoff(data):
    attributes = {
        "openai_agents.handoff.from_agent": data.from_agent,
        "openai_agents.handoff.to_agent": data.to_agent,
    }
    return "openai_agents.handoff", attributes, {}


def _guardrail(data):
    attributes = {"openai_agents.guardrail.triggered": data.triggered}
    return f"openai_agents.guardrail {data.name}", attributes, {}


_KINDS = {
    "agent": _agent,
    "generation": _generation,
    "response": _response,
    "function": _function,
    "task": lambda data: (f"openai_agents.task {data.name}", {}, {}),
    "turn": _turn,
    "handoff": _handoff,
    "guardrail": _guardrail,
}


def _usage(usage):
    usage = usage or {}
    return {
        "gen_ai.usage.input_tokens": usage.get("input_tokens"),
        "gen_ai.usage.output_tokens": usage.get("output_tokens"),
    }


def _content(value):
    """Content as text, without secrets: JSON is looked into, for in it they would be written differently."""
    from updraft_tool_results import mask

    if isinstance(value, str):
        try:
            inside = json.loads(value)
        except ValueError:
            return mask(value)
        if not isinstance(inside, (dict, list)):
            return mask(value)
        value = inside
    return json.dumps(mask(value), default=str)
