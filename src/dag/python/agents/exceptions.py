"""What ends a run."""


class RunErrorDetails:
    """How far a run had come when it failed."""

    def __init__(self, **details):
        self.__dict__.update(details)


class AgentsException(Exception):
    """The base of the SDK's exceptions."""

    def __init__(self, *args):
        super().__init__(*args)
        self.run_data = None


class _WithMessage(AgentsException):
    def __init__(self, message):
        self.message = message
        super().__init__(message)


class MaxTurnsExceeded(_WithMessage):
    """The run took more turns than it may."""


class ModelBehaviorError(_WithMessage):
    """The model did something that it can't: it called a tool that is not there, or wrote no JSON."""


class UserError(_WithMessage):
    """The SDK is used in a wrong way, or a tool failed."""


class MCPToolCancellationError(_WithMessage):
    """A call of an MCP server's tool was ended."""


class ModelRefusalError(AgentsException):
    """The model refused to answer."""

    def __init__(self, refusal):
        self.refusal = refusal
        super().__init__(f"Model refused to produce output: {refusal}")


class ToolTimeoutError(AgentsException):
    """A tool took longer than it may."""

    def __init__(self, tool_name, timeout_seconds):
        self.tool_name = tool_name
        self.timeout_seconds = timeout_seconds
        super().__init__(f"Tool '{tool_name}' timed out after {timeout_seconds:g} seconds.")


class _Tripwire(AgentsException):
    def __init__(self, guardrail_result):
        self.guardrail_result = guardrail_result
        super().__init__(f"Guardrail {type(guardrail_result.guardrail).__name__} triggered tripwire")


class InputGuardrailTripwireTriggered(_Tripwire):
    """A guardrail stopped the run for its input."""


class OutputGuardrailTripwireTriggered(_Tripwire):
    """A guardrail stopped the run for its answer."""


class _ToolTripwire(AgentsException):
    _of = ""

    def __init__(self, guardrail, output):
        self.guardrail = guardrail
        self.output = output
        super().__init__(f"Tool {self._of} guardrail {type(guardrail).__name__} triggered tripwire")


class ToolInputGuardrailTripwireTriggered(_ToolTripwire):
    """A guardrail stopped the run for a tool's arguments."""

    _of = "input"


class ToolOutputGuardrailTripwireTriggered(_ToolTripwire):
    """A guardrail stopped the run for what a tool gave."""

    _of = "output"
