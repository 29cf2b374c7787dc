"""Retry policies: what happens after which exception."""

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


class RetryPolicy:
    """Decides about retries."""

    def evaluate(self, exception, try_number, max_tries, context=None):
        """The decision about an exception."""
        return RetryDecision.default()


class RetryRule(Record):
    """What happens after an exception."""

    _positional = {
        "exception": REQUIRED,
        "action": RetryAction.RETRY,
        "retry_delay": None,
        "reason": None,
        "match_subclasses": True,
    }

    @property
    def exception_path(self):
        """The name of the exception."""
        cls = self.exception
        return cls if isinstance(cls, str) else f"{cls.__module__}.{cls.__qualname__}"

    def matches(self, exception):
        """Is the rule about this exception?"""
        classes = type(exception).__mro__ if self.match_subclasses else (type(exception),)
        return any(self.exception_path in (f"{c.__module__}.{c.__qualname__}", c.__qualname__) for c in classes)


class ExceptionRetryPolicy(RetryPolicy):
    """Decides by the kind of exception."""

    def __init__(self, rules, default=RetryAction.DEFAULT):
        self.rules = list(rules)
        self.default = default

    def evaluate(self, exception, try_number, max_tries, context=None):
        """The decision about an exception."""
        for rule in self.rules:
            if rule.matches(exception):
                return RetryDecision(rule.action, rule.retry_delay, rule.reason)
        return RetryDecision(self.default)
