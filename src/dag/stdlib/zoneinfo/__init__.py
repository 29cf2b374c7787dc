"""Time zones by name, from the database in the binary: Dag code sees no files of the machine."""

import datetime as _datetime

import _updraft

TZPATH = ()

_DAY = 86400
_EPOCH = _datetime.datetime(1970, 1, 1)


class ZoneInfoNotFoundError(KeyError):
    """There is no time zone of that name."""


class InvalidTZPathWarning(RuntimeWarning):
    """Never given: there are no paths."""


class ZoneInfo(_datetime.tzinfo):
    """A time zone of the IANA database."""

    _known = {}

    def __new__(cls, key):
        zone = cls._known.get((cls, key))
        if zone is None:
            zone = cls._known[cls, key] = cls.no_cache(key)
        return zone

    @classmethod
    def no_cache(cls, key):
        if not isinstance(key, str) or _updraft.zone_at(key, 0) is None:
            raise ZoneInfoNotFoundError(f"No time zone found with key {key}")
        zone = super().__new__(cls)
        zone._key = key
        return zone

    @classmethod
    def clear_cache(cls, *, only_keys=None):
        for known in list(cls._known):
            if known[0] is cls and (only_keys is None or known[1] in only_keys):
                del cls._known[known]

    @classmethod
    def from_file(cls, fobj, /, key=None):
        raise NotImplementedError("time zones are read from no files here; name one instead")

    @property
    def key(self):
        return self._key

    def _at(self, seconds):
        """Offset, what summer time adds, abbreviation at a moment in UTC."""
        base, dst, name = _updraft.zone_at(self._key, seconds)[1:-1].split(",")
        return int(base) + int(dst), int(dst), name.strip('"')

    def _local(self, dt):
        """The same at a time of the clocks there."""
        wall = (
            _datetime.datetime(dt.year, dt.month, dt.day, dt.hour, dt.minute, dt.second) - _EPOCH
        ).total_seconds()
        wall = int(wall)
        before, after = self._at(wall - _DAY), self._at(wall + _DAY)
        if before[0] == after[0]:
            return self._at(wall - before[0])
        # The clocks change around that time: which of the offsets leads to a moment that has it?
        first, second = self._at(wall - before[0]), self._at(wall - after[0])
        is_before, is_after = first[0] == before[0], second[0] == after[0]
        if is_before and not is_after:
            return first
        if is_after and not is_before:
            return second
        # The hour that comes twice, or the one that does not come at all.
        if is_before:
            return second if dt.fold else first
        return after if dt.fold else before

    def utcoffset(self, dt):
        return None if dt is None else _datetime.timedelta(seconds=self._local(dt)[0])

    def dst(self, dt):
        return None if dt is None else _datetime.timedelta(seconds=self._local(dt)[1])

    def tzname(self, dt):
        return None if dt is None else self._local(dt)[2]

    def fromutc(self, dt):
        if dt.tzinfo is not self:
            raise ValueError("fromutc: dt.tzinfo is not self")
        plain = _datetime.datetime(dt.year, dt.month, dt.day, dt.hour, dt.minute, dt.second)
        seconds = int((plain - _EPOCH).total_seconds())
        offset = self._at(seconds)[0]
        moved = plain + _datetime.timedelta(seconds=offset)
        earlier = self._at(seconds - 3 * 3600)[0]
        # The second time round, when the clocks were set back meanwhile.
        fold = int(earlier > offset and self._at(seconds - (earlier - offset))[0] == earlier)
        return dt.replace(
            year=moved.year,
            month=moved.month,
            day=moved.day,
            hour=moved.hour,
            minute=moved.minute,
            second=moved.second,
            fold=fold,
        )

    def __str__(self):
        return self._key

    def __repr__(self):
        return f"{type(self).__module__}.{type(self).__qualname__}(key={self._key!r})"

    def __reduce__(self):
        return (type(self), (self._key,))


def available_timezones():
    return set(_updraft.zone_names()[2:-2].split('","'))


def reset_tzpath(to=None):
    """There are no paths."""


__all__ = ["TZPATH", "InvalidTZPathWarning", "ZoneInfo", "ZoneInfoNotFoundError", "available_timezones", "reset_tzpath"]
