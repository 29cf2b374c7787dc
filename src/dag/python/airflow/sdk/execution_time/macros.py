"""`macros`: what templates call."""

import datetime as _datetime
from datetime import datetime, timedelta

_MODULES = ("json", "time", "uuid", "dateutil", "random", "yaml")


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"macros has no attribute {name!r}")
    return __import__(name)


def ds_add(ds, days):
    """The date some days later."""
    if not days:
        return str(ds)
    return (_datetime.date.fromisoformat(str(ds)) + timedelta(days=days)).isoformat()


def ds_format(ds, input_format, output_format):
    """The date in another format."""
    return datetime.strptime(str(ds), input_format).strftime(output_format)


def datetime_diff_for_humans(dt, since=None):
    """How far two moments are apart, in words."""
    import pendulum

    return pendulum.instance(dt).diff_for_humans(since)


def ds_format_locale(ds, input_format, output_format, locale=None):
    """Needs the package Babel."""
    raise RuntimeError("macros.ds_format_locale needs Babel, which is not on this worker; use ds_format")
