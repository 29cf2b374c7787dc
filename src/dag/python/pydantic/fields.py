"""Fields of models."""


class _Undefined:
    def __repr__(self):
        return "PydanticUndefined"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


UNDEFINED = _Undefined()

# Arguments of `Field` that limit the value.
CONSTRAINTS = (
    "gt",
    "ge",
    "lt",
    "le",
    "multiple_of",
    "min_length",
    "max_length",
    "pattern",
    "strict",
    "allow_inf_nan",
    "max_digits",
    "decimal_places",
)


class AliasPath:
    """Where in the input a value is."""

    def __init__(self, first_arg, *args):
        self.path = [first_arg, *args]


class AliasChoices:
    """The names under which the input may hold a value."""

    def __init__(self, first_choice, *choices):
        self.choices = [first_choice, *choices]


class FieldInfo:
    """What is known about a field."""

    def __init__(self, default=UNDEFINED, *, default_factory=None, annotation=None, **kwargs):
        self.default = UNDEFINED if default is ... else default
        self.default_factory = default_factory
        self.annotation = annotation
        self.alias = kwargs.pop("alias", None)
        self.validation_alias = kwargs.pop("validation_alias", None) or self.alias
        self.serialization_alias = kwargs.pop("serialization_alias", None) or self.alias
        self.title = kwargs.pop("title", None)
        self.description = kwargs.pop("description", None)
        self.examples = kwargs.pop("examples", None)
        self.exclude = kwargs.pop("exclude", None)
        self.discriminator = kwargs.pop("discriminator", None)
        self.deprecated = kwargs.pop("deprecated", None)
        self.json_schema_extra = kwargs.pop("json_schema_extra", None)
        self.frozen = kwargs.pop("frozen", None)
        self.validate_default = kwargs.pop("validate_default", None)
        self.repr = kwargs.pop("repr", True)
        self.init = kwargs.pop("init", None)
        self.kw_only = kwargs.pop("kw_only", None)
        if "regex" in kwargs:
            kwargs["pattern"] = kwargs.pop("regex")
        for old, new in (("min_items", "min_length"), ("max_items", "max_length")):
            if old in kwargs:
                kwargs[new] = kwargs.pop(old)
        self.constraints = {
            name: kwargs.pop(name) for name in list(kwargs) if name in CONSTRAINTS and kwargs[name] is not None
        }
        kwargs = {name: value for name, value in kwargs.items() if name not in CONSTRAINTS}
        kwargs.pop("union_mode", None)
        kwargs.pop("fail_fast", None)
        kwargs.pop("coerce_numbers_to_str", None)
        kwargs.pop("alias_priority", None)
        kwargs.pop("field_title_generator", None)
        kwargs.pop("exclude_if", None)
        kwargs.pop("init_var", None)
        if kwargs:
            raise TypeError(f"Field() got an unexpected keyword argument {next(iter(kwargs))!r}")
        self.metadata = []

    def is_required(self):
        """Has the field no default?"""
        return self.default is UNDEFINED and self.default_factory is None

    def get_default(self, *, call_default_factory=True, validated_data=None):
        """A default of its own for each object."""
        if self.default_factory is not None:
            return self.default_factory()
        if isinstance(self.default, (list, dict, set)):
            import copy

            return copy.deepcopy(self.default)
        return self.default

    def merged(self, other):
        """This field's information with another's over it."""
        made = FieldInfo()
        made.__dict__.update(self.__dict__)
        for name, value in other.__dict__.items():
            if name == "constraints":
                made.constraints = {**self.constraints, **value}
            elif name == "metadata":
                made.metadata = [*self.metadata, *value]
            elif name == "default" and value is not UNDEFINED:
                made.default = value
            elif value is not None and value is not UNDEFINED and not (name == "repr" and value is True):
                setattr(made, name, value)
        return made

    def __repr__(self):
        inside = [
            f"annotation={getattr(self.annotation, '__name__', self.annotation)}",
            f"required={self.is_required()}",
        ]
        if not self.is_required():
            inside.append(f"default={self.default!r}" if self.default_factory is None else "default_factory=...")
        if self.description is not None:
            inside.append(f"description={self.description!r}")
        return f"FieldInfo({', '.join(inside)})"


def Field(default=UNDEFINED, **kwargs):
    """A field's default, description and limits."""
    return FieldInfo(default, **kwargs)


class ModelPrivateAttr:
    """The default of a private attribute."""

    def __init__(self, default=UNDEFINED, *, default_factory=None):
        self.default = default
        self.default_factory = default_factory

    def get_default(self):
        """A default of its own for each object."""
        if self.default_factory is not None:
            return self.default_factory()
        import copy

        return copy.deepcopy(self.default)


def PrivateAttr(default=UNDEFINED, *, default_factory=None, init=False):
    """A private attribute."""
    return ModelPrivateAttr(default, default_factory=default_factory)


class ComputedField(property):
    """A property that belongs to the dump of a model."""

    computed = True
    alias = None
    description = None


def computed_field(func=None, /, *, alias=None, description=None, **kwargs):
    """A property that belongs to the dump of a model."""

    def decorate(function):
        if isinstance(function, property):
            made = ComputedField(function.fget, function.fset, function.fdel, function.__doc__)
        elif hasattr(function, "func") and hasattr(function, "__set_name__"):
            made = ComputedField(function.func, None, None, function.__doc__)
        else:
            made = ComputedField(function)
        made.alias = alias
        made.description = description
        return made

    return decorate if func is None else decorate(func)
