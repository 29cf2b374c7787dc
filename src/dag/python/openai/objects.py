"""What the APIs answer, as objects: what was sent are their attributes, and what could have been is None."""

# Classes by the kind of thing that they are, as `type` or `object` says it.
KINDS = {}


class BaseModel:
    """An object of an API."""

    # Attributes that are not always there.
    _defaults = {}
    # Attributes whose mappings are data, and no objects.
    _plain = ()
    # Attributes that come first as plain data, in this order: conversations are told to models as text, too.
    _order = ()

    def __init__(self, **fields):
        for name, value in fields.items():
            self.__dict__[name] = value

    @classmethod
    def construct(cls, _fields_set=None, **fields):
        """An object of plain data, unchecked."""
        return cls(**{name: value if name in cls._plain else built(value) for name, value in fields.items()})

    model_construct = construct

    @classmethod
    def model_validate(cls, data, **kwargs):
        """An object of plain data."""
        return data if isinstance(data, cls) else cls.construct(**data)

    def __getattr__(self, name):
        try:
            return type(self)._defaults[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}") from None

    @property
    def model_fields_set(self):
        """The names of what was given."""
        return set(self.__dict__)

    def model_dump(self, *, mode="python", exclude_unset=False, exclude_none=False, exclude=None, by_alias=None, **kwargs):
        """The object as plain data."""
        fields = {} if exclude_unset else dict(self._defaults)
        fields.update((name, value) for name, value in self.__dict__.items() if not name.startswith("_"))
        fields = {**{name: fields[name] for name in self._order if name in fields}, **fields}
        return {
            name: _dumped(value, exclude_unset, exclude_none)
            for name, value in fields.items()
            if not (exclude_none and value is None) and name not in (exclude or ())
        }

    to_dict = dict = model_dump

    def model_dump_json(self, *, indent=None, **kwargs):
        """The object as JSON text."""
        import json

        separators = None if indent is not None else (",", ":")
        return json.dumps(self.model_dump(**kwargs), indent=indent, separators=separators, ensure_ascii=False)

    to_json = model_dump_json

    def model_copy(self, *, update=None, deep=False):
        """Another object with the same attributes, and with others over them."""
        import copy

        made = copy.deepcopy(self) if deep else copy.copy(self)
        made.__dict__.update(update or {})
        return made

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = object.__hash__

    def __repr__(self):
        inside = ", ".join(f"{name}={value!r}" for name, value in {**self._defaults, **self.__dict__}.items())
        return f"{type(self).__name__}({inside})"


def _dumped(value, unset, none):
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=unset, exclude_none=none)
    if isinstance(value, dict):
        return {name: _dumped(item, unset, none) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dumped(item, unset, none) for item in value]
    return value


def built(value):
    """Objects for the mappings in plain data."""
    if isinstance(value, list):
        return [built(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type") or value.get("object")
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    return (cls or BaseModel).construct(**value)


def kind(name, defaults="", plain=(), of=None, order=""):
    """Makes the class of a kind of object; `of` is what `type` or `object` says."""
    namespace = {"_defaults": dict.fromkeys(defaults.split()), "_plain": tuple(plain), "_order": tuple(order.split())}
    cls = type(name, (BaseModel,), {**namespace, "__doc__": f"{name} of an API."})
    for one in (of,) if isinstance(of, str) else of or ():
        KINDS[one] = cls
    return cls
