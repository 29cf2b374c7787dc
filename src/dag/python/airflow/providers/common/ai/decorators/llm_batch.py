"""`@task.llm_batch`: a function that returns the requests of a batch."""

from airflow.providers.common.ai.operators.llm_batch import LLMBatchOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory


class _LLMBatchDecoratedOperator(DecoratedOperator, LLMBatchOperator):
    template_fields = (
        *DecoratedOperator.template_fields,
        *(field for field in LLMBatchOperator.template_fields if field != "requests"),
    )
    custom_operator_name = "@task.llm_batch"

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, requests=None, **kwargs)


def llm_batch_task(python_callable=None, **kwargs):
    """A task whose function makes the requests of a batch."""
    return task_decorator_factory(python_callable, decorated_operator_class=_LLMBatchDecoratedOperator, **kwargs)
