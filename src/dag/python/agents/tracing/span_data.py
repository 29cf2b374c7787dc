"""What spans are about."""


class SpanData:
    """What a span is about."""

    type = ""
    _names = ()

    def __init__(self, *values, **named):
        for name, value in zip(self._names, values):
            setattr(self, name, value)
        for name in self._names[len(values) :]:
            setattr(self, name, named.get(name))

    def export(self):
        """As plain data."""
        return {"type": self.type, **{name: getattr(self, name) for name in self._names}}


class AgentSpanData(SpanData):
    """An agent."""

    type = "agent"
    _names = ("name", "handoffs", "tools", "output_type")


class _Step(SpanData):
    """A part of the loop, which goes by `custom` outside."""

    usage = None

    def export(self):
        """As plain data."""
        data = {"sdk_span_type": self.type, **{name: getattr(self, name) for name in self._names}}
        if self.usage is not None:
            data["usage"] = self.usage
        return {"type": "custom", "name": self.type, "data": data}


class TaskSpanData(_Step):
    """A whole run."""

    type = "task"
    _names = ("name",)


class TurnSpanData(_Step):
    """A turn of the loop."""

    type = "turn"
    _names = ("turn", "agent_name")


class FunctionSpanData(SpanData):
    """A call of a tool."""

    type = "function"
    _names = ("name", "input", "output", "mcp_data")

    def export(self):
        """As plain data."""
        return {**super().export(), "output": None if self.output is None else str(self.output)}


class GenerationSpanData(SpanData):
    """A request to a model."""

    type = "generation"
    _names = ("input", "output", "model", "model_config", "usage")


class ResponseSpanData(SpanData):
    """A request of the Responses API."""

    type = "response"
    _names = ("response", "input", "usage")

    def export(self):
        """As plain data."""
        answered = self.response.id if self.response is not None else None
        return {"type": self.type, "response_id": answered, "usage": self.usage}


class HandoffSpanData(SpanData):
    """One agent hands over."""

    type = "handoff"
    _names = ("from_agent", "to_agent")


class CustomSpanData(SpanData):
    """Something of the caller's own."""

    type = "custom"
    _names = ("name", "data")


class GuardrailSpanData(SpanData):
    """A check."""

    type = "guardrail"
    _names = ("name", "triggered")


class MCPListToolsSpanData(SpanData):
    """The tools of an MCP server are asked for."""

    type = "mcp_tools"
    _names = ("server", "result")
