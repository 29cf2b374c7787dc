"""Timetables: when runs start. The scheduler reads the Dag itself; here they only hold what they are given."""

from datetime import timedelta

from updraft_record import REQUIRED, Fresh, Record


class BaseTimetable:
    """The base of timetables."""

    can_be_scheduled = True
    active_runs_limit = None
    description = ""
    periodic = True
    run_ordering = ("data_interval_end", "logical_date")

    def validate(self):
        """Refuses a wrong timetable."""

    def serialize(self):
        """As plain data."""
        return {}

    @classmethod
    def deserialize(cls, data):
        """From plain data."""
        return cls()

    @property
    def summary(self):
        """For the UI."""
        return type(self).__name__


class Timetable(BaseTimetable):
    """The base of timetables of plugins."""


class DataInterval(Record):
    """The span of time that a run covers."""

    _positional = {"start": REQUIRED, "end": REQUIRED}

    @classmethod
    def exact(cls, at):
        """A span of no length."""
        return cls(at, at)


class TimeRestriction(Record):
    """What limits the next run."""

    _positional = {"earliest": None, "latest": None, "catchup": False}


class DagRunInfo(Record):
    """The next run."""

    _keyword = {"run_after": REQUIRED, "data_interval": REQUIRED}

    @classmethod
    def interval(cls, start, end):
        """A run after a span."""
        return cls(run_after=end, data_interval=DataInterval(start, end))

    @classmethod
    def exact(cls, at):
        """A run at a moment."""
        return cls(run_after=at, data_interval=DataInterval(at, at))

    @property
    def logical_date(self):
        """The start of the span."""
        return self.data_interval.start


class CronDataIntervalTimetable(Record, BaseTimetable):
    """By a cron expression, with data intervals."""

    _positional = {"expression": REQUIRED, "timezone": REQUIRED}


class CronTriggerTimetable(Record, BaseTimetable):
    """By a cron expression."""

    _positional = {"expression": REQUIRED, "timezone": REQUIRED}
    _keyword = {"interval": timedelta(0), "run_immediately": False}


class MultipleCronTriggerTimetable(BaseTimetable):
    """By several cron expressions."""

    def __init__(self, *crons, timezone, interval=timedelta(0), run_immediately=False):
        if not crons:
            raise ValueError("cron expression required")
        self.timetables = [
            CronTriggerTimetable(cron, timezone, interval=interval, run_immediately=run_immediately) for cron in crons
        ]


class CronPartitionTimetable(BaseTimetable):
    """By a cron expression, with partitions."""

    def __init__(self, cron, *, timezone, run_offset=None, run_immediately=False, key_format="%Y-%m-%dT%H:%M:%S"):
        self.expression = cron
        self.timezone = timezone
        self.run_offset = run_offset
        self.run_immediately = run_immediately
        self.key_format = key_format


class DeltaDataIntervalTimetable(Record, BaseTimetable):
    """By a span of time, with data intervals."""

    _positional = {"delta": REQUIRED}


class DeltaTriggerTimetable(Record, BaseTimetable):
    """By a span of time."""

    _positional = {"delta": REQUIRED}
    _keyword = {"interval": timedelta(0)}


class EventsTimetable(BaseTimetable):
    """At given moments."""

    def __init__(self, event_dates, *, restrict_to_events=False, presorted=False, description=None):
        self.event_dates = list(event_dates)
        self.restrict_to_events = restrict_to_events
        self.description = description or ""


class AssetOrTimeSchedule(Record, BaseTimetable):
    """By assets, and by time."""

    _keyword = {"assets": REQUIRED, "timetable": REQUIRED}

    @property
    def asset_condition(self):
        """The assets."""
        return self.assets


DatasetOrTimeSchedule = AssetOrTimeSchedule


class AssetTriggeredTimetable(Record, BaseTimetable):
    """By assets."""

    _positional = {"assets": REQUIRED}


class PartitionedAssetTimetable(Record, BaseTimetable):
    """By partitions of assets."""

    _positional = {
        "assets": REQUIRED,
        "partition_mapper_config": Fresh(dict),
        "default_partition_mapper": None,
    }


class PartitionedAtRuntime(BaseTimetable):
    """Partitions that are known only in the run."""

    can_be_scheduled = False
    partitioned_at_runtime = True


class NullTimetable(BaseTimetable):
    """Never."""

    can_be_scheduled = False


class OnceTimetable(BaseTimetable):
    """Once."""


class ContinuousTimetable(BaseTimetable):
    """Always."""

    active_runs_limit = 1
