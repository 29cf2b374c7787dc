"""Stand-in for python-dateutil: parsing, `relativedelta`, time zones."""

__version__ = "2.9.0"


def __getattr__(name):
    import sys

    if name not in ("parser", "relativedelta", "tz"):
        raise AttributeError(f"module 'dateutil' has no attribute {name!r}")
    __import__(f"dateutil.{name}")
    return sys.modules[f"dateutil.{name}"]
