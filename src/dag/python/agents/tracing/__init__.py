"""Traces and spans of runs, and what is told of them.

Nothing is told unless Dag code says so: the SDK's own processor, which sends traces to OpenAI, is not here.
"""

import contextlib
import datetime
import os
import uuid
from contextvars import ContextVar

from agents.tracing.span_data import (
    AgentSpanData,
    CustomSpanData,
    FunctionSpanData,
    GenerationSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    MCPListToolsSpanData,
    ResponseSpanData,
    SpanData,
    TaskSpanData,
    TurnSpanData,
)

_REDACTED = "Error details are redacted."

_processors = []
_disabled = None
_current_trace = ContextVar("agents_trace", default=None)
_current_span = ContextVar("agents_span", default=None)


class SpanError(dict):
    """What went wrong in a span."""


class TracingProcessor:
    """Is told of traces and spans."""

    def on_trace_start(self, trace):
        """A trace begins."""

    def on_trace_end(self, trace):
        """A trace has ended."""

    def on_span_start(self, span):
        """A span begins."""

    def on_span_end(self, span):
        """A span has ended."""

    def shutdown(self):
        """The program ends."""

    def force_flush(self):
        """What is known is to be told now."""


class TracingExporter:
    """Sends spans away."""


def set_trace_processors(processors):
    """These are told of traces, and nobody else."""
    _processors[:] = processors


def add_trace_processor(span_processor):
    """Somebody else is told of traces."""
    _processors.append(span_processor)


def set_tracing_disabled(disabled):
    """From now on nobody is told of traces, or they are again."""
    global _disabled
    _disabled = disabled


def set_tracing_export_api_key(api_key):
    """Nothing is sent to OpenAI from here."""


def flush_traces():
    """What is known is told now."""
    for processor in _processors:
        processor.force_flush()


def _is_off():
    if _disabled is not None:
        return _disabled
    return os.environ.get("OPENAI_AGENTS_DISABLE_TRACING", "false").lower() in ("true", "1")


def gen_trace_id():
    """A new id of a trace."""
    return f"trace_{uuid.uuid4().hex}"


def gen_span_id():
    """A new id of a span."""
    return f"span_{uuid.uuid4().hex[:24]}"


def gen_group_id():
    """A new id of a group."""
    return f"group_{uuid.uuid4().hex[:24]}"


def _now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


class Trace:
    """What belongs together."""

    def __init__(self, name, trace_id, group_id, metadata, is_told):
        # A run that goes on is in the trace that it began: its spans are told of, and not the trace once more.
        self.goes_on = False
        self.name = name
        self.trace_id = trace_id
        self.group_id = group_id
        self.metadata = metadata
        self._is_told = is_told
        self._token = None
        self._begun = False

    def start(self, mark_as_current=False):
        """Begins."""
        if self._begun:
            return
        self._begun = True
        if mark_as_current:
            self._token = _current_trace.set(self)
        if self._is_told and not self.goes_on:
            for processor in _processors:
                processor.on_trace_start(self)

    def finish(self, reset_current=False):
        """Ends."""
        if not self._begun:
            return
        if self._is_told and not self.goes_on:
            for processor in _processors:
                processor.on_trace_end(self)
        if reset_current and self._token is not None:
            _current_trace.reset(self._token)
            self._token = None

    def __enter__(self):
        self.start(mark_as_current=True)
        return self

    def __exit__(self, *exception):
        self.finish(reset_current=True)

    def export(self):
        """The trace as plain data."""
        return {
            "object": "trace",
            "id": self.trace_id,
            "workflow_name": self.name,
            "group_id": self.group_id,
            "metadata": self.metadata,
        }


class Span:
    """A part of a trace."""

    def __init__(self, trace, parent, span_data, span_id, is_told):
        self.trace_id = trace.trace_id if trace is not None else "no-op"
        self.span_id = span_id
        self.parent_id = parent.span_id if parent is not None else None
        self.span_data = span_data
        self.error = None
        self.started_at = None
        self.ended_at = None
        self._is_told = is_told
        self._token = None

    def __class_getitem__(cls, item):
        return cls

    def start(self, mark_as_current=False):
        """Begins."""
        if self.started_at is not None:
            return
        self.started_at = _now()
        if self._is_told:
            for processor in _processors:
                processor.on_span_start(self)
        if mark_as_current:
            self._token = _current_span.set(self)

    def finish(self, reset_current=False):
        """Ends."""
        if self.ended_at is not None:
            return
        self.ended_at = _now()
        if self._is_told:
            for processor in _processors:
                processor.on_span_end(self)
        if reset_current and self._token is not None:
            _current_span.reset(self._token)
            self._token = None

    def set_error(self, error):
        """Something went wrong."""
        self.error = error

    def __enter__(self):
        self.start(mark_as_current=True)
        return self

    def __exit__(self, kind, error, traceback):
        # A generator that is given up on is torn down in another context.
        self.finish(reset_current=kind is not GeneratorExit)

    def export(self):
        """The span as plain data."""
        return {
            "object": "trace.span",
            "id": self.span_id,
            "trace_id": self.trace_id,
            "parent_id": self.parent_id,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "span_data": self.span_data.export(),
            "error": self.error,
        }


def get_current_trace():
    """The trace that is under way."""
    return _current_trace.get()


def get_current_span():
    """The span that is under way."""
    return _current_span.get()


def trace(workflow_name, trace_id=None, group_id=None, metadata=None, tracing=None, disabled=False):
    """A trace, for a `with` block."""
    is_told = not disabled and not _is_off()
    return Trace(workflow_name, trace_id or gen_trace_id(), group_id, metadata, is_told)


def _span(data, span_id=None, parent=None, disabled=False):
    if parent is None:
        parent = _current_span.get()
        found = _current_trace.get()
    elif isinstance(parent, Trace):
        found, parent = parent, None
    else:
        found = _current_trace.get()
    is_told = not disabled and not _is_off() and found is not None and found._is_told
    if parent is not None and not parent._is_told:
        is_told = False
    return Span(found, parent, data, span_id or gen_span_id(), is_told)


def agent_span(name, handoffs=None, tools=None, output_type=None, span_id=None, parent=None, disabled=False):
    """An agent."""
    return _span(AgentSpanData(name, handoffs, tools, output_type), span_id, parent, disabled)


def task_span(name, span_id=None, parent=None, disabled=False):
    """A whole run."""
    return _span(TaskSpanData(name), span_id, parent, disabled)


def turn_span(turn, agent_name, span_id=None, parent=None, disabled=False):
    """A turn of the loop."""
    return _span(TurnSpanData(turn, agent_name), span_id, parent, disabled)


def function_span(name, input=None, output=None, span_id=None, parent=None, disabled=False):
    """A call of a tool."""
    return _span(FunctionSpanData(name, input, output), span_id, parent, disabled)


def generation_span(
    input=None, output=None, model=None, model_config=None, usage=None, span_id=None, parent=None, disabled=False
):
    """A request to a model."""
    return _span(GenerationSpanData(input, output, model, model_config, usage), span_id, parent, disabled)


def response_span(response=None, span_id=None, parent=None, disabled=False):
    """A request of the Responses API."""
    return _span(ResponseSpanData(response), span_id, parent, disabled)


def handoff_span(from_agent=None, to_agent=None, span_id=None, parent=None, disabled=False):
    """One agent hands over."""
    return _span(HandoffSpanData(from_agent, to_agent), span_id, parent, disabled)


def guardrail_span(name, triggered=False, span_id=None, parent=None, disabled=False):
    """A check."""
    return _span(GuardrailSpanData(name, triggered), span_id, parent, disabled)


def custom_span(name, data=None, span_id=None, parent=None, disabled=False):
    """Something of the caller's own."""
    return _span(CustomSpanData(name, data or {}), span_id, parent, disabled)


def mcp_tools_span(server=None, result=None, span_id=None, parent=None, disabled=False):
    """The tools of an MCP server are asked for."""
    return _span(MCPListToolsSpanData(server, result), span_id, parent, disabled)


def attach_error_to_current_span(message, data):
    """Something went wrong in the span that is under way."""
    span = _current_span.get()
    if span is not None:
        span.set_error(SpanError(message=message, data=data))


@contextlib.contextmanager
def model_span_errors(span, message, tracing):
    """Notes in a model's span what goes wrong in the block."""
    try:
        yield
    except Exception as error:
        shown = f"{error}" if tracing.include_data() else _REDACTED
        span.set_error(SpanError(message=message, data={"error": shown}))
        raise


__all__ = [name for name in dict(globals()) if not name.startswith("_")]
