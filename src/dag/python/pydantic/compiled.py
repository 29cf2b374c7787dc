"""What a model's class statement comes to: its fields with their checks, worked out when the model is first used."""

import sys

from pydantic.fields import UNDEFINED, FieldInfo
from pydantic.functional_validators import ValidationInfo, _Decorated

_RESERVED = frozenset(("model_config", "model_fields", "model_computed_fields", "model_extra", "model_fields_set"))


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and not name.startswith(("_own_", "_abc_"))


def is_code(value):
    return callable(value) or isinstance(value, (property, classmethod, staticmethod, _Decorated))


class _Compiled:
    """A model's fields and their checks."""

    def __init__(self):
        self.fields = {}
        self.checks = {}
        self.before = []
        self.after = []
        self.wrap = []
        self.serializers = {}
        self.model_serializer = None
        self.privates = {}


def _annotations(cls):
    """The annotations of the class itself, unevaluated where they are texts or can't be evaluated yet."""
    own = cls.__dict__.get("__annotations__")
    if own is not None:
        return own
    try:
        return cls.__annotations__ if "__annotate__" in cls.__dict__ or "__annotate_func__" in cls.__dict__ else {}
    except NameError:
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)


def compiled_model(cls):
    compiled = cls.__dict__.get("_compiled")
    if compiled is not None:
        return compiled
    from pydantic.validation import check_for, evaluate, with_function

    compiled = _Compiled()
    field_validators = []
    for base in reversed(cls.__mro__):
        if "_own_validators" not in base.__dict__:
            continue
        for name, annotation in _annotations(base).items():
            if name in _RESERVED or name.startswith("_"):
                if is_private(name) and name not in base.__dict__.get("_own_privates", {}):
                    compiled.privates.setdefault(name, None)
                continue
            if isinstance(annotation, str):
                annotation = evaluate(annotation, base)
            if _is_class_variable(annotation):
                continue
            default = base.__dict__.get(name, UNDEFINED)
            compiled.fields[name] = field_of(annotation, default)
        compiled.privates.update(base.__dict__.get("_own_privates", {}))
        for name, decorated in base.__dict__.get("_own_validators", {}).items():
            if decorated.kind == "field_validator":
                field_validators = [entry for entry in field_validators if entry[0] != name]
                field_validators.append((name, decorated))
            elif decorated.kind == "model_validator":
                getattr(compiled, decorated.mode).append(decorated)
            elif decorated.kind == "field_serializer":
                for field in decorated.fields:
                    compiled.serializers[field] = decorated
            else:
                compiled.model_serializer = decorated
    for name, field in compiled.fields.items():
        check = check_for(field.annotation, field.constraints, cls)
        for function, mode in field.metadata:
            check = with_function(check, function, mode)
        for _, decorated in field_validators:
            if name in decorated.fields or "*" in decorated.fields:
                info = ValidationInfo(field_name=name, config=cls.model_config)
                check = _with_info(check, decorated.bound(cls), decorated.mode, info, with_function)
        compiled.checks[name] = check
    cls._compiled = compiled
    return compiled


def _with_info(check, function, mode, info, with_function):
    checked = with_function(check, function, mode, info)
    checked_info = getattr(check, "infos", ())

    def call(value):
        return checked(value)

    call.infos = (*checked_info, info)
    return call


def _is_class_variable(annotation):
    typing = sys.modules.get("typing")
    if typing is None:
        return False
    return annotation is typing.ClassVar or typing.get_origin(annotation) is typing.ClassVar


def field_of(annotation, default):
    field = FieldInfo()
    metadata = getattr(annotation, "__metadata__", None)
    inner = annotation
    functions = []
    if metadata is not None:
        inner = annotation.__origin__
        for item in metadata:
            if isinstance(item, FieldInfo):
                field = field.merged(item)
            elif hasattr(type(item), "mode") and hasattr(item, "func"):
                functions.append((item.func, item.mode))
            elif isinstance(getattr(item, "constraints", None), dict):
                field.constraints.update(item.constraints)
            else:
                for name in ("gt", "ge", "lt", "le", "min_length", "max_length", "multiple_of"):
                    if getattr(item, name, None) is not None:
                        field.constraints[name] = getattr(item, name)
    if isinstance(default, FieldInfo):
        field = field.merged(default)
    elif default is not UNDEFINED and not isinstance(default, _Decorated):
        field.default = default
    field.annotation = inner
    field.metadata = functions
    return field
