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

    def execute(self, context):
        """Waits, with or without a slot."""
        if not self.deferrable:
            return super().execute(context)
        from airflow.providers.standard.triggers.temporal import DateTimeTrigger

        trigger = DateTimeTrigger(moment=self._moment(), end_from_trigger=self.end_from_trigger)
        self.defer(trigger=trigger, method_name="execute_complete")

    def execute_complete(self, context, event=None):
        """The time has come."""

    def poke(self, context):
        """Has the time come?"""
        import datetime

        moment = self._moment()
        self.log.info("Checking if the time (%s) has come", moment)
        return datetime.datetime.now(tz=datetime.timezone.utc) > moment

    def _moment(self):
        """Today at that time, in the Dag's time zone."""
        import datetime

        zone = getattr(self.dag, "timezone", None) or datetime.timezone.utc
        if self.target_time.tzinfo is not None:
            zone = self.target_time.tzinfo
        today = datetime.datetime.now(zone)
        return datetime.datetime.combine(today, self.target_time, zone).astimezone(datetime.timezone.utc)


class TimeSensorAsync(TimeSensor):
    """Waits without a slot."""

    def __init__(self, **kwargs):
        super().__init__(deferrable=True, **kwargs)
