"""Stand-in for the names of pydantic-core that Dag files use."""

from pydantic.errors import ValidationError
from pydantic.fields import UNDEFINED as PydanticUndefined

__version__ = "2.0"


class PydanticCustomError(ValueError):
    """A fault with a kind and a text of its own."""

    def __init__(self, error_type, message_template, context=None):
        self.type = error_type
        self.context = context
        super().__init__(message_template.format(**(context or {})))


class SchemaValidator:
    """Checks values by the core schema of a `TypeAdapter`, or by one that takes arguments as they come."""

    def __init__(self, schema=None, config=None):
        self.schema = schema or {"type": "any"}

    def validate_python(self, value, **kwargs):
        """The checked value."""
        adapter = self._adapter()
        return value if adapter is None else adapter.validate_python(value)

    def validate_json(self, data, **kwargs):
        """The checked value of JSON text."""
        adapter = self._adapter()
        return from_json(data) if adapter is None else adapter.validate_json(data)

    def _adapter(self):
        adapter = self.schema.get("adapter")
        if adapter is None and not _takes_arguments(self.schema):
            raise NotImplementedError(
                f"this worker checks nothing by a core schema of the type {self.schema['type']!r}: give SchemaValidator the "
                "core_schema of a TypeAdapter"
            )
        return adapter


def _takes_arguments(schema):
    """Does a schema say no more than that there are arguments?"""
    parts = [part.get("type") if isinstance(part, dict) else None for part in schema.get("of", ())]
    return schema["type"] == "any" or schema["type"] == "dict" and all(part in ("any", "str") for part in parts)


class SchemaSerializer:
    """Dumps values by a core schema; here only a name for annotations."""


def to_jsonable_python(value, **kwargs):
    """A value as JSON data."""
    from pydantic.serialization import Options, dump

    return dump(value, Options("json", kwargs.get("by_alias", True), False, False, kwargs.get("exclude_none", False)))


def to_json(value, *, indent=None, **kwargs):
    """A value as JSON bytes."""
    import json

    separators = None if indent is not None else (",", ":")
    return json.dumps(to_jsonable_python(value, **kwargs), indent=indent, separators=separators).encode()


def from_json(data, **kwargs):
    """A value from JSON text."""
    import json

    return json.loads(data)


__all__ = [
    "PydanticCustomError",
    "PydanticUndefined",
    "SchemaSerializer",
    "SchemaValidator",
    "ValidationError",
    "from_json",
    "to_json",
    "to_jsonable_python",
]
