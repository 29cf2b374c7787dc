"""The task decorators of the standard provider."""

from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import (
    ExternalPythonOperator,
    PythonVirtualenvOperator,
    ShortCircuitOperator,
)
from airflow.providers.standard.sensors.python import PythonSensor
from airflow.sdk.bases.branch import BaseBranchOperator, SkipMixin
from airflow.sdk.bases.decorator import (
    DecoratedOperator,
    PythonDecoratedOperator,
    get_unique_task_id,
    task_decorator_factory,
)
from updraft_source import function_location


class _BranchPythonDecoratedOperator(PythonDecoratedOperator, BaseBranchOperator):
    custom_operator_name = "@task.branch"
    template_fields = PythonDecoratedOperator.template_fields
    choose_branch = PythonDecoratedOperator.execute
    execute = BaseBranchOperator.execute


class _ShortCircuitDecoratedOperator(PythonDecoratedOperator, SkipMixin):
    custom_operator_name = "@task.short_circuit"

    def __init__(self, *, ignore_downstream_trigger_rules=True, **kwargs):
        super().__init__(**kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules

    execute = ShortCircuitOperator.execute


_BranchPythonDecoratedOperator.__module__ = f"{__name__}.branch_python"
_ShortCircuitDecoratedOperator.__module__ = f"{__name__}.short_circuit"


class _OtherPython(PythonDecoratedOperator):
    """A function in a Python environment of its own."""

    _updraft_kind = None
    _updraft_reason = PythonVirtualenvOperator._updraft_reason
    _only = ()

    def __init__(self, **kwargs):
        own = {name: kwargs.pop(name) for name in self._only if name in kwargs}
        super().__init__(**kwargs)
        for name, value in own.items():
            setattr(self, name, value)


_SHARED = ("serializer", "string_args", "expect_airflow", "skip_on_exit_code", "env_vars", "inherit_env")
_VIRTUALENV = (
    *_SHARED,
    "requirements",
    "python_version",
    "system_site_packages",
    "pip_install_options",
    "index_urls",
    "index_urls_from_connection_ids",
    "venv_cache_path",
)


class _PythonVirtualenvDecoratedOperator(_OtherPython):
    custom_operator_name = "@task.virtualenv"
    template_fields = PythonVirtualenvOperator.template_fields
    _only = _VIRTUALENV


class _BranchPythonVirtualenvDecoratedOperator(_OtherPython):
    custom_operator_name = "@task.branch_virtualenv"
    template_fields = PythonVirtualenvOperator.template_fields
    _only = _VIRTUALENV


class _PythonExternalDecoratedOperator(_OtherPython):
    custom_operator_name = "@task.external_python"
    template_fields = ExternalPythonOperator.template_fields
    _only = (*_SHARED, "python", "expect_pendulum")


class _BranchExternalPythonDecoratedOperator(_OtherPython):
    custom_operator_name = "@task.branch_external_python"
    template_fields = ExternalPythonOperator.template_fields
    _only = (*_SHARED, "python", "expect_pendulum")


class _BashDecoratedOperator(DecoratedOperator, BashOperator):
    _updraft_kind = "bash"
    _updraft_reason = BashOperator._updraft_reason
    custom_operator_name = "@task.bash"
    template_fields = (*DecoratedOperator.template_fields, *BashOperator.template_fields)

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
        super().__init__(
            python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, bash_command=None, **kwargs
        )

    def execute(self, context):
        """Runs the command that the function gives."""
        import updraft_callable
        from updraft_templates import render

        command = updraft_callable.call(self, context)
        if not isinstance(command, str) or not command.strip():
            raise TypeError("The returned value from the TaskFlow callable must be a non-empty string.")
        self.bash_command = render(command)
        return BashOperator.execute(self, context)


class DecoratedSensorOperator(PythonSensor):
    """`@task.sensor`."""

    custom_operator_name = "@task.sensor"
    template_fields = ("op_args", "op_kwargs")

    def __init__(self, *, task_id, **kwargs):
        if not kwargs.get("_updraft_from_mapped"):
            task_id = get_unique_task_id(task_id, kwargs.get("dag"), kwargs.get("task_group"))
        super().__init__(task_id=task_id, **kwargs)
        object.__setattr__(self, "_location", function_location(self.python_callable))


class _StubOperator(DecoratedOperator):
    _updraft_kind = "stub"
    custom_operator_name = "@task.stub"


def _decorator(operator_class):
    def decorate(python_callable=None, multiple_outputs=None, **kwargs):
        return task_decorator_factory(
            python_callable,
            multiple_outputs=multiple_outputs,
            decorated_operator_class=operator_class,
            **kwargs,
        )

    return decorate


branch_task = _decorator(_BranchPythonDecoratedOperator)
short_circuit_task = _decorator(_ShortCircuitDecoratedOperator)
virtualenv_task = _decorator(_PythonVirtualenvDecoratedOperator)
external_python_task = _decorator(_PythonExternalDecoratedOperator)
branch_virtualenv_task = _decorator(_BranchPythonVirtualenvDecoratedOperator)
branch_external_python_task = _decorator(_BranchExternalPythonDecoratedOperator)
sensor_task = _decorator(DecoratedSensorOperator)
bash_task = _decorator(_BashDecoratedOperator)
stub = _decorator(_StubOperator)
