"""Operators around Python functions."""

from airflow.sdk.bases.branch import BaseBranchOperator, SkipMixin
from airflow.sdk.bases.operator import BaseAsyncOperator
from airflow.sdk.definitions.context import get_current_context
from updraft_hold import hold

_OTHER_PYTHON = "it needs a Python environment of its own"
_OF_THE_FUNCTION = ("python_callable", "op_args", "op_kwargs", "templates_dict", "templates_exts")


class PythonOperator(BaseAsyncOperator):
    """Calls a function."""

    _updraft_kind = "python"
    template_fields = ("templates_dict", "op_args", "op_kwargs")
    template_fields_renderers = {"templates_dict": "json", "op_args": "py", "op_kwargs": "py"}
    ui_color = "#ffefeb"

    def __init__(
        self,
        *,
        python_callable,
        op_args=None,
        op_kwargs=None,
        templates_dict=None,
        templates_exts=None,
        show_return_value_in_logs=True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not callable(python_callable):
            raise TypeError("`python_callable` param must be callable")
        hold(self, locals())
        self.op_args = op_args or ()
        self.op_kwargs = op_kwargs or {}
        if templates_exts:
            self.template_ext = templates_exts

    def execute(self, context):
        """Calls the function."""
        import updraft_callable

        return updraft_callable.execute(self, context)


class BranchPythonOperator(BaseBranchOperator, PythonOperator):
    """Follows the tasks that a function names."""

    inherits_from_skipmixin = True

    def choose_branch(self, context):
        """What the function returns."""
        return PythonOperator.execute(self, context)


class ShortCircuitOperator(PythonOperator, SkipMixin):
    """Skips what comes after it when a function returns something false."""

    inherits_from_skipmixin = True

    def __init__(self, *, ignore_downstream_trigger_rules=True, **kwargs):
        super().__init__(**kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules

    def execute(self, context):
        """Calls the function, and skips what comes after when its result is false."""
        import updraft_callable

        condition = updraft_callable.execute(self, context)
        self.log.info("Condition result is %s", condition)
        if condition:
            self.log.info("Proceeding with downstream tasks...")
        elif not self.downstream_task_ids:
            self.log.info("No downstream tasks; nothing to do.")
        else:
            after = self.get_flat_relatives if self.ignore_downstream_trigger_rules else self.get_direct_relatives
            self.log.info("Skipping downstream tasks")
            self.skip(context["ti"], [task for task in after(upstream=False) if not task.is_teardown])
            self.log.info("Done.")
        return condition


class PythonVirtualenvOperator(PythonOperator):
    """Calls a function in a virtual environment."""

    _updraft_kind = None
    _updraft_reason = _OTHER_PYTHON
    template_fields = (
        "op_args",
        "index_urls",
        "templates_dict",
        "venv_cache_path",
        "requirements",
        "op_kwargs",
        "index_urls_from_connection_ids",
    )

    def __init__(
        self,
        *,
        python_callable,
        requirements=None,
        python_version=None,
        serializer=None,
        system_site_packages=True,
        pip_install_options=None,
        op_args=None,
        op_kwargs=None,
        string_args=None,
        templates_dict=None,
        templates_exts=None,
        expect_airflow=True,
        skip_on_exit_code=None,
        index_urls=None,
        index_urls_from_connection_ids=None,
        venv_cache_path=None,
        env_vars=None,
        inherit_env=True,
        **kwargs,
    ):
        super().__init__(**_of_the_function(locals()), **kwargs)
        self.requirements = requirements or []
        self.index_urls = index_urls
        self.index_urls_from_connection_ids = index_urls_from_connection_ids
        self.venv_cache_path = venv_cache_path


class BranchPythonVirtualenvOperator(BaseBranchOperator, PythonVirtualenvOperator):
    """Follows the tasks that a function in a virtual environment names."""

    _updraft_kind = None
    _updraft_reason = _OTHER_PYTHON


class ExternalPythonOperator(PythonOperator):
    """Calls a function in another Python."""

    _updraft_kind = None
    _updraft_reason = _OTHER_PYTHON
    template_fields = ("python", "op_kwargs", "templates_dict", "op_args")

    def __init__(
        self,
        *,
        python,
        python_callable,
        serializer=None,
        op_args=None,
        op_kwargs=None,
        string_args=None,
        templates_dict=None,
        templates_exts=None,
        expect_airflow=True,
        expect_pendulum=False,
        skip_on_exit_code=None,
        env_vars=None,
        inherit_env=True,
        **kwargs,
    ):
        super().__init__(**_of_the_function(locals()), **kwargs)
        self.python = python


class BranchExternalPythonOperator(BaseBranchOperator, ExternalPythonOperator):
    """Follows the tasks that a function in another Python names."""

    _updraft_kind = None
    _updraft_reason = _OTHER_PYTHON


def _of_the_function(arguments):
    return {name: arguments[name] for name in _OF_THE_FUNCTION}


__all__ = [
    "BranchExternalPythonOperator",
    "BranchPythonOperator",
    "BranchPythonVirtualenvOperator",
    "ExternalPythonOperator",
    "PythonOperator",
    "PythonVirtualenvOperator",
    "ShortCircuitOperator",
    "get_current_context",
]
