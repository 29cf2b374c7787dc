"""Classes that only hold what they are given. `dataclasses` takes longer to import than a Dag file to load."""


class Record:
    """Holds its constructor's arguments as attributes.

    A subclass lists them: `_positional` may be given by position, `_keyword` by name only; both map names to
    defaults, with `REQUIRED` where there is none and a `Fresh` where each object gets its own.
    """

    _positional = {}
    _keyword = {}

    def __init__(self, *args, **kwargs):
        cls = type(self)
        names = list(cls._positional)
        if len(args) > len(names):
            raise TypeError(
                f"{cls.__name__}.__init__() takes {len(names) + 1} positional arguments but {len(args) + 1} were given"
            )
        values = dict(zip(names, args))
        for name, value in kwargs.items():
            if name in values:
                raise TypeError(f"{cls.__name__}.__init__() got multiple values for argument {name!r}")
            if name not in cls._positional and name not in cls._keyword:
                raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument {name!r}")
            values[name] = value
        missing = []
        for defaults in (cls._positional, cls._keyword):
            for name, default in defaults.items():
                if name not in values:
                    if default is REQUIRED:
                        missing.append(repr(name))
                        continue
                    values[name] = default.make() if type(default) is Fresh else default
                setattr(self, name, values[name])
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise TypeError(
                f"{cls.__name__}.__init__() missing {len(missing)} required argument{plural}: {' and '.join(missing)}"
            )
        self._made()

    def _made(self):
        """Called when the attributes are set; subclasses check them here."""

    def _names(self):
        return [*type(self)._positional, *type(self)._keyword]

    def __eq__(self, other):
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._names())

    __hash__ = object.__hash__

    def __repr__(self):
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names())
        return f"{type(self).__name__}({inside})"


class _Required:
    def __repr__(self):
        return "REQUIRED"


REQUIRED = _Required()


class Fresh:
    """A default that each object gets its own of."""

    def __init__(self, make):
        self.make = make
