"""Stand-in for OpenAI's client library: requests to its two APIs, sent by the worker.

Bodies are made and read here; the worker sends them, with the library's time-outs and retries (see `model/exchange.rs`).
"""

from updraft_lazy import lazy_names

__version__ = VERSION = "3.57.0"

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "openai.client": (
            "AsyncClient",
            "AsyncOpenAI",
            "AsyncStream",
            "Client",
            "OpenAI",
            "Stream",
            "NOT_GIVEN",
            "NotGiven",
            "Omit",
            "omit",
        ),
        "openai.errors": (
            "APIConnectionError",
            "APIError",
            "APIResponseValidationError",
            "APIStatusError",
            "APITimeoutError",
            "AuthenticationError",
            "BadRequestError",
            "ConflictError",
            "ContentFilterFinishReasonError",
            "InternalServerError",
            "LengthFinishReasonError",
            "NotFoundError",
            "OpenAIError",
            "PermissionDeniedError",
            "RateLimitError",
            "UnprocessableEntityError",
        ),
        "openai.objects": ("BaseModel",),
        "openai.types": (),
    },
    fallback=True,
)
