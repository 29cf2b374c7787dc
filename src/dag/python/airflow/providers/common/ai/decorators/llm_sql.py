"""`@task.llm_sql`: a function that returns the question that a model turns into SQL."""

from airflow.providers.common.ai.operators.llm_sql import LLMSQLQueryOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory


class _LLMSQLDecoratedOperator(DecoratedOperator, LLMSQLQueryOperator):
    _updraft_kind = "llm"
    template_fields = (*DecoratedOperator.template_fields, *LLMSQLQueryOperator.template_fields)
    custom_operator_name = "@task.llm_sql"

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, prompt=None, **kwargs)

    execute = LLMSQLQueryOperator.execute


def llm_sql_task(python_callable=None, **kwargs):
    """A task whose function makes the question that a model turns into SQL."""
    return task_decorator_factory(python_callable, decorated_operator_class=_LLMSQLDecoratedOperator, **kwargs)
