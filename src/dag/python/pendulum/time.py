"""`Time`."""

import datetime as _datetime


class Time(_datetime.time):
    """A time of day."""

    def add(self, hours=0, minutes=0, seconds=0, microseconds=0):
        """A later time."""
        moment = _datetime.datetime(2000, 1, 2, self.hour, self.minute, self.second, self.microsecond)
        moment += _datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds)
        return type(self)(moment.hour, moment.minute, moment.second, moment.microsecond, tzinfo=self.tzinfo)

    def subtract(self, hours=0, minutes=0, seconds=0, microseconds=0):
        """An earlier time."""
        return self.add(-hours, -minutes, -seconds, -microseconds)

    def format(self, fmt, locale=None):
        """The text by pendulum's tokens."""
        from pendulum.datetime import DateTime

        return DateTime(2000, 1, 1, self.hour, self.minute, self.second, self.microsecond).format(fmt)

    def __str__(self):
        return self.isoformat()

    def __repr__(self):
        inside = f"{self.hour}, {self.minute}, {self.second}"
        if self.microsecond:
            inside += f", {self.microsecond}"
        return f"Time({inside})"
