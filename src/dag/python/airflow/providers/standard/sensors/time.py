"""Sensors that wait for a time of day."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class TimeSensor(BaseSensorOperator):
    """Waits until a time of day."""

    def __init__(
        self,
        *,
        target_time,
        deferrable=False,
        start_from_trigger=False,
        end_from_trigger=False,
        trigger_kwargs=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())


class TimeSensorAsync(TimeSensor):
    """Waits without a slot."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
