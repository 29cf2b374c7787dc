"""JSON schemas in the form that OpenAI calls strict: every property is required, and no other may be there."""

import copy

from agents.exceptions import UserError

_OPEN = (
    "additionalProperties should not be set for object types. This could be because you're using an older version of "
    "Pydantic, or because you configured additional properties to be allowed. If you really need this, update the "
    "function or output tool to not use a strict schema."
)
_TOO_DEEP = "JSON schema is too deeply nested to process safely. Simplify or flatten the schema."
_DEEPEST = 100


def ensure_strict_json_schema(schema):
    """Makes a schema strict, in place."""
    if schema == {}:
        return {"additionalProperties": False, "type": "object", "properties": {}, "required": []}
    made = _strict(schema, schema, 1)
    if isinstance(made.get("anyOf"), list):
        raise UserError("The root of a strict JSON schema must not use `anyOf`.")
    return made


def strict_copy(schema):
    """A strict schema like another one."""
    return ensure_strict_json_schema(copy.deepcopy(schema))


def _strict(schema, root, depth):
    if depth > _DEEPEST:
        raise UserError(_TOO_DEEP)
    for name in ("$defs", "definitions"):
        for one in (schema.get(name) or {}).values():
            _strict(one, root, depth + 1)
    properties = schema.get("properties")
    if "type" not in schema and isinstance(properties, dict):
        schema["type"] = "object"
    kind = schema.get("type")
    if kind is None and schema.get("additionalProperties", False) is not False:
        raise UserError(_OPEN)
    closed = schema.get("additionalProperties") is False
    if kind == "object" or isinstance(kind, list) and "object" in kind:
        if schema.setdefault("additionalProperties", False) is not False:
            raise UserError(_OPEN)
    if isinstance(properties, dict):
        schema["required"] = list(properties)
        schema["properties"] = {name: _strict(one, root, depth + 1) for name, one in properties.items()}
    if isinstance(schema.get("items"), dict):
        schema["items"] = _strict(schema["items"], root, depth + 1)
    for name in ("anyOf", "allOf"):
        if isinstance(schema.get(name), list):
            schema[name] = [_strict(one, root, depth + 1) for one in schema[name]]
    if isinstance(schema.get("oneOf"), list):
        variants = [_strict(one, root, depth + 1) for one in schema.pop("oneOf")]
        schema["anyOf"] = [*schema.get("anyOf", ()), *variants]
    if len(schema.get("allOf") or ()) == 1:
        (one,) = schema.pop("allOf")
        if not closed:
            schema.pop("additionalProperties", None)
        merged = {**one, **schema}
        schema.clear()
        schema.update(merged)
        return _strict(schema, root, depth + 1)
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    if "$ref" in schema and len(schema) > 1:
        # A reference may have nothing beside it: what it stands for is written out.
        schema.update({**_referred(schema.pop("$ref"), root), **schema})
        return _strict(schema, root, depth + 1)
    return schema


def _referred(ref, root):
    if not ref.startswith("#/"):
        raise ValueError(f"Unexpected $ref format {ref!r}; Does not start with #/")
    found = root
    for key in ref[2:].split("/"):
        found = found[key.replace("~1", "/").replace("~0", "~")]
    return copy.deepcopy(found)
