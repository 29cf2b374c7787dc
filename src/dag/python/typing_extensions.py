"""The names of `typing`, some of which once stood only here."""

import typing as _typing
from typing import *  # noqa: F403


def __getattr__(name):
    if name in ("get_annotations", "Format"):
        import annotationlib

        return getattr(annotationlib, name)
    return getattr(_typing, name)


def deprecated(message, /, *, category=DeprecationWarning, stacklevel=1):
    """Marks something as deprecated."""

    def decorate(decorated):
        decorated.__deprecated__ = message
        return decorated

    return decorate


class Sentinel:
    """A value that stands for itself."""

    def __init__(self, name, repr=None):
        self._name = name
        self._repr = repr or f"<{name}>"

    def __repr__(self):
        return self._repr


class Doc:
    """Documentation in an annotation."""

    def __init__(self, documentation, /):
        self.documentation = documentation
