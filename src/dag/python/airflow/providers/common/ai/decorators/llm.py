"""`@task.llm`: a function that returns the prompt of a question to a model."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory


class _LLMDecoratedOperator(DecoratedOperator, LLMOperator):
    _updraft_kind = "llm"
    template_fields = (*DecoratedOperator.template_fields, *LLMOperator.template_fields)
    custom_operator_name = "@task.llm"

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, prompt=None, **kwargs)

    execute = LLMOperator.execute


def llm_task(python_callable=None, **kwargs):
    """A task whose function makes the prompt of a question to a model."""
    return task_decorator_factory(python_callable, decorated_operator_class=_LLMDecoratedOperator, **kwargs)
