"""Sensors: operators that wait."""

from datetime import timedelta

from airflow.sdk.bases.operator import BaseOperator


class PokeReturnValue:
    """What a poke may return: whether it is done, and a value for the XCom."""

    def __init__(self, is_done, xcom_value=None):
        self.is_done = is_done
        self.xcom_value = xcom_value

    def __bool__(self):
        return self.is_done


def _interval(name, value):
    if value is None or isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and value >= 0:
        return timedelta(seconds=value)
    raise ValueError(f"Operator arg `{name}` must be timedelta object or a non-negative number")


class BaseSensorOperator(BaseOperator):
    """Waits until `poke` is true."""

    _updraft_kind = "python"
    _updraft_needs = "poke"
    _updraft_reason = "this kind of sensor is not run natively yet"
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
        self.poke_interval = _interval("poke_interval", poke_interval).total_seconds()
        if timeout is None:
            from airflow.sdk.configuration import conf

            timeout = conf.getfloat("sensors", "default_timeout", fallback=7 * 24 * 3600.0)
        self.timeout = _interval("timeout", timeout).total_seconds()
        self.soft_fail = soft_fail
        self.mode = mode
        self.exponential_backoff = exponential_backoff
        self.max_wait = _interval("max_wait", max_wait)
        self.silent_fail = silent_fail
        self.never_fail = never_fail

    def poke(self, context):
        """Is it time?"""
        raise NotImplementedError

    def execute(self, context):
        """Pokes until it is time, or until it has taken too long; between pokes it sleeps or leaves its slot."""
        import time

        from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSensorTimeout, AirflowSkipException

        waited = self._clock(context)
        pokes = 1
        while True:
            found = self._poke(context)
            if found:
                self.log.info("Success criteria met. Exiting.")
                return getattr(found, "xcom_value", None)
            if waited() > self.timeout:
                message = (
                    f"Sensor has timed out; run duration of {waited()} seconds exceeds "
                    f"the specified timeout of {self.timeout}."
                )
                raise (AirflowSkipException if self.soft_fail else AirflowSensorTimeout)(message)
            pause = self._pause(pokes, waited())
            if self.reschedule:
                from datetime import datetime, timezone

                raise AirflowRescheduleException(datetime.now(tz=timezone.utc) + timedelta(seconds=pause))
            time.sleep(pause)
            pokes += 1

    def resume_execution(self, next_method, next_kwargs, context):
        """Goes on when the trigger has fired; what failed may be a reason to skip."""
        from airflow.sdk.exceptions import (
            AirflowException,
            AirflowSensorTimeout,
            AirflowSkipException,
            TaskDeferralError,
            TaskDeferralTimeout,
        )

        try:
            try:
                return super().resume_execution(next_method, next_kwargs, context)
            except TaskDeferralTimeout as error:
                raise AirflowSensorTimeout(*error.args) from error
        except (AirflowException, TaskDeferralError) as error:
            for setting in ("soft_fail", "never_fail"):
                if getattr(self, setting):
                    raise AirflowSkipException(f"Skipping due to {setting} is set to True.") from error
            raise

    def _poke(self, context):
        from airflow.sdk.exceptions import (
            AirflowFailException,
            AirflowSensorTimeout,
            AirflowSkipException,
            AirflowTaskTimeout,
        )

        try:
            return self.poke(context)
        except AirflowSkipException:
            raise
        except (AirflowSensorTimeout, AirflowTaskTimeout, AirflowFailException) as error:
            for setting in ("soft_fail", "never_fail"):
                if getattr(self, setting):
                    raise AirflowSkipException(f"Skipping due to {setting} is set to True.") from error
            raise
        except Exception as error:
            if self.silent_fail:
                self.log.exception("Sensor poke failed")
                return False
            if self.never_fail:
                raise AirflowSkipException("Skipping due to never_fail is set to True.") from error
            raise

    def _clock(self, context):
        """A function that says for how many seconds the sensor has waited, over all its turns."""
        import time

        if not self.reschedule:
            started = time.monotonic()
            return lambda: time.monotonic() - started
        from datetime import datetime, timezone

        started = context["ti"].get_first_reschedule_date(context) or datetime.now(tz=timezone.utc)
        return lambda: (datetime.now(tz=timezone.utc) - started).total_seconds()

    def _pause(self, pokes, waited):
        if not self.exponential_backoff:
            return self.poke_interval
        if self.reschedule:
            # Every turn is a new process: how many there were follows from the time that they took.
            total = pokes = 0
            while total <= waited:
                pokes += 1
                total += self._backoff(pokes)
        pause = min(self.timeout - int(waited), self._backoff(pokes))
        if self.max_wait:
            pause = min(self.max_wait.total_seconds(), pause)
        self.log.info("new %s interval is %s", self.mode, pause)
        return pause

    def _backoff(self, pokes):
        """Between once and twice the interval, doubled with each poke; where in between follows from the task."""
        import hashlib

        least = max(int(self.poke_interval * 2 ** (pokes - 2)), 1)
        digest = hashlib.sha1(f"{self.dag_id}#{self.task_id}#{pokes}".encode(), usedforsecurity=False)
        return least + int(digest.hexdigest(), 16) % least

    @property
    def reschedule(self):
        """Does it leave its slot between pokes?"""
        return self.mode == "reschedule"


def poke_mode_only(cls):
    """A sensor that can't reschedule."""
    return cls
