"""Dags, and the decorators `@dag` and `@task_group`."""

import updraft_signature
from airflow.sdk.definitions._internal.contextmanager import DagContext
from airflow.sdk.definitions._internal.expandinput import (
    DictOfListsExpandInput,
    ListOfDictsExpandInput,
    MappedArgument,
    check_expand_kwargs,
    prevent_duplicates,
    require_return_value,
)
from airflow.sdk.definitions._internal.node import NOTSET, ResolveMixin, validate_key
from airflow.sdk.definitions.param import DagParam, ParamsDict
from airflow.sdk.definitions.taskgroup import MappedTaskGroup, TaskGroup
from updraft_source import user_location

_serial = [0]


class DAG:
    """Tasks and their dependencies, with the settings they share."""

    def __init__(
        self,
        dag_id,
        *,
        description=None,
        default_args=None,
        start_date=None,
        end_date=None,
        schedule=None,
        template_searchpath=None,
        template_undefined=None,
        user_defined_macros=None,
        user_defined_filters=None,
        max_active_tasks=None,
        max_active_runs=None,
        max_consecutive_failed_dag_runs=None,
        dagrun_timeout=None,
        deadline=None,
        sla_miss_callback=None,
        catchup=None,
        on_success_callback=None,
        on_failure_callback=None,
        doc_md=None,
        params=None,
        access_control=None,
        is_paused_upon_creation=None,
        jinja_environment_kwargs=None,
        render_template_as_native_obj=False,
        tags=None,
        owner_links=None,
        auto_register=True,
        fail_fast=False,
        allowed_run_types=None,
        dag_display_name=None,
        task_group=None,
        disable_bundle_versioning=None,
        rerun_with_latest_version=None,
    ):
        validate_key(dag_id)
        if description is not None and not isinstance(description, str):
            raise TypeError(f"'description' must be <class 'str'> (got {description!r} that is a {type(description)}).")
        if default_args is not None and not isinstance(default_args, dict):
            raise TypeError(
                f"'default_args' must be <class 'dict'> (got {default_args!r} that is a {type(default_args)})."
            )
        for name, value in (
            ("max_active_tasks", max_active_tasks),
            ("max_active_runs", max_active_runs),
            ("max_consecutive_failed_dag_runs", max_consecutive_failed_dag_runs),
        ):
            if value is not None and not isinstance(value, int):
                raise TypeError(f"{name!r} must be <class 'int'> (got {value!r} that is a {type(value)}).")
        if tags and any(len(tag) > 100 for tag in tags):
            raise ValueError("tag cannot be longer than 100 characters")
        _serial[0] += 1
        self._serial = _serial[0]
        self._location = user_location()
        self.fileloc = self._location["file"]
        self.relative_fileloc = None
        self.dag_id = dag_id
        self.description = description
        self.default_args = dict(default_args or {})
        self.start_date = start_date or self.default_args.get("start_date")
        self.end_date = end_date
        self.schedule = _checked_schedule(schedule)
        self.timetable = schedule
        self.template_searchpath = (
            (template_searchpath,) if isinstance(template_searchpath, str) else template_searchpath
        )
        self.template_undefined = template_undefined
        self.user_defined_macros = user_defined_macros
        self.user_defined_filters = user_defined_filters
        self.max_active_tasks = 16 if max_active_tasks is None else max_active_tasks
        self.max_active_runs = 16 if max_active_runs is None else max_active_runs
        self.max_consecutive_failed_dag_runs = max_consecutive_failed_dag_runs or 0
        self.dagrun_timeout = dagrun_timeout
        self.deadline = deadline
        self.catchup = bool(catchup)
        if self.catchup and schedule is not None and not self.start_date:
            raise ValueError("start_date is required when catchup=True")
        self.on_success_callback = on_success_callback
        self.on_failure_callback = on_failure_callback
        self.doc_md = doc_md
        params = dict(params.raw_items()) if isinstance(params, ParamsDict) else dict(params or {})
        params.update(self.default_args.pop("params", None) or {})
        self.params = ParamsDict(params)
        if schedule is not None and any(param.value is NOTSET for _, param in self.params.raw_items()):
            raise ValueError(
                f"Dag {dag_id!r} is not allowed to define a Schedule, "
                "as there are required params without default values, or the default values are not valid."
            )
        self.access_control = access_control
        self.is_paused_upon_creation = is_paused_upon_creation
        self.jinja_environment_kwargs = jinja_environment_kwargs
        self.render_template_as_native_obj = bool(render_template_as_native_obj)
        self.tags = set(tags or ())
        self.owner_links = owner_links or {}
        self.auto_register = bool(auto_register)
        self.fail_fast = bool(fail_fast)
        self.allowed_run_types = allowed_run_types
        self.dag_display_name = dag_display_name or dag_id
        self.disable_bundle_versioning = disable_bundle_versioning
        self.rerun_with_latest_version = rerun_with_latest_version
        self.task_dict = {}
        self.edge_info = {}
        self.task_group = task_group or TaskGroup.create_root(self)

    @property
    def timezone(self):
        """The time zone of the start date; UTC without one."""
        tzinfo = getattr(self.start_date, "tzinfo", None)
        if tzinfo is not None:
            return tzinfo
        import pendulum

        return pendulum.UTC

    @property
    def tasks(self):
        """The tasks, in the order in which they were made."""
        return list(self.task_dict.values())

    @tasks.setter
    def tasks(self, value):
        raise AttributeError("DAG.tasks can not be modified. Use dag.add_task() instead.")

    @property
    def task_ids(self):
        """The ids of the tasks."""
        return list(self.task_dict)

    @property
    def roots(self):
        """The tasks with nothing before them."""
        return [task for task in self.tasks if not task.upstream_task_ids]

    @property
    def leaves(self):
        """The tasks with nothing after them."""
        return [task for task in self.tasks if not task.downstream_task_ids]

    @property
    def owner(self):
        """The owners of the tasks."""
        return ", ".join(sorted({task.owner for task in self.tasks}))

    @property
    def folder(self):
        """The folder of the Dag's file."""
        return self.fileloc.rpartition("/")[0]

    @property
    def task(self):
        """`@dag.task`: the task decorators, bound to this Dag."""
        from airflow.sdk.bases.decorator import python_task

        def bound(python_callable=None, **kwargs):
            return python_task(python_callable, dag=self, **kwargs)

        return bound

    def param(self, name, default=NOTSET):
        """The value of a param when the Dag runs."""
        return DagParam(self, name, default)

    def add_task(self, task):
        """Adds a task."""
        if task.task_group is None:
            self.task_group.add(task)
        task_id = task.task_id
        known = self.task_dict.get(task_id)
        taken = self.task_group.used_group_ids
        if task_id in taken if known is None else known is not task:
            from airflow.sdk.exceptions import DuplicateTaskIdFound

            raise DuplicateTaskIdFound(f"Task id '{task_id}' has already been added to the Dag")
        if self.fail_fast and task.trigger_rule != "all_success":
            from airflow.sdk.exceptions import FailFastDagInvalidTriggerRule

            raise FailFastDagInvalidTriggerRule()
        taken.add(task_id)
        self.task_dict[task_id] = task
        task.dag = self

    def add_tasks(self, tasks):
        """Adds several tasks."""
        for task in tasks:
            self.add_task(task)

    def add_result(self, result):
        """Makes a task's return value the Dag's result."""
        for operator, _ in result.iter_references():
            operator.returns_dag_result = True

    def get_task(self, task_id):
        """The task of that id."""
        task = self.task_dict.get(task_id)
        if task is None:
            from airflow.sdk.exceptions import TaskNotFound

            raise TaskNotFound(f"Task {task_id} not found")
        return task

    def has_task(self, task_id):
        """Is there a task of that id?"""
        return task_id in self.task_dict

    @property
    def task_group_dict(self):
        """The task groups by id."""
        return {key: group for key, group in self.task_group.get_task_group_dict().items() if key is not None}

    def has_task_group(self, task_group_id):
        """Is there a group of that id?"""
        return task_group_id in self.task_group_dict

    def set_dependency(self, upstream_task_id, downstream_task_id):
        """Puts one task before another, by their ids."""
        self.get_task(upstream_task_id).set_downstream(self.get_task(downstream_task_id))

    def set_edge_info(self, upstream_task_id, downstream_task_id, info):
        """Keeps what is said about an arrow."""
        self.edge_info.setdefault(upstream_task_id, {})[downstream_task_id] = info

    def get_edge_info(self, upstream_task_id, downstream_task_id):
        """What is said about an arrow."""
        return self.edge_info.get(upstream_task_id, {}).get(downstream_task_id, {"label": None})

    def check_cycle(self):
        """Refuses a Dag whose tasks wait for one another."""
        waiting = {task_id: len(task.upstream_task_ids) for task_id, task in self.task_dict.items()}
        ready = [task_id for task_id, count in waiting.items() if count == 0]
        while ready:
            task_id = ready.pop()
            del waiting[task_id]
            for after in self.task_dict[task_id].downstream_task_ids:
                waiting[after] -= 1
                if waiting[after] == 0:
                    ready.append(after)
        if waiting:
            # What only follows a cycle waits as well: it isn't at fault.
            faulty = next((t for t in waiting if t in self.task_dict[t].get_flat_relative_ids()), next(iter(waiting)))
            from airflow.sdk.exceptions import AirflowDagCycleException

            raise AirflowDagCycleException(f"Cycle detected in Dag: {self.dag_id}. Faulty task: {faulty}")

    def validate(self):
        """Refuses a Dag that Airflow would refuse."""
        for task in self.tasks:
            if task.is_setup:
                for after in task.downstream_list:
                    if not after.is_teardown and after.trigger_rule != "all_success":
                        raise ValueError("Setup tasks must be followed with trigger rule ALL_SUCCESS.")

    def cli(self):
        """Exposes a command line in Airflow; nothing here."""

    def test(self, *args, **kwargs):
        """Runs the Dag in Airflow; `updraft run` does it here."""
        raise RuntimeError(f"dag.test() is not available here; run the Dag with `updraft run {self.fileloc}`.")

    def __enter__(self):
        DagContext.push(self)
        return self

    def __exit__(self, exc_type, exc, tb):
        DagContext.pop()

    def __repr__(self):
        return f"<DAG: {self.dag_id}>"

    def __lt__(self, other):
        return self.dag_id < other.dag_id


def _checked_schedule(schedule):
    if schedule is None or isinstance(schedule, str):
        return schedule
    if isinstance(schedule, (list, tuple, set, frozenset)):
        if not all(getattr(item, "_is_asset", False) for item in schedule):
            raise ValueError("All elements in 'schedule' should be either assets, asset references, or asset aliases")
        return schedule
    if hasattr(schedule, "total_seconds") or getattr(schedule, "_is_asset", False):
        return schedule
    if isinstance(schedule, (int, float, bytes)):
        raise ValueError(f"{schedule!r} is not a valid schedule.")
    return schedule


def dag(dag_id_or_func=None, **decorator_kwargs):
    """A function that makes a Dag each time it is called."""

    def decorate(function):
        settings = dict(decorator_kwargs)
        if "dag_id" in settings:
            dag_id = settings.pop("dag_id")
        elif isinstance(dag_id_or_func, str) and dag_id_or_func.strip():
            dag_id = dag_id_or_func
        else:
            dag_id = function.__name__

        def factory(*args, **kwargs):
            params = updraft_signature.parameters(function)
            bound = updraft_signature.bind(params, args, kwargs)
            with DAG(dag_id, **settings) as made:
                if function.__doc__ and not made.doc_md:
                    made.doc_md = function.__doc__
                arguments = {}
                for p in params:
                    value = bound.get(p.name, p.default)
                    if value is updraft_signature.EMPTY:
                        value = {} if p.kind == "VAR_KEYWORD" else ()
                    arguments[p.name] = made.param(p.name, value)
                returned = function(**arguments)
                if isinstance(returned, ResolveMixin):
                    made.add_result(returned)
            return made

        factory.__wrapped__ = function
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(factory, name, getattr(function, name, None))
        return factory

    if callable(dag_id_or_func):
        return decorate(dag_id_or_func)
    return decorate


class _TaskGroupFactory:
    """A function that makes a task group when it is called."""

    def __init__(self, function, tg_kwargs, partial_kwargs=None):
        unknown = [name for name in tg_kwargs if name not in _GROUP_ARGUMENTS]
        if unknown:
            raise TypeError(f"got an unexpected keyword argument {unknown[0]!r}")
        self.function = function
        self.tg_kwargs = dict(tg_kwargs)
        self.tg_kwargs.setdefault("group_id", function.__name__)
        self.partial_kwargs = partial_kwargs or {}
        self.__wrapped__ = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *args, **kwargs):
        return self._create(TaskGroup(add_suffix_on_collision=True, **self.tg_kwargs), args, kwargs)

    def _create(self, group, args, kwargs):
        with group:
            if self.function.__doc__:
                group.tooltip = group.tooltip or self.function.__doc__
                group.doc_md = group.doc_md or self.function.__doc__
            returned = self.function(*args, **kwargs)
        return group if returned is None else returned

    def override(self, **kwargs):
        """The same function with other group settings."""
        return _TaskGroupFactory(self.function, {**self.tg_kwargs, **kwargs}, self.partial_kwargs)

    def partial(self, **kwargs):
        """Fixes arguments of the function; `.expand` maps the others."""
        _check_names(self.function, "partial", kwargs)
        prevent_duplicates(self.partial_kwargs, kwargs, fail_reason="duplicate partial")
        return _TaskGroupFactory(self.function, self.tg_kwargs, {**kwargs, **self.partial_kwargs})

    def _mapped(self, expand_input, names):
        require_return_value(expand_input.value)
        group = MappedTaskGroup(add_suffix_on_collision=True, expand_input=expand_input, **self.tg_kwargs)
        stubs = {name: MappedArgument(expand_input, name) for name in names}
        return self._create(group, (), {**self.partial_kwargs, **stubs})

    def expand(self, **kwargs):
        """A group per combination of the given items."""
        if not kwargs:
            raise TypeError("no arguments to expand against")
        _check_names(self.function, "expand", kwargs)
        prevent_duplicates(self.partial_kwargs, kwargs, fail_reason="mapping already partial")
        return self._mapped(DictOfListsExpandInput(kwargs), kwargs)

    def expand_kwargs(self, kwargs):
        """A group per dict of arguments."""
        check_expand_kwargs(kwargs)
        params = updraft_signature.parameters(self.function)
        if any(p.kind in ("VAR_POSITIONAL", "VAR_KEYWORD") for p in params):
            raise TypeError("calling expand_kwargs() on task group function with * or ** is not supported")
        names = [p.name for p in params if p.name not in self.partial_kwargs]
        return self._mapped(ListOfDictsExpandInput(kwargs), names)


_GROUP_ARGUMENTS = (
    "group_id",
    "group_display_name",
    "prefix_group_id",
    "parent_group",
    "dag",
    "default_args",
    "tooltip",
    "doc_md",
    "ui_color",
    "ui_fgcolor",
    "add_suffix_on_collision",
)


def _check_names(function, func, kwargs):
    from airflow.sdk.bases.decorator import _check_function_names

    _check_function_names(function, func, kwargs)


def task_group(group_id=None, **tg_kwargs):
    """A function that makes a task group each time it is called."""
    if callable(group_id) and not tg_kwargs:
        return _TaskGroupFactory(group_id, {})
    if group_id is not None:
        tg_kwargs["group_id"] = group_id

    def decorate(function):
        return _TaskGroupFactory(function, tg_kwargs)

    return decorate
