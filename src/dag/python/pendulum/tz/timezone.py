"""Time zones by name and by offset."""

import datetime as _datetime

_ZERO = _datetime.timedelta(0)


class InvalidTimezone(ValueError):
    """There is no time zone of that name here."""


class Timezone(_datetime.tzinfo):
    """A time zone by its name."""

    def __init__(self, key):
        self.key = key
        self._zone = None if key == "UTC" else _zone_info(key)

    @property
    def name(self):
        """The name."""
        return self.key

    def utcoffset(self, dt):
        """The distance to UTC."""
        return _ZERO if self._zone is None else self._zone.utcoffset(_plain(dt))

    def dst(self, dt):
        """What summer time adds."""
        return _ZERO if self._zone is None else self._zone.dst(_plain(dt))

    def tzname(self, dt):
        """The abbreviation."""
        return "UTC" if self._zone is None else self._zone.tzname(_plain(dt))

    def fromutc(self, dt):
        """The local time of a time in UTC."""
        if self._zone is None:
            return dt
        local = self._zone.fromutc(_plain(dt).replace(tzinfo=self._zone))
        return type(dt).combine(local.date(), local.time(), tzinfo=self)

    def convert(self, dt, raise_on_unknown_times=False):
        """The time in this zone."""
        if dt.tzinfo is None:
            return dt.replace(tzinfo=self)
        return dt.astimezone(self)

    def datetime(self, year, month, day, hour=0, minute=0, second=0, microsecond=0):
        """A time in this zone."""
        return _datetime.datetime(year, month, day, hour, minute, second, microsecond, tzinfo=self)

    def __eq__(self, other):
        return isinstance(other, Timezone) and self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def __str__(self):
        return self.key

    def __repr__(self):
        return f"Timezone({self.key!r})"

    def __reduce__(self):
        return (Timezone, (self.key,))


def _plain(dt):
    if dt is None:
        return None
    return _datetime.datetime(
        dt.year, dt.month, dt.day, dt.hour, dt.minute, dt.second, dt.microsecond, fold=getattr(dt, "fold", 0)
    )


def _zone_info(key):
    try:
        from zoneinfo import ZoneInfo

        return ZoneInfo(key)
    except Exception:
        raise InvalidTimezone(f"Invalid timezone: {key}") from None


class FixedTimezone(_datetime.tzinfo):
    """A time zone with one offset."""

    def __init__(self, offset, name=None):
        sign = "-" if offset < 0 else "+"
        minutes = abs(offset) // 60
        self._name = name or f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
        self._offset = offset
        self._delta = _datetime.timedelta(seconds=offset)

    @property
    def name(self):
        """The name: the offset."""
        return self._name

    key = name

    @property
    def offset(self):
        """Seconds from UTC."""
        return self._offset

    def utcoffset(self, dt):
        """The distance to UTC."""
        return self._delta

    def dst(self, dt):
        """Nothing."""
        return _ZERO

    def tzname(self, dt):
        """The name."""
        return self._name

    def fromutc(self, dt):
        """The local time of a time in UTC."""
        return dt + self._delta

    convert = Timezone.convert

    def __eq__(self, other):
        return isinstance(other, FixedTimezone) and self._offset == other._offset

    def __hash__(self):
        return hash(self._offset)

    def __str__(self):
        return self._name

    def __repr__(self):
        return f'FixedTimezone({self._offset}, name="{self._name}")'

    def __reduce__(self):
        return (FixedTimezone, (self._offset, self._name))


UTC = Timezone("UTC")
_known = {"UTC": UTC, "utc": UTC}


def timezone(name):
    """A time zone by name, or by seconds from UTC."""
    if isinstance(name, int):
        return fixed_timezone(name)
    zone = _known.get(name)
    if zone is None:
        zone = _known[name] = _offset_zone(name) or Timezone(name)
    return zone


def _offset_zone(name):
    if name[:1] in "+-" and name[1:3].isdigit():
        digits = name[1:].replace(":", "")
        seconds = int(digits[:2]) * 3600 + int(digits[2:4] or 0) * 60
        return FixedTimezone(-seconds if name[0] == "-" else seconds)
    return None


def fixed_timezone(offset):
    """A time zone by seconds from UTC."""
    return UTC if offset == 0 else FixedTimezone(offset)


def local_timezone():
    """The worker's zone: UTC."""
    return UTC


def as_zone(tz):
    """Any form of a time zone, as one of ours; None stays None."""
    if tz is None or isinstance(tz, (Timezone, FixedTimezone)):
        return tz
    if isinstance(tz, str):
        return timezone(tz)
    if isinstance(tz, (int, float)):
        return fixed_timezone(int(tz * 3600))
    if tz is _datetime.timezone.utc:
        return UTC
    name = getattr(tz, "key", None)
    if isinstance(name, str):
        return timezone(name)
    offset = tz.utcoffset(None)
    return fixed_timezone(int(offset.total_seconds())) if offset is not None else UTC
