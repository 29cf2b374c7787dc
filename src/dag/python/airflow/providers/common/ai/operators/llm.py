"""`LLMOperator`: one question to a model."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class LLMOperator(BaseOperator):
    """Asks a model without tools."""

    _updraft_kind = "llm"
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
        hold(self, locals())

    def execute(self, context):
        """Done by the worker."""
        raise RuntimeError(
            f"{type(self).__name__}.execute can't be called from Dag code here: the worker asks the model itself."
        )
