"""Stand-in for pendulum 3: moments, days and spans of time."""

import datetime as _datetime

from pendulum.date import Date, WeekDay
from pendulum.datetime import DateTime
from pendulum.duration import Duration, Interval
from pendulum.time import Time
from pendulum.tz.timezone import UTC, FixedTimezone, Timezone, as_zone, fixed_timezone, local_timezone
from pendulum.tz.timezone import timezone as timezone

__version__ = "3.1.0"

MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY = WeekDay
YEARS_PER_CENTURY, YEARS_PER_DECADE, MONTHS_PER_YEAR, WEEKS_PER_YEAR = 100, 10, 12, 52
DAYS_PER_WEEK, HOURS_PER_DAY, MINUTES_PER_HOUR, SECONDS_PER_MINUTE = 7, 24, 60, 60
SECONDS_PER_HOUR, SECONDS_PER_DAY = 3600, 86400
Period = Interval


def datetime(year, month, day, hour=0, minute=0, second=0, microsecond=0, tz=UTC, fold=1, raise_on_unknown_times=False):
    """A moment."""
    return DateTime.create(year, month, day, hour, minute, second, microsecond, tz=tz)


def local(year, month, day, hour=0, minute=0, second=0, microsecond=0):
    """A moment in the worker's zone, UTC."""
    return datetime(year, month, day, hour, minute, second, microsecond)


def naive(year, month, day, hour=0, minute=0, second=0, microsecond=0, fold=1):
    """A moment without a zone."""
    return DateTime(year, month, day, hour, minute, second, microsecond)


def date(year, month, day):
    """A day."""
    return Date(year, month, day)


def time(hour, minute=0, second=0, microsecond=0):
    """A time of day."""
    return Time(hour, minute, second, microsecond)


def duration(days=0, seconds=0, microseconds=0, milliseconds=0, minutes=0, hours=0, weeks=0, years=0, months=0):
    """A span of time."""
    return Duration(days, seconds, microseconds, milliseconds, minutes, hours, weeks, years, months)


def interval(start, end, absolute=False):
    """The span between two moments."""
    return Interval(start, end, absolute)


period = interval


def now(tz=None):
    """Now."""
    return DateTime.now(tz)


def today(tz="local"):
    """Midnight of today."""
    return DateTime.now(None if tz == "local" else tz).start_of("day")


def tomorrow(tz="local"):
    """Midnight of tomorrow."""
    return today(tz).add(days=1)


def yesterday(tz="local"):
    """Midnight of yesterday."""
    return today(tz).subtract(days=1)


def instance(obj, tz=UTC):
    """A moment, a day or a time out of the standard library's."""
    if isinstance(obj, DateTime):
        return obj if obj.tzinfo is not None or tz is None else obj.replace(tzinfo=as_zone(tz))
    if isinstance(obj, _datetime.datetime):
        return DateTime.instance(obj, tz)
    if isinstance(obj, _datetime.date):
        return Date(obj.year, obj.month, obj.day)
    if isinstance(obj, _datetime.time):
        return Time(obj.hour, obj.minute, obj.second, obj.microsecond)
    raise ValueError(f"instance() first argument must be a datetime, date or time, not {type(obj).__name__}")


def from_timestamp(timestamp, tz=UTC):
    """A moment from seconds since 1970."""
    return DateTime.fromtimestamp(timestamp, tz)


def from_format(string, fmt, tz=UTC, locale=None):
    """A moment from text, by pendulum's tokens."""
    from pendulum.formatting import parse_by

    found = parse_by(string, fmt)
    if "timestamp" in found:
        return from_timestamp(int(found["timestamp"]), tz)
    zone = found.pop("zone", None) or found.pop("offset", None) or tz
    names = ("year", "month", "day", "hour", "minute", "second", "microsecond")
    numbers = {name: int(found[name]) for name in names if found.get(name) is not None}
    today_ = now(zone)
    if "year" not in numbers:
        numbers["year"] = today_.year
    return datetime(**{"month": 1, "day": 1, **numbers}, tz=zone)


class _Parsing:
    """Reads ISO texts, and the looser forms that pendulum takes."""

    @staticmethod
    def read(text, tz, strict):
        """The numbers of a text."""
        stripped = text.strip()
        if stripped == "now":
            return now(tz)
        iso = stripped.replace("/", "-") if stripped[4:5] == "/" else stripped
        if iso.endswith(("Z", "z")):
            iso = iso[:-1] + "+00:00"
        iso = _Parsing.padded(iso)
        try:
            return DateTime.instance(_datetime.datetime.fromisoformat(iso), tz)
        except ValueError as error:
            if strict:
                raise ParserError(f"Unable to parse string [{text}]") from error
        from dateutil import parser

        try:
            return DateTime.instance(parser.parse(stripped), tz)
        except ValueError as error:
            raise ParserError(f"Unable to parse string [{text}]") from error

    @staticmethod
    def padded(text):
        """`2026` and `2026-01` are their first days; fractions have six digits."""
        if len(text) == 4 and text.isdigit():
            return text + "-01-01"
        if len(text) == 7 and text[4] == "-" and text[5:].isdigit():
            return text + "-01"
        head, dot, tail = text.partition(".")
        if dot:
            digits = len(tail) - len(tail.lstrip("0123456789"))
            text = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
        return text


class ParserError(ValueError):
    """A text is no moment."""


def parse(text, **options):
    """A moment (with `exact`, what the text says) out of ISO text, or a span out of a duration."""
    tz = as_zone(options.get("tz", UTC))
    if text.startswith("P"):
        from pydantic.types import parse_duration

        return duration(seconds=parse_duration(text).total_seconds())
    moment = _Parsing.read(text, tz, options.get("strict", True))
    if options.get("exact") and len(text.strip()) <= 10:
        return moment.date()
    return moment


def timezones():
    """The names of the time zones."""
    import zoneinfo

    return tuple(sorted(zoneinfo.available_timezones()))


def set_locale(name):
    """Texts are English here."""


def get_locale():
    """`en`."""
    return "en"


def week_starts_at(day):
    """Weeks start on Monday here."""


def week_ends_at(day):
    """Weeks end on Sunday here."""


__all__ = [
    "UTC",
    "Date",
    "DateTime",
    "Duration",
    "FixedTimezone",
    "Interval",
    "Time",
    "Timezone",
    "WeekDay",
    "fixed_timezone",
    "local_timezone",
]
