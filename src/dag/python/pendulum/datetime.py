"""`DateTime`."""

import datetime as _datetime

from pendulum.date import Date, DateMixin, WeekDay
from pendulum.duration import Duration, Interval
from pendulum.time import Time
from pendulum.tz.timezone import UTC, as_zone


class DateTime(DateMixin, _datetime.datetime):
    """A moment."""

    @classmethod
    def create(cls, year, month, day, hour=0, minute=0, second=0, microsecond=0, tz=UTC, fold=1):
        """A moment in a zone."""
        return cls(year, month, day, hour, minute, second, microsecond, tzinfo=as_zone(tz))

    @classmethod
    def instance(cls, dt, tz=UTC):
        """A moment out of the standard library's."""
        zone = as_zone(dt.tzinfo) if dt.tzinfo is not None else as_zone(tz)
        return cls(dt.year, dt.month, dt.day, dt.hour, dt.minute, dt.second, dt.microsecond, tzinfo=zone, fold=dt.fold)

    @classmethod
    def now(cls, tz=None):
        """Now."""
        return cls.fromtimestamp(_datetime.datetime.now(_datetime.timezone.utc).timestamp(), as_zone(tz) or UTC)

    @classmethod
    def utcnow(cls):
        """Now, in UTC."""
        return cls.now(UTC)

    @classmethod
    def today(cls):
        """Now."""
        return cls.now()

    @classmethod
    def fromtimestamp(cls, t, tz=None):
        """A moment from seconds since 1970."""
        whole = _datetime.datetime(1970, 1, 1) + _datetime.timedelta(seconds=t)
        moment = cls.instance(whole, UTC)
        zone = as_zone(tz) or UTC
        return moment if zone == UTC else moment.in_timezone(zone)

    @classmethod
    def strptime(cls, time, fmt):
        """A moment from text by a pattern of the standard library."""
        return cls.instance(_datetime.datetime.strptime(time, fmt), None or UTC)

    @classmethod
    def combine(cls, date, time, tzinfo=None):
        """A day and a time of day."""
        zone = tzinfo if tzinfo is not None else time.tzinfo
        return cls(
            date.year,
            date.month,
            date.day,
            time.hour,
            time.minute,
            time.second,
            time.microsecond,
            tzinfo=zone,
            fold=time.fold,
        )

    @classmethod
    def fromisoformat(cls, text):
        """A moment from ISO text."""
        return cls.instance(_datetime.datetime.fromisoformat(text), None or UTC)

    # Zones

    @property
    def timezone(self):
        """The zone; None without one."""
        return as_zone(self.tzinfo)

    tz = timezone

    @property
    def timezone_name(self):
        """The zone's name."""
        zone = self.timezone
        return None if zone is None else zone.name

    @property
    def offset(self):
        """Seconds from UTC."""
        offset = self.utcoffset()
        return None if offset is None else int(offset.total_seconds())

    @property
    def offset_hours(self):
        """Hours from UTC."""
        return None if self.offset is None else self.offset / 3600

    def is_utc(self):
        """Is the zone UTC?"""
        return self.offset == 0

    def is_local(self):
        """Has the moment the worker's offset?"""
        return self.offset == 0

    def is_dst(self):
        """Is it summer time?"""
        return bool(self.dst())

    def in_timezone(self, tz):
        """The moment in another zone."""
        zone = as_zone(tz)
        if self.tzinfo is None:
            return self.replace(tzinfo=zone)
        moment = _datetime.datetime(
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.microsecond
        ) - (self.utcoffset() or _datetime.timedelta(0))
        inner = getattr(zone, "_zone", None)
        if inner is not None:
            local = moment.replace(tzinfo=_datetime.timezone.utc).astimezone(inner)
        else:
            local = moment + (zone.utcoffset(None) or _datetime.timedelta(0))
        return type(self)(
            local.year,
            local.month,
            local.day,
            local.hour,
            local.minute,
            local.second,
            local.microsecond,
            tzinfo=zone,
            fold=local.fold,
        )

    in_tz = in_timezone

    def astimezone(self, tz=None):
        """The moment in another zone."""
        return self.in_timezone(tz if tz is not None else UTC)

    def set(self, **kwargs):
        """The moment with other numbers."""
        if "tz" in kwargs:
            kwargs["tzinfo"] = as_zone(kwargs.pop("tz"))
        return self.replace(**kwargs)

    def replace(self, *args, **kwargs):
        """The moment with other numbers."""
        names = ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo")
        values = {name: getattr(self, name) for name in names}
        values.update(zip(names, args))
        values.update(kwargs)
        return type(self)(**values)

    def naive(self):
        """The moment without its zone."""
        return self.replace(tzinfo=None)

    def on(self, year, month, day):
        """The time of day on another day."""
        return self.replace(year=year, month=month, day=day)

    def at(self, hour, minute=0, second=0, microsecond=0):
        """Another time of that day."""
        return self.replace(hour=hour, minute=minute, second=second, microsecond=microsecond)

    # Parts

    def date(self):
        """The day."""
        return Date(self.year, self.month, self.day)

    def time(self):
        """The time of day."""
        return Time(self.hour, self.minute, self.second, self.microsecond)

    def timetz(self):
        """The time of day with its zone."""
        return Time(self.hour, self.minute, self.second, self.microsecond, tzinfo=self.tzinfo)

    @property
    def int_timestamp(self):
        """Whole seconds since 1970."""
        return int(self.timestamp())

    @property
    def float_timestamp(self):
        """Seconds since 1970."""
        return self.timestamp()

    def timestamp(self):
        """Seconds since 1970; a moment without a zone is taken for UTC."""
        plain = _datetime.datetime(
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.microsecond
        ) - (self.utcoffset() or _datetime.timedelta(0))
        return (plain - _datetime.datetime(1970, 1, 1)).total_seconds()

    # Comparisons

    def is_future(self):
        """Is it to come?"""
        return self > self.now(self.timezone)

    def is_past(self):
        """Is it over?"""
        return self < self.now(self.timezone)

    # Arithmetic

    def add(self, years=0, months=0, weeks=0, days=0, hours=0, minutes=0, seconds=0, microseconds=0):
        """A later moment: whole days by the calendar, hours and less by the clock."""
        day = self._shifted(years, months, weeks * 7 + days)
        moment = self.replace(year=day.year, month=day.month, day=day.day)
        delta = _datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds)
        if not delta:
            return moment
        if moment.tzinfo is None:
            return _moved(moment, delta)
        return _moved(moment.in_timezone(UTC), delta).in_timezone(moment.tzinfo)

    def subtract(self, years=0, months=0, weeks=0, days=0, hours=0, minutes=0, seconds=0, microseconds=0):
        """An earlier moment."""
        return self.add(-years, -months, -weeks, -days, -hours, -minutes, -seconds, -microseconds)

    def _add_delta(self, delta, sign=1):
        if isinstance(delta, Interval):
            return self.add(seconds=sign * delta.in_seconds())
        if isinstance(delta, Duration):
            return self.add(years=sign * delta.years, months=sign * delta.months).add(seconds=sign * delta._rest())
        return self.add(days=sign * delta.days, seconds=sign * delta.seconds, microseconds=sign * delta.microseconds)

    def __add__(self, other):
        if not isinstance(other, _datetime.timedelta):
            return NotImplemented
        return self._add_delta(other)

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, _datetime.timedelta):
            return self._add_delta(other, -1)
        if isinstance(other, _datetime.datetime):
            return DateTime.instance(other, None if other.tzinfo is None else UTC).diff(self, False)
        return NotImplemented

    def __rsub__(self, other):
        if isinstance(other, _datetime.datetime):
            return self.diff(DateTime.instance(other, None if other.tzinfo is None else UTC), False)
        return NotImplemented

    def diff(self, dt=None, abs=True):
        """The span to another moment (to now)."""
        return Interval(self, self.now(self.timezone) if dt is None else dt, absolute=abs)

    # Bounds

    def start_of(self, unit):
        """The first moment of the unit around this one."""
        if unit in ("second", "minute", "hour"):
            cleared = {"microsecond": 0}
            if unit != "second":
                cleared["second"] = 0
            if unit == "hour":
                cleared["minute"] = 0
            return self.replace(**cleared)
        day = self._first_day(unit)
        return self.replace(year=day.year, month=day.month, day=day.day, hour=0, minute=0, second=0, microsecond=0)

    def end_of(self, unit):
        """The last moment of the unit around this one."""
        if unit in ("second", "minute", "hour"):
            filled = {"microsecond": 999999}
            if unit != "second":
                filled["second"] = 59
            if unit == "hour":
                filled["minute"] = 59
            return self.replace(**filled)
        day = self._last_day(unit)
        return self.replace(
            year=day.year, month=day.month, day=day.day, hour=23, minute=59, second=59, microsecond=999999
        )

    # Texts

    def isoformat(self, sep="T", timespec="auto"):
        """ISO text."""
        return _datetime.datetime.isoformat(self, sep, timespec)

    def __str__(self):
        return self.isoformat(" ")

    def __repr__(self):
        inside = f"{self.year}, {self.month}, {self.day}, {self.hour}, {self.minute}, {self.second}"
        if self.microsecond:
            inside += f", {self.microsecond}"
        if self.tzinfo is not None:
            inside += f", tzinfo={self.tzinfo!r}"
        return f"DateTime({inside})"

    def to_time_string(self):
        """`03:04:05`."""
        return self.format("HH:mm:ss")

    def to_datetime_string(self):
        """`2026-01-02 03:04:05`."""
        return self.format("YYYY-MM-DD HH:mm:ss")

    def to_iso8601_string(self):
        """ISO text, with Z for UTC."""
        text = self.isoformat()
        return text.replace("+00:00", "Z") if self.timezone_name == "UTC" else text

    def to_rfc3339_string(self):
        """ISO text."""
        return self.isoformat()

    def to_atom_string(self):
        """ISO text without fractions."""
        return self.format("YYYY-MM-DD[T]HH:mm:ssZ")

    to_w3c_string = to_atom_string

    def to_rfc2822_string(self):
        """As in e-mails."""
        return self.format("ddd, DD MMM YYYY HH:mm:ss ZZ")

    to_rss_string = to_rfc1123_string = to_rfc822_string = to_rfc2822_string

    def to_cookie_string(self):
        """As in cookies."""
        return self.format("dddd, DD-MMM-YYYY HH:mm:ss zz")

    def to_day_datetime_string(self):
        """`Fri, Jan 2, 2026 3:04 AM`."""
        return self.format("ddd, MMM D, YYYY h:mm A")

    def __reduce_ex__(self, protocol):
        return (
            type(self),
            (self.year, self.month, self.day, self.hour, self.minute, self.second, self.microsecond, self.tzinfo),
        )

    def __deepcopy__(self, memo):
        return self

    def __hash__(self):
        return _datetime.datetime.__hash__(self)


def _moved(moment, delta):
    plain = (
        _datetime.datetime(
            moment.year,
            moment.month,
            moment.day,
            moment.hour,
            moment.minute,
            moment.second,
            moment.microsecond,
        )
        + delta
    )
    return moment.replace(
        year=plain.year,
        month=plain.month,
        day=plain.day,
        hour=plain.hour,
        minute=plain.minute,
        second=plain.second,
        microsecond=plain.microsecond,
    )


__all__ = ["DateTime", "WeekDay"]
