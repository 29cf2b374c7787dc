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
    """Checks values by a core schema; here only a name for annotations."""

    def __init__(self, schema=None, config=None):
        self.schema = schema

    def validate_python(self, value, **kwargs):
        """The value as it is."""
        return value


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
