"""Partition mappers and windows. The scheduler reads them; here they only hold what they are given."""

from updraft_record import REQUIRED, Record


class PartitionMapper(Record):
    """Maps the partition of one asset to that of another."""

    _keyword = {"max_downstream_keys": None}
    is_rollup = False


class IdentityMapper(PartitionMapper):
    """The same partition."""


class AllowedKeyMapper(PartitionMapper):
    """Only some partitions."""

    _positional = {"allowed_keys": REQUIRED}


class FixedKeyMapper(PartitionMapper):
    """Always one partition."""

    _positional = {"downstream_key": REQUIRED}


class ChainMapper(PartitionMapper):
    """One mapper after the other."""

    def __init__(self, mapper0, mapper1, /, *mappers, max_downstream_keys=None):
        self.mappers = (mapper0, mapper1, *mappers)
        self.max_downstream_keys = max_downstream_keys


class ProductMapper(PartitionMapper):
    """Several mappers, their keys joined."""

    def __init__(self, mapper0, mapper1, /, *mappers, delimiter="|", max_downstream_keys=None):
        self.mappers = (mapper0, mapper1, *mappers)
        self.delimiter = delimiter
        self.max_downstream_keys = max_downstream_keys


class RollupMapper(PartitionMapper):
    """Many partitions to one."""

    _keyword = {"max_downstream_keys": None, "upstream_mapper": REQUIRED, "window": REQUIRED, "wait_policy": None}
    is_rollup = True


class FanOutMapper(PartitionMapper):
    """One partition to many."""

    _keyword = {
        "upstream_mapper": REQUIRED,
        "window": REQUIRED,
        "downstream_mapper": None,
        "max_downstream_keys": None,
    }


class _StartOfMapper(PartitionMapper):
    _keyword = {"timezone": "UTC", "input_format": "%Y-%m-%dT%H:%M:%S", "output_format": None, "max_downstream_keys": None}


class StartOfHourMapper(_StartOfMapper):
    """By hour."""


class StartOfDayMapper(_StartOfMapper):
    """By day."""


class StartOfWeekMapper(_StartOfMapper):
    """By week."""


class StartOfMonthMapper(_StartOfMapper):
    """By month."""


class StartOfQuarterMapper(_StartOfMapper):
    """By quarter."""


class StartOfYearMapper(_StartOfMapper):
    """By year."""


class Window(Record):
    """A span of partitions."""

    _keyword = {"direction": "forward"}


class HourWindow(Window):
    """An hour."""


class DayWindow(Window):
    """A day."""


class WeekWindow(Window):
    """A week."""


class MonthWindow(Window):
    """A month."""


class QuarterWindow(Window):
    """A quarter."""


class YearWindow(Window):
    """A year."""


class SegmentWindow(Window):
    """Given partitions."""

    _positional = {"segments": REQUIRED}
    _keyword = {}


class WaitPolicy(Record):
    """For what a rollup waits."""


class WaitForAll(WaitPolicy):
    """For all."""


class MinimumCount(WaitPolicy):
    """For some."""

    _positional = {"n": REQUIRED}
