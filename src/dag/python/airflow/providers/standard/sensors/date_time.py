"""Sensors that wait for a moment."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class DateTimeSensor(BaseSensorOperator):
    """Waits until a moment."""

    template_fields = ("target_time",)

    def __init__(self, *, target_time, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())

    def poke(self, context):
        """Has the moment come?"""
        import pendulum

        self.log.info("Checking if the time (%s) has come", self.target_time)
        target = self.target_time
        return pendulum.now("UTC") > (pendulum.parse(target) if isinstance(target, str) else pendulum.instance(target))


class DateTimeSensorAsync(DateTimeSensor):
    """Waits without a slot."""

    _updraft_kind = None

    def __init__(self, *, start_from_trigger=False, end_from_trigger=False, trigger_kwargs=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())
