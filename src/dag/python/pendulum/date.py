"""`Date`, and what it shares with `DateTime`."""

import datetime as _datetime
from enum import IntEnum

from pendulum.formatting import format_moment, in_words_from


class WeekDay(IntEnum):
    """Days of the week."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6


def _days_in_month(year, month):
    following = _datetime.date(year + month // 12, month % 12 + 1, 1)
    return (following - _datetime.timedelta(days=1)).day


class DateMixin:
    """What days and moments can do."""

    def _shifted(self, years, months, days):
        total = self.year * 12 + self.month - 1 + years * 12 + months
        year, month = divmod(total, 12)
        day = min(self.day, _days_in_month(year, month + 1))
        return _datetime.date(year, month + 1, day) + _datetime.timedelta(days=days)

    def _first_day(self, unit):
        day = _datetime.date(self.year, self.month, self.day)
        if unit == "day":
            return day
        if unit == "week":
            return day - _datetime.timedelta(days=day.weekday())
        if unit == "month":
            return day.replace(day=1)
        if unit == "quarter":
            return day.replace(month=(self.month - 1) // 3 * 3 + 1, day=1)
        if unit == "year":
            return day.replace(month=1, day=1)
        if unit == "decade":
            return day.replace(year=self.year - self.year % 10, month=1, day=1)
        if unit == "century":
            return day.replace(year=(self.year - 1) // 100 * 100 + 1, month=1, day=1)
        raise ValueError(f'Invalid unit "{unit}" for start_of()')

    def _last_day(self, unit):
        first = self._first_day(unit)
        steps = {"quarter": 3, "year": 12, "decade": 120, "century": 1200, "month": 1}
        if unit == "day":
            return first
        if unit == "week":
            return first + _datetime.timedelta(days=6)
        total = first.year * 12 + first.month - 1 + steps[unit]
        return _datetime.date(total // 12, total % 12 + 1, 1) - _datetime.timedelta(days=1)

    @property
    def day_of_week(self):
        """The day of the week."""
        return WeekDay(self.weekday())

    @property
    def day_of_year(self):
        """The day of the year, from 1."""
        return self.timetuple().tm_yday

    @property
    def week_of_year(self):
        """The ISO week."""
        return self.isocalendar()[1]

    @property
    def week_of_month(self):
        """The week of the month."""
        first = _datetime.date(self.year, self.month, 1)
        return (self.day + first.weekday() - 1) // 7 + 1

    @property
    def days_in_month(self):
        """How many days the month has."""
        return _days_in_month(self.year, self.month)

    @property
    def quarter(self):
        """The quarter of the year."""
        return (self.month + 2) // 3

    def is_leap_year(self):
        """Has the year 366 days?"""
        return self.year % 4 == 0 and (self.year % 100 != 0 or self.year % 400 == 0)

    def is_same_day(self, other):
        """Is it the same day?"""
        return (self.year, self.month, self.day) == (other.year, other.month, other.day)

    def next(self, day_of_week=None, keep_time=False):
        """The next such day of the week."""
        return self._to_weekday(day_of_week, 1, keep_time)

    def previous(self, day_of_week=None, keep_time=False):
        """The last such day of the week."""
        return self._to_weekday(day_of_week, -1, keep_time)

    def _to_weekday(self, day_of_week, step, keep_time):
        wanted = self.weekday() if day_of_week is None else int(day_of_week)
        moment = self if keep_time or not hasattr(self, "hour") else self.start_of("day")
        moment = moment.add(days=step)
        while moment.weekday() != wanted:
            moment = moment.add(days=step)
        return moment

    def first_of(self, unit, day_of_week=None):
        """The first day of a unit."""
        moment = self.start_of(unit)
        while day_of_week is not None and moment.weekday() != int(day_of_week):
            moment = moment.add(days=1)
        return moment

    def last_of(self, unit, day_of_week=None):
        """The last day of a unit."""
        moment = self.end_of(unit)
        if hasattr(moment, "hour"):
            moment = moment.start_of("day")
        while day_of_week is not None and moment.weekday() != int(day_of_week):
            moment = moment.add(days=-1)
        return moment

    def diff_for_humans(self, other=None, absolute=False, locale=None):
        """How far another moment (now) is, in words."""
        is_now = other is None
        interval = self.diff(other, False)
        seconds = interval.total_seconds()
        words = in_words_from(seconds, abs(interval.in_months()))
        if absolute:
            return words
        if is_now:
            return f"{words} ago" if seconds > 0 else f"in {words}"
        return f"{words} before" if seconds > 0 else f"{words} after"

    def format(self, fmt, locale=None):
        """The text by pendulum's tokens."""
        return format_moment(self, fmt)

    def __format__(self, spec):
        if not spec:
            return str(self)
        return self.strftime(spec) if "%" in spec else self.format(spec)

    def to_date_string(self):
        """`2026-01-02`."""
        return f"{self.year:04d}-{self.month:02d}-{self.day:02d}"

    def to_formatted_date_string(self):
        """`Jan 02, 2026`."""
        return self.format("MMM DD, YYYY")

    def closest(self, *others):
        """The nearest of several."""
        return min(others, key=lambda other: abs(self.diff(other).total_seconds()))

    def farthest(self, *others):
        """The farthest of several."""
        return max(others, key=lambda other: abs(self.diff(other).total_seconds()))

    @property
    def age(self):
        """Whole years until now."""
        return self.diff(abs=False).in_years()


class Date(DateMixin, _datetime.date):
    """A day."""

    @classmethod
    def today(cls):
        """Today."""
        today = _datetime.datetime.now(_datetime.timezone.utc)
        return cls(today.year, today.month, today.day)

    def add(self, years=0, months=0, weeks=0, days=0):
        """A later day."""
        day = self._shifted(years, months, weeks * 7 + days)
        return type(self)(day.year, day.month, day.day)

    def subtract(self, years=0, months=0, weeks=0, days=0):
        """An earlier day."""
        return self.add(-years, -months, -weeks, -days)

    def set(self, year=None, month=None, day=None):
        """The day with other numbers."""
        return self.replace(year or self.year, month or self.month, day or self.day)

    def replace(self, year=None, month=None, day=None):
        """The day with other numbers."""
        return type(self)(year or self.year, month or self.month, day or self.day)

    def diff(self, dt=None, abs=True):
        """The span to another day (to today)."""
        from pendulum.duration import Interval

        return Interval(self, self.today() if dt is None else dt, absolute=abs)

    def start_of(self, unit):
        """The first day of a unit."""
        day = self._first_day(unit)
        return type(self)(day.year, day.month, day.day)

    def end_of(self, unit):
        """The last day of a unit."""
        day = self._last_day(unit)
        return type(self)(day.year, day.month, day.day)

    def __add__(self, other):
        if not isinstance(other, _datetime.timedelta):
            return NotImplemented
        return self.add(days=other.days)

    def __sub__(self, other):
        if isinstance(other, _datetime.timedelta):
            return self.add(days=-other.days)
        if isinstance(other, _datetime.date):
            return Date(other.year, other.month, other.day).diff(self, False)
        return NotImplemented

    def __str__(self):
        return self.isoformat()

    def __repr__(self):
        return f"Date({self.year}, {self.month}, {self.day})"

    def __hash__(self):
        return _datetime.date.__hash__(self)
