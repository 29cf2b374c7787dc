"""Signatures of Python functions from their code objects: `inspect` takes longer to import than a Dag file to load."""

EMPTY = type("EMPTY", (), {"__repr__": lambda self: "EMPTY", "__bool__": lambda self: False})()

_VARARGS = 0x04
_VARKEYWORDS = 0x08


class Parameter:
    """One parameter. `kind` is one of the five words that `inspect` uses."""

    __slots__ = ("name", "kind", "default")

    def __init__(self, name, kind, default=EMPTY):
        self.name = name
        self.kind = kind
        self.default = default

    @property
    def positional(self):
        """Can it be given by position?"""
        return self.kind == "POSITIONAL_ONLY" or self.kind == "POSITIONAL_OR_KEYWORD"


def unwrap(function):
    """The function behind `functools.partial`, `@task` and decorators that use `functools.wraps`."""
    for _ in range(100):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "func", None)
        if inner is None or not callable(inner):
            return function
        function = inner
    return function


def parameters(function):
    """The parameters of a callable, in order, without a bound `self`."""
    bound = getattr(function, "__func__", None)
    if bound is not None and getattr(bound, "__code__", None) is not None:
        return _of_function(bound, bound.__code__)[1:]
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__") and not hasattr(function, "__signature__"):
        return _of_function(function, code)
    return _by_inspect(function)


def _of_function(function, code):
    names = code.co_varnames
    positional = code.co_argcount
    positional_only = code.co_posonlyargcount
    keyword_only = code.co_kwonlyargcount
    defaults = function.__defaults__ or ()
    keyword_defaults = function.__kwdefaults__ or {}
    first_default = positional - len(defaults)
    found = [
        Parameter(
            names[i],
            "POSITIONAL_ONLY" if i < positional_only else "POSITIONAL_OR_KEYWORD",
            defaults[i - first_default] if i >= first_default else EMPTY,
        )
        for i in range(positional)
    ]
    next_name = positional + keyword_only
    if code.co_flags & _VARARGS:
        found.append(Parameter(names[next_name], "VAR_POSITIONAL"))
        next_name += 1
    for i in range(positional, positional + keyword_only):
        found.append(Parameter(names[i], "KEYWORD_ONLY", keyword_defaults.get(names[i], EMPTY)))
    if code.co_flags & _VARKEYWORDS:
        found.append(Parameter(names[next_name], "VAR_KEYWORD"))
    return found


def _by_inspect(function):
    import inspect

    return [
        Parameter(p.name, p.kind.name, EMPTY if p.default is inspect.Parameter.empty else p.default)
        for p in inspect.signature(function).parameters.values()
    ]


def bind(params, args, kwargs, partial=False):
    """The arguments by parameter name, in order.

    Raises the TypeError, with its text, that `inspect.Signature.bind` raises.
    """
    kwargs = dict(kwargs)
    bound = {}
    rest = list(args)
    accepts_more = any(p.kind == "VAR_POSITIONAL" for p in params)
    for p in params:
        if p.kind == "VAR_POSITIONAL":
            bound[p.name] = tuple(rest)
            rest = []
        elif p.kind == "VAR_KEYWORD":
            continue
        elif p.positional and rest:
            if p.name in kwargs and p.kind != "POSITIONAL_ONLY":
                raise TypeError(f"multiple values for argument {p.name!r}")
            bound[p.name] = rest.pop(0)
        elif p.name in kwargs and p.kind != "POSITIONAL_ONLY":
            bound[p.name] = kwargs.pop(p.name)
        elif p.default is EMPTY and not partial:
            kind = "keyword-only" if p.kind == "KEYWORD_ONLY" else ""
            raise TypeError(f"missing a required {kind + ' ' if kind else ''}argument: {p.name!r}")
    if rest and not accepts_more:
        raise TypeError("too many positional arguments")
    catch_all = next((p.name for p in params if p.kind == "VAR_KEYWORD"), None)
    if catch_all is not None:
        bound[catch_all] = kwargs
    elif kwargs:
        raise TypeError(f"got an unexpected keyword argument {next(iter(kwargs))!r}")
    return bound


def call_arguments(function, args, context):
    """The keyword arguments from `context` that the function takes, besides the positional `args`.

    A function with `**kwargs` takes the whole context.
    """
    params = parameters(function)
    for p in params[: len(args)]:
        if p.kind not in ("KEYWORD_ONLY", "VAR_KEYWORD") and p.name in context:
            raise ValueError(f"The key {p.name!r} in args is a part of kwargs and therefore reserved.")
    if any(p.kind == "VAR_KEYWORD" for p in params):
        return dict(context)
    return {p.name: context[p.name] for p in params if p.name in context}


def return_annotation(function):
    """The evaluated return annotation; EMPTY when there is none or it can't be evaluated here."""
    function = unwrap(function)
    try:
        annotation = function.__annotations__.get("return", EMPTY)
        if isinstance(annotation, str):
            annotation = eval(annotation, function.__globals__)
    except (NameError, TypeError, AttributeError):
        return EMPTY
    return annotation
