"""What a task or a task group is mapped over."""

from airflow.sdk.definitions._internal.node import NOTSET, ResolveMixin


class MappedArgument(ResolveMixin):
    """The argument of a mapped task group: one item per run of the group."""

    def __init__(self, input, key):
        self._input = input
        self._key = key

    def iter_references(self):
        """The tasks that the items come from."""
        return self._input.iter_references()

    def resolve(self, context):
        """The item of the current map index."""
        value = self._input.resolve(context)
        return value[self._key]

    def __repr__(self):
        return f"MappedArgument({self._key!r})"


class DictOfListsExpandInput(ResolveMixin):
    """`.expand(a=[..], b=..)`: the cross product; the last argument varies fastest."""

    def __init__(self, value):
        self.value = value

    def iter_references(self):
        """The tasks whose XComs are mapped over."""
        for value in self.value.values():
            if isinstance(value, ResolveMixin):
                yield from value.iter_references()

    def resolve(self, context):
        """The arguments of the current map index."""
        resolved = {
            name: value.resolve(context) if isinstance(value, ResolveMixin) else value
            for name, value in self.value.items()
        }
        index = context["ti"].map_index
        chosen = {}
        for name in reversed(list(resolved)):
            items = resolved[name]
            if isinstance(items, dict):
                items = list(items.items())
            index, position = divmod(index, len(items))
            chosen[name] = _resolved(items[position], context)
        return {name: chosen[name] for name in resolved}


class ListOfDictsExpandInput(ResolveMixin):
    """`.expand_kwargs(..)`: one dict of arguments per run."""

    def __init__(self, value):
        self.value = value

    def iter_references(self):
        """The tasks whose XComs are mapped over."""
        if isinstance(self.value, ResolveMixin):
            yield from self.value.iter_references()
            return
        for item in self.value:
            for value in [item] if isinstance(item, ResolveMixin) else item.values():
                if isinstance(value, ResolveMixin):
                    yield from value.iter_references()

    def resolve(self, context):
        """The arguments of the current map index."""
        items = self.value.resolve(context) if isinstance(self.value, ResolveMixin) else self.value
        chosen = _resolved(items[context["ti"].map_index], context)
        if not isinstance(chosen, dict):
            raise ValueError(f"expand_kwargs() expects a list[dict], not list[{type(chosen).__name__}]")
        for name in chosen:
            if not isinstance(name, str):
                raise ValueError(
                    f"expand_kwargs() input dict keys must all be str, but {name!r} is of type {type(name).__name__}"
                )
        return {name: _resolved(value, context) for name, value in chosen.items()}


def _resolved(value, context):
    return value.resolve(context) if isinstance(value, ResolveMixin) else value


def is_mappable(value):
    """Can `.expand` take this value?"""
    if isinstance(value, MappedArgument) or isinstance(value, ResolveMixin):
        return True
    if isinstance(value, (str, bytes, bytearray, set, frozenset)):
        return False
    return isinstance(value, (list, tuple, dict, range)) or (
        hasattr(value, "__getitem__") and hasattr(value, "__len__")
    )


def prevent_duplicates(first, second, *, fail_reason):
    """Refuses arguments that are given twice."""
    twice = sorted(set(first).intersection(second))
    if twice:
        plural = "arguments" if len(twice) > 1 else "argument"
        raise TypeError(f"{fail_reason} {plural}: {', '.join(twice)}")


def require_return_value(arg):
    """Refuses to map over an XCom under another key than `return_value`."""
    if isinstance(arg, ResolveMixin):
        for operator, key in arg.iter_references():
            if key != "return_value":
                raise ValueError(f"cannot map over XCom with custom key {key!r} from {operator}")
    elif isinstance(arg, dict):
        for value in arg.values():
            require_return_value(value)
    elif isinstance(arg, (list, tuple, set, frozenset)):
        for value in arg:
            require_return_value(value)


def check_expand_kwargs(value):
    """Refuses what `.expand_kwargs` can't take."""
    if isinstance(value, ResolveMixin):
        return
    if isinstance(value, (list, tuple)) and all(
        isinstance(item, dict) or isinstance(item, ResolveMixin) for item in value
    ):
        return
    raise TypeError(f"expected XComArg or list[dict], not {type(value).__name__}")


def check_argument_names(func, names, unknown, owner=""):
    """Refuses arguments that the mapped function or operator does not have."""
    if len(unknown) == 1:
        raise TypeError(f"{owner}{func}() got an unexpected keyword argument {unknown[0]!r}")
    if unknown:
        raise TypeError(f"{owner}{func}() got unexpected keyword arguments {', '.join(repr(n) for n in unknown)}")


__all__ = [
    "NOTSET",
    "DictOfListsExpandInput",
    "ListOfDictsExpandInput",
    "MappedArgument",
    "check_argument_names",
    "check_expand_kwargs",
    "is_mappable",
    "prevent_duplicates",
    "require_return_value",
]
