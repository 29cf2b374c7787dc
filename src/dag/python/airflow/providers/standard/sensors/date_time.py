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
        return pendulum.now("UTC") > self._moment()

    def _moment(self):
        import pendulum

        target = self.target_time
        return pendulum.parse(target) if isinstance(target, str) else pendulum.instance(target)


class DateTimeSensorAsync(DateTimeSensor):
    """Waits without a slot."""

    def __init__(self, *, start_from_trigger=False, end_from_trigger=False, trigger_kwargs=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())

    def execute(self, context):
        """Leaves its slot until the moment has come."""
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        trigger = DateTimeTrigger(moment=self._moment(), end_from_trigger=self.end_from_trigger)
        self.defer(method_name="execute_complete", trigger=trigger)

    def execute_complete(self, context, event=None):
        """The moment has come."""
