"""Triggers that wait for a moment."""

from airflow.sdk.bases.trigger import BaseTrigger


class DateTimeTrigger(BaseTrigger):
    """Fires at a moment."""

    def __init__(self, moment=None, *, target_time=None, end_from_trigger=False):
        import datetime

        super().__init__()
        if (moment is None) == (target_time is None):
            raise TypeError("DateTimeTrigger requires exactly one of 'moment' or 'target_time'")
        if moment is not None:
            if not isinstance(moment, datetime.datetime):
                raise TypeError(f"Expected datetime.datetime type for moment. Got {type(moment)}")
            if moment.tzinfo is None:
                raise ValueError("You cannot pass naive datetimes")
            moment = moment.astimezone(datetime.timezone.utc)
        self.moment = moment
        self.target_time = target_time
        self.end_from_trigger = end_from_trigger

    def serialize(self):
        """Its class and its arguments."""
        when = {"target_time": self.target_time} if self.moment is None else {"moment": self.moment}
        return (
            "airflow.providers.standard.triggers.temporal.DateTimeTrigger",
            {**when, "end_from_trigger": self.end_from_trigger},
        )


class TimeDeltaTrigger(DateTimeTrigger):
    """Fires after some time."""

    def __init__(self, delta, *, end_from_trigger=False):
        import datetime

        moment = datetime.datetime.now(tz=datetime.timezone.utc) + delta
        super().__init__(moment=moment, end_from_trigger=end_from_trigger)
