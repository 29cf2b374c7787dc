"""Retry policies that ask a model."""

from dataclasses import dataclass
from datetime import timedelta

from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy
from updraft_hold import hold


@dataclass(frozen=True)
class ErrorCategory:
    """A kind of failure, and what to do about it."""

    description: str
    retry: bool = True
    delay: "timedelta | None" = None
    min_confidence: "float | None" = None


DEFAULT_CATEGORIES = {
    name: ErrorCategory(description, retry=bool(seconds), delay=timedelta(seconds=seconds) if seconds else None)
    for name, seconds, description in (
        ("rate_limit", 60, "The provider takes no more requests for now: a rate limit or a used-up quota."),
        ("auth", None, "The login was refused, has run out or may not do this."),
        ("network", 10, "The connection failed: name lookup, TLS, a reset or a time-out."),
        ("data", None, "The data do not fit: their schema, a type or a value."),
        ("resource", None, "Something that is needed is not there, such as a table or a bucket."),
        ("transient", 30, "Something that is likely to be gone at the next try."),
        ("permanent", None, "Something that stays wrong until the code or its settings change."),
    )
}


class _ModelRetryPolicy(RetryPolicy):
    # Not evaluated here: the worker says so and keeps to the task's `retries`.
    _updraft_asks_a_model = True

    def __init__(
        self,
        llm_conn_id,
        model_id=None,
        instructions=None,
        fallback_rules=None,
        timeout=30.0,
        *,
        redactor=None,
        redact_exception=True,
        max_exception_length=4096,
        include_traceback=False,
    ):
        hold(self, locals())
        self.fallback_rules = list(fallback_rules or ())

    def evaluate(self, exception, try_number, max_tries, context=None):
        """What the task says: no model is asked."""
        return RetryDecision.default()


class LLMRetryPolicy(_ModelRetryPolicy):
    """A model decides about the retry."""


class ClassifierRetryPolicy(_ModelRetryPolicy):
    """A model names the kind of failure; the categories decide about the retry."""

    def __init__(
        self,
        llm_conn_id,
        model_id=None,
        instructions=None,
        fallback_rules=None,
        timeout=30.0,
        *,
        categories=None,
        min_confidence=None,
        fallback_policy=None,
        redactor=None,
        redact_exception=True,
        max_exception_length=4096,
        include_traceback=False,
    ):
        hold(self, locals())
        if not isinstance(fallback_policy, (RetryPolicy, type(None))):
            raise TypeError(f"fallback_policy must be a RetryPolicy or None, and is {fallback_policy!r}")
        self.fallback_rules = list(fallback_rules or ())
        self.categories = dict(DEFAULT_CATEGORIES if categories is None else categories)
