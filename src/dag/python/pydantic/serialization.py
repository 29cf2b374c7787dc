"""Dumps of models."""

from pydantic.compiled import compiled_model


class Options:
    """How a model is dumped."""

    def __init__(self, mode, by_alias, exclude_unset, exclude_defaults, exclude_none):
        self.json = mode == "json"
        self.mode = mode
        self.by_alias = by_alias
        self.exclude_unset = exclude_unset
        self.exclude_defaults = exclude_defaults
        self.exclude_none = exclude_none


def dump_model(model, options, include=None, exclude=None):
    """A model as a dict."""
    cls = type(model)
    compiled = compiled_model(cls)
    if compiled.model_serializer is not None:
        decorated = compiled.model_serializer
        if decorated.mode == "wrap":
            return dump(decorated.function(model, lambda m: _fields(m, compiled, options, include, exclude)), options)
        return dump(decorated.function(model), options)
    return _fields(model, compiled, options, include, exclude)


def _fields(model, compiled, options, include, exclude):
    cls = type(model)
    dumped = {}
    for name, field in compiled.fields.items():
        if field.exclude or not _wanted(name, include, exclude) or name not in model.__dict__:
            continue
        if options.exclude_unset and name not in model.model_fields_set:
            continue
        value = getattr(model, name)
        if options.exclude_none and value is None:
            continue
        if options.exclude_defaults and not field.is_required() and value == field.get_default():
            continue
        key = field.serialization_alias if options.by_alias and field.serialization_alias else name
        dumped[key] = _field(model, name, value, compiled, options, _deeper(include, name), _deeper(exclude, name))
    for name, value in (model.model_extra or {}).items():
        if _wanted(name, include, exclude):
            dumped[name] = dump(value, options)
    for name in cls.model_computed_fields:
        if _wanted(name, include, exclude):
            dumped[name] = dump(getattr(model, name), options)
    return dumped


def _field(model, name, value, compiled, options, include, exclude):
    decorated = compiled.serializers.get(name) or compiled.serializers.get("*")
    if decorated is None:
        return dump(value, options, include, exclude)
    function = decorated.function.__get__(model, type(model))
    if decorated.mode == "wrap":
        return dump(function(value, lambda v: dump(v, options)), options)
    import updraft_signature

    if len([p for p in updraft_signature.parameters(function) if p.positional]) > 1:
        return dump(function(value, None), options)
    return dump(function(value), options)


def _wanted(name, include, exclude):
    if include is not None and name not in include:
        return False
    return exclude is None or name not in exclude or (isinstance(exclude, dict) and exclude[name] not in (True, ...))


def _deeper(selection, name):
    deeper = selection.get(name) if isinstance(selection, dict) else None
    return deeper if isinstance(deeper, (dict, set)) else None


def dump(value, options, include=None, exclude=None):
    """A value as plain data."""
    if value is None or isinstance(value, (bool, str, int, float)):
        if hasattr(type(value), "__members__") and options.json:
            return value.value
        if isinstance(value, float) and options.json and (value != value or value in (float("inf"), -float("inf"))):
            return None
        return value
    cls = type(value)
    if hasattr(cls, "_check_model"):
        return value.model_dump(
            mode=options.mode,
            include=include,
            exclude=exclude,
            by_alias=options.by_alias,
            exclude_unset=options.exclude_unset,
            exclude_defaults=options.exclude_defaults,
            exclude_none=options.exclude_none,
        )
    if isinstance(value, dict):
        return {_key(key, options): dump(item, options) for key, item in value.items()}
    if isinstance(value, list):
        return [dump(item, options) for item in value]
    if isinstance(value, (tuple, set, frozenset)):
        items = [dump(item, options) for item in value]
        return items if options.json else cls(items) if cls in (tuple, set, frozenset) else value
    if hasattr(cls, "__dataclass_fields__"):
        return {name: dump(getattr(value, name), options) for name in cls.__dataclass_fields__}
    return _json(value) if options.json else value


def _key(key, options):
    if not options.json or isinstance(key, str):
        return key.value if options.json and hasattr(type(key), "__members__") else key
    key = _json(key)
    return key if isinstance(key, str) else str(key).lower() if isinstance(key, bool) else str(key)


def _json(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(type(value), "__members__"):
        return value.value
    if hasattr(type(value), "total_seconds"):
        from pydantic.types import format_duration

        return format_duration(value)
    if hasattr(type(value), "isoformat"):
        text = value.isoformat()
        return text[:-6] + "Z" if text.endswith("+00:00") else text
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode()
    secret = getattr(type(value), "_dumped", None)
    if secret is not None:
        return value._dumped()
    if type(value).__name__ in ("Decimal", "UUID") or hasattr(type(value), "__fspath__"):
        return str(value)
    from pydantic.errors import PydanticUserError

    raise PydanticUserError(f"Unable to serialize unknown type: {type(value)}")
