"""Retry policies: what happens after which exception."""

from abc import ABCMeta, abstractmethod
from enum import Enum

from updraft_record import REQUIRED, Record


class RetryAction(Enum):
    """What happens after a failure."""

    RETRY = "retry"
    FAIL = "fail"
    DEFAULT = "default"


class RetryDecision(Record):
    """What a policy decides."""

    _positional = {"action": RetryAction.DEFAULT, "retry_delay": None, "reason": None}

    @classmethod
    def retry(cls, delay=None, reason=None):
        """Try again."""
        return cls(RetryAction.RETRY, delay, reason)

    @classmethod
    def fail(cls, reason=None):
        """Fail."""
        return cls(RetryAction.FAIL, None, reason)

    @classmethod
    def default(cls):
        """What the task says."""
        return cls()


class RetryPolicy(metaclass=ABCMeta):
    """Decides about retries."""

    @abstractmethod
    def evaluate(self, exception, try_number, max_tries, context=None):
        """The decision about an exception."""


class RetryRule(Record):
    """What happens after an exception, or after any of several."""

    _positional = {
        "exception": REQUIRED,
        "action": RetryAction.RETRY,
        "retry_delay": None,
        "reason": None,
        "match_subclasses": True,
    }

    def _made(self):
        for exception in self._exceptions():
            if isinstance(exception, str) and "." not in exception:
                raise ValueError(
                    "RetryRule exception string must be a dotted import path (e.g. 'builtins.ValueError'), "
                    f"got {exception!r}"
                )

    def _exceptions(self):
        given = self.exception
        return given if isinstance(given, list) else [given]

    @property
    def exception_path(self):
        """The name of the exception; several are separated by commas."""
        return ",".join(e if isinstance(e, str) else _path(e) for e in self._exceptions())

    def matches(self, exception):
        """Is the rule about this exception?"""
        classes = type(exception).__mro__ if self.match_subclasses else (type(exception),)
        return any(
            _path(cls) == wanted if isinstance(wanted, str) else cls is wanted
            for wanted in self._exceptions()
            for cls in classes
        )


def _path(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


class ExceptionRetryPolicy(RetryPolicy):
    """Decides by the kind of exception."""

    def __init__(self, rules, default=RetryAction.DEFAULT):
        self.rules = list(rules)
        self.default = default

    def evaluate(self, exception, try_number, max_tries, context=None):
        """The decision about an exception: that of the first rule about it."""
        for rule in self.rules:
            if rule.matches(exception):
                reason = rule.reason or f"Matched rule for {type(exception).__name__}"
                return RetryDecision(rule.action, rule.retry_delay, reason)
        return RetryDecision(self.default)
