"""What runs use and may use."""

from updraft_record import Fresh, Record


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


class RunUsage(Record):
    """What a run used."""

    _keyword = {
        "input_tokens": 0,
        "cache_write_tokens": 0,
        "cache_read_tokens": 0,
        "output_tokens": 0,
        "input_audio_tokens": 0,
        "cache_audio_read_tokens": 0,
        "details": Fresh(dict),
        "requests": 0,
        "tool_calls": 0,
    }

    @property
    def total_tokens(self):
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens


class RequestUsage(RunUsage):
    """What one request used."""


Usage = RunUsage
