"""`LLMBranchOperator`: a model chooses what runs next."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from airflow.providers.common.ai.policies.decision import BranchOption, DecisionPolicy
from airflow.sdk.bases.branch import BranchMixIn
from updraft_hold import hold


class LLMBranchOperator(LLMOperator, BranchMixIn):
    """Runs the downstream tasks that a model chooses."""

    _updraft_kind = "llm_branch"
    inherits_from_skipmixin = True
    template_fields = (*LLMOperator.template_fields, "branches")

    def __init__(
        self,
        *,
        branches=None,
        allow_multiple_branches=False,
        fail_on_reject=False,
        ignore_downstream_trigger_rules=False,
        **kwargs,
    ):
        if "output_type" in kwargs:
            raise TypeError("LLMBranchOperator takes no output_type: the model answers with downstream tasks.")
        if branches and not isinstance(branches, dict):
            raise TypeError(f"branches must be a mapping of task ids to descriptions, got {type(branches).__name__}.")
        super().__init__(**kwargs)
        hold(self, locals())


__all__ = ["BranchOption", "DecisionPolicy", "LLMBranchOperator"]
