"""Checks of any type."""

from pydantic.errors import Fault, Faults, ValidationError, as_json, at, from_json
from pydantic.validation import check_for, display_name


class TypeAdapter:
    """Checks and dumps values of a type."""

    def __init__(self, type, *, config=None, _parent_depth=2, module=None):
        import sys

        self._type = type
        frame = sys._getframe(1)
        owner = _Owner(frame.f_globals.get("__name__"), frame.f_locals)
        self._check = check_for(type, None, owner)
        # For `SchemaValidator`, which knows of no other schemas.
        self.core_schema = {"type": "any", "adapter": self}
        self.validator = self
        self.serializer = self

    def __class_getitem__(cls, item):
        return cls

    def validate_python(self, object, /, *, strict=None, from_attributes=None, context=None, **kwargs):
        """The checked value."""
        try:
            return self._check(object)
        except (Fault, Faults) as error:
            raise ValidationError(display_name(self._type), at(error)) from None

    def validate_json(self, data, /, **kwargs):
        """The checked value of JSON text."""
        title = display_name(self._type)
        value = from_json(data, title)
        try:
            return self._check(value)
        except (Fault, Faults) as error:
            raise ValidationError(title, as_json(at(error))) from None

    def dump_python(self, instance, /, *, mode="python", **kwargs):
        """The value as plain data."""
        from pydantic.serialization import Options, dump

        return dump(instance, Options(mode, kwargs.get("by_alias"), False, False, kwargs.get("exclude_none")))

    def dump_json(self, instance, /, *, indent=None, **kwargs):
        """The value as JSON bytes."""
        import json

        separators = None if indent is not None else (",", ":")
        dumped = self.dump_python(instance, mode="json", **kwargs)
        return json.dumps(dumped, indent=indent, separators=separators, ensure_ascii=False).encode()

    def json_schema(self, *, by_alias=True, ref_template="#/$defs/{model}", mode="validation", **kwargs):
        """The JSON schema of the type."""
        from pydantic.json_schema import type_schema

        return type_schema(self._type, by_alias, ref_template, mode)


class _Owner:
    def __init__(self, module, names):
        self.__module__ = module
        self.__name__ = "TypeAdapter"
        self._parent_namespace = names


def validate_call(func=None, /, *, config=None, validate_return=False):
    """A function whose arguments are checked by their annotations."""

    def decorate(function):
        import updraft_signature

        checks = None

        def wrapper(*args, **kwargs):
            nonlocal checks
            params = updraft_signature.parameters(function)
            if checks is None:
                import typing

                hints = typing.get_type_hints(function, include_extras=True)
                checks = {p.name: check_for(hints[p.name], None, None) for p in params if p.name in hints}
            bound = updraft_signature.bind(params, args, kwargs)
            faults = []
            for name, value in bound.items():
                if name in checks:
                    try:
                        bound[name] = checks[name](value)
                    except (Fault, Faults) as error:
                        faults.extend(at(error, name))
            if faults:
                raise ValidationError(function.__name__, faults)
            return function(**bound)

        wrapper.__wrapped__ = function
        wrapper.__name__ = function.__name__
        wrapper.__doc__ = function.__doc__
        return wrapper

    return decorate if func is None else decorate(func)
