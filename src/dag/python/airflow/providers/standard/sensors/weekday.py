"""`DayOfWeekSensor`: waits for a day of the week."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class DayOfWeekSensor(BaseSensorOperator):
    """Waits until a day of the week."""

    def __init__(self, *, week_day, use_task_logical_date=False, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())
