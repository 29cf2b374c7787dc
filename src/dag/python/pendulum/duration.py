"""Spans of time."""

import datetime as _datetime

_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")


class Duration(_datetime.timedelta):
    """A span of time that also knows years and months."""

    def __new__(
        cls,
        days=0,
        seconds=0,
        microseconds=0,
        milliseconds=0,
        minutes=0,
        hours=0,
        weeks=0,
        years=0,
        months=0,
    ):
        self = super().__new__(
            cls,
            days=days + years * 365 + months * 30,
            seconds=seconds,
            microseconds=microseconds,
            milliseconds=milliseconds,
            minutes=minutes,
            hours=hours,
            weeks=weeks,
        )
        self._years = years
        self._months = months
        return self

    @property
    def years(self):
        """Whole years that were given."""
        return self._years

    @property
    def months(self):
        """Whole months that were given."""
        return self._months

    def _total(self):
        return _datetime.timedelta.total_seconds(self)

    def _rest(self):
        """The seconds without years and months, signed."""
        return self._total() - (self._years * 365 + self._months * 30) * 86400

    @property
    def weeks(self):
        """Whole weeks."""
        return int(abs(self._rest()) // (7 * 86400)) * self._sign()

    @property
    def remaining_days(self):
        """Days besides the weeks."""
        return int(abs(self._rest()) // 86400 % 7) * self._sign()

    @property
    def hours(self):
        """Hours besides the days."""
        return int(abs(self._rest()) // 3600 % 24) * self._sign()

    @property
    def minutes(self):
        """Minutes besides the hours."""
        return int(abs(self._rest()) // 60 % 60) * self._sign()

    @property
    def remaining_seconds(self):
        """Seconds besides the minutes."""
        return int(abs(self._rest()) % 60) * self._sign()

    def _sign(self):
        return -1 if self._total() < 0 else 1

    @property
    def invert(self):
        """Is it negative?"""
        return self._total() < 0

    def total_minutes(self):
        """Minutes, with a fraction."""
        return self._total() / 60

    def total_hours(self):
        """Hours, with a fraction."""
        return self._total() / 3600

    def total_days(self):
        """Days, with a fraction."""
        return self._total() / 86400

    def total_weeks(self):
        """Weeks, with a fraction."""
        return self._total() / (7 * 86400)

    def in_seconds(self):
        """Whole seconds."""
        return int(self._total())

    def in_minutes(self):
        """Whole minutes."""
        return int(self.total_minutes())

    def in_hours(self):
        """Whole hours."""
        return int(self.total_hours())

    def in_days(self):
        """Whole days."""
        return int(self.total_days())

    def in_weeks(self):
        """Whole weeks."""
        return int(self.total_weeks())

    def as_timedelta(self):
        """The span as the standard library's."""
        return _datetime.timedelta(seconds=self._total())

    def in_words(self, locale=None, separator=" "):
        """The span in words."""
        values = (
            self.years,
            self.months,
            self.weeks,
            self.remaining_days,
            self.hours,
            self.minutes,
            self.remaining_seconds,
        )
        parts = [
            f"{value} {unit}{'' if abs(value) == 1 else 's'}" for unit, value in zip(_UNITS, values) if abs(value) > 0
        ]
        return separator.join(parts) or "0 seconds"

    def _with(self, seconds):
        return Duration(seconds=seconds)

    def __add__(self, other):
        if isinstance(other, Duration):
            return Duration(
                seconds=self._rest() + other._rest(),
                years=self._years + other._years,
                months=self._months + other._months,
            )
        if isinstance(other, _datetime.timedelta):
            return self._with(self._total() + other.total_seconds())
        return NotImplemented

    __radd__ = __add__

    def __sub__(self, other):
        if isinstance(other, _datetime.timedelta):
            return self._with(self._total() - other.total_seconds())
        return NotImplemented

    def __neg__(self):
        return Duration(seconds=-self._rest(), years=-self._years, months=-self._months)

    def __abs__(self):
        return Duration(seconds=abs(self._rest()), years=abs(self._years), months=abs(self._months))

    def __mul__(self, other):
        if isinstance(other, (int, float)):
            return self._with(self._total() * other)
        return NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, _datetime.timedelta):
            return self._total() / other.total_seconds()
        return self._with(self._total() / other)

    def __repr__(self):
        values = (
            ("years", self.years),
            ("months", self.months),
            ("weeks", self.weeks),
            ("days", self.remaining_days),
            ("hours", self.hours),
            ("minutes", self.minutes),
            ("seconds", self.remaining_seconds),
            ("microseconds", _datetime.timedelta.microseconds.__get__(self)),
        )
        return f"Duration({', '.join(f'{name}={value}' for name, value in values if value)})"

    def __str__(self):
        return self.in_words()

    def __reduce__(self):
        return (Duration, (0, self._total()))


class Interval(Duration):
    """The span between two moments."""

    def __new__(cls, start, end, absolute=False):
        delta = _between(start, end)
        if absolute and delta < 0:
            start, end, delta = end, start, -delta
        self = super().__new__(cls, seconds=delta)
        self._start = start
        self._end = end
        return self

    def __init__(self, start, end, absolute=False):
        pass

    @property
    def start(self):
        """The first moment."""
        return self._start

    @property
    def end(self):
        """The last moment."""
        return self._end

    def _parts(self):
        start, end = (self._start, self._end) if self._total() >= 0 else (self._end, self._start)
        months = (end.year - start.year) * 12 + end.month - start.month
        while months > 0 and start.add(months=months) > end:
            months -= 1
        return months, start.add(months=months), end

    @property
    def years(self):
        """Whole years."""
        return self._parts()[0] // 12 * self._sign()

    @property
    def months(self):
        """Months besides the years."""
        return self._parts()[0] % 12 * self._sign()

    def _rest(self):
        _, start, end = self._parts()
        return _between(start, end) * self._sign()

    def in_months(self):
        """Whole months."""
        return self._parts()[0] * self._sign()

    def in_years(self):
        """Whole years."""
        return self._parts()[0] // 12 * self._sign()

    def range(self, unit, amount=1):
        """The moments at every step."""
        step = 0
        while True:
            moment = self._start.add(**{unit: step * amount})
            if moment > self._end:
                return
            yield moment
            step += 1

    def __iter__(self):
        return self.range("days")

    def __contains__(self, item):
        return self._start <= item <= self._end

    def __repr__(self):
        return f"<Interval [{self._start} -> {self._end}]>"

    def __reduce__(self):
        return (Interval, (self._start, self._end))


def _between(start, end):
    return _datetime.timedelta.total_seconds(
        _plain(end) - _plain(start) if isinstance(start, _datetime.datetime) else _as_date(end) - _as_date(start)
    )


def _plain(moment):
    return _datetime.datetime(
        moment.year,
        moment.month,
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        moment.microsecond,
    ) - (moment.utcoffset() or _datetime.timedelta(0))


def _as_date(day):
    return _datetime.date(day.year, day.month, day.day)
