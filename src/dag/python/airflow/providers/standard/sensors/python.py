"""`PythonSensor`: waits for a function."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class PythonSensor(BaseSensorOperator):
    """Waits until a function returns something true."""

    template_fields = ("templates_dict", "op_args", "op_kwargs")

    def __init__(self, *, python_callable, op_args=None, op_kwargs=None, templates_dict=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())
