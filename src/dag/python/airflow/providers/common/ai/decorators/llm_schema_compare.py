"""`@task.llm_schema_compare`: a function that returns the prompt of a comparison of schemas."""

from airflow.providers.common.ai.operators.llm_schema_compare import LLMSchemaCompareOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory


class _LLMSchemaCompareDecoratedOperator(DecoratedOperator, LLMSchemaCompareOperator):
    _updraft_kind = "llm"
    template_fields = (*DecoratedOperator.template_fields, *LLMSchemaCompareOperator.template_fields)
    custom_operator_name = "@task.llm_schema_compare"

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, prompt=None, **kwargs)

    execute = LLMSchemaCompareOperator.execute


def llm_schema_compare_task(python_callable=None, **kwargs):
    """A task whose function makes the prompt of a comparison of schemas."""
    return task_decorator_factory(
        python_callable, decorated_operator_class=_LLMSchemaCompareDecoratedOperator, **kwargs
    )
