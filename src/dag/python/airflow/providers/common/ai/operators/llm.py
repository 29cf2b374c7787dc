"""`LLMOperator`: one question to a model."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class LLMOperator(BaseOperator):
    """Asks a model without tools."""

    _updraft_kind = "llm"
    # Its template fields that are not among those below.
    _updraft_own_fields = ()
    # Does a model in the answer become a dict, whatever `serialize_output` says?
    _updraft_serializes = False
    supports_decision_policy = True
    deserialization_allowed_class_fields = ("output_type",)
    template_fields = (
        "prompt",
        "llm_conn_id",
        "model_id",
        "fallback_conn_ids",
        "system_prompt",
        "model_settings",
        "usage_limits",
    )

    def __init__(
        self,
        *,
        prompt,
        llm_conn_id,
        model_id=None,
        fallback_conn_ids=None,
        system_prompt="",
        output_type=str,
        model_settings=None,
        output_retries=None,
        usage_limits=None,
        require_approval=False,
        approval_timeout=None,
        on_approval_timeout="fail",
        allow_modifications=False,
        approval_notifiers=None,
        approval_assigned_users=None,
        decision_policy=None,
        serialize_output=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if decision_policy is not None and decision_policy.gates and not self.supports_decision_policy:
            raise ValueError(
                f"{type(self).__name__} does not support decision_policy yet; it runs its own execute() "
                "without the confidence gate. Use require_approval=True for an unconditional review."
            )
        if on_approval_timeout not in ("fail", "approve", "reject"):
            raise ValueError(
                f"on_approval_timeout must be 'fail', 'approve', or 'reject', got {on_approval_timeout!r}."
            )
        reviews = require_approval or (decision_policy is not None and decision_policy.reviews)
        in_time = approval_timeout is not None and approval_timeout.total_seconds() > 0
        if on_approval_timeout != "fail" and not (reviews and in_time):
            raise ValueError(
                f"on_approval_timeout={on_approval_timeout!r} needs a review path (require_approval=True or "
                "a decision_policy with on_uncertain='review') and a positive approval_timeout to fire. "
                "Set both, or leave on_approval_timeout as 'fail'."
            )
        approval_notifiers = _notifiers(approval_notifiers)
        approval_assigned_users = _users(approval_assigned_users)
        hold(self, locals())

    @staticmethod
    def _updraft_question(settings, task):
        """What the worker is told of the question, and the type of the answer."""
        return "plain", settings.output_type

    def execute_complete(self, context, generated_output, event, decision=None):
        """Goes on when a person has answered."""
        import updraft_review

        text = updraft_review.resume(self, context, generated_output, event, decision)
        updraft_review.finalize(self, context, event, decision, None)
        serialize = self.serialize_output or self._updraft_serializes
        return updraft_review.read_back(self.output_type, text, serialize, text != generated_output)

    def execute(self, context):
        """Done by the worker."""
        raise RuntimeError(
            f"{type(self).__name__}.execute can't be called from Dag code here: the worker asks the model itself."
        )


def _notifiers(given):
    from airflow.sdk.bases.notifier import BaseNotifier

    if given is None:
        return []
    if isinstance(given, BaseNotifier):
        return [given]
    if isinstance(given, str) or not hasattr(type(given), "__iter__"):
        raise TypeError(
            f"approval_notifiers must be a BaseNotifier or an iterable of BaseNotifier instances, got {given!r}"
        )
    given = list(given)
    for notifier in given:
        # One of a provider that is not here is refused when the task runs.
        if not isinstance(notifier, BaseNotifier) and getattr(notifier, "_unavailable_origin", None) is None:
            raise TypeError(f"approval_notifiers must contain BaseNotifier instances, got {notifier!r}")
    return given


def _users(given):
    if given is None:
        return []
    if not isinstance(given, dict) and (isinstance(given, str) or not hasattr(type(given), "__iter__")):
        raise TypeError(
            "approval_assigned_users must be a {'id': str, 'name': str} dict or an iterable of them, "
            f"got {given!r}"
        )
    users = [given] if isinstance(given, dict) else list(given)
    for user in users:
        texts = [user.get(name) for name in ("id", "name")] if isinstance(user, dict) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"approval_assigned_users entries must be {{'id': str, 'name': str}} dicts, got {user!r}"
            )
    return users
