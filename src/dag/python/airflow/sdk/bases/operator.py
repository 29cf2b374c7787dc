"""Operators: the tasks of a Dag, plain and mapped."""

from abc import ABCMeta
from datetime import timedelta

import updraft_signature
from airflow.sdk.definitions._internal.contextmanager import DagContext, SetupTeardownContext, TaskGroupContext
from airflow.sdk.definitions._internal.expandinput import (
    DictOfListsExpandInput,
    ListOfDictsExpandInput,
    check_argument_names,
    check_expand_kwargs,
    is_mappable,
    prevent_duplicates,
    require_return_value,
)
from airflow.sdk.definitions._internal.node import NOTSET, DAGNode, DependencyMixin, validate_key
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.definitions.xcom_arg import XComArg
from updraft_source import user_location

DEFAULT_RETRY_DELAY = timedelta(seconds=300)

TRIGGER_RULES = (
    "all_success",
    "all_failed",
    "all_done",
    "all_done_min_one_success",
    "all_done_setup_success",
    "one_success",
    "one_failed",
    "one_done",
    "none_failed",
    "none_skipped",
    "always",
    "none_failed_min_one_success",
    "all_skipped",
)

# Only what Airflow checks; the text of its TypeError is Airflow's.
_EXPECTED_TYPES = {
    name: expected
    for expected, names in (
        (str, "task_id queue pool trigger_rule run_as_user map_index_template executor task_display_name logger_name"),
        (str, "doc doc_md doc_json doc_yaml doc_rst"),
        (int, "retries priority_weight pool_slots max_active_tis_per_dag max_active_tis_per_dagrun"),
        ((int, float), "retry_exponential_backoff"),
        (bool, "email_on_retry email_on_failure do_xcom_push multiple_outputs allow_nested_operators"),
        (bool, "depends_on_past ignore_first_depends_on_past"),
        (bool, "wait_for_past_depends_before_skipping wait_for_downstream"),
    )
    for name in names.split()
}


def check_types(values):
    """Refuses task arguments of the wrong type, as Airflow does."""
    for name, expected in _EXPECTED_TYPES.items():
        value = values.get(name)
        if value is not None and not isinstance(value, expected):
            raise TypeError(f"{name!r} must be {expected}, got {type(value).__name__}: {value!r}")


def merged_defaults(dag, task_group, params, default_args):
    """The default arguments and the params of a task: the Dag's, the group's, its own."""
    if default_args and not isinstance(default_args, dict):
        raise TypeError(f"default_args must be a mapping, got {type(default_args)}")
    if params and not isinstance(params, dict):
        raise TypeError(f"params must be a mapping, got {type(params)}")
    defaults = {}
    merged = ParamsDict()
    if dag is not None:
        defaults.update(dag.default_args)
        merged.update(dag.params.copy().mark_source("dag"))
        if task_group is not None and task_group.default_args:
            defaults.update(task_group.default_args)
    if params:
        merged.update(ParamsDict(params).mark_source("task"))
    if default_args:
        defaults.update(default_args)
        if default_args.get("params"):
            merged.update(ParamsDict(default_args["params"]).mark_source("task"))
    return defaults, merged


def _put_in_place(arguments):
    """The Dag and the group of a new task: those among its arguments, else those around it, which join them."""
    dag, task_group = arguments.get("dag"), arguments.get("task_group")
    if dag is None:
        dag = DagContext.get_current()
    if task_group is None and dag is not None:
        task_group = TaskGroupContext.get_current(dag)
    found = {"dag": dag, "task_group": task_group}
    arguments.update((name, value) for name, value in found.items() if value is not None)
    return dag, task_group


def _wrapped_init(init):
    """An `__init__` that takes keyword arguments only and fills those left out from the default arguments."""
    params = [p for p in updraft_signature.parameters(init) if p.name != "self"]
    names = {p.name for p in params if p.kind not in ("VAR_POSITIONAL", "VAR_KEYWORD")}
    required = {p.name for p in params if p.name in names and p.default is updraft_signature.EMPTY} - {"task_id"}
    takes_default_args = "default_args" in names or any(p.kind == "VAR_KEYWORD" for p in params)

    def __init__(self, *args, **kwargs):
        if args:
            raise TypeError("Use keyword arguments when initializing operators")
        outermost = "_updraft_init_depth" not in self.__dict__
        depth = self.__dict__.get("_updraft_init_depth", 0)
        object.__setattr__(self, "_updraft_init_depth", depth + 1)
        if outermost:
            object.__setattr__(self, "_location", user_location())
            object.__setattr__(self, "_init_kwargs", {})
        dag, task_group = _put_in_place(kwargs)
        defaults, merged = merged_defaults(
            dag, task_group, kwargs.pop("params", None), kwargs.pop("default_args", None)
        )
        for name in names:
            if name not in kwargs and name in defaults:
                kwargs[name] = defaults[name]
        missing = sorted(required.difference(kwargs))
        if len(missing) == 1:
            raise TypeError(f"missing keyword argument {missing[0]!r}")
        if missing:
            raise TypeError(f"missing keyword arguments {', '.join(repr(name) for name in missing)}")
        if merged:
            kwargs["params"] = merged
        hook = getattr(self, "_hook_apply_defaults", None)
        if hook is not None:
            kwargs = hook(kwargs, defaults)
        if takes_default_args:
            init(self, **kwargs, default_args=defaults)
        else:
            init(self, **kwargs)
        self._init_kwargs.update(kwargs)
        object.__setattr__(self, "_updraft_init_depth", depth)
        if outermost:
            object.__delattr__(self, "_updraft_init_depth")
            for field in self.template_fields:
                value = getattr(self, field, NOTSET)
                if value is not NOTSET:
                    XComArg.apply_upstream_relationship(self, value)
            object.__setattr__(self, "_instantiated", True)

    __init__.__wrapped__ = init
    __init__.__doc__ = init.__doc__
    __init__._param_names = names
    return __init__


class BaseOperatorMeta(ABCMeta):
    """Wraps the `__init__` of each operator class."""

    def __new__(mcs, name, bases, namespace, **kwargs):
        init = namespace.get("__init__")
        if init is not None:
            namespace["__init__"] = _wrapped_init(init)
        return super().__new__(mcs, name, bases, namespace, **kwargs)


class _Partial:
    """`Operator.partial(..)`, refused on a task."""

    def __get__(self, instance, owner):
        if instance is not None:

            def partial(**kwargs):
                raise TypeError("partial can only be called on Operator classes, not Tasks themselves")

            return partial

        def partial(*, task_id, **kwargs):
            return OperatorPartial(owner, task_id, kwargs)

        return partial


def _callbacks(value):
    if not value:
        return []
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def as_retries(value):
    """A number of retries, as Airflow reads it."""
    if value is None:
        return 0
    if type(value) is int:
        return value
    try:
        return int(value)
    except (TypeError, ValueError):
        raise TypeError(f"'retries' type must be int, not {type(value).__name__}") from None


def as_timedelta(value):
    """Seconds or a timedelta, as a timedelta."""
    return value if value is None or isinstance(value, timedelta) else timedelta(seconds=value)


class AbstractOperator(DAGNode):
    """What plain and mapped operators share."""

    is_operator = True
    is_mapped = False
    template_fields = ()
    template_ext = ()
    template_fields_renderers = {}

    @property
    def node_id(self):
        """The task id."""
        return self.task_id

    @property
    def roots(self):
        """The task itself."""
        return [self]

    leaves = roots

    @property
    def output(self):
        """What the task returns."""
        return XComArg(self)

    @property
    def task_type(self):
        """The name of the class."""
        return type(self).__name__

    def iter_mapped_task_groups(self):
        """The mapped groups around, innermost first."""
        if self.task_group is not None:
            yield from self.task_group.iter_mapped_task_groups()


class BaseOperator(AbstractOperator, metaclass=BaseOperatorMeta):
    """A task. Subclasses take keyword arguments and override `execute`."""

    # How the task runs: a kind of `TaskKind` in dag/definitions.rs, or None with the reason below.
    _updraft_kind = None
    # The method that a subclass must bring along to run: without it, the reason below holds.
    _updraft_needs = None
    # Are the class's own arguments unknown, because its module is unavailable?
    _updraft_takes_anything = False
    _updraft_reason = "its class has no execute of its own"
    _instantiated = False
    _dag = None

    operator_extra_links = ()
    ui_color = "#fff"
    ui_fgcolor = "#000"
    pre_execute_hook = None
    shallow_copy_attrs = ()
    start_trigger_args = None
    start_from_trigger = False
    deserialization_allowed_class_fields = ()
    inherits_from_empty_operator = False
    inherits_from_skipmixin = False
    returns_dag_result = False
    partial = _Partial()

    def __init__(
        self,
        *,
        task_id,
        owner="airflow",
        email=None,
        email_on_retry=True,
        email_on_failure=True,
        retries=0,
        retry_delay=DEFAULT_RETRY_DELAY,
        retry_exponential_backoff=0,
        max_retry_delay=None,
        retry_policy=None,
        start_date=None,
        end_date=None,
        depends_on_past=False,
        ignore_first_depends_on_past=False,
        wait_for_past_depends_before_skipping=False,
        wait_for_downstream=False,
        dag=None,
        params=None,
        default_args=None,
        priority_weight=1,
        weight_rule="downstream",
        queue="default",
        pool=None,
        pool_slots=1,
        sla=None,
        execution_timeout=None,
        on_execute_callback=None,
        on_failure_callback=None,
        on_success_callback=None,
        on_retry_callback=None,
        on_skipped_callback=None,
        pre_execute=None,
        post_execute=None,
        trigger_rule="all_success",
        resources=None,
        run_as_user=None,
        map_index_template=None,
        max_active_tis_per_dag=None,
        max_active_tis_per_dagrun=None,
        executor=None,
        executor_config=None,
        do_xcom_push=True,
        multiple_outputs=False,
        inlets=None,
        outlets=None,
        task_group=None,
        doc=None,
        doc_md=None,
        doc_json=None,
        doc_yaml=None,
        doc_rst=None,
        task_display_name=None,
        logger_name=None,
        allow_nested_operators=True,
        render_template_as_native_obj=None,
        **kwargs,
    ):
        super().__init__()
        from_mapped = kwargs.pop("_updraft_from_mapped", False)
        if from_mapped or task_group is None:
            self.task_id, self.task_group = task_id, task_group
        else:
            self.task_id = task_group.child_id(task_id)
            task_group.add(self)
        if kwargs:
            raise TypeError(
                f"Invalid arguments were passed to {type(self).__name__} (task_id: {task_id}). "
                f"Invalid arguments were:\n**kwargs: {kwargs}"
            )
        validate_key(self.task_id)
        if execution_timeout is not None and not isinstance(execution_timeout, timedelta):
            raise ValueError(
                f"execution_timeout must be timedelta object but passed as type: {type(execution_timeout)}"
            )
        if pool_slots < 1:
            in_dag = f" in dag {dag.dag_id}" if dag else ""
            raise ValueError(f"pool slots for {self.task_id}{in_dag} cannot be less than 1")
        rule = getattr(trigger_rule, "value", trigger_rule)
        if rule not in TRIGGER_RULES:
            raise ValueError(
                f"The trigger_rule must be one of {list(TRIGGER_RULES)},"
                f"'{dag.dag_id if dag else ''}.{task_id}'; received '{trigger_rule}'."
            )
        self.trigger_rule = rule
        self.owner = owner
        self.email = email
        self.email_on_retry = email_on_retry
        self.email_on_failure = email_on_failure
        self.retries = as_retries(retries)
        self.retry_delay = as_timedelta(retry_delay)
        self.retry_exponential_backoff = retry_exponential_backoff
        self.max_retry_delay = as_timedelta(max_retry_delay)
        self.retry_policy = retry_policy
        self.start_date = start_date
        self.end_date = end_date
        self.depends_on_past = depends_on_past or wait_for_downstream
        self.ignore_first_depends_on_past = ignore_first_depends_on_past
        self.wait_for_past_depends_before_skipping = wait_for_past_depends_before_skipping
        self.wait_for_downstream = wait_for_downstream
        self.params = ParamsDict(params)
        self.priority_weight = priority_weight
        self.weight_rule = weight_rule
        self.queue = queue
        self.pool = "default_pool" if pool is None else pool
        self.pool_slots = pool_slots
        self.execution_timeout = execution_timeout
        self.on_execute_callback = _callbacks(on_execute_callback)
        self.on_failure_callback = _callbacks(on_failure_callback)
        self.on_success_callback = _callbacks(on_success_callback)
        self.on_retry_callback = _callbacks(on_retry_callback)
        self.on_skipped_callback = _callbacks(on_skipped_callback)
        self._pre_execute_hook = pre_execute
        self._post_execute_hook = post_execute
        self.resources = resources
        self.run_as_user = run_as_user
        self.map_index_template = map_index_template
        self.max_active_tis_per_dag = max_active_tis_per_dag
        self.max_active_tis_per_dagrun = max_active_tis_per_dagrun
        self.executor = executor
        self.executor_config = executor_config or {}
        self.do_xcom_push = do_xcom_push
        self.multiple_outputs = multiple_outputs
        self.inlets = _callbacks(inlets)
        self.outlets = _callbacks(outlets)
        self.doc = doc
        self.doc_md = doc_md
        self.doc_json = doc_json
        self.doc_yaml = doc_yaml
        self.doc_rst = doc_rst
        self._task_display_name = task_display_name
        self._logger_name = logger_name
        self.allow_nested_operators = allow_nested_operators
        self.render_template_as_native_obj = render_template_as_native_obj
        if isinstance(self.template_fields, str):
            self.template_fields = [self.template_fields]
        SetupTeardownContext.note(self)
        if dag is not None:
            if from_mapped:
                object.__setattr__(self, "_dag", dag)
            else:
                self.dag = dag
        check_types(self.__dict__)

    def __setattr__(self, name, value):
        if name in ("is_setup", "is_teardown") and value:
            other = "is_teardown" if name == "is_setup" else "is_setup"
            if getattr(self, other, False):
                raise ValueError(f"Cannot mark task '{self.task_id}' as {name[3:]}; task is already a {other[3:]}.")
        super().__setattr__(name, value)
        if self._instantiated and name in self.template_fields:
            XComArg.apply_upstream_relationship(self, value)

    @property
    def dag(self):
        """The Dag of the task."""
        if self._dag is None:
            raise RuntimeError(f"Operator {self} has not been assigned to a Dag yet")
        return self._dag

    @dag.setter
    def dag(self, dag):
        if dag is None:
            return
        if not hasattr(dag, "add_task"):
            raise TypeError(f"Expected dag; received {dag.__class__.__name__}")
        before = self._dag
        if not (before is None or before is dag):
            raise ValueError(f"The dag assigned to {self} can not be changed.")
        object.__setattr__(self, "_dag", dag)
        if dag.task_dict.get(self.task_id) is not self:
            dag.add_task(self)

    def get_dag(self):
        """The Dag of the task; None without one."""
        return self._dag

    def has_dag(self):
        """Does the task belong to a Dag?"""
        return self._dag is not None

    @property
    def task_display_name(self):
        """What the UI shows."""
        return self._task_display_name or self.task_id

    @property
    def operator_name(self):
        """What the UI shows as the operator."""
        return getattr(self, "custom_operator_name", None) or type(self).__name__

    @property
    def log(self):
        """The task's logger."""
        import logging

        from updraft_callable import logger_name

        return logging.getLogger(logger_name(self))

    def add_inlets(self, inlets):
        """Adds inlets."""
        self.inlets.extend(inlets)

    def add_outlets(self, outlets):
        """Adds outlets."""
        self.outlets.extend(outlets)

    def pre_execute(self, context):
        """Called before `execute`."""

    def execute(self, context):
        """Does the work."""
        raise NotImplementedError

    def post_execute(self, context, result=None):
        """Called after `execute`."""

    def on_kill(self):
        """Called when the task is terminated."""

    def defer(self, *, trigger, method_name, kwargs=None, timeout=None):
        """Leaves the slot until the trigger fires."""
        from airflow.sdk.exceptions import TaskDeferred

        raise TaskDeferred(trigger=trigger, method_name=method_name, kwargs=kwargs, timeout=timeout)

    def resume_execution(self, next_method, next_kwargs, context):
        """Goes on where the task has stopped to wait."""
        kwargs = next_kwargs or {}
        if next_method != "__fail__":
            return getattr(self, next_method)(context, **kwargs)
        from airflow.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout

        if kwargs.get("traceback") is not None:
            self.log.error("Trigger failed:\n%s", "\n".join(kwargs["traceback"]))
        error = kwargs.get("error", "Unknown")
        raise (TaskDeferralTimeout if error == "Trigger timeout" else TaskDeferralError)(error)

    def xcom_pull(self, context, task_ids=None, dag_id=None, key="return_value", include_prior_dates=False):
        """Pulls an XCom while the task runs."""
        return context["ti"].xcom_pull(
            task_ids=task_ids, dag_id=dag_id, key=key, include_prior_dates=include_prior_dates
        )

    def xcom_push(self, context, key, value):
        """Pushes an XCom while the task runs."""
        context["ti"].xcom_push(key=key, value=value)

    def render_template_fields(self, context, jinja_env=None):
        """The worker has rendered the fields before the task runs."""

    def get_outlet_defs(self):
        """The outlets."""
        return self.outlets

    def get_inlet_defs(self):
        """The inlets."""
        return self.inlets

    def __repr__(self):
        return f"<Task({type(self).__name__}): {self.task_id}>"


class OperatorPartial:
    """`Operator.partial(..)`: waits for `.expand`."""

    def __init__(self, operator_class, task_id, kwargs):
        self._location = user_location()
        self.operator_class = operator_class
        dag = kwargs.pop("dag", None) or DagContext.get_current()
        task_group = kwargs.pop("task_group", None)
        if dag is not None:
            task_group = task_group or TaskGroupContext.get_current(dag)
        params = kwargs.pop("params", None)
        default_args = kwargs.pop("default_args", None)
        self._check_names("partial", kwargs)
        if task_group is not None:
            task_id = task_group.child_id(task_id)
        defaults, self.params = merged_defaults(dag, task_group, params, default_args)
        for name, value in defaults.items():
            if name not in kwargs and name in BaseOperator.__init__._param_names:
                kwargs[name] = value
        if kwargs.get("pool_slots", 1) < 1:
            in_dag = f" in dag {dag.dag_id}" if dag else ""
            raise ValueError(f"pool slots for {task_id}{in_dag} cannot be less than 1")
        self._defaults = defaults
        self.task_id = task_id
        self.dag = dag
        self.task_group = task_group
        self.kwargs = kwargs

    def _check_names(self, func, kwargs):
        if self.operator_class._updraft_takes_anything:
            return
        unknown = dict(kwargs)
        for name in operator_parameters(self.operator_class):
            value = unknown.pop(name, NOTSET)
            if func == "expand" and value is not NOTSET and not is_mappable(value):
                raise ValueError(
                    f"{self.operator_class.__name__}.expand() got an unexpected type "
                    f"{type(value).__name__!r} for keyword argument {name}"
                )
        check_argument_names(func, None, list(unknown), f"{self.operator_class.__name__}.")

    def expand(self, **mapped):
        """A task per combination of the given items."""
        if not mapped:
            raise TypeError("no arguments to expand against")
        self._check_names("expand", mapped)
        prevent_duplicates(
            {**self.kwargs, "task_id": None, "dag": None, "task_group": None},
            mapped,
            fail_reason="unmappable or already specified",
        )
        return self._expand(DictOfListsExpandInput(mapped))

    def expand_kwargs(self, kwargs, *, strict=True):
        """A task per dict of arguments."""
        check_expand_kwargs(kwargs)
        return self._expand(ListOfDictsExpandInput(kwargs))

    def _expand(self, expand_input):
        require_return_value(expand_input.value)
        # Airflow reads the rest of the default arguments when it makes the task of one map index.
        kwargs = dict(self.kwargs)
        for name, value in self._defaults.items():
            if name not in kwargs and name in operator_parameters(self.operator_class):
                kwargs[name] = value
        return MappedOperator(
            operator_class=self.operator_class,
            task_id=self.task_id,
            dag=self.dag,
            task_group=self.task_group,
            params=self.params,
            partial_kwargs=kwargs,
            expand_input=expand_input,
            location=self._location,
        )

    def __repr__(self):
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.kwargs.items())
        return f"{self.operator_class.__name__}.partial({arguments})"


_parameters_by_class = {}


def operator_parameters(operator_class):
    """Names and defaults of everything that the constructors of an operator class and its bases take."""
    found = _parameters_by_class.get(operator_class)
    if found is not None:
        return found
    found = _parameters_by_class[operator_class] = {}
    for cls in operator_class.__mro__:
        init = cls.__dict__.get("__init__")
        inner = getattr(init, "__wrapped__", None)
        if inner is None:
            continue
        for p in updraft_signature.parameters(inner):
            if p.name != "self" and p.kind in ("KEYWORD_ONLY", "POSITIONAL_OR_KEYWORD"):
                found.setdefault(p.name, p.default)
    return found


class MappedOperator(AbstractOperator):
    """A task that runs once per item."""

    is_mapped = True

    def __init__(
        self,
        *,
        operator_class,
        task_id,
        dag,
        task_group,
        params,
        partial_kwargs,
        expand_input,
        location,
        python_callable=None,
        multiple_outputs=False,
    ):
        super().__init__()
        self._location = location
        self.operator_class = operator_class
        self.task_id = task_id
        self.params = params
        self.partial_kwargs = partial_kwargs
        self.expand_input = expand_input
        self.python_callable = python_callable
        self.multiple_outputs = multiple_outputs
        self.template_fields = operator_class.template_fields
        self.dag = None
        if task_group is not None and any(True for _ in task_group.iter_mapped_task_groups()):
            raise NotImplementedError("operator expansion in an expanded task group is not yet supported")
        validate_key(task_id)
        if "trigger_rule" in partial_kwargs:
            rule = partial_kwargs["trigger_rule"]
            partial_kwargs["trigger_rule"] = getattr(rule, "value", rule)
        for name, convert in (
            ("retries", as_retries),
            ("retry_delay", as_timedelta),
            ("max_retry_delay", as_timedelta),
        ):
            if name in partial_kwargs:
                partial_kwargs[name] = convert(partial_kwargs[name])
        if task_group is not None:
            task_group.add(self)
        if dag is not None:
            dag.add_task(self)
        SetupTeardownContext.note(self)
        XComArg.apply_upstream_relationship(self, expand_input)
        XComArg.apply_upstream_relationship(self, expand_input.value)
        for name, value in partial_kwargs.items():
            if name in self.template_fields:
                XComArg.apply_upstream_relationship(self, value)

    def __getattr__(self, name):
        # The task's own settings are those given to `.partial`, else the operator's defaults.
        if name.startswith("__") or name in ("partial_kwargs", "operator_class"):
            raise AttributeError(name)
        if name in self.partial_kwargs:
            return self.partial_kwargs[name]
        default = operator_parameters(self.operator_class).get(name, updraft_signature.EMPTY)
        if default is not updraft_signature.EMPTY:
            return default
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def is_setup(self):
        """Is it a setup task?"""
        return bool(self.partial_kwargs.get("is_setup"))

    @is_setup.setter
    def is_setup(self, value):
        self.partial_kwargs["is_setup"] = value

    @property
    def is_teardown(self):
        """Is it a teardown task?"""
        return bool(self.partial_kwargs.get("is_teardown"))

    @is_teardown.setter
    def is_teardown(self, value):
        self.partial_kwargs["is_teardown"] = value

    @property
    def task_type(self):
        """The name of the operator class."""
        return self.operator_class.__name__

    @property
    def operator_name(self):
        """What the UI shows as the operator."""
        return getattr(self.operator_class, "custom_operator_name", None) or self.operator_class.__name__

    def has_dag(self):
        """Does the task belong to a Dag?"""
        return self.dag is not None

    def __repr__(self):
        return f"<Mapped({self.task_type}): {self.task_id}>"


class BaseAsyncOperator(BaseOperator):
    """An operator whose work is a coroutine."""

    @property
    def is_async(self):
        """It is."""
        return True

    async def aexecute(self, context):
        """Does the work."""
        raise NotImplementedError

    def execute(self, context):
        """Runs `aexecute` to its end."""
        from updraft_context import run_coroutine

        return run_coroutine(self.aexecute(context))


def chain(*tasks):
    """Sets dependencies along a line of tasks; two lists that meet must have the same length."""
    for before, after in zip(tasks, tasks[1:]):
        if isinstance(before, DependencyMixin):
            before.set_downstream(after)
        elif isinstance(after, DependencyMixin):
            after.set_upstream(before)
        elif isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)):
            if len(before) != len(after):
                from airflow.sdk.exceptions import AirflowException

                raise AirflowException(
                    f"Chain not supported for different length Iterable. Got {len(before)} and {len(after)}."
                )
            for one, other in zip(before, after):
                one.set_downstream(other)
        else:
            raise TypeError(f"Chain not supported between instances of {type(before)} and {type(after)}")


def chain_linear(*elements):
    """Sets dependencies from everything of one element to everything of the next."""
    if not elements:
        raise ValueError("No tasks provided; nothing to do.")
    done = False
    for before, after in zip(elements, elements[1:]):
        if type(before).__name__ == "EdgeModifier" or type(after).__name__ == "EdgeModifier":
            raise ValueError("Labels are not supported by chain_linear")
        for task in [before] if isinstance(before, DependencyMixin) else before:
            task >> after
            done = True
    if not done:
        raise ValueError("No dependencies were set. Did you forget to expand with `*`?")


def cross_downstream(from_tasks, to_tasks):
    """Puts every task of the second list after every task of the first."""
    for task in from_tasks:
        task.set_downstream(to_tasks)
