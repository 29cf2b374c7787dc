"""Sensors: operators that wait."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class PokeReturnValue:
    """What a poke may return: whether it is done, and a value for the XCom."""

    def __init__(self, is_done, xcom_value=None):
        self.is_done = is_done
        self.xcom_value = xcom_value

    def __bool__(self):
        return self.is_done


class BaseSensorOperator(BaseOperator):
    """Waits until `poke` is true."""

    _updraft_reason = "sensors are not run natively"
    _is_sensor = True
    ui_color = "#e6f1f2"
    valid_modes = ("poke", "reschedule")

    def __init__(
        self,
        *,
        poke_interval=60,
        timeout=None,
        soft_fail=False,
        mode="poke",
        exponential_backoff=False,
        max_wait=None,
        silent_fail=False,
        never_fail=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if soft_fail and never_fail:
            raise ValueError("soft_fail and never_fail are mutually exclusive, you can not provide both.")
        if mode not in self.valid_modes:
            raise ValueError(f"The mode must be one of {self.valid_modes},'{self.task_id}'; received '{mode}'.")
        hold(self, locals())

    def poke(self, context):
        """Is it time?"""
        raise NotImplementedError

    @property
    def reschedule(self):
        """Does it leave its slot between pokes?"""
        return self.mode == "reschedule"


def poke_mode_only(cls):
    """A sensor that can't reschedule."""
    return cls
