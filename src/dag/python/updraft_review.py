"""What a person says to a model's answer: read when the task goes on.

The worker opens the review (task/llm/approval.rs); the event that it ends in is Airflow's.
"""

import json
import logging

_log = logging.getLogger("airflow.providers.common.ai.mixins.approval")
_MAX_SHOWN = 200


def answered(operator, generated, event):
    """The answer as it was approved, as text.

    Raises HITLRejectException, HITLTimeoutError, or HITLTriggerEventError for an answer that can't be used.
    """
    from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError, HITLTriggerEventError

    if "error" in event:
        if event.get("error_type", "unknown") == "timeout":
            raise HITLTimeoutError(f"Approval timed out: {event['error']}")
        raise HITLTriggerEventError(event)
    who = responder(event)
    if "Approve" not in event["chosen_options"]:
        if event.get("timedout"):
            raise HITLRejectException(
                "Output was rejected automatically: approval_timeout expired with on_approval_timeout='reject'."
            )
        raise HITLRejectException(f"Output was rejected by the reviewer {who}.")
    _log.info("Output approved by %s.", who)
    given = {} if event.get("timedout") else event.get("params_input") or {}
    # Without the operator's leave, what came with an answer is no edit.
    if not operator.allow_modifications or "output" not in given:
        return generated
    edited = _text(given["output"], generated)
    if edited != generated:
        _log.info("output=%s modified by the reviewer=%s ", edited, who)
    return edited


def responder(event):
    """Who has answered, for people."""
    user = event.get("responded_by_user")
    return "the approval timeout default" if user is None else user["name"]


def _text(edited, generated):
    from airflow.providers.standard.exceptions import HITLTriggerEventError

    def wrong(text):
        return HITLTriggerEventError({"error": text, "error_type": "validation"})

    if edited is None:
        raise wrong("Modified output must not be empty; edit it or reject instead.")
    if isinstance(edited, list):
        for item in edited:
            if not isinstance(item, str):
                raise wrong(f"Modified output list items must be strings, got {type(item).__name__}.")
        return _compact(edited)
    if isinstance(edited, dict):
        # The form makes an object of text that looks like one, with JavaScript's numbers.
        try:
            before = json.loads(generated)
        except ValueError:
            before = None
        return generated if _seen_by_the_form(edited) == _seen_by_the_form(before) else _compact(edited)
    if not isinstance(edited, str):
        raise wrong(f"Modified output must be a string or a list of strings, got {type(edited).__name__}.")
    return edited


def _compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _seen_by_the_form(value):
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return value
    if isinstance(value, dict):
        return {key: _seen_by_the_form(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_seen_by_the_form(item) for item in value]
    return value


def read_back(output_type, text, serialize, edited):
    """The answer in its own type; as it is, where the type can't be read from text."""
    if output_type is str:
        return text
    from airflow.providers.common.ai.exceptions import ReviewedOutputValidationError
    from pydantic import TypeAdapter

    if hasattr(output_type, "__code__") or type(output_type).__module__ == "pydantic_ai.output":
        return text
    adapter = TypeAdapter(output_type)
    wrong = (ValueError, TypeError, AttributeError, KeyError, IndexError)
    try:
        value = adapter.validate_json(text)
    except wrong as error:
        of_json = error
        try:
            value = _of_bare_text(adapter, text)
        except wrong as of_text:
            looks_like_json = text.lstrip().startswith(("{", "["))
            reported = of_json if looks_like_json or not _is_not_json(text) else of_text
            name = getattr(output_type, "__name__", None) or str(output_type)
            shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."
            message = (
                f"The reviewed output could not be converted to the output_type {name}. Received {shown!r}. {reported}"
            )
            if not edited:
                _log.warning("%s Returning the output unchanged.", message)
                return text
            raise ReviewedOutputValidationError(message) from of_json
    if serialize and hasattr(type(value), "model_dump"):
        return value.model_dump()
    return value


def _of_bare_text(adapter, text):
    try:
        return adapter.validate_python(text)
    except ValueError:
        if text.strip() == text:
            raise
        return adapter.validate_python(text.strip())


def _is_not_json(text):
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def finalize(operator, context, event, decision, action):
    """Says in the XCom who has decided, and what was done."""
    if decision is not None:
        timed_out = bool(event.get("timedout")) or event.get("responded_by_user") is None
        who = "timeout_default" if timed_out else "human"
        push(operator, context, {**decision, "action": action, "decided_by": who})


def push(operator, context, decision):
    """Pushes a decision, unless the task pushes nothing."""
    if operator.do_xcom_push:
        context["ti"].xcom_push(key="decision", value=decision)


def resume(operator, context, generated, event, decision):
    """The approved text; a refusal and the end of the time are told in the XCom before they are raised."""
    from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError

    try:
        return answered(operator, generated, event)
    except HITLRejectException:
        finalize(operator, context, event, decision, None)
        raise
    except HITLTimeoutError:
        if decision is not None:
            push(operator, context, {**decision, "action": None, "decided_by": "timeout"})
        raise


def notify(operator, context, subject, body):
    """Tells the operator's notifiers of an open review."""
    operator.subject, operator.body = subject, body
    notifiers = operator.approval_notifiers
    for notifier in notifiers if isinstance(notifiers, (list, tuple)) else [notifiers]:
        try:
            notifier(dict(context))
        except Exception as error:
            _log.error("Approval notifier %s failed; the review stays open: %s", notifier, error)
