"""`LLMBranchOperator`: a model chooses what runs next."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from airflow.providers.common.ai.policies.decision import BranchOption, DecisionPolicy
from airflow.sdk.bases.branch import BranchMixIn
from updraft_hold import hold


class LLMBranchOperator(LLMOperator, BranchMixIn):
    """Runs the downstream tasks that a model chooses."""

    _updraft_own_fields = ("branches",)
    inherits_from_skipmixin = True
    template_fields = (*LLMOperator.template_fields, *_updraft_own_fields)

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

    def execute_complete(self, context, generated_output, event, decision=None):
        """Goes on when a person has answered: follows what was approved."""
        import updraft_review
        from airflow.providers.standard.exceptions import HITLRejectException

        try:
            text = updraft_review.resume(self, context, generated_output, event, decision)
        except HITLRejectException:
            if self.fail_on_reject:
                raise
            self.log.info("Rejected by %s. Skipping downstream tasks...", updraft_review.responder(event))
            task = context["task"]
            find = task.get_flat_relatives if self.ignore_downstream_trigger_rules else task.get_direct_relatives
            self.skip(ti=context["ti"], tasks=[other for other in find(upstream=False) if not other.is_teardown])
            return None
        branches = self._reviewed(text)
        invalid = ({branches} if isinstance(branches, str) else set(branches)) - set(self.downstream_task_ids)
        if invalid:
            raise ValueError(
                f"Reviewed branch(es) {sorted(invalid)} are not downstream tasks of {self.task_id!r}. "
                f"Valid choices: {sorted(self.downstream_task_ids)}."
            )
        updraft_review.finalize(self, context, event, decision, branches)
        return self.do_branch(context, branches)

    def _reviewed(self, text):
        import json

        if not self.allow_multiple_branches:
            return text
        try:
            branches = json.loads(text)
        except ValueError as error:
            raise ValueError(
                f"Reviewed output {text!r} is not valid JSON. With allow_multiple_branches=True the reviewed output "
                'must be a JSON list of task IDs, e.g. ["task_a", "task_b"].'
            ) from error
        if not isinstance(branches, list) or not all(isinstance(branch, str) for branch in branches):
            raise ValueError(
                f'Reviewed output {text!r} must be a JSON list of task ID strings, e.g. ["task_a", "task_b"].'
            )
        if not branches:
            raise ValueError(
                "Reviewed output selects no branches, which would skip every downstream task. "
                "Select at least one task ID, or reject the review instead."
            )
        return branches

    @staticmethod
    def _updraft_question(settings, task):
        from updraft_output import BranchChoice

        return "branch", BranchChoice(task, bool(settings.allow_multiple_branches))


__all__ = ["BranchOption", "DecisionPolicy", "LLMBranchOperator"]
