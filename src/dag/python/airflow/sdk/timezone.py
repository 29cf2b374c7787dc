"""Times with zones."""

import datetime as _datetime

import pendulum

utc = pendulum.UTC


def is_localized(value):
    """Does the time have a zone?"""
    return value.utcoffset() is not None


def is_naive(value):
    """Has the time no zone?"""
    return value.utcoffset() is None


def utcnow():
    """Now."""
    return pendulum.now("UTC")


def convert_to_utc(value):
    """The time in UTC; a time without a zone is taken for UTC."""
    if value is None:
        return None
    return pendulum.instance(value).in_timezone("UTC")


def make_aware(value, timezone=None):
    """The time with a zone."""
    return pendulum.instance(value, tz=timezone or "UTC")


def make_naive(value, timezone=None):
    """The time without its zone."""
    return pendulum.instance(value).in_timezone(timezone or "UTC").naive()


def datetime(*args, **kwargs):
    """A time in UTC."""
    kwargs.setdefault("tzinfo", utc)
    return _datetime.datetime(*args, **kwargs)


def parse(string, timezone=None, *, strict=False):
    """A time from text."""
    return pendulum.parse(string, tz=timezone or "UTC")


def coerce_datetime(value, tz=None):
    """The time as pendulum's."""
    return None if value is None else pendulum.instance(value, tz=tz or "UTC")


def from_timestamp(timestamp, tz="UTC"):
    """A time from seconds since 1970."""
    return pendulum.from_timestamp(timestamp, tz)


def parse_timezone(name):
    """A time zone."""
    return pendulum.timezone(name)
