"""Params: values that a run can be triggered with."""

from airflow.sdk.definitions._internal.node import NOTSET, ResolveMixin


class Param(ResolveMixin):
    """A param's default value and its JSON schema."""

    CLASS_IDENTIFIER = "__class"

    def __init__(self, default=NOTSET, description=None, source=None, **kwargs):
        if default is not NOTSET:
            _check_json(default)
        self.value = default
        self.description = description
        self.source = source
        self.schema = kwargs.pop("schema") if "schema" in kwargs else kwargs

    @property
    def has_value(self):
        """Is there a value that is not None?"""
        return self.value is not NOTSET and self.value is not None

    def resolve(self, value=NOTSET, suppress_exception=False):
        """The value; the schema is checked when the task runs."""
        final = self.value if value is NOTSET else value
        if final is NOTSET:
            if suppress_exception:
                return None
            from airflow.sdk.exceptions import ParamValidationError

            raise ParamValidationError("No value passed and Param has no default value")
        if not suppress_exception:
            self.value = final
        return final

    def dump(self):
        """The param as plain data."""
        return {
            "value": None if self.value is NOTSET else self.value,
            "description": self.description,
            "schema": self.schema,
            "source": self.source,
            self.CLASS_IDENTIFIER: "airflow.sdk.definitions.param.Param",
        }

    def __copy__(self):
        copy = Param.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.schema = dict(self.schema)
        return copy

    def iter_references(self):
        """A param refers to no task."""
        return iter(())


def _check_json(value):
    if value is None or isinstance(value, (str, int, float)):
        return
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_json(item)
    elif isinstance(value, dict):
        for item in value.values():
            _check_json(item)
    else:
        from airflow.sdk.exceptions import ParamValidationError

        raise ParamValidationError(
            "All provided parameters must be json-serializable; "
            f"{value!r} is not. Give a string, a number, a bool, None, a list or a dict."
        )


class ParamsDict(dict):
    """Params by name. Reading one gives its value; `get_param` gives the `Param`."""

    def __init__(self, dict_obj=None, suppress_exception=False):
        super().__init__()
        self.suppress_exception = suppress_exception
        for name, value in dict_obj.raw_items() if isinstance(dict_obj, ParamsDict) else (dict_obj or {}).items():
            super().__setitem__(name, value if isinstance(value, Param) else Param(value))

    def raw_items(self):
        """Pairs of names and `Param` objects."""
        return super().items()

    def get_param(self, name):
        """The `Param` of that name."""
        return super().__getitem__(name)

    def __getitem__(self, name):
        return super().__getitem__(name).resolve(suppress_exception=self.suppress_exception)

    def get(self, name, default=None):
        """The value of a param; `default` without one."""
        return self[name] if name in self else default

    def __setitem__(self, name, value):
        if isinstance(value, Param):
            super().__setitem__(name, value)
        elif name in self:
            self.get_param(name).value = value
        else:
            super().__setitem__(name, Param(value))

    def items(self):
        """Pairs of names and values."""
        return [(name, self[name]) for name in self]

    def values(self):
        """The values."""
        return [self[name] for name in self]

    def update(self, *args, **kwargs):
        """Adds or replaces params."""
        for source in (*args, kwargs):
            pairs = source.raw_items() if isinstance(source, ParamsDict) else dict(source).items()
            for name, value in pairs:
                self[name] = value

    def dump(self):
        """The values by name."""
        return {name: param.resolve(suppress_exception=self.suppress_exception) for name, param in self.raw_items()}

    def mark_source(self, source):
        """Says where the params come from, of those that do not say it yet."""
        for _, param in self.raw_items():
            if param.source is None:
                param.source = source
        return self

    @staticmethod
    def filter_params_by_source(params, source):
        """Only the params from one source."""
        return ParamsDict({name: param for name, param in params.raw_items() if param.source == source})

    def validate(self):
        """The values by name; raises when one is missing."""
        return {name: param.resolve() for name, param in self.raw_items()}

    def copy(self):
        """A copy whose params can be changed on their own."""
        copied = ParamsDict(suppress_exception=self.suppress_exception)
        for name, param in self.raw_items():
            dict.__setitem__(copied, name, param.__copy__())
        return copied

    __copy__ = copy


class DagParam(ResolveMixin):
    """`dag.param("name")`, and what a `@dag` function is called with: the value of a param when the Dag runs."""

    def __init__(self, current_dag, name, default=NOTSET):
        self.current_dag, self._name, self._default = current_dag, name, default
        if default is not NOTSET:
            current_dag.params[name] = default

    def iter_references(self):
        """A param refers to no task."""
        return iter(())

    def resolve(self, context):
        """The value of the run's configuration, else the default, else the Dag's param."""
        conf = getattr(context["dag_run"], "conf", None) or {}
        own = {} if self._default is NOTSET else {self._name: self._default}
        for values in (conf, own, context["params"]):
            if self._name in values:
                return values[self._name]
        from airflow.sdk.exceptions import AirflowException

        raise AirflowException(f"No value could be resolved for parameter {self._name}")


def process_params(dag, task, dagrun_conf=None, *, suppress_exception=False):
    """The params of a task in a run."""
    params = dag.params.copy()
    params.update(task.params)
    params.update(dagrun_conf or {})
    return params.validate()
