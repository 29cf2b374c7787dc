"""What toolsets of the provider are made of: validators of arguments, and results as text for a model."""

import _updraft
from updraft_toolsets import JsonSchemaArguments


def build_args_validator(schema):
    """A validator of arguments by a JSON schema."""
    return JsonSchemaArguments(schema)


def return_schema_kwargs(schema):
    """The return schema, as an argument of `ToolDefinition`."""
    return {"return_schema": schema}


def serialize_for_llm(value):
    """A result as text: text as it is, everything else as JSON. Known secrets are masked."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return _updraft.mask(value)
    if isinstance(value, bytes):
        try:
            return _updraft.mask(value.decode())
        except UnicodeDecodeError:
            import base64
            import json

            return json.dumps({"base64": base64.b64encode(value).decode("ascii")})
    import json

    try:
        return json.dumps(_masked(value, []), default=_default)
    except (TypeError, ValueError):
        return _updraft.mask(str(value))


def _masked(value, around):
    """Secrets are masked before the JSON is made: with a quote in it one would not be recognised there."""
    if isinstance(value, str):
        return _updraft.mask(value) if type(value) is str else value
    if isinstance(value, bytes):
        return _updraft.mask(value.decode("utf-8", "replace"))
    if not isinstance(value, (dict, list, tuple)):
        return value
    if any(value is outer for outer in around):
        return "<circular reference>"
    around = [*around, value]
    if isinstance(value, dict):
        return {_masked(key, around): _masked(item, around) for key, item in value.items()}
    return [_masked(item, around) for item in value]


def _default(value):
    if hasattr(type(value), "_check_model"):
        from pydantic_core import to_jsonable_python

        return _masked(to_jsonable_python(value), [])
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return _masked({name: getattr(value, name) for name in fields}, [])
    return _updraft.mask(str(value))
