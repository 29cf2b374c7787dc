"""`@task` and its kin: functions that become tasks when a Dag function calls them."""

import sys

import updraft_signature
from airflow.sdk.bases.operator import BaseOperator, MappedOperator, check_types, merged_defaults
from airflow.sdk.definitions._internal.contextmanager import DagContext, TaskGroupContext
from airflow.sdk.definitions._internal.expandinput import (
    DictOfListsExpandInput,
    ListOfDictsExpandInput,
    check_argument_names,
    check_expand_kwargs,
    is_mappable,
    prevent_duplicates,
    require_return_value,
)
from airflow.sdk.definitions.context import KNOWN_CONTEXT_KEYS
from airflow.sdk.definitions.taskgroup import split_suffix
from airflow.sdk.definitions.xcom_arg import XComArg
from updraft_signature import EMPTY, call_arguments
from updraft_source import function_location


def get_unique_task_id(task_id, dag=None, task_group=None):
    """The id, with `__1`, `__2` ... when the Dag has it already."""
    dag = dag or DagContext.get_current()
    if dag is None:
        return task_id
    task_group = task_group or TaskGroupContext.get_current(dag)
    full = task_group.child_id(task_id) if task_group is not None else task_id
    if full not in dag.task_dict:
        return task_id
    prefix, _ = split_suffix(full)
    taken = [0]
    for other in dag.task_dict:
        core, number = split_suffix(other)
        if core == prefix and number is not None:
            taken.append(number)
    core, _ = split_suffix(task_id)
    return f"{core}__{max(taken) + 1}"


def determine_kwargs(func, args, kwargs):
    """The keyword arguments that a function takes."""
    return call_arguments(func, args, kwargs)


def _with_context_defaults(params):
    """The parameters as a call in a Dag file may leave them out: those named like context keys are filled later."""
    for p in params:
        if p.name in KNOWN_CONTEXT_KEYS and p.default is not None and p.default is not EMPTY:
            raise ValueError(f"Context key parameter {p.name} can't have a default other than None")
    optional = []
    for p in params:
        if p.name in KNOWN_CONTEXT_KEYS and p.default is EMPTY and p.kind not in ("VAR_POSITIONAL", "VAR_KEYWORD"):
            p = updraft_signature.Parameter(p.name, p.kind, None)
        optional.append(p)
    return optional


class DecoratedOperator(BaseOperator):
    """A task around a Python function."""

    template_fields = ("op_args", "op_kwargs")
    template_fields_renderers = {"op_args": "py", "op_kwargs": "py"}
    custom_operator_name = "@task"

    def __init__(self, *, python_callable, task_id, op_args=None, op_kwargs=None, kwargs_to_upstream=None, **kwargs):
        if not kwargs.get("_updraft_from_mapped"):
            task_id = get_unique_task_id(task_id, kwargs.get("dag"), kwargs.get("task_group"))
        op_args = op_args or []
        op_kwargs = op_kwargs or {}
        params = _with_context_defaults(updraft_signature.parameters(python_callable))
        updraft_signature.bind(params, op_args, op_kwargs)
        object.__setattr__(self, "_location", function_location(python_callable))
        self.python_callable = python_callable
        self.op_args = op_args
        self.op_kwargs = op_kwargs
        super().__init__(task_id=task_id, **(kwargs_to_upstream or {}), **kwargs)

    def _hook_apply_defaults(self, kwargs, defaults):
        # A default argument that has the name of a parameter of the function is passed to the function.
        function = kwargs.get("python_callable")
        if function is not None and defaults:
            op_kwargs = kwargs.get("op_kwargs") or {}
            for p in updraft_signature.parameters(function):
                if p.name not in op_kwargs and p.name in defaults:
                    op_kwargs[p.name] = defaults[p.name]
            kwargs["op_kwargs"] = op_kwargs
        return kwargs

    def execute(self, context):
        """Calls the function."""
        context.update(self.op_kwargs)
        kwargs = call_arguments(self.python_callable, self.op_args, context)
        return self.python_callable(*self.op_args, **kwargs)


class PythonDecoratedOperator(DecoratedOperator):
    """`@task`."""

    def execute(self, context):
        """Calls the function."""
        import updraft_callable

        return updraft_callable.execute(self, context)

    _updraft_kind = "python"
    template_fields = ("templates_dict", "op_args", "op_kwargs")

    def __init__(self, *, templates_dict=None, templates_exts=None, show_return_value_in_logs=True, **kwargs):
        self.templates_dict = templates_dict
        self.templates_exts = templates_exts
        self.show_return_value_in_logs = show_return_value_in_logs
        super().__init__(**kwargs)


PythonDecoratedOperator.__module__ = "airflow.providers.standard.decorators.python"
PythonDecoratedOperator.__name__ = PythonDecoratedOperator.__qualname__ = "_PythonDecoratedOperator"


def _returns_mapping(function):
    annotation = updraft_signature.return_annotation(function)
    kind = getattr(annotation, "__origin__", annotation)
    if not isinstance(kind, type):
        return False
    if issubclass(kind, dict):
        return True
    if kind.__module__ == "builtins":
        # The usual case, for which the abstract classes need not be imported.
        return False
    from _collections_abc import Mapping

    return issubclass(kind, Mapping)


class _TaskDecorator:
    """A function that makes a task when it is called."""

    _airflow_is_task_decorator = True

    def __init__(self, function, operator_class, kwargs, multiple_outputs=None):
        if not callable(function):
            raise TypeError("No positional arguments allowed while using @task, use named arguments instead")
        self.function = function
        self.operator_class = operator_class
        self.kwargs = dict(kwargs)
        self.is_setup = False
        self.is_teardown = False
        self.on_failure_fail_dagrun = False
        self.returns_dag_result = False
        if any(p.name == "self" for p in updraft_signature.parameters(function)):
            raise TypeError(f"@{self._decorator_name} does not support methods")
        self.kwargs.setdefault("task_id", getattr(function, "__name__", type(function).__name__))
        self._multiple_outputs = multiple_outputs
        check_types(self.kwargs)
        self.__wrapped__ = function
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            value = getattr(function, name, None)
            if value is not None:
                setattr(self, name, value)

    @property
    def _decorator_name(self):
        return getattr(self.operator_class, "custom_operator_name", "@task")[1:]

    @property
    def multiple_outputs(self):
        """Is the returned dict pushed key by key? By default when the function's annotation says it returns a dict."""
        if self._multiple_outputs is None:
            self._multiple_outputs = _returns_mapping(self.function)
        return self._multiple_outputs

    def __call__(self, *args, **kwargs):
        settings = dict(self.kwargs)
        if self.is_teardown:
            if "trigger_rule" in settings:
                raise ValueError("Trigger rule not configurable for teardown tasks.")
            settings["trigger_rule"] = "all_done_setup_success"
        on_failure_fail_dagrun = settings.pop("on_failure_fail_dagrun", self.on_failure_fail_dagrun)
        partial_op_kwargs = settings.pop("op_kwargs", None)
        if partial_op_kwargs:
            kwargs = {**partial_op_kwargs, **kwargs}
        operator = self.operator_class(
            python_callable=self.function,
            op_args=args,
            op_kwargs=kwargs,
            multiple_outputs=self.multiple_outputs,
            **settings,
        )
        operator.is_setup = self.is_setup
        operator.is_teardown = self.is_teardown
        operator.on_failure_fail_dagrun = on_failure_fail_dagrun
        operator.returns_dag_result = self.returns_dag_result
        if getattr(self.function, "__doc__", None) and not any(
            (operator.doc, operator.doc_json, operator.doc_md, operator.doc_rst, operator.doc_yaml)
        ):
            operator.doc_md = self.function.__doc__
        return XComArg(operator)

    def _check_names(self, func, kwargs):
        reserved = [name for name in kwargs if name in KNOWN_CONTEXT_KEYS]
        if reserved:
            plural = "variables" if len(reserved) > 1 else "variable"
            raise ValueError(f"cannot call {func}() on task context {plural} {', '.join(repr(n) for n in reserved)}")
        _check_function_names(self.function, func, kwargs)

    def expand(self, **mapped):
        """A task per combination of the given items."""
        self._check_trigger_rule("expand", mapped.values())
        if not mapped:
            raise TypeError("no arguments to expand against")
        self._check_names("expand", mapped)
        prevent_duplicates(self.kwargs, mapped, fail_reason="mapping already partial")
        return self._expand(DictOfListsExpandInput(mapped))

    def expand_kwargs(self, kwargs, *, strict=True):
        """A task per dict of arguments."""
        check_expand_kwargs(kwargs)
        if isinstance(kwargs, (list, tuple)):
            self._check_trigger_rule(
                "expand_kwargs", [v for item in kwargs if isinstance(item, dict) for v in item.values()]
            )
        return self._expand(ListOfDictsExpandInput(kwargs))

    def _check_trigger_rule(self, func, values):
        if self.kwargs.get("trigger_rule") == "always" and any(isinstance(value, XComArg) for value in values):
            raise ValueError(
                f"Task-generated mapping within a task using '{func}' is not allowed with trigger rule 'always'."
            )

    def _expand(self, expand_input):
        require_return_value(expand_input.value)
        settings = dict(self.kwargs)
        if self.is_teardown:
            if "trigger_rule" in settings:
                raise ValueError("Trigger rule not configurable for teardown tasks.")
            settings["trigger_rule"] = "all_done_setup_success"
        dag = settings.pop("dag", None) or DagContext.get_current()
        task_group = settings.pop("task_group", None) or TaskGroupContext.get_current(dag)
        defaults, params = merged_defaults(
            dag, task_group, settings.pop("params", None), settings.pop("default_args", None)
        )
        from airflow.sdk.bases.operator import operator_parameters

        known = operator_parameters(self.operator_class)
        unknown = [name for name in settings if name not in known and name != "on_failure_fail_dagrun"]
        if unknown:
            raise TypeError(
                f"Invalid arguments were passed to {self.operator_class.__name__} (task_id: {settings['task_id']}). "
                f"Invalid arguments were:\n**kwargs: { {name: settings[name] for name in unknown} }"
            )
        partial_kwargs = {
            "is_setup": self.is_setup,
            "is_teardown": self.is_teardown,
            "on_failure_fail_dagrun": self.on_failure_fail_dagrun,
        }
        partial_kwargs.update(
            (name, value)
            for name, value in defaults.items()
            if name in known and name not in ("default_args", "params", "multiple_outputs")
        )
        partial_kwargs.update(settings)
        task_id = get_unique_task_id(partial_kwargs.pop("task_id"), dag, task_group)
        if task_group is not None:
            task_id = task_group.child_id(task_id)
        if partial_kwargs.get("pool_slots", 1) < 1:
            in_dag = f" in dag {dag.dag_id}" if dag else ""
            raise ValueError(f"pool slots for {task_id}{in_dag} cannot be less than 1")
        partial_kwargs.setdefault("op_args", [])
        partial_kwargs.setdefault("op_kwargs", {})
        operator = MappedOperator(
            operator_class=self.operator_class,
            task_id=task_id,
            dag=dag,
            task_group=task_group,
            params=params,
            partial_kwargs=partial_kwargs,
            expand_input=expand_input,
            location=function_location(self.function),
            python_callable=self.function,
            multiple_outputs=self.multiple_outputs,
        )
        return XComArg(operator)

    def _copy(self, kwargs):
        copy = _TaskDecorator(self.function, self.operator_class, kwargs, self._multiple_outputs)
        copy.is_setup = self.is_setup
        copy.is_teardown = self.is_teardown
        copy.on_failure_fail_dagrun = self.on_failure_fail_dagrun
        copy.returns_dag_result = self.returns_dag_result
        return copy

    def partial(self, **kwargs):
        """Fixes arguments of the function; `.expand` maps the others."""
        self._check_names("partial", kwargs)
        already = self.kwargs.get("op_kwargs", {})
        prevent_duplicates(already, kwargs, fail_reason="duplicate partial")
        return self._copy({**self.kwargs, "op_kwargs": {**kwargs, **already}})

    def override(self, **kwargs):
        """The same function with other task settings."""
        copy = self._copy({**self.kwargs, **{k: v for k, v in kwargs.items() if k != "multiple_outputs"}})
        if "multiple_outputs" in kwargs:
            copy._multiple_outputs = kwargs["multiple_outputs"]
        return copy


TaskDecorator = _TaskDecorator


def _check_function_names(function, func, kwargs):
    params = updraft_signature.parameters(function)
    if any(p.kind == "VAR_KEYWORD" for p in params):
        return
    names = {p.name for p in params}
    for name, value in kwargs.items():
        if func == "expand" and name in names and not is_mappable(value):
            raise ValueError(f"expand() got an unexpected type {type(value).__name__!r} for keyword argument {name!r}")
    check_argument_names(func, None, [name for name in kwargs if name not in names])


def task_decorator_factory(python_callable=None, *, multiple_outputs=None, decorated_operator_class, **kwargs):
    """Makes a decorator out of an operator class; with a function, the decorated function."""
    if python_callable is not None:
        return _TaskDecorator(python_callable, decorated_operator_class, kwargs, multiple_outputs)

    def decorate(python_callable):
        return _TaskDecorator(python_callable, decorated_operator_class, kwargs, multiple_outputs)

    return decorate


def python_task(python_callable=None, multiple_outputs=None, **kwargs):
    """`@task`: a Python function as a task."""
    return task_decorator_factory(
        python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=PythonDecoratedOperator,
        **kwargs,
    )


# Where each `@task.x` comes from.
_DECORATORS = {
    "branch": ("airflow.providers.standard.decorators", "branch_task"),
    "short_circuit": ("airflow.providers.standard.decorators", "short_circuit_task"),
    "virtualenv": ("airflow.providers.standard.decorators", "virtualenv_task"),
    "external_python": ("airflow.providers.standard.decorators", "external_python_task"),
    "branch_virtualenv": ("airflow.providers.standard.decorators", "branch_virtualenv_task"),
    "branch_external_python": ("airflow.providers.standard.decorators", "branch_external_python_task"),
    "sensor": ("airflow.providers.standard.decorators", "sensor_task"),
    "bash": ("airflow.providers.standard.decorators", "bash_task"),
    "stub": ("airflow.providers.standard.decorators", "stub"),
    "agent": ("airflow.providers.common.ai.decorators.agent", "agent_task"),
    "llm": ("airflow.providers.common.ai.decorators.llm", "llm_task"),
    "llm_branch": ("airflow.providers.common.ai.decorators.llm_branch", "llm_branch_task"),
    "llm_sql": ("airflow.providers.common.ai.decorators.llm_sql", "llm_sql_task"),
    "llm_file_analysis": ("airflow.providers.common.ai.decorators.llm_file_analysis", "llm_file_analysis_task"),
    "llm_schema_compare": ("airflow.providers.common.ai.decorators.llm_schema_compare", "llm_schema_compare_task"),
    "llm_batch": ("airflow.providers.common.ai.decorators.llm_batch", "llm_batch_task"),
}


def _conditional(condition, skip_message, run_when):
    def check(context):
        if bool(condition(context)) is not run_when:
            from airflow.sdk.exceptions import AirflowSkipException

            raise AirflowSkipException(skip_message or "")

    def decorate(decorated):
        if not getattr(decorated, "_airflow_is_task_decorator", False):
            raise TypeError("decorated function is not an instance of TaskDecorator")
        before = decorated.kwargs.get("pre_execute")

        def pre_execute(context):
            check(context)
            if before is not None:
                before(context)

        decorated.kwargs["pre_execute"] = pre_execute
        return decorated

    return decorate


class TaskDecoratorCollection:
    """The name `task`: `@task`, `@task.agent` and the others."""

    def __call__(self, python_callable=None, **kwargs):
        return python_task(python_callable, **kwargs)

    @property
    def python(self):
        """`@task.python`, the same as `@task`."""
        return python_task

    def run_if(self, condition, skip_message=None):
        """Runs the task only when the condition holds."""
        return _conditional(condition, skip_message, True)

    def skip_if(self, condition, skip_message=None):
        """Skips the task when the condition holds."""
        return _conditional(condition, skip_message, False)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        found = _DECORATORS.get(name)
        if found is not None:
            __import__(found[0])
            return getattr(sys.modules[found[0]], found[1])
        return _foreign_decorator(name)


_foreign = {}


def _foreign_decorator(name):
    """`@task.name` of a provider that is not here: any settings are taken, the Dag loads, the task can't run."""
    operator = _foreign.get(name)
    if operator is None:

        class Foreign(DecoratedOperator):
            _updraft_reason = "the provider of the decorator is not part of Updraft"
            custom_operator_name = f"@task.{name}"

            def __init__(self, *, python_callable, op_args=None, op_kwargs=None, **kwargs):
                known = BaseOperator.__init__._param_names
                own = {key: value for key, value in kwargs.items() if key not in known and key != "default_args"}
                for key in own:
                    del kwargs[key]
                super().__init__(python_callable=python_callable, op_args=op_args, op_kwargs=op_kwargs, **kwargs)
                self.settings = own

        operator = _foreign[name] = Foreign

    def decorate(python_callable=None, multiple_outputs=None, **kwargs):
        return task_decorator_factory(
            python_callable, multiple_outputs=multiple_outputs, decorated_operator_class=operator, **kwargs
        )

    return decorate


task = TaskDecoratorCollection()


def setup(func):
    """Marks a task or a task function as setup."""
    return _marked(func, "is_setup")


def _marked(func, mark):
    if not getattr(func, "_airflow_is_task_decorator", False):
        from airflow.sdk.definitions.taskgroup import TaskGroup

        if isinstance(func, TaskGroup) or hasattr(func, "tg_kwargs"):
            from airflow.sdk.exceptions import AirflowException

            kind = "Setup" if mark == "is_setup" else "Teardown"
            raise AirflowException(f"{kind} task groups are not supported.")
        func = python_task(func)
    setattr(func, mark, True)
    return func


def teardown(func=None, *, on_failure_fail_dagrun=False):
    """Marks a task or a task function as teardown."""

    def decorate(func):
        func = _marked(func, "is_teardown")
        func.on_failure_fail_dagrun = on_failure_fail_dagrun
        return func

    return decorate if func is None else decorate(func)


def result(decorated):
    """Marks the task whose return value is the Dag's result."""
    if not getattr(decorated, "_airflow_is_task_decorator", False):
        raise TypeError("@result must be used on top of a @task-decorated function")
    decorated.returns_dag_result = True
    return decorated
