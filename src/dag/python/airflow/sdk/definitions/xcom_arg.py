"""References to what another task returns."""

from airflow.sdk.definitions._internal.contextmanager import SetupTeardownContext
from airflow.sdk.definitions._internal.node import NOTSET, DependencyMixin, ResolveMixin, as_list

XCOM_RETURN_KEY = "return_value"


class XComArg(ResolveMixin, DependencyMixin):
    """A value that exists when the Dag runs: `task.output`, or what calling a `@task` function gives."""

    def __new__(cls, *args, **kwargs):
        if cls is XComArg:
            cls = PlainXComArg
        return super().__new__(cls)

    def iter_references(self):
        """The (operator, key) pairs that the value comes from."""
        raise NotImplementedError

    def resolve(self, context):
        """The value, while a task runs."""
        raise NotImplementedError

    @staticmethod
    def iter_xcom_references(arg):
        """The references anywhere in a value: in containers, and in the template fields of operators."""
        inside = ()
        if isinstance(arg, ResolveMixin):
            yield from arg.iter_references()
        elif isinstance(arg, dict):
            inside = arg.values()
        elif isinstance(arg, (list, tuple, set)):
            inside = arg
        elif getattr(arg, "is_operator", False) is True:
            inside = (getattr(arg, field, None) for field in arg.template_fields)
        for item in inside:
            yield from XComArg.iter_xcom_references(item)

    @staticmethod
    def apply_upstream_relationship(operator, arg):
        """Puts every task that a value refers to before the operator."""
        for referenced, _ in XComArg.iter_xcom_references(arg):
            operator.set_upstream(referenced)

    @property
    def roots(self):
        """The tasks referred to."""
        return [operator for operator, _ in self.iter_references()]

    leaves = roots

    def set_upstream(self, other, edge_modifier=None):
        """Puts `other` before the tasks referred to."""
        for operator in self.roots:
            operator.set_upstream(other, edge_modifier)

    def set_downstream(self, other, edge_modifier=None):
        """Puts `other` after the tasks referred to."""
        for operator in self.roots:
            operator.set_downstream(other, edge_modifier)

    def map(self, f):
        """The value with `f` applied to each item."""
        return MapXComArg(self, [f])

    def zip(self, *others, fillvalue=NOTSET):
        """Tuples of the items of several values."""
        return ZipXComArg([self, *others], fillvalue=fillvalue)

    def concat(self, *others):
        """The items of several values, one after the other."""
        return ConcatXComArg([self, *others])


class PlainXComArg(XComArg):
    """One XCom of one task."""

    def __init__(self, operator, key=XCOM_RETURN_KEY):
        self.operator = operator
        self.key = key

    def __eq__(self, other):
        if not isinstance(other, PlainXComArg):
            return NotImplemented
        return self.operator is other.operator and self.key == other.key

    def __hash__(self):
        return hash((id(self.operator), self.key))

    def __getitem__(self, item):
        if not isinstance(item, str):
            raise ValueError(f"XComArg only supports str lookup, received {type(item).__name__}")
        return PlainXComArg(self.operator, item)

    def __iter__(self):
        raise TypeError("'XComArg' object is not iterable")

    def __repr__(self):
        if self.key == XCOM_RETURN_KEY:
            return f"XComArg({self.operator!r})"
        return f"XComArg({self.operator!r}, {self.key!r})"

    def __str__(self):
        pull = f"task_ids='{self.operator.task_id}', dag_id='{self.operator.dag_id}'"
        if self.key is not None:
            pull += f", key='{self.key}'"
        return "{{ task_instance.xcom_pull(" + pull + ") }}"

    def iter_references(self):
        """The one task."""
        yield self.operator, self.key

    @property
    def is_setup(self):
        """Is the task a setup task?"""
        return self.operator.is_setup

    @is_setup.setter
    def is_setup(self, value):
        self.operator.is_setup = value

    @property
    def is_teardown(self):
        """Is the task a teardown task?"""
        return self.operator.is_teardown

    @is_teardown.setter
    def is_teardown(self, value):
        self.operator.is_teardown = value

    @property
    def on_failure_fail_dagrun(self):
        """Does the run fail when this teardown task fails?"""
        return self.operator.on_failure_fail_dagrun

    @on_failure_fail_dagrun.setter
    def on_failure_fail_dagrun(self, value):
        self.operator.on_failure_fail_dagrun = value

    def as_setup(self):
        """Marks the task as a setup task."""
        self.operator.as_setup()
        return self

    def as_teardown(self, *, setups=None, on_failure_fail_dagrun=None):
        """Marks the task as a teardown task."""
        self.operator.as_teardown(setups=setups, on_failure_fail_dagrun=on_failure_fail_dagrun)
        return self

    def _whole(self, verb):
        if self.key != XCOM_RETURN_KEY:
            raise ValueError(f"cannot {verb} non-return XCom")

    def map(self, f):
        """The value with `f` applied to each item."""
        self._whole("map against")
        return super().map(f)

    def zip(self, *others, fillvalue=NOTSET):
        """Tuples of the items of several values."""
        self._whole("map against")
        return super().zip(*others, fillvalue=fillvalue)

    def concat(self, *others):
        """The items of several values, one after the other."""
        self._whole("concatenate")
        return super().concat(*others)

    def resolve(self, context):
        """Pulls the XCom."""
        ti = context["ti"]
        operator = self.operator
        arguments = {"task_ids": operator.task_id, "key": self.key, "default": NOTSET}
        if operator.is_mapped:
            arguments["as_list"] = True
        elif operator.get_closest_mapped_task_group() is not None:
            group = operator.get_closest_mapped_task_group()
            task = context.get("task")
            if task is not None and task.get_closest_mapped_task_group() is group:
                arguments["map_indexes"] = ti.map_index
            else:
                arguments["as_list"] = True
        value = ti.xcom_pull(**arguments)
        if value is not NOTSET:
            return value
        if self.key == XCOM_RETURN_KEY or operator.multiple_outputs:
            return None
        from airflow.sdk.exceptions import XComNotFound

        raise XComNotFound(ti.dag_id, operator.task_id, self.key)

    def __enter__(self):
        return self.operator.__enter__()

    def __exit__(self, exc_type, exc, tb):
        SetupTeardownContext.leave()


def _items(value, verb):
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple, str)) or (hasattr(value, "__getitem__") and hasattr(value, "__len__")):
        return value
    raise ValueError(f"XCom {verb} expects sequence or dict, not {type(value).__name__}")


class MapXComArg(XComArg):
    """`.map(f)`: calls `f` on each item when the Dag runs."""

    def __init__(self, arg, callables):
        for function in callables:
            if getattr(function, "_airflow_is_task_decorator", False):
                raise ValueError("map() argument must be a plain function, not a @task operator")
        self.arg = arg
        self.callables = callables

    def __repr__(self):
        return repr(self.arg) + "".join(f".map({getattr(f, '__name__', '<function>')})" for f in self.callables)

    def iter_references(self):
        """The tasks behind."""
        return self.arg.iter_references()

    def map(self, f):
        """One more function."""
        return MapXComArg(self.arg, [*self.callables, f])

    def resolve(self, context):
        """The list of results."""
        value = _items(self.arg.resolve(context), "map")
        results = []
        for index in range(len(value)):
            item = value[index]
            for function in self.callables:
                item = function(item)
            results.append(item)
        return results


class ZipXComArg(XComArg):
    """`.zip(..)`: tuples of the items of several values, up to the shortest (or filled up to the longest)."""

    def __init__(self, args, *, fillvalue=NOTSET):
        self.args = args
        self.fillvalue = fillvalue

    def __repr__(self):
        first, *rest = [repr(arg) for arg in self.args]
        if self.fillvalue is not NOTSET:
            rest.append(f"fillvalue={self.fillvalue!r}")
        return f"{first}.zip({', '.join(rest)})"

    def iter_references(self):
        """The tasks behind."""
        for arg in self.args:
            yield from arg.iter_references()

    def resolve(self, context):
        """The list of tuples."""
        values = [_items(arg.resolve(context), "zip") for arg in self.args]
        lengths = [len(value) for value in values]
        length = min(lengths) if self.fillvalue is NOTSET else max(lengths)
        return [tuple(value[i] if i < len(value) else self.fillvalue for value in values) for i in range(length)]


class ConcatXComArg(XComArg):
    """`.concat(..)`: the items of several values, one after the other."""

    def __init__(self, args):
        self.args = args

    def __repr__(self):
        first, *rest = [repr(arg) for arg in self.args]
        return f"{first}.concat({', '.join(rest)})"

    def iter_references(self):
        """The tasks behind."""
        for arg in self.args:
            yield from arg.iter_references()

    def concat(self, *others):
        """More values."""
        return ConcatXComArg([*self.args, *others])

    def resolve(self, context):
        """The list of all items."""
        results = []
        for arg in self.args:
            results.extend(_items(arg.resolve(context), "concat"))
        return results


__all__ = ["XCOM_RETURN_KEY", "PlainXComArg", "XComArg", "as_list"]
