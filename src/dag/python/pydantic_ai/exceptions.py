"""pydantic-ai's exceptions."""

from updraft_hold import hold
from updraft_lazy import lazy_names

# What has no stand-in imports, and says so when it is needed.
__getattr__, _ = lazy_names(__name__, {}, fallback=True)


class ModelRetry(Exception):
    """A tool asks the model to try again; the text goes to the model."""

    def __init__(self, message):
        self.message = message
        super().__init__(message)


class ToolFailed(Exception):
    """A tool failed; the text goes to the model and counts no retry."""

    def __init__(self, message):
        self.message = message
        super().__init__(message)


class CallDeferred(Exception):
    """The call's result comes from outside."""

    def __init__(self, metadata=None, *, kind="external"):
        self.metadata = metadata
        self.kind = kind
        super().__init__()


class ApprovalRequired(Exception):
    """A person must approve the call."""

    def __init__(self, metadata=None):
        self.metadata = metadata
        super().__init__()


class UserError(RuntimeError):
    """The agent was set up wrongly."""

    def __init__(self, message):
        self.message = message
        super().__init__(message)


class AgentRunError(RuntimeError):
    """A run failed."""

    def __init__(self, message):
        self.message = message
        super().__init__(message)


class UsageLimitExceeded(AgentRunError):
    """A run went over its limits."""


class UnexpectedModelBehavior(AgentRunError):
    """The model did what it should not."""

    def __init__(self, message, body=None):
        self.body = body
        super().__init__(message)


class ContentFilterError(UnexpectedModelBehavior):
    """The provider's content filter stopped the model."""


class IncompleteToolCall(UnexpectedModelBehavior):
    """The answer ended inside a tool call."""


class _RunStopped(AgentRunError):
    def __init__(
        self,
        message,
        *,
        messages=(),
        new_message_index=0,
        usage=None,
        metadata=None,
        run_id=None,
        conversation_id=None,
    ):
        super().__init__(message)
        hold(self, locals())


class RunCancelled(_RunStopped):
    """The run was cancelled."""


class RunTimedOut(_RunStopped):
    """The run took too long."""


class ModelAPIError(AgentRunError):
    """The provider's API failed."""

    def __init__(
        self,
        model_name,
        message,
        *,
        body=None,
        provider_error_code=None,
        provider_error_type=None,
        retry_after=None,
        in_stream=False,
    ):
        super().__init__(message)
        hold(self, locals())


class ModelHTTPError(ModelAPIError):
    """The provider's API answered with an error status."""

    def __init__(
        self,
        status_code,
        model_name,
        body=None,
        *,
        headers=None,
        suggested_model_id=None,
        hint=None,
        provider_error_code=None,
        provider_error_type=None,
        retry_after=None,
        in_stream=False,
    ):
        super().__init__(model_name, f"status_code: {status_code}, model_name: {model_name}, body: {body}")
        hold(self, locals())


class FallbackExceptionGroup(ExceptionGroup):
    """Every model of a fallback chain failed."""


class SkipModelRequest(Exception):
    """Answers without asking the model."""

    def __init__(self, response):
        self.response = response
        super().__init__()


class SkipToolExecution(Exception):
    """Answers without running the tool."""

    def __init__(self, result):
        self.result = result
        super().__init__()


class ConcurrencyLimitExceeded(AgentRunError):
    """Too many runs at once."""
