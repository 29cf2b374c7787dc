"""What goes wrong with a request to a model."""


class OpenAIError(Exception):
    """The base of the library's errors."""


class APIError(OpenAIError):
    """A request was made, and failed."""

    def __init__(self, message, request=None, *, body=None):
        super().__init__(message)
        self.message = message
        self.request = request
        self.body = body
        about = body if isinstance(body, dict) else {}
        self.code = about.get("code")
        self.param = about.get("param")
        self.type = about.get("type")


class APIResponseValidationError(APIError):
    """An answer that is none."""


class APIStatusError(APIError):
    """The server answered with a status from 400 on."""

    def __init__(self, message, *, response=None, body=None):
        super().__init__(message, None, body=body)
        self.response = response
        self.status_code = response.status_code if response is not None else None
        self.request_id = response.headers.get("x-request-id") if response is not None else None


class APIConnectionError(APIError):
    """No answer came."""

    def __init__(self, *, message="Connection error.", request=None):
        super().__init__(message, request)


class APITimeoutError(APIConnectionError):
    """No answer came in time."""

    def __init__(self, request=None, *, message="Request timed out."):
        super().__init__(message=message, request=request)


class BadRequestError(APIStatusError):
    """400."""


class AuthenticationError(APIStatusError):
    """401."""


class PermissionDeniedError(APIStatusError):
    """403."""


class NotFoundError(APIStatusError):
    """404."""


class ConflictError(APIStatusError):
    """409."""


class UnprocessableEntityError(APIStatusError):
    """422."""


class RateLimitError(APIStatusError):
    """429."""


class InternalServerError(APIStatusError):
    """From 500 on."""


class LengthFinishReasonError(OpenAIError):
    """An answer was cut off."""


class ContentFilterFinishReasonError(OpenAIError):
    """An answer was held back."""


_BY_STATUS = {
    400: BadRequestError,
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    422: UnprocessableEntityError,
    429: RateLimitError,
}


class Refused:
    """The head of an answer."""

    def __init__(self, status_code, headers, text):
        self.status_code = status_code
        self.headers = headers
        self.text = text


def of_answer(answer):
    """The exception for an answer of the worker's with a status from 400 on."""
    from updraft_values import from_json

    status, text = answer["status"], answer["text"].strip()
    try:
        body = from_json(text)
    except ValueError:
        body = text
    inner = body.get("error", body) if isinstance(body, dict) else body
    message = f"Error code: {status}"
    if isinstance(inner, dict) and isinstance(inner.get("message"), str):
        message = f"{message} - {inner['message']}"
    elif isinstance(body, dict):
        message = f"{message} - {body}"
    cls = _BY_STATUS.get(status, InternalServerError if status >= 500 else APIStatusError)
    return cls(message, response=Refused(status, answer["headers"], answer["text"]), body=inner)


for _cls in list(globals().values()):
    if isinstance(_cls, type) and issubclass(_cls, OpenAIError):
        # Its name as programs and logs know it.
        _cls.__module__ = "openai"
