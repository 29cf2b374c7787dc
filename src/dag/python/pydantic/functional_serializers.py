"""Functions that make a dump."""

from pydantic.functional_validators import _Annotated, _Decorated


def field_serializer(field, /, *fields, mode="plain", return_type=None, when_used="always", check_fields=None):
    """A method that dumps fields."""

    def decorate(function):
        return _Decorated(function, "field_serializer", (field, *fields), mode)

    return decorate


def model_serializer(func=None, /, *, mode="plain", when_used="always", return_type=None):
    """A method that dumps the model."""

    def decorate(function):
        return _Decorated(function, "model_serializer", (), mode)

    return decorate if func is None else decorate(func)


class PlainSerializer(_Annotated):
    """Calls a function for the dump."""

    _keyword = {"return_type": None, "when_used": "always"}


class WrapSerializer(_Annotated):
    """Calls a function around the dump."""

    _keyword = {"return_type": None, "when_used": "always"}


class SerializeAsAny(_Annotated):
    """Dumps a value by its own class."""
