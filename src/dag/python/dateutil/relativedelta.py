"""`relativedelta`: spans by the calendar."""

import calendar
import datetime as _datetime

_RELATIVE = ("years", "months", "days", "hours", "minutes", "seconds", "microseconds")
_ABSOLUTE = ("year", "month", "day", "hour", "minute", "second", "microsecond")


class weekday:
    """A day of the week, perhaps the n-th."""

    def __init__(self, weekday, n=None):
        self.weekday = weekday
        self.n = n

    def __call__(self, n):
        return weekday(self.weekday, n)

    def __repr__(self):
        name = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")[self.weekday]
        return name if not self.n else f"{name}({self.n:+d})"


MO, TU, WE, TH, FR, SA, SU = (weekday(i) for i in range(7))


class relativedelta:
    """A span by the calendar, and numbers to set."""

    def __init__(self, dt1=None, dt2=None, *, weeks=0, leapdays=0, weekday=None, **kwargs):
        for name in kwargs:
            if name not in _RELATIVE and name not in _ABSOLUTE:
                raise TypeError(f"relativedelta() got an unexpected keyword argument {name!r}")
        for name in _RELATIVE:
            setattr(self, name, kwargs.get(name, 0))
        for name in _ABSOLUTE:
            setattr(self, name, kwargs.get(name))
        self.days += weeks * 7
        self.weekday = weekday
        if dt1 is not None and dt2 is not None:
            self._between(dt1, dt2)
        self._normalise()

    def _between(self, later, earlier):
        months = (later.year - earlier.year) * 12 + later.month - earlier.month
        step = -1 if months > 0 or (months == 0 and later >= earlier) else 1
        while (
            (earlier + relativedelta(months=months) > later)
            if step < 0
            else (earlier + relativedelta(months=months) < later)
        ):
            months += step
        delta = later - (earlier + relativedelta(months=months))
        self.months = months
        self.seconds, rest = divmod(delta, _datetime.timedelta(seconds=1))
        self.microseconds = rest.microseconds

    def _normalise(self):
        for small, large, size in (
            ("microseconds", "seconds", 1000000),
            ("seconds", "minutes", 60),
            ("minutes", "hours", 60),
            ("hours", "days", 24),
            ("months", "years", 12),
        ):
            value = getattr(self, small)
            if abs(value) >= size:
                sign = -1 if value < 0 else 1
                more, rest = divmod(abs(value), size)
                setattr(self, small, rest * sign)
                setattr(self, large, getattr(self, large) + more * sign)

    @property
    def weeks(self):
        """Whole weeks."""
        return int(self.days / 7)

    def _added_to(self, moment):
        total = (self.year or moment.year) * 12 + (self.month or moment.month) - 1 + self.years * 12 + self.months
        year, month = divmod(total, 12)
        day = min(calendar.monthrange(year, month + 1)[1], self.day or moment.day)
        numbers = {"year": year, "month": month + 1, "day": day}
        for name in ("hour", "minute", "second", "microsecond"):
            if getattr(self, name) is not None:
                numbers[name] = getattr(self, name)
        moved = moment.replace(**numbers) + _datetime.timedelta(
            days=self.days,
            hours=self.hours,
            minutes=self.minutes,
            seconds=self.seconds,
            microseconds=self.microseconds,
        )
        if self.weekday is not None:
            count = self.weekday.n or 1
            jump = (abs(count) - 1) * 7
            jump += (7 - moved.weekday() + self.weekday.weekday) % 7 if count > 0 else 0
            if count < 0:
                jump = -(jump + (moved.weekday() - self.weekday.weekday) % 7)
            moved += _datetime.timedelta(days=jump)
        return moved

    def _values(self, sign=1):
        return {name: sign * getattr(self, name) for name in _RELATIVE}

    def __add__(self, other):
        if isinstance(other, relativedelta):
            mine, theirs = self._values(), other._values()
            absolute = {
                name: getattr(other, name) if getattr(other, name) is not None else getattr(self, name)
                for name in _ABSOLUTE
            }
            weekday = other.weekday if other.weekday is not None else self.weekday
            return relativedelta(weekday=weekday, **{name: mine[name] + theirs[name] for name in _RELATIVE}, **absolute)
        if isinstance(other, _datetime.timedelta):
            values = self._values()
            values["days"] += other.days
            values["seconds"] += other.seconds
            values["microseconds"] += other.microseconds
            return relativedelta(weekday=self.weekday, **values)
        return self._added_to(other)

    __radd__ = __add__

    def __neg__(self):
        return relativedelta(
            weekday=self.weekday, **self._values(-1), **{name: getattr(self, name) for name in _ABSOLUTE}
        )

    def __rsub__(self, other):
        return (-self).__radd__(other)

    def __sub__(self, other):
        return self + (-other)

    def __mul__(self, factor):
        return relativedelta(**{name: int(value * factor) for name, value in self._values().items()})

    __rmul__ = __mul__

    def __bool__(self):
        absolute = any(getattr(self, name) is not None for name in _ABSOLUTE)
        return absolute or self.weekday is not None or any(self._values().values())

    def __eq__(self, other):
        return isinstance(other, relativedelta) and all(
            getattr(self, name) == getattr(other, name) for name in (*_RELATIVE, *_ABSOLUTE)
        )

    __hash__ = None

    def __repr__(self):
        inside = [f"{name}={value:+d}" for name, value in self._values().items() if value]
        inside += [f"{name}={getattr(self, name)!r}" for name in _ABSOLUTE if getattr(self, name) is not None]
        if self.weekday is not None:
            inside.append(f"weekday={self.weekday!r}")
        return f"relativedelta({', '.join(inside)})"
