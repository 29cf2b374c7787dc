"""`@task.agent`: a function that returns the prompt of an agent."""

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory


class _AgentDecoratedOperator(DecoratedOperator, AgentOperator):
    _updraft_kind = "agent"
    template_fields = (*DecoratedOperator.template_fields, *AgentOperator.template_fields)
    custom_operator_name = "@task.agent"

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, prompt=None, **kwargs)

    execute = AgentOperator.execute


def agent_task(python_callable=None, **kwargs):
    """A task whose function makes the prompt of an agent."""
    return task_decorator_factory(python_callable, decorated_operator_class=_AgentDecoratedOperator, **kwargs)
