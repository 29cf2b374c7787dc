"""Functions that check and change values."""

from updraft_record import Fresh, Record


class ValidationInfo(Record):
    """What a validator knows."""

    _keyword = {"context": None, "config": None, "mode": "python", "data": Fresh(dict), "field_name": None}


class _Decorated:
    """A method that is a validator, until the model takes it."""

    def __init__(self, function, kind, fields, mode):
        self.function = function
        self.kind = kind
        self.fields = fields
        self.mode = mode

    def __get__(self, instance, owner):
        return self.function.__get__(instance, owner)

    def bound(self, cls):
        """The function as it is called."""
        function = self.function
        if isinstance(function, (classmethod, staticmethod)):
            return function.__get__(None, cls)
        return function


def field_validator(field, /, *fields, mode="after", check_fields=None, json_schema_input_type=None):
    """A method that checks fields."""

    def decorate(function):
        return _Decorated(_as_classmethod(function), "field_validator", (field, *fields), mode)

    return decorate


def validator(field, /, *fields, pre=False, each_item=False, always=False, **kwargs):
    """A method that checks fields, as pydantic 1 had it."""
    return field_validator(field, *fields, mode="before" if pre else "after")


def _as_classmethod(function):
    if isinstance(function, (classmethod, staticmethod)):
        return function
    return classmethod(function)


def model_validator(*, mode):
    """A method that checks the whole model."""
    if mode not in ("before", "after", "wrap"):
        raise ValueError(f"model_validator mode must be 'before', 'after' or 'wrap', not {mode!r}")

    def decorate(function):
        if mode != "after":
            function = _as_classmethod(function)
        return _Decorated(function, "model_validator", (), mode)

    return decorate


def root_validator(func=None, *, pre=False, skip_on_failure=False, allow_reuse=False):
    """A method that checks the whole model, as pydantic 1 had it."""

    def decorate(function):
        return _Decorated(_as_classmethod(function), "model_validator", (), "before")

    return decorate if func is None else decorate(func)


class _Annotated(Record):
    _positional = {"func": None}

    def __class_getitem__(cls, item):
        from typing import Annotated

        return Annotated[item, cls()]


class AfterValidator(_Annotated):
    """Calls a function with the checked value."""

    mode = "after"


class BeforeValidator(_Annotated):
    """Calls a function with the value as it comes."""

    mode = "before"


class PlainValidator(_Annotated):
    """Calls a function in place of the check."""

    mode = "plain"


class WrapValidator(_Annotated):
    """Calls a function around the check."""

    mode = "wrap"


class SkipValidation(_Annotated):
    """No check."""

    mode = "skip"


class InstanceOf(_Annotated):
    """Only a check of the class."""

    mode = "instance"
