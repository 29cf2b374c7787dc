"""`BashSensor`: waits for a shell command."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class BashSensor(BaseSensorOperator):
    """Waits until a command succeeds."""

    template_fields = ("bash_command", "env")

    def __init__(self, *, bash_command, env=None, output_encoding="utf-8", retry_exit_code=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())
