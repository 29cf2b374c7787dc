"""What a run's requests cost in tokens."""

from openai.objects import BaseModel


class InputTokensDetails(BaseModel):
    """What kinds of tokens the input had."""

    _defaults = {"cached_tokens": 0, "cache_write_tokens": 0, "cache_write_tokens_details": None}


class OutputTokensDetails(BaseModel):
    """What kinds of tokens the output had."""

    _defaults = {"reasoning_tokens": 0}


class RequestUsage:
    """The tokens of one request."""

    def __init__(self, input_tokens, output_tokens, total_tokens, input_tokens_details, output_tokens_details):
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.total_tokens = total_tokens
        self.input_tokens_details = input_tokens_details
        self.output_tokens_details = output_tokens_details


class Usage:
    """The requests of a run and their tokens."""

    def __init__(
        self,
        requests=0,
        input_tokens=0,
        input_tokens_details=None,
        output_tokens=0,
        output_tokens_details=None,
        total_tokens=0,
        request_usage_entries=None,
    ):
        self.requests = requests
        self.input_tokens = input_tokens
        self.input_tokens_details = input_tokens_details or InputTokensDetails(cached_tokens=0, cache_write_tokens=0)
        self.output_tokens = output_tokens
        self.output_tokens_details = output_tokens_details or OutputTokensDetails(reasoning_tokens=0)
        self.total_tokens = total_tokens
        self.request_usage_entries = list(request_usage_entries or ())

    def add(self, other):
        """Counts another usage as well."""
        self.requests += other.requests
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.total_tokens += other.total_tokens
        for mine, its in (
            (self.input_tokens_details, other.input_tokens_details),
            (self.output_tokens_details, other.output_tokens_details),
        ):
            for name in _counts(mine):
                setattr(mine, name, (getattr(mine, name) or 0) + (getattr(its, name) or 0))
        if other.request_usage_entries:
            self.request_usage_entries.extend(other.request_usage_entries)
        elif other.requests == 1 and other.total_tokens > 0:
            self.request_usage_entries.append(
                RequestUsage(
                    other.input_tokens,
                    other.output_tokens,
                    other.total_tokens,
                    other.input_tokens_details,
                    other.output_tokens_details,
                )
            )

    def as_span(self):
        """The usage as spans have it."""
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "input_tokens_details": self.input_tokens_details.model_dump(),
            "output_tokens_details": self.output_tokens_details.model_dump(),
        }

    def since(self, before):
        """The usage beyond an earlier state of it, as `as_span`."""
        return _less(self.as_span(), before)

    def __eq__(self, other):
        return isinstance(other, Usage) and self.as_span() == other.as_span()

    __hash__ = object.__hash__

    def __repr__(self):
        return (
            f"Usage(requests={self.requests}, input_tokens={self.input_tokens}, output_tokens={self.output_tokens}, "
            f"total_tokens={self.total_tokens})"
        )


def _counts(details):
    return [name for name, default in details._defaults.items() if default == 0]


def _less(now, before):
    return {
        name: _less(value, before[name]) if isinstance(value, dict) else value and value - before[name]
        for name, value in now.items()
    }


def of_answer(usage):
    """The usage of one request out of the Responses API's words for it."""
    return Usage(
        requests=1,
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        total_tokens=usage.total_tokens or 0,
        input_tokens_details=_details(InputTokensDetails, getattr(usage, "input_tokens_details", None)),
        output_tokens_details=_details(OutputTokensDetails, getattr(usage, "output_tokens_details", None)),
    )


def of_completion(usage):
    """The usage of one request out of the Chat Completions API's words for it."""
    if usage is None:
        return Usage(requests=1)
    return Usage(
        requests=1,
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        total_tokens=usage.total_tokens or 0,
        input_tokens_details=_details(InputTokensDetails, usage.prompt_tokens_details),
        output_tokens_details=_details(OutputTokensDetails, usage.completion_tokens_details),
    )


def _details(cls, given):
    return cls(**{name: getattr(given, name, None) or 0 for name in _counts(cls)})
