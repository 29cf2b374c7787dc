"""`@task.llm_file_analysis`: a function that returns the prompt of a question about files."""

from airflow.providers.common.ai.operators.llm_file_analysis import LLMFileAnalysisOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory


class _LLMFileAnalysisDecoratedOperator(DecoratedOperator, LLMFileAnalysisOperator):
    _updraft_kind = "llm"
    template_fields = (*DecoratedOperator.template_fields, *LLMFileAnalysisOperator.template_fields)
    custom_operator_name = "@task.llm_file_analysis"

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, prompt=None, **kwargs)

    execute = LLMFileAnalysisOperator.execute


def llm_file_analysis_task(python_callable=None, **kwargs):
    """A task whose function makes the prompt of a question about files."""
    return task_decorator_factory(python_callable, decorated_operator_class=_LLMFileAnalysisDecoratedOperator, **kwargs)
