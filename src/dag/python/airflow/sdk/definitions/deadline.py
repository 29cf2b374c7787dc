"""Deadlines of runs; the scheduler watches them."""

from updraft_record import REQUIRED, Record


class BaseDeadlineReference:
    """What a deadline counts from."""

    @property
    def reference_name(self):
        """The name."""
        return type(self).__name__

    def serialize_reference(self):
        """As plain data."""
        return {"reference_type": self.reference_name}

    @classmethod
    def deserialize_reference(cls, data):
        """From plain data."""
        return cls()


class DagRunLogicalDateDeadline(BaseDeadlineReference):
    """The run's logical date."""


class DagRunQueuedAtDeadline(BaseDeadlineReference):
    """When the run was queued."""


class FixedDatetimeDeadline(BaseDeadlineReference):
    """A moment."""

    def __init__(self, _datetime):
        self._datetime = _datetime


class AverageRuntimeDeadline(BaseDeadlineReference):
    """How long runs take."""

    def __init__(self, max_runs, min_runs=None):
        self.max_runs = max_runs
        self.min_runs = max_runs if min_runs is None else min_runs


class DeadlineReference:
    """What deadlines count from."""

    DAGRUN_LOGICAL_DATE = DagRunLogicalDateDeadline()
    DAGRUN_QUEUED_AT = DagRunQueuedAtDeadline()

    @classmethod
    def FIXED_DATETIME(cls, datetime):
        """A moment."""
        return FixedDatetimeDeadline(datetime)

    @classmethod
    def AVERAGE_RUNTIME(cls, max_runs=10, min_runs=None):
        """How long runs take."""
        return AverageRuntimeDeadline(max_runs, min_runs)

    @classmethod
    def register_custom_reference(cls, reference_class, deadline_reference_type=None):
        """Adds a reference."""
        return reference_class


def deadline_reference(*args, **kwargs):
    """A decorator for references."""

    def decorate(cls):
        return cls

    return decorate


class Callback:
    """What is called when a deadline is missed."""

    def __init__(self, callback_callable, kwargs=None):
        self.path = callback_callable
        self.kwargs = kwargs or {}


class AsyncCallback(Callback):
    """A coroutine, run by the triggerer."""


class SyncCallback(Callback):
    """A function, run by an executor."""

    def __init__(self, callback_callable, kwargs=None, executor=None):
        super().__init__(callback_callable, kwargs)
        self.executor = executor


class DeadlineAlert(Record):
    """A deadline and what happens when it is missed."""

    _positional = {"reference": REQUIRED, "interval": REQUIRED, "callback": REQUIRED, "name": None}
