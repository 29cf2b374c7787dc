"""Modules that have no stand-in: they import, and say so when they are needed.

A name imported from such a module can be subclassed, called, decorated with, entered and put between `>>` while the
Dag file loads, because a file usually holds more than the task that is to run. What would need the module's real answer
(iterating, comparing, converting) raises at once; and once loading is over (`running = True`), so does every use.
"""

import sys

import _frozen_importlib
import _updraft

# Modules that were imported so far: name -> (file, line) of the first import.
modules = {}

# False while the Dag file loads.
running = False

# Makes the task for a class that takes a `task_id`: operator_factory(module, name, kwargs, mapped) -> object.
# `mapped` is true for `.partial(..)`. None: the one in updraft_unavailable_operator.
operator_factory = None

_Module = type(sys)


class UnavailableModuleError(ModuleNotFoundError):
    """Something needs a module that the Dag interpreter does not have."""


class NotHereError(RuntimeError):
    """Something was asked for that only a Python worker does: another try does no better."""


def refuse(what):
    """Raises NotHereError for something that a stand-in takes in Python and can't do here, with its place in the Dag."""
    from updraft_source import user_location

    where = user_location()
    raise NotHereError(
        f"{what} is not supported natively ({where['file']}:{where['line']}): leave it out, or send this task to a "
        "queue that a Python worker serves"
    )


def error(module, name):
    """The error to raise when `name` of `module` is needed."""
    root = module
    while root not in modules and "." in root:
        root = root.rpartition(".")[0]
    where = "imported at {}:{}".format(*modules[root]) if root in modules else "not imported by name"
    return UnavailableModuleError(
        f"{name} needs the module {module}, which the Dag interpreter does not have ({where});"
        " run this task on a Python worker",
        name=module,
    )


def _is_code(value):
    return hasattr(value, "__code__") or isinstance(value, (type, staticmethod, classmethod))


def _make_operator(module, name, kwargs, mapped):
    global operator_factory
    if "task_id" not in kwargs or not name.rpartition(".")[2][:1].isupper():
        return None
    if operator_factory is None:
        from updraft_unavailable_operator import make as operator_factory
    return operator_factory(module, name.rpartition(".")[2], kwargs, mapped)


class UnavailableBase:
    """What a class derives from when its base class is unavailable."""

    _unavailable_origin = ("", "")

    def __new__(cls, *args, **kwargs):
        module, name = cls._unavailable_origin
        if running:
            raise error(module, name)
        task = _make_operator(module, cls.__name__, kwargs, False)
        return object.__new__(cls) if task is None else task

    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__()

    @classmethod
    def partial(cls, *args, **kwargs):
        module, name = cls._unavailable_origin
        if running:
            raise error(module, name)
        task = _make_operator(module, cls.__name__, kwargs, True)
        return Unavailable(module, f"{cls.__qualname__}.partial()") if task is None else task

    def __class_getitem__(cls, item):
        return cls

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Unavailable(self._unavailable_origin[0], f"{type(self).__qualname__}.{name}")


class Unavailable:
    """A name of an unavailable module, or what came of using one."""

    def __init__(self, module, name):
        self._unavailable_origin = (module, name)

    def _unavailable_use(self):
        if running:
            raise error(*self._unavailable_origin)

    def _unavailable_child(self, suffix):
        module, name = self._unavailable_origin
        return Unavailable(module, name + suffix)

    def __repr__(self):
        module, name = self._unavailable_origin
        return f"<unavailable {module}.{name}>"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return self._unavailable_child(f".{name}")

    def __call__(self, *args, **kwargs):
        module, name = self._unavailable_origin
        if running:
            import updraft_trigger

            if updraft_trigger.is_trigger(module, name):
                return updraft_trigger.NamedTrigger(module, name, args, kwargs)
        self._unavailable_use()
        task = _make_operator(module, name.removesuffix(".partial"), kwargs, name.endswith(".partial"))
        if task is not None:
            return task
        if len(args) == 1 and not kwargs and _is_code(args[0]):
            # As a decorator. A class stays what it is; a function would have to go through the module to be called.
            if isinstance(args[0], type):
                return args[0]
            result = self._unavailable_child("()")
            result.__wrapped__ = args[0]
            for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
                value = getattr(args[0], attribute, None)
                if value is not None:
                    setattr(result, attribute, value)
            return result
        return self._unavailable_child("()")

    def __mro_entries__(self, bases):
        origin = self._unavailable_origin
        return (type(origin[1].rpartition(".")[2], (UnavailableBase,), {"_unavailable_origin": origin}),)

    def __instancecheck__(self, instance):
        return getattr(instance, "_unavailable_origin", None) == self._unavailable_origin

    def __subclasscheck__(self, cls):
        return getattr(cls, "_unavailable_origin", None) == self._unavailable_origin

    def __getitem__(self, item):
        self._unavailable_use()
        return self._unavailable_child("[..]")

    def __setitem__(self, item, value):
        self._unavailable_use()

    def __delitem__(self, item):
        self._unavailable_use()

    def __enter__(self):
        self._unavailable_use()
        return self

    def __exit__(self, *exception):
        return False

    def __bool__(self):
        self._unavailable_use()
        return True

    def __str__(self):
        self._unavailable_use()
        return repr(self)

    def __format__(self, spec):
        return str(self)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    # Between tasks: `a >> this >> b`.
    def __rshift__(self, other):
        return other

    def __lshift__(self, other):
        return other

    def __rrshift__(self, other):
        return self

    def __rlshift__(self, other):
        return self


def _needs(name):
    def method(self, *args):
        raise error(*self._unavailable_origin)

    method.__name__ = name
    return method


def _computes(name):
    def method(self, *args):
        self._unavailable_use()
        return self._unavailable_child("")

    method.__name__ = name
    return method


for _name in "iter next len contains reversed int float complex index lt le gt ge await aiter anext aenter aexit".split():
    setattr(Unavailable, f"__{_name}__", _needs(f"__{_name}__"))
for _name in "add sub mul truediv floordiv mod pow matmul and or xor".split():
    for _side in (_name, "r" + _name):
        setattr(Unavailable, f"__{_side}__", _computes(f"__{_side}__"))
for _name in "neg pos invert abs".split():
    setattr(Unavailable, f"__{_name}__", _computes(f"__{_name}__"))


class UnavailableModule(_Module):
    """A module without a stand-in."""

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__") and name not in ("__version__", "__author__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name.endswith(("Error", "Exception", "Warning", "Timeout")) and name[:1].isupper():
            # Only a real class can stand in an `except`.
            value = type(name, (Exception,), {"__module__": self.__name__})
        else:
            value = Unavailable(self.__name__, name)
        setattr(self, name, value)
        return value


# Functions of the import machinery that stand between an import and the code that asked for it.
_MACHINERY = ("importlib", "_frozen_importlib", "importlib._bootstrap", "importlib._bootstrap_external", __name__)
_guarded = {}


def _importer():
    """File and line of the code that imports; no file when it only asks whether the module is there."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if name == "importlib.util" and frame.f_code.co_name == "find_spec":
            return None, 0
        if name not in _MACHINERY:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None, 0


def _is_guarded(file, line):
    lines = _guarded.get(file)
    if lines is None:
        text = _updraft.caught_imports(file).strip("[]")
        lines = _guarded[file] = frozenset(map(int, text.split(","))) if text else frozenset()
    return line in lines


class Finder:
    """Comes last on `sys.meta_path` and finds every module that could be a third party's."""

    def find_spec(self, name, path=None, target=None):
        parent, dot, _ = name.rpartition(".")
        if dot:
            package = sys.modules.get(parent)
            origin = getattr(getattr(package, "__spec__", None), "origin", None)
            stands_in = origin == "frozen" and name.partition(".")[0] not in sys.stdlib_module_names
            if not stands_in and not isinstance(package, UnavailableModule):
                return None
        elif name in sys.stdlib_module_names or name.startswith("_"):
            return None
        file, line = _importer()
        # Frozen code has no path: it asks for what it can do without.
        if file is None or "/" not in file or _is_guarded(file, line):
            return None
        modules.setdefault(name, (file, line))
        return _frozen_importlib.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return UnavailableModule(spec.name)

    def exec_module(self, module):
        pass
