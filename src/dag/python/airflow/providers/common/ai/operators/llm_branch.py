"""`LLMBranchOperator`: a model chooses what runs next."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from airflow.providers.common.ai.policies.decision import BranchOption, DecisionPolicy
from updraft_hold import hold


class LLMBranchOperator(LLMOperator):
    """Runs the downstream tasks that a model chooses."""

    _updraft_kind = None
    _updraft_reason = "it is not run natively yet"
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
        super().__init__(**kwargs)
        hold(self, locals())


__all__ = ["BranchOption", "DecisionPolicy", "LLMBranchOperator"]
