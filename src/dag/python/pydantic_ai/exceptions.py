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


class OutputTokenLimitExceeded(UnexpectedModelBehavior):
    """The answer was cut off at the token limit."""


class IncompleteToolCall(OutputTokenLimitExceeded):
    """The answer was cut off inside a tool call."""


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
        message = f"status_code: {status_code}, model_name: {model_name}, body: {body}"
        ModelAPIError.__init__(self, model_name, message)
        hold(self, locals())


class ModelRateLimitError(ModelAPIError):
    """Too many requests."""


class ModelQuotaExceededError(ModelAPIError):
    """The account has no credit left."""


class ModelUnavailableError(ModelAPIError):
    """The provider can't serve now."""


class ModelOverloadedError(ModelUnavailableError):
    """The provider has too much to do."""


class ModelServerError(ModelAPIError):
    """A fault of the provider."""


class ModelConnectionError(ModelAPIError):
    """There was no connection, or it broke."""

    def __init__(self, model_name, message, *, phase=None, **more):
        self.phase = phase
        super().__init__(model_name, message, **more)


class ModelTimeoutError(ModelConnectionError):
    """A try took too long."""


class ModelRequestRejectedError(ModelAPIError):
    """The provider wants another request."""


class ModelContextWindowExceededError(ModelRequestRejectedError):
    """The conversation is too long for the model."""


class ModelAuthenticationError(ModelRequestRejectedError):
    """The key is wrong, or not for this."""


class ModelNotFoundError(ModelRequestRejectedError):
    """The provider has no such model."""


def _http(category):
    """A refusal with a status and of a category: both can be caught."""
    return type(category.__name__, (ModelHTTPError, category), {"__module__": __name__, "__doc__": category.__doc__})


HTTP_ERRORS = {
    category.__name__: _http(category)
    for category in (
        ModelRateLimitError,
        ModelQuotaExceededError,
        ModelUnavailableError,
        ModelOverloadedError,
        ModelServerError,
        ModelContextWindowExceededError,
        ModelRequestRejectedError,
        ModelAuthenticationError,
        ModelNotFoundError,
    )
}
HTTP_ERRORS["ModelHTTPError"] = ModelHTTPError


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
