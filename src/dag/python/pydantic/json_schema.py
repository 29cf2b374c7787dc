"""JSON schemas of models and types, as pydantic writes them."""

from pydantic.errors import PydanticUserError

_LIMITS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", None: "null"}
_FORMATS = {"datetime": "date-time", "date": "date", "time": "time", "timedelta": "duration"}


class PydanticInvalidForJsonSchema(PydanticUserError):
    """A type has no JSON schema."""


class GenerateJsonSchema:
    """Makes JSON schemas; here only a name to derive from."""


JsonSchemaValue = dict


class _Writer:
    def __init__(self, by_alias, ref_template, mode):
        self.by_alias = by_alias
        self.ref_template = ref_template
        self.mode = mode
        self.definitions = {}
        self.names = {}

    def reference(self, cls, write):
        name = self.names.get(cls)
        if name is None:
            name = self.names[cls] = cls.__name__
            self.definitions[name] = None
            self.definitions[name] = write(cls)
        return {"$ref": self.ref_template.format(model=name)}

    def model(self, cls):
        properties = {}
        required = []
        for name, field in cls.model_fields.items():
            alias = field.validation_alias if isinstance(field.validation_alias, str) else None
            key = alias if self.by_alias and alias else name
            properties[key] = self.field(key, field, cls)
            if field.is_required():
                required.append(key)
        if self.mode == "serialization":
            for name, computed in cls.model_computed_fields.items():
                properties[name] = {"readOnly": True, "title": _title(name)}
                required.append(name)
        schema = {"properties": properties}
        description = _docstring(cls)
        if description:
            schema = {"description": description, **schema}
        if required:
            schema["required"] = required
        schema["title"] = cls.model_config.get("title") or cls.__name__
        schema["type"] = "object"
        extra = cls.model_config.get("extra")
        if extra == "forbid":
            schema["additionalProperties"] = False
        elif extra == "allow":
            schema["additionalProperties"] = True
        if "root" in properties and list(properties) == ["root"] and hasattr(cls, "root") is False and _is_root(cls):
            schema = {**properties["root"], "title": schema["title"]}
        more = cls.model_config.get("json_schema_extra")
        if callable(more):
            more(schema)
        elif more:
            schema.update(more)
        return schema

    def field(self, key, field, owner):
        schema = self.type(field.annotation, owner)
        schema = _limited(schema, field.constraints)
        entry = {}
        if "$ref" not in schema:
            entry["title"] = field.title or _title(key)
        elif field.title:
            entry["title"] = field.title
        if field.description:
            entry["description"] = field.description
        if field.examples:
            entry["examples"] = field.examples
        if field.deprecated:
            entry["deprecated"] = True
        if not field.is_required() and field.default_factory is None:
            from pydantic.serialization import Options, dump

            entry["default"] = dump(field.default, Options("json", True, False, False, False))
        if callable(field.json_schema_extra):
            field.json_schema_extra(schema)
        elif field.json_schema_extra:
            entry.update(field.json_schema_extra)
        return _sorted({**schema, **entry})

    def type(self, annotation, owner):
        import typing

        if isinstance(annotation, str):
            from pydantic.validation import evaluate

            annotation = evaluate(annotation, owner)
        try:
            kind = _SIMPLE.get(annotation)
        except TypeError:
            kind = None
        if kind is not None:
            return {"type": kind}
        if annotation is typing.Any or annotation is object:
            return {}
        origin = typing.get_origin(annotation)
        arguments = typing.get_args(annotation)
        if origin is typing.Annotated:
            from pydantic.compiled import field_of
            from pydantic.fields import UNDEFINED

            field = field_of(annotation, UNDEFINED)
            schema = _limited(self.type(field.annotation, owner), field.constraints)
            if field.description:
                schema = {**schema, "description": field.description}
            return schema
        if origin in (typing.Required, typing.NotRequired, typing.Final):
            return self.type(arguments[0], owner)
        if origin is typing.Literal:
            return _literal(arguments)
        if origin is typing.Union or type(annotation).__name__ == "UnionType":
            return {"anyOf": [self.type(argument, owner) for argument in arguments]}
        if type(annotation).__name__ == "TypeAliasType":
            return self.type(annotation.__value__, owner)
        if type(annotation).__name__ == "NewType":
            return self.type(annotation.__supertype__, owner)
        return self.container(origin or annotation, arguments, owner) or self.named(origin or annotation)

    def container(self, kind, arguments, owner):
        import collections.abc as abc

        item = self.type(arguments[0], owner) if arguments and arguments[0] is not ... else {}
        if kind in (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable):
            return {"items": item, "type": "array"}
        if kind in (set, frozenset, abc.Set):
            return {"items": item, "type": "array", "uniqueItems": True}
        if kind is tuple:
            if not arguments or (len(arguments) == 2 and arguments[1] is ...):
                return {"items": item, "type": "array"}
            items = [self.type(argument, owner) for argument in arguments]
            return {"maxItems": len(items), "minItems": len(items), "prefixItems": items, "type": "array"}
        if kind in (dict, abc.Mapping, abc.MutableMapping):
            value = self.type(arguments[1], owner) if len(arguments) > 1 else {}
            return {"additionalProperties": value or True, "type": "object"}
        return None

    def named(self, cls):
        if hasattr(cls, "_check_model"):
            return self.reference(cls, self.model)
        if hasattr(cls, "_json_schema"):
            return dict(cls._json_schema)
        if hasattr(cls, "__members__"):
            return self.reference(cls, _enum)
        if hasattr(cls, "__total__"):
            return self.reference(cls, self.typed_dict)
        if hasattr(cls, "__dataclass_fields__"):
            return self.reference(cls, self.dataclass)
        name = getattr(cls, "__name__", str(cls))
        if name in _FORMATS:
            return {"format": _FORMATS[name], "type": "string"}
        if name == "Decimal":
            return {"anyOf": [{"type": "number"}, {"type": "string"}]}
        if name == "UUID":
            return {"format": "uuid", "type": "string"}
        if name == "bytes":
            return {"format": "binary", "type": "string"}
        if name in ("Path", "PurePath"):
            return {"format": "path", "type": "string"}
        raise PydanticInvalidForJsonSchema(f"Cannot generate a JsonSchema for {cls}", "invalid-for-json-schema")

    def typed_dict(self, cls):
        import typing

        hints = typing.get_type_hints(cls, include_extras=True)
        properties = {}
        for name, hint in hints.items():
            schema = self.type(hint, cls)
            properties[name] = schema if "$ref" in schema else _sorted({**schema, "title": _title(name)})
        schema = {"properties": properties}
        if _docstring(cls):
            schema["description"] = _docstring(cls)
        required = [name for name in hints if name in cls.__required_keys__]
        if required:
            schema["required"] = required
        return _sorted({**schema, "title": cls.__name__, "type": "object"})

    def dataclass(self, cls):
        import typing

        hints = typing.get_type_hints(cls, include_extras=True)
        properties = {}
        required = []
        for name, field in cls.__dataclass_fields__.items():
            schema = self.type(hints.get(name, object), cls)
            if "$ref" not in schema:
                schema = {**schema, "title": _title(name)}
            missing = type(field.default).__name__ == "_MISSING_TYPE"
            if not missing:
                schema = {**schema, "default": field.default}
            elif type(field.default_factory).__name__ == "_MISSING_TYPE":
                required.append(name)
            properties[name] = _sorted(schema)
        schema = {"properties": properties, "title": cls.__name__, "type": "object"}
        description = _docstring(cls)
        if description and not description.startswith(f"{cls.__name__}("):
            # One that `dataclass` did not write.
            schema["description"] = description
        if required:
            schema["required"] = required
        return _sorted(schema)


def _is_root(cls):
    return any(base.__name__ == "RootModel" for base in cls.__mro__)


def _sorted(schema):
    """Keys in the order in which pydantic writes them: sorted, but not the names of properties."""
    return {key: schema[key] for key in sorted(schema)}


def _title(name):
    return name.replace("_", " ").title()


def _docstring(cls):
    doc = cls.__dict__.get("__doc__")
    if not doc:
        return None
    lines = doc.expandtabs().split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    margin = min(indents) if indents else 0
    return "\n".join([lines[0].strip(), *(line[margin:].rstrip() for line in lines[1:])]).strip("\n")


def _kind_of(values):
    for kind, name in ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number")):
        if all(isinstance(value, kind) for value in values):
            return {"type": name}
    return {}


def _literal(values):
    plain = [getattr(value, "value", value) for value in values]
    if len(plain) == 1:
        return {"const": plain[0], **_kind_of(plain)}
    return {"enum": plain, **_kind_of(plain)}


def _enum(cls):
    values = [member.value for member in cls]
    schema = {"enum": values, "title": cls.__name__, **_kind_of(values)}
    description = _docstring(cls)
    if description and description != "An enumeration.":
        schema["description"] = description
    return _sorted(schema)


def _limited(schema, constraints):
    schema = dict(schema)
    members = schema.get("anyOf")
    if constraints and members and len(members) == 2 and members[1] == {"type": "null"}:
        # The limits are those of the value, if there is one.
        schema["anyOf"] = [_sorted(_limited(members[0], constraints)), members[1]]
        return schema
    for name, limit in constraints.items():
        if name in _LIMITS:
            schema[_LIMITS[name]] = getattr(limit, "pattern", limit)
        elif name in ("min_length", "max_length"):
            bound = name[:3]
            suffix = {"array": "Items", "object": "Properties"}.get(schema.get("type"), "Length")
            schema[bound + suffix] = limit
    return schema


def _with_definitions(schema, writer):
    definitions = {name: _sorted(entry) for name, entry in writer.definitions.items() if entry is not None}
    if definitions:
        schema = {"$defs": {name: definitions[name] for name in sorted(definitions)}, **schema}
    return schema


def model_schema(cls, by_alias, ref_template, mode):
    """The JSON schema of a model."""
    writer = _Writer(by_alias, ref_template, mode)
    schema = writer.model(cls)
    text = ref_template.format(model=cls.__name__)
    if cls in writer.names:
        return _with_definitions({"$ref": text}, writer)
    return _with_definitions(_sorted(schema), writer)


def type_schema(annotation, by_alias, ref_template, mode):
    """The JSON schema of a type."""
    if hasattr(annotation, "_check_model"):
        return model_schema(annotation, by_alias, ref_template, mode)
    writer = _Writer(by_alias, ref_template, mode)
    schema = writer.type(annotation, None)
    if list(writer.definitions) == [getattr(annotation, "__name__", None)]:
        # The only definition is the type itself.
        return _sorted(writer.definitions[annotation.__name__])
    return _with_definitions(schema, writer)
