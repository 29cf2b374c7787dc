"""What runs use and may use."""

from updraft_record import Record


class UsageLimits(Record):
    """Limits of a run; None is no limit."""

    _keyword = {
        "cost_limit": None,
        "request_limit": 50,
        "tool_calls_limit": None,
        "input_tokens_limit": None,
        "output_tokens_limit": None,
        "total_tokens_limit": None,
        "per_request_input_tokens_limit": None,
        "count_tokens_before_request": False,
    }

    def has_token_limits(self):
        """Is any limit on tokens set?"""
        return any(
            limit is not None for limit in (self.input_tokens_limit, self.output_tokens_limit, self.total_tokens_limit)
        )


_COUNTS = (
    "requests",
    "tool_calls",
    "input_tokens",
    "cache_write_tokens",
    "cache_read_tokens",
    "output_tokens",
    "input_audio_tokens",
    "cache_audio_read_tokens",
    "output_audio_tokens",
)


class RunUsage:
    """What a run used."""

    def __init__(self, *, details=None, **kwargs):
        for name in _COUNTS:
            setattr(self, name, kwargs.pop(name, 0))
        self.cost = kwargs.pop("cost", None)
        self.details = details or {}
        if kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument {next(iter(kwargs))!r}"
            )

    @property
    def total_tokens(self):
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens


class RequestUsage(RunUsage):
    """What one request used."""


Usage = RunUsage
