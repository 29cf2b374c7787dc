"""`@task.llm_branch`: a function that returns the prompt of a choice between downstream tasks."""

from airflow.providers.common.ai.operators.llm_branch import LLMBranchOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory


class _LLMBranchDecoratedOperator(DecoratedOperator, LLMBranchOperator):
    _updraft_kind = "llm"
    template_fields = (*DecoratedOperator.template_fields, *LLMBranchOperator.template_fields)
    custom_operator_name = "@task.llm_branch"

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, prompt=None, **kwargs)

    execute = LLMBranchOperator.execute


def llm_branch_task(python_callable=None, **kwargs):
    """A task whose function makes the prompt of a choice between downstream tasks."""
    return task_decorator_factory(python_callable, decorated_operator_class=_LLMBranchDecoratedOperator, **kwargs)
