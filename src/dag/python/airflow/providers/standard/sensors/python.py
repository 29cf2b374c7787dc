"""`PythonSensor`: waits for a function."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class PythonSensor(BaseSensorOperator):
    """Waits until a function returns something true."""

    template_fields = ("templates_dict", "op_args", "op_kwargs")

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, templates_dict=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())
        self.op_args = op_args or []
        self.op_kwargs = op_kwargs or {}

    def poke(self, context):
        """Calls the function."""
        import updraft_callable

        context.update(self.op_kwargs, templates_dict=self.templates_dict)
        return updraft_callable.poke(self, context)
