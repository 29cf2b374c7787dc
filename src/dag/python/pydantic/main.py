"""Models: classes whose annotated attributes are checked."""

import sys
from abc import ABCMeta

from pydantic.compiled import compiled_model, is_code, is_private
from pydantic.errors import Fault, Faults, ValidationError, as_json, at, from_json
from pydantic.fields import UNDEFINED, ModelPrivateAttr
from pydantic.functional_validators import ValidationInfo, _Decorated

class ModelMetaclass(ABCMeta):
    """Keeps what a model's class statement says; the types are looked at when the model is first used."""

    def __new__(mcs, name, bases, namespace, **kwargs):
        validators = {key: value for key, value in namespace.items() if isinstance(value, _Decorated)}
        privates = {
            key: value
            for key, value in namespace.items()
            if isinstance(value, ModelPrivateAttr) or (is_private(key) and not is_code(value))
        }
        for key in privates:
            del namespace[key]
        config = {}
        for base in reversed(bases):
            config.update(getattr(base, "model_config", None) or {})
        config.update(namespace.get("model_config") or {})
        config.update(kwargs)
        namespace["model_config"] = config
        cls = super().__new__(mcs, name, bases, namespace)
        cls._own_validators = validators
        cls._own_privates = privates
        cls._compiled = None
        frame = sys._getframe(1)
        cls._parent_namespace = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else None
        hook = getattr(super(cls, cls), "__pydantic_init_subclass__", None)
        if hook is not None:
            hook(**kwargs)
        return cls

    @property
    def model_fields(cls):
        """The fields by name."""
        return compiled_model(cls).fields

    __pydantic_fields__ = model_fields

    @property
    def model_computed_fields(cls):
        """The computed fields by name."""
        return {
            name: value
            for base in reversed(cls.__mro__)
            for name, value in base.__dict__.items()
            if getattr(value, "computed", False)
        }

    @property
    def __fields__(cls):
        return cls.model_fields


class BaseModel(metaclass=ModelMetaclass):
    """The base of models."""

    model_config = {}

    def __init__(self, /, **data):
        _fill(self, data)

    def __class_getitem__(cls, item):
        name = f"{cls.__name__}[{getattr(item, '__name__', item)}]"
        return type(cls)(name, (cls,), {"__module__": cls.__module__, "_parameters": item})

    @classmethod
    def model_validate(cls, obj, *, strict=None, from_attributes=None, context=None, by_alias=None, by_name=None):
        """A model out of a dict (or of another object's attributes)."""
        if isinstance(obj, cls):
            return obj
        if (from_attributes or cls.model_config.get("from_attributes")) and not isinstance(obj, dict):
            obj = {name: getattr(obj, name) for name in cls.model_fields if hasattr(obj, name)}
        try:
            return cls._check_model(obj)
        except (Fault, Faults) as error:
            raise ValidationError(cls.__name__, at(error)) from None

    parse_obj = model_validate

    @classmethod
    def model_validate_json(cls, json_data, *, strict=None, context=None, by_alias=None, by_name=None):
        """A model out of JSON text."""
        data = from_json(json_data, cls.__name__)
        try:
            return cls._check_model(data)
        except (Fault, Faults) as error:
            raise ValidationError(cls.__name__, as_json(at(error))) from None

    parse_raw = model_validate_json

    @classmethod
    def model_construct(cls, _fields_set=None, **values):
        """A model without checks."""
        model = cls.__new__(cls)
        made = {}
        for name, field in cls.model_fields.items():
            if name in values:
                made[name] = values[name]
            elif not field.is_required():
                made[name] = field.get_default()
        _set(model, made, set(values) if _fields_set is None else _fields_set, None)
        return model

    construct = model_construct

    @classmethod
    def _check_model(cls, value):
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            compiled = compiled_model(cls)
            if not compiled.before and not compiled.wrap:
                raise Fault(
                    "model_type",
                    f"Input should be a valid dictionary or instance of {cls.__name__}",
                    value,
                    ctx={"class_name": cls.__name__},
                )
        model = cls.__new__(cls)
        return _validated(model, value)

    def model_post_init(self, context, /):
        """Called when a model is made."""

    @property
    def model_fields_set(self):
        """The names of the fields that were given."""
        return self.__dict__["__fields_set__"]

    @property
    def model_extra(self):
        """What was given beyond the fields, where the configuration allows it."""
        return self.__dict__["__extra__"]

    def model_dump(
        self,
        *,
        mode="python",
        include=None,
        exclude=None,
        context=None,
        by_alias=False,
        exclude_unset=False,
        exclude_defaults=False,
        exclude_none=False,
        round_trip=False,
        warnings=True,
        fallback=None,
        serialize_as_any=False,
        exclude_computed_fields=False,
    ):
        """The model as a dict; with `mode="json"` of JSON only."""
        from pydantic.serialization import Options, dump_model

        options = Options(mode, by_alias, exclude_unset, exclude_defaults, exclude_none)
        return dump_model(self, options, include, exclude)

    dict = model_dump

    def model_dump_json(self, *, indent=None, ensure_ascii=False, **kwargs):
        """The model as JSON text."""
        import json

        separators = None if indent is not None else (",", ":")
        return json.dumps(
            self.model_dump(mode="json", **kwargs), indent=indent, separators=separators, ensure_ascii=ensure_ascii
        )

    json = model_dump_json

    def model_copy(self, *, update=None, deep=False):
        """A copy, with some values changed."""
        import copy

        made = type(self).__new__(type(self))
        values = copy.deepcopy(self.__dict__) if deep else dict(self.__dict__)
        made.__dict__.update(values)
        made.__dict__["__fields_set__"] = set(self.model_fields_set) | set(update or ())
        made.__dict__.update(update or {})
        return made

    copy = model_copy

    @classmethod
    def model_json_schema(cls, by_alias=True, ref_template="#/$defs/{model}", mode="validation", **kwargs):
        """The JSON schema of the model."""
        from pydantic.json_schema import model_schema

        return model_schema(cls, by_alias, ref_template, mode)

    schema = model_json_schema

    @classmethod
    def model_rebuild(cls, *, force=False, raise_errors=True, _parent_namespace_depth=2, _types_namespace=None):
        """Looks at the types again."""
        if _types_namespace:
            cls._parent_namespace = {**(cls._parent_namespace or {}), **_types_namespace}
        cls._compiled = None
        compiled_model(cls)
        return True

    update_forward_refs = model_rebuild

    def __setattr__(self, name, value):
        if name.startswith("_") or name not in type(self).model_fields:
            if not name.startswith("_") and not hasattr(type(self), name):
                if self.model_config.get("extra") == "allow":
                    self.__dict__["__extra__"][name] = value
                    self.__dict__[name] = value
                    return
                raise ValueError(f'"{type(self).__name__}" object has no field "{name}"')
            object.__setattr__(self, name, value)
            return
        if self.model_config.get("frozen"):
            fault = Fault("frozen_instance", "Instance is frozen", value, (name,))
            raise ValidationError(type(self).__name__, [fault])
        if self.model_config.get("validate_assignment"):
            try:
                value = compiled_model(type(self)).checks[name](value)
            except (Fault, Faults) as error:
                raise ValidationError(type(self).__name__, at(error, name)) from None
        self.__dict__[name] = value
        self.__dict__["__fields_set__"].add(name)

    def __eq__(self, other):
        if not isinstance(other, BaseModel) or type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).model_fields)

    def __hash__(self):
        if self.model_config.get("frozen"):
            return hash(tuple(getattr(self, name) for name in type(self).model_fields))
        raise TypeError(f"unhashable type: '{type(self).__name__}'")

    def __iter__(self):
        for name in type(self).model_fields:
            yield name, getattr(self, name)

    def __repr_args__(self):
        """What `repr` shows."""
        return [(name, getattr(self, name)) for name, field in type(self).model_fields.items() if field.repr]

    def __repr__(self):
        inside = [f"{name}={value!r}" for name, value in self.__repr_args__()]
        inside += [f"{name}={getattr(self, name)!r}" for name in type(self).model_computed_fields]
        return f"{type(self).__name__}({', '.join(inside)})"

    def __str__(self):
        return " ".join(f"{name}={value!r}" for name, value in self.__repr_args__())


def _fill(model, data):
    cls = type(model)
    try:
        filled = _validated(model, data)
    except (Fault, Faults) as error:
        raise ValidationError(cls.__name__, at(error)) from None
    if filled is not model:
        model.__dict__.update(filled.__dict__)


def _validated(model, data):
    cls = type(model)
    compiled = compiled_model(cls)
    for decorated in compiled.before:
        data = _call_validator(decorated.bound(cls), data, data)
    if isinstance(data, cls):
        return data
    if compiled.wrap:
        function = compiled.wrap[-1].bound(cls)
        return _call_validator(function, data, data, lambda value: _checked_fields(model, compiled, value))
    return _checked_fields(model, compiled, data)


def _call_validator(function, value, *args):
    from pydantic.validation import from_value_error

    try:
        return _with_optional_info(function, args)
    except (Fault, Faults):
        raise
    except AssertionError as error:
        raise Fault("assertion_error", f"Assertion failed, {error}", value, ctx={"error": error}) from error
    except ValueError as error:
        raise from_value_error(error, value) from error


def _with_optional_info(function, args):
    import updraft_signature

    takes = [p for p in updraft_signature.parameters(function) if p.positional]
    if len(takes) > len(args):
        return function(*args, ValidationInfo())
    return function(*args)


def _given(data, name, field, by_name):
    """The value for a field under its alias (or its name), and whether there is one."""
    aliases = field.validation_alias
    if aliases is not None:
        for choice in getattr(aliases, "choices", None) or [aliases]:
            path = getattr(choice, "path", None) or [choice]
            value = data
            for step in path:
                try:
                    value = value[step]
                except (KeyError, IndexError, TypeError):
                    value = UNDEFINED
                    break
            if value is not UNDEFINED:
                return value, path[0]
        if not by_name:
            return UNDEFINED, None
    return (data[name], name) if name in data else (UNDEFINED, None)


def _checked_fields(model, compiled, data):
    cls = type(model)
    if not isinstance(data, dict):
        message = f"Input should be a valid dictionary or instance of {cls.__name__}"
        raise Fault("model_type", message, data, ctx={"class_name": cls.__name__})
    by_name = cls.model_config.get("populate_by_name") or cls.model_config.get("validate_by_name")
    values = {}
    given = set()
    used = set()
    faults = []
    for name, field in compiled.fields.items():
        value, key = _given(data, name, field, by_name)
        if value is UNDEFINED:
            if field.is_required():
                alias = field.validation_alias if isinstance(field.validation_alias, str) else None
                faults.append(Fault("missing", "Field required", data, (alias or name,)))
            else:
                values[name] = field.get_default()
            continue
        used.add(key)
        given.add(name)
        check = compiled.checks[name]
        for info in getattr(check, "infos", ()):
            info.data = dict(values)
        try:
            values[name] = check(value)
        except (Fault, Faults) as error:
            faults.extend(at(error, key))
    extra = None
    policy = cls.model_config.get("extra", "ignore")
    if policy != "ignore":
        extra = {key: value for key, value in data.items() if key not in used}
        if policy == "forbid":
            faults += [
                Fault("extra_forbidden", "Extra inputs are not permitted", value, (key,))
                for key, value in extra.items()
            ]
            extra = None
    if faults:
        raise Faults(faults)
    _set(model, values, given, extra)
    for decorated in compiled.after:
        function = decorated.function
        if isinstance(function, (classmethod, staticmethod)):
            model = _call_validator(function.__get__(None, cls), data, model) or model
        else:
            model = _call_validator(function, data, model)
    return model


def _set(model, values, given, extra):
    cls = type(model)
    model.__dict__.update(values)
    if extra:
        model.__dict__.update(extra)
    model.__dict__["__fields_set__"] = given
    model.__dict__["__extra__"] = extra
    for name, private in compiled_model(cls).privates.items():
        value = private.get_default() if isinstance(private, ModelPrivateAttr) else private
        if value is not UNDEFINED and name not in model.__dict__ and private is not None:
            object.__setattr__(model, name, value)
    model.model_post_init(None)


class RootModel(BaseModel):
    """A model that is one value."""

    def __init__(self, root=UNDEFINED, /, **data):
        super().__init__(root=data if root is UNDEFINED else root)

    def __class_getitem__(cls, item):
        name = f"{cls.__name__}[{getattr(item, '__name__', item)}]"
        return type(cls)(name, (cls,), {"__module__": cls.__module__, "__annotations__": {"root": item}})

    @classmethod
    def _check_model(cls, value):
        if isinstance(value, cls):
            return value
        return _validated(cls.__new__(cls), {"root": value})

    @classmethod
    def model_validate(cls, obj, **kwargs):
        """A model out of a value."""
        try:
            return cls._check_model(obj)
        except (Fault, Faults) as error:
            raise ValidationError(cls.__name__, at(error)) from None

    def model_dump(self, **kwargs):
        """The value."""
        return super().model_dump(**kwargs)["root"]

    def __repr__(self):
        return f"{type(self).__name__}(root={self.root!r})"


def create_model(model_name, /, *, __config__=None, __base__=None, __module__=None, __validators__=None, **fields):
    """A model out of names, types and defaults."""
    namespace = {"__module__": __module__ or __name__, "__annotations__": {}}
    if __config__:
        namespace["model_config"] = __config__
    namespace.update(__validators__ or {})
    for name, definition in fields.items():
        annotation, default = definition if isinstance(definition, tuple) else (definition, ...)
        namespace["__annotations__"][name] = annotation
        if default is not ...:
            namespace[name] = default
    bases = __base__ if isinstance(__base__, tuple) else (__base__ or BaseModel,)
    return ModelMetaclass(model_name, bases, namespace)
