"""Dataclasses; their fields are not checked when they are made."""

from dataclasses import dataclass as _dataclass


def dataclass(cls=None, /, *, config=None, validate_on_init=None, use_enum_values=None, **kwargs):
    """A dataclass."""
    if cls is None:
        return lambda wrapped: _dataclass(wrapped, **kwargs)
    return _dataclass(cls, **kwargs)
