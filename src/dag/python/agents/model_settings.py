"""How a model is asked."""

from updraft_record import REQUIRED, Record

_NAMES = (
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "tool_choice",
    "parallel_tool_calls",
    "truncation",
    "max_tokens",
    "reasoning",
    "verbosity",
    "metadata",
    "store",
    "prompt_cache_retention",
    "include_usage",
    "response_include",
    "top_logprobs",
    "extra_query",
    "extra_body",
    "extra_headers",
    "extra_args",
    "retry",
    "context_management",
    "prompt_cache_options",
    "preserve_raw_usage",
    "timeout",
)

_NOT_TRACED = ("extra_query", "extra_body", "extra_headers", "extra_args", "preserve_raw_usage")


class MCPToolChoice(Record):
    """A tool of an MCP server that the provider reaches must be called."""

    _positional = {"server_label": REQUIRED, "name": REQUIRED}


class ModelSettings(Record):
    """How a model is asked; None leaves the choice to the provider."""

    _positional = dict.fromkeys(_NAMES)

    def _made(self):
        if self.retry is not None:
            from updraft_unavailable import refuse

            refuse("ModelSettings(retry=...)")
        if isinstance(self.reasoning, dict):
            from openai.types.shared import Reasoning

            self.reasoning = Reasoning(**self.reasoning)

    def resolve(self, override):
        """These settings with others over them."""
        if override is None:
            return self
        override = coerced(override, "ModelSettings override")
        values = {name: getattr(self, name) for name in _NAMES}
        values.update((name, getattr(override, name)) for name in _NAMES if getattr(override, name) is not None)
        if self.extra_args and override.extra_args:
            values["extra_args"] = {**self.extra_args, **override.extra_args}
        return type(self)(**values)

    def to_json_dict(self):
        """The settings as plain data."""
        return {name: _plain(getattr(self, name)) for name in _NAMES}

    def to_traceable_dict(self):
        """The settings that spans have: without what may hold keys."""
        return {name: value for name, value in self.to_json_dict().items() if name not in _NOT_TRACED}


def coerced(value, what):
    """Settings, also out of a dict."""
    if isinstance(value, ModelSettings):
        return value
    if not isinstance(value, dict):
        raise TypeError(f"{what} must be a ModelSettings instance or a dict, got {type(value).__name__}")
    unknown = sorted(str(name) for name in value if name not in _NAMES)
    if unknown:
        raise TypeError(f"Unknown model settings: {', '.join(unknown)}")
    return ModelSettings(**value)


def _plain(value):
    if isinstance(value, Record):
        return {name: getattr(value, name) for name in value._names()}
    return value.model_dump() if hasattr(value, "model_dump") else value
