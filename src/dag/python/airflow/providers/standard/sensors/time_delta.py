"""Sensors that wait for some time."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


def _span(value):
    """A time span; a number, which is what a template gives, counts minutes."""
    from datetime import timedelta

    return value if isinstance(value, timedelta) else timedelta(minutes=int(value))


class TimeDeltaSensor(BaseSensorOperator):
    """Waits for some time after the data interval, or after the time that the run was due."""

    template_fields = ("delta",)

    def __init__(self, *, delta, deferrable=False, end_from_trigger=False, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())

    def _moment(self, context):
        return (context.get("data_interval_end") or context["dag_run"].run_after) + _span(self.delta)

    def poke(self, context):
        """Has the time passed?"""
        import pendulum

        moment = self._moment(context)
        self.log.info("Checking if the time (%s) has come", moment)
        return pendulum.now("UTC") > moment

    def execute(self, context):
        """Waits, with or without a slot."""
        if not self.deferrable:
            return super().execute(context)
        import pendulum
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        moment = self._moment(context)
        if pendulum.now("UTC") > moment:
            return True
        trigger = DateTimeTrigger(moment=moment, end_from_trigger=self.end_from_trigger)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context, event=None):
        """The time has passed."""


class TimeDeltaSensorAsync(TimeDeltaSensor):
    """Waits without a slot."""

    def __init__(self, *, end_from_trigger=False, delta, **kwargs):
        super().__init__(delta=delta, deferrable=True, end_from_trigger=end_from_trigger, **kwargs)


class WaitSensor(BaseSensorOperator):
    """Waits for some time."""

    template_fields = ("time_to_wait",)

    def __init__(self, time_to_wait, deferrable=False, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())

    def execute(self, context):
        """Waits, with or without a slot."""
        span = _span(self.time_to_wait)
        if self.deferrable:
            from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger

            trigger = TimeDeltaTrigger(span, end_from_trigger=True)
            self.defer(trigger=trigger, method_name="execute_complete")
        import time

        time.sleep(int(span.total_seconds()))

    def execute_complete(self, context, event=None):
        """The time has passed."""
