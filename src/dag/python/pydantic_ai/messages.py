"""Messages between an agent and a model."""

from updraft_lazy import lazy_names
from updraft_record import REQUIRED, Record

# What has no stand-in imports, and says so when it is needed.
__getattr__, _ = lazy_names(__name__, {}, fallback=True)


def _short_name(data):
    import hashlib

    return hashlib.sha1(data).hexdigest()[:6]


class BinaryContent(Record):
    """Bytes in a prompt."""

    _positional = {"data": REQUIRED}
    _keyword = {"media_type": REQUIRED, "identifier": None, "vendor_metadata": None, "kind": "binary"}

    def _made(self):
        self._own_name = self.identifier is not None
        if not self._own_name:
            self.identifier = _short_name(self.data)

    def __repr__(self):
        named = f", identifier={self.identifier!r}" if self._own_name else ""
        return f"{type(self).__name__}(data={self.data!r}, media_type={self.media_type!r}{named})"

    @classmethod
    def from_data_uri(cls, data_uri):
        """The bytes of a `data:` address."""
        import base64

        prefix = "data:"
        if not data_uri.startswith(prefix):
            raise ValueError("Data URI must start with 'data:'")
        media_type, data = data_uri[len(prefix) :].split(";base64,", 1)
        return cls(base64.b64decode(data), media_type=media_type)

    @classmethod
    def from_path(cls, path):
        """The bytes of a file; its name says what they are."""
        import mimetypes

        with open(path, "rb") as file:
            return cls(file.read(), media_type=mimetypes.guess_type(str(path))[0] or "application/octet-stream")

    @property
    def is_image(self):
        """Is it an image?"""
        return self.media_type.startswith("image/")

    @property
    def is_audio(self):
        """Is it a sound?"""
        return self.media_type.startswith("audio/")

    @property
    def is_video(self):
        """Is it a film?"""
        return self.media_type.startswith("video/")

    @property
    def base64(self):
        """The bytes as base64 text."""
        import base64

        return base64.b64encode(self.data).decode()

    @property
    def data_uri(self):
        """The bytes as a `data:` address."""
        return f"data:{self.media_type};base64,{self.base64}"


class BinaryImage(BinaryContent):
    """An image in a prompt."""


class FileUrl(Record):
    """The address of a file in a prompt."""

    def _made(self):
        if self.media_type is None:
            import mimetypes

            self.media_type = mimetypes.guess_type(self.url)[0]
        if self.identifier is None:
            self.identifier = _short_name(self.url.encode())


def _url(kind):
    keyword = {"media_type": None, "identifier": None, "force_download": False, "vendor_metadata": None, "kind": kind}
    return {"url": REQUIRED}, keyword


class ImageUrl(FileUrl):
    """The address of an image."""

    _positional, _keyword = _url("image-url")


class AudioUrl(FileUrl):
    """The address of a sound."""

    _positional, _keyword = _url("audio-url")


class VideoUrl(FileUrl):
    """The address of a film."""

    _positional, _keyword = _url("video-url")


class DocumentUrl(FileUrl):
    """The address of a document."""

    _positional, _keyword = _url("document-url")


class CachePoint(Record):
    """Up to here the provider may cache."""

    _positional = {"kind": "cache-point", "ttl": "5m"}


class TextContent(Record):
    """Text in a prompt."""

    _positional = {"content": REQUIRED}
    _keyword = {"metadata": None, "kind": "text-content"}


class ToolReturn(Record):
    """What a tool gives, with more for the model."""

    _positional = {"return_value": REQUIRED}
    _keyword = {"content": None, "metadata": None, "tools": None, "kind": "tool-return"}


class SystemPromptPart(Record):
    """The system prompt."""

    _positional = {"content": REQUIRED}
    _keyword = {
        "timestamp": None,
        "dynamic_ref": None,
        "context_id": None,
        "scope": "conversation",
        "metadata": None,
        "part_kind": "system-prompt",
    }


class UserPromptPart(Record):
    """What the user says."""

    _positional = {"content": REQUIRED}
    _keyword = {"timestamp": None, "part_kind": "user-prompt"}


class ToolReturnPart(Record):
    """What a tool gave."""

    _positional = {"tool_name": REQUIRED, "content": REQUIRED, "tool_call_id": None}
    _keyword = {
        "tool_kind": None,
        "metadata": None,
        "timestamp": None,
        "outcome": "success",
        "retry": None,
        "part_kind": "tool-return",
    }


class RetryInfo(Record):
    """One correction that a model is asked for."""

    _keyword = {"cause": REQUIRED, "attempt": None, "max_retries": None}


class RetryFeedbackPart(Record):
    """What was wrong with an answer that called nothing."""

    _positional = {"content": REQUIRED}
    _keyword = {"retry": None, "timestamp": None, "part_kind": "retry-feedback"}


class RetryPromptPart(Record):
    """What was wrong with an answer."""

    _positional = {"content": REQUIRED}
    _keyword = {"tool_name": None, "tool_call_id": None, "timestamp": None, "part_kind": "retry-prompt"}


class TextPart(Record):
    """Text of a model."""

    _positional = {"content": REQUIRED}
    _keyword = {"id": None, "provider_name": None, "provider_details": None, "citations": None, "part_kind": "text"}


class ThinkingPart(Record):
    """Thoughts of a model."""

    _positional = {"content": REQUIRED}
    _keyword = {"id": None, "signature": None, "provider_name": None, "provider_details": None, "part_kind": "thinking"}


class ToolCallPart(Record):
    """A call that a model wants."""

    _positional = {"tool_name": REQUIRED, "args": None, "tool_call_id": None}
    _keyword = {
        "tool_kind": None,
        "id": None,
        "provider_name": None,
        "provider_details": None,
        "part_kind": "tool-call",
    }

    def args_as_dict(self):
        """The arguments as a dict."""
        if isinstance(self.args, dict) or not self.args:
            return self.args or {}
        import json

        return json.loads(self.args)


class ModelRequest(Record):
    """What goes to a model."""

    _positional = {"parts": REQUIRED}
    _keyword = {
        "timestamp": None,
        "instructions": None,
        "kind": "request",
        "run_id": None,
        "conversation_id": None,
        "metadata": None,
        "state": "complete",
    }


class ModelResponse(Record):
    """What a model answers."""

    _positional = {"parts": REQUIRED}
    _keyword = {
        "usage": None,
        "model_name": None,
        "model_id": None,
        "timestamp": None,
        "kind": "response",
        "provider_name": None,
        "provider_url": None,
        "canonical_system": None,
        "provider_details": None,
        "provider_response_id": None,
        "finish_reason": None,
        "run_id": None,
        "conversation_id": None,
        "metadata": None,
        "workspace_ref": None,
        "history_digest": None,
        "failed_attempts": None,
        "state": "complete",
    }


ModelMessage = (ModelRequest, ModelResponse)
UserContent = (str, TextContent, FileUrl, BinaryContent, CachePoint)


# The parts of messages by their kinds.
PARTS = {
    cls._keyword["part_kind"]: cls
    for cls in (
        SystemPromptPart,
        UserPromptPart,
        ToolReturnPart,
        RetryFeedbackPart,
        RetryPromptPart,
        TextPart,
        ThinkingPart,
        ToolCallPart,
    )
}


def from_data(data):
    """Messages of their JSON data."""
    return [_message(message) for message in data]


def _message(data):
    cls = ModelResponse if data.get("kind") == "response" else ModelRequest
    fields = _fields(cls, data)
    fields["parts"] = [_part(part) for part in data.get("parts", ())]
    if cls is ModelResponse and isinstance(data.get("usage"), dict):
        from pydantic_ai.usage import RequestUsage

        known = vars(RequestUsage())
        fields["usage"] = RequestUsage(**{name: value for name, value in data["usage"].items() if name in known})
    return cls(**fields)


def _part(data):
    kind = data.get("part_kind")
    cls = PARTS.get(kind)
    if cls is None:
        raise NotImplementedError(f"a message part of the kind {kind!r} can't be read natively")
    fields = _fields(cls, data)
    if isinstance(fields.get("retry"), dict):
        fields["retry"] = RetryInfo(**_fields(RetryInfo, fields["retry"]))
    return cls(**fields)


def _fields(cls, data):
    known = {**cls._positional, **cls._keyword}
    fields = {name: value for name, value in data.items() if name in known}
    if isinstance(fields.get("timestamp"), str):
        import datetime

        fields["timestamp"] = datetime.datetime.fromisoformat(fields["timestamp"].replace("Z", "+00:00"))
    return fields


def to_data(value):
    """The JSON data of messages, of what is in them, or of such data."""
    if isinstance(value, dict):
        return {name: to_data(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
    if isinstance(value, Record):
        return {name: to_data(getattr(value, name)) for name in value._names()}
    if type(value).__name__ in ("RequestUsage", "RunUsage"):
        return {name: to_data(item) for name, item in vars(value).items()}
    return value


class _MessagesAdapter:
    """Reads and writes lists of messages."""

    @staticmethod
    def validate_python(messages, **kwargs):
        """The messages of plain data, or of messages."""
        return from_data(to_data(messages))

    @staticmethod
    def validate_json(text, **kwargs):
        """The messages of JSON."""
        from updraft_values import from_json

        return from_data(from_json(text if isinstance(text, str) else bytes(text).decode()))

    @staticmethod
    def dump_python(messages, **kwargs):
        """The messages as plain data."""
        return to_data(messages)

    @staticmethod
    def dump_json(messages, **kwargs):
        """The messages as JSON, in bytes."""
        from updraft_values import to_json

        return to_json(to_data(messages)).encode()


ModelMessagesTypeAdapter = _MessagesAdapter()
