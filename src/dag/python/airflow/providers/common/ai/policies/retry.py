"""Retry policies that ask a model."""

from dataclasses import dataclass
from datetime import timedelta

from airflow.sdk.definitions.retry_policy import RetryDecision, RetryPolicy


@dataclass(frozen=True)
class ErrorCategory:
    """A kind of failure, and what to do about it."""

    description: str
    retry: bool = True
    delay: "timedelta | None" = None
    min_confidence: "float | None" = None


DEFAULT_CATEGORIES = {
    "rate_limit": ErrorCategory("API throttling or a quota exceeded.", delay=timedelta(seconds=60)),
    "auth": ErrorCategory("Credentials invalid, expired, or missing permissions.", retry=False),
    "network": ErrorCategory(
        "Transient connectivity issue: connection reset, DNS, TLS handshake.", delay=timedelta(seconds=10)
    ),
    "data": ErrorCategory("Schema validation, type mismatch, or bad input data.", retry=False),
    "resource": ErrorCategory("Resource not found or unavailable, such as a missing table or bucket.", retry=False),
    "transient": ErrorCategory("Temporary issue likely to resolve on its own.", delay=timedelta(seconds=30)),
    "permanent": ErrorCategory("Problem that will not resolve without a code or configuration change.", retry=False),
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
        self.llm_conn_id = llm_conn_id
        self.model_id = model_id
        self.instructions = instructions
        self.fallback_rules = list(fallback_rules or ())
        self.timeout = timeout
        self.redactor = redactor
        self.redact_exception = redact_exception
        self.max_exception_length = max_exception_length
        self.include_traceback = include_traceback

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
        super().__init__(
            llm_conn_id,
            model_id,
            instructions,
            fallback_rules,
            timeout,
            redactor=redactor,
            redact_exception=redact_exception,
            max_exception_length=max_exception_length,
            include_traceback=include_traceback,
        )
        if fallback_policy is not None and not isinstance(fallback_policy, RetryPolicy):
            raise TypeError(f"fallback_policy must be a RetryPolicy, got {type(fallback_policy).__name__}.")
        self.categories = dict(DEFAULT_CATEGORIES if categories is None else categories)
        self.min_confidence = min_confidence
        self.fallback_policy = fallback_policy
