"""Time zones."""

import datetime as _datetime


def tzutc():
    """UTC."""
    return _datetime.timezone.utc


UTC = _datetime.timezone.utc


def gettz(name=None):
    """A zone by name; None when there is none of that name."""
    if name is None or name.upper() in ("UTC", "GMT", "Z"):
        return UTC
    try:
        from zoneinfo import ZoneInfo

        return ZoneInfo(name)
    except Exception:
        return None


def tzoffset(name, offset):
    """A zone of one offset."""
    seconds = offset.total_seconds() if hasattr(offset, "total_seconds") else offset
    return _datetime.timezone(_datetime.timedelta(seconds=seconds), *([name] if name else []))


def tzlocal():
    """The worker's zone, UTC."""
    return UTC
