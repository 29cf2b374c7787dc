"""Retry policies that ask a model."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from airflow.providers.common.ai.policies.decision import check_bar
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryDecision, RetryPolicy
from updraft_hold import hold

log = logging.getLogger(__name__)

DEFAULT_INSTRUCTIONS = """\
You look at failures of tasks in a data pipeline. Say which of these categories the error belongs to:

rate_limit: the provider takes no more requests for now. Try again after some 60 seconds.
auth: the login was refused, has run out, or may not do this. Do not try again.
network: the connection failed for a passing reason. Try again after some 10 seconds.
data: the data do not fit their schema, a type or a rule. Do not try again.
resource: something that is needed, such as a table or a bucket, is not there. Do not try again.
transient: something that is likely to be gone soon. Try again after some 30 seconds.
permanent: something that stays wrong until the code or its settings change. Do not try again.

Suggest a delay of 0 seconds where the task should not be tried again."""

CLASSIFIER_INSTRUCTIONS = (
    "You look at failures of tasks in a data pipeline. Choose the one category that describes the error best; each "
    "category's description says what belongs to it."
)


def redact_registered_secrets(message):
    """The text without the secrets that the worker knows."""
    import _updraft

    return _updraft.mask(message)


@dataclass(frozen=True)
class ErrorCategory:
    """A kind of failure, and what to do about it."""

    description: str
    retry: bool = True
    delay: "timedelta | None" = None
    min_confidence: "float | None" = None

    def __post_init__(self):
        if not isinstance(self.description, str) or not self.description.strip():
            raise ValueError("ErrorCategory.description must be a non-empty string.")
        if not isinstance(self.retry, bool):
            raise TypeError(f"ErrorCategory.retry must be True or False, got {self.retry!r}.")
        if self.delay is not None:
            if not isinstance(self.delay, timedelta):
                raise TypeError(f"ErrorCategory.delay must be a timedelta or None, got {self.delay!r}.")
            if self.delay < timedelta(0):
                raise ValueError(f"ErrorCategory.delay must not be negative, got {self.delay!r}.")
            if not self.retry:
                raise ValueError("ErrorCategory.delay is set but retry=False: there is no retry to delay.")
        if self.min_confidence is not None:
            object.__setattr__(self, "min_confidence", check_bar(self.min_confidence, "ErrorCategory.min_confidence"))


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
    """What both policies have: the model, the question, and rules for when it has no answer."""

    _default_instructions = ""

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
        if max_exception_length <= 0:
            raise ValueError(f"max_exception_length must be a positive integer, got {max_exception_length}")
        if redactor is not None and not redact_exception:
            raise ValueError("redactor must not be set when redact_exception=False: leave one of them out.")
        hold(self, locals())
        self.instructions = instructions or self._default_instructions
        self.redactor = (redactor or redact_registered_secrets) if redact_exception else None

    def _ask(self, output_type, exception, try_number, max_tries):
        """What the model says about the exception, as an `AgentRunResult`."""
        from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook

        hook = PydanticAIHook(llm_conn_id=self.llm_conn_id, model_id=self.model_id)
        agent = hook.create_agent(output_type=output_type, instructions=self.instructions)
        question = (
            f"Classify this error from a data pipeline task (attempt {try_number} of {max_tries + 1}):\n\n"
            f"{self._told(exception)}"
        )
        return agent.run_sync(question, model_settings={"timeout": self.timeout})

    def _told(self, exception):
        if self.include_traceback:
            import traceback

            text = "".join(traceback.format_exception(exception)).rstrip("\n")
        else:
            text = str(exception)
        # First masked: half a secret would not be known any more.
        if self.redactor is not None:
            text = self.redactor(text)
        if len(text) > self.max_exception_length:
            if self.include_traceback:
                # Its end says most.
                text = f"(truncated) ...{text[-self.max_exception_length :]}"
            else:
                text = f"{text[: self.max_exception_length]}... (truncated)"
        return text if self.include_traceback else f"{type(exception).__name__}: {text}"

    def _by_rules(self, exception, try_number, max_tries, context):
        if not self.fallback_rules:
            return RetryDecision.default()
        return ExceptionRetryPolicy(rules=self.fallback_rules).evaluate(exception, try_number, max_tries, context)


def _classification():
    """What `LLMRetryPolicy` asks for."""
    from pydantic import BaseModel

    class ErrorClassification(BaseModel):
        """What the error is, and whether trying again may help."""

        category: str
        should_retry: bool
        suggested_delay_seconds: int = 0
        reasoning: str

    return ErrorClassification


def __getattr__(name):
    # pydantic is not imported for a Dag that only names a policy.
    if name == "ErrorClassification":
        made = globals()[name] = _classification()
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class LLMRetryPolicy(_ModelRetryPolicy):
    """A model decides about the retry."""

    _default_instructions = DEFAULT_INSTRUCTIONS

    def evaluate(self, exception, try_number, max_tries, context=None):
        """The model's decision; that of the rules when it gives none."""
        try:
            said = self._ask(_classification(), exception, try_number, max_tries).output
        except Exception:
            log.exception("LLM retry classification failed, using fallback")
            return self._by_rules(exception, try_number, max_tries, context)
        log.info(
            "LLM error classification: category=%s, should_retry=%s, delay=%ds, reasoning=%s",
            said.category,
            said.should_retry,
            said.suggested_delay_seconds,
            said.reasoning,
        )
        reason = f"{said.category}: {said.reasoning}"
        if not said.should_retry:
            return RetryDecision.fail(reason=reason)
        seconds = said.suggested_delay_seconds
        return RetryDecision.retry(delay=timedelta(seconds=seconds) if seconds > 0 else None, reason=reason)


class ClassifierRetryPolicy(_ModelRetryPolicy):
    """A model names the kind of failure; the categories decide about the retry."""

    _default_instructions = CLASSIFIER_INSTRUCTIONS

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
        self.min_confidence = None if min_confidence is None else check_bar(min_confidence, "min_confidence")
        self.categories = self._checked(DEFAULT_CATEGORIES if categories is None else categories)
        if not isinstance(fallback_policy, (RetryPolicy, type(None))):
            raise TypeError(f"fallback_policy must be a RetryPolicy, got {type(fallback_policy).__name__}.")
        self.fallback_policy = fallback_policy

    def _checked(self, categories):
        if not hasattr(categories, "items"):
            raise TypeError(f"categories must be a mapping of name to ErrorCategory, got {type(categories).__name__}.")
        if len(categories) < 2:
            raise ValueError(f"categories needs two entries at least to choose between, got {len(categories)}.")
        for name, category in categories.items():
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f"categories keys must be non-empty strings, got {name!r}.")
            if not isinstance(category, ErrorCategory):
                raise TypeError(f"categories[{name!r}] must be an ErrorCategory, got {type(category).__name__}.")
        barred = sorted(name for name, category in categories.items() if category.min_confidence is not None)
        if barred and self.min_confidence is None:
            raise ValueError(
                f"categories {barred} set min_confidence, and the policy sets none for the others: set "
                "ClassifierRetryPolicy(min_confidence=...)."
            )
        return dict(categories)

    def evaluate(self, exception, try_number, max_tries, context=None):
        """What the named category says; else what the other policy or the rules say."""
        asked = (exception, try_number, max_tries)
        try:
            outcome = self._classified(*asked)
        except Exception:
            log.exception("Classifier retry classification failed, using fallback")
            outcome = "model_error"
        if isinstance(outcome, RetryDecision):
            return outcome
        if self.fallback_policy is not None:
            decision = self._escalated(outcome, *asked, context)
            if decision is not None:
                return decision
        because = f"classifier answer not applied ({outcome})"
        ruled = self._by_rules(*asked, context)
        if ruled.action is RetryAction.DEFAULT and ruled.reason is None:
            return RetryDecision(RetryAction.DEFAULT, None, f"{because}; task retry settings apply")
        return RetryDecision(ruled.action, ruled.retry_delay, f"{because}; {ruled.reason}")

    def _escalated(self, why, exception, try_number, max_tries, context):
        """The other policy's decision, with the reason for asking it; None when it decides nothing."""
        other = type(self.fallback_policy).__name__
        log.info("Classifier answer not applied (%s), consulting %s", why, other)
        try:
            decision = self.fallback_policy.evaluate(exception, try_number, max_tries, context)
        except Exception:
            log.exception("fallback_policy failed, using fallback rules")
            return None
        if decision.action is RetryAction.DEFAULT:
            log.info("%s decided nothing (%s), using fallback rules", other, decision.reason or "no reason given")
            return None
        reasons = [f"escalated ({why})", decision.reason]
        return RetryDecision(decision.action, decision.retry_delay, "; ".join(r for r in reasons if r is not None))

    def _classified(self, exception, try_number, max_tries):
        """The decision of the category that the model names, or why it does not count."""
        from airflow.providers.common.ai.utils.decision import ModelConfidence
        from updraft_output import DescribedChoice

        choice = DescribedChoice({name: category.description for name, category in self.categories.items()})
        result = self._ask(choice, exception, try_number, max_tries)
        name = str(result.output)
        category = self.categories.get(name)
        if category is None:
            log.error("Classifier answered %r, which is not a configured category", name)
            return "model_error"
        sure = ModelConfidence.from_result(result)
        confidence = sure.confidence.get("response")
        bar = self.min_confidence
        if bar is not None and category.min_confidence is not None:
            bar = category.min_confidence
        shown = ["n/a" if value is None else f"{value:.2f}" for value in (confidence, bar)]
        summary = f"category={name} confidence={shown[0]} threshold={shown[1]}"
        if bar is not None and (confidence is None or confidence < bar):
            why = "missing_confidence" if confidence is None else "below_threshold"
            log.info(
                "Classifier answer not applied (%s): %s. model=%s probabilities=%s",
                why,
                summary,
                sure.model or "n/a",
                sure.probabilities.get("response") or "n/a",
            )
            return why
        if category.retry:
            delay = "task default" if category.delay is None else f"{category.delay.total_seconds():g}s"
            decision = RetryDecision.retry(delay=category.delay, reason=f"{summary} action=retry delay={delay}")
        else:
            decision = RetryDecision.fail(reason=f"{summary} action=fail")
        log.info("Classifier decision: %s model=%s", decision.reason, sure.model or "n/a")
        return decision
