"""Sensors that wait for some time."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class TimeDeltaSensor(BaseSensorOperator):
    """Waits for some time after the data interval."""

    template_fields = ("delta",)

    def __init__(self, *, delta, deferrable=False, end_from_trigger=False, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())


class TimeDeltaSensorAsync(TimeDeltaSensor):
    """Waits without a slot."""


class WaitSensor(BaseSensorOperator):
    """Waits for some time."""

    template_fields = ("time_to_wait",)

    def __init__(self, time_to_wait, deferrable=False, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())
