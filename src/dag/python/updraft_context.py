"""Calls Dag code with Airflow's context."""

import sys

import updraft_values
from updraft_moment import moment
from updraft_signature import call_arguments, parameters

# The Dags of the loaded file, by id; for `context["dag"]` and `context["task"]`.
dags = {}

# Which try the context was made for, and the context.
_shared = (None, None)


class LazyContext(dict):
    """A context whose dearer values are made when they are asked for."""

    def __init__(self, values, lazy):
        super().__init__(values)
        self._lazy = lazy
        # The keys that every context of the kind has.
        self.given = {*values, *lazy}

    def __missing__(self, key):
        make = self._lazy.pop(key, None)
        if make is None:
            raise KeyError(key)
        value = make()
        dict.__setitem__(self, key, value)
        return value

    def __contains__(self, key):
        return dict.__contains__(self, key) or key in self._lazy

    def get(self, key, default=None):
        """The value, made if need be."""
        return self[key] if key in self else default

    def whole(self):
        """Everything, as a plain dict."""
        for key in list(self._lazy):
            self[key]
        return dict(self.items())

    def _made(self):
        for key in list(self._lazy):
            self[key]
        return self

    def __iter__(self):
        return dict.__iter__(self._made())

    def __len__(self):
        return dict.__len__(self) + len(self._lazy)

    def keys(self):
        """Every key."""
        return dict.keys(self._made())

    def items(self):
        """Every key with its value."""
        return dict.items(self._made())

    def values(self):
        """Every value."""
        return dict.values(self._made())

    def update(self, *args, **kwargs):
        """Adds or replaces values."""
        for key, value in dict(*args, **kwargs).items():
            self._lazy.pop(key, None)
            dict.__setitem__(self, key, value)

    def __setitem__(self, key, value):
        self._lazy.pop(key, None)
        dict.__setitem__(self, key, value)

    def copy(self):
        """A plain copy."""
        return self.whole()


def shared(given):
    """The context of a try: one and the same for its function, its callbacks and its templates' functions."""
    global _shared
    ti = given.get("ti") or {}
    key = (given.get("dag_id"), given.get("task_id"), given.get("run_id"), ti.get("id"), ti.get("map_index"))
    if _shared[0] != key:
        _shared = (key, build(given))
    context = _shared[1]
    if given.get("templates_dict") is not None:
        context["templates_dict"] = updraft_values.decode(given["templates_dict"])
    return context


def build(given):
    """The context of a running task, from what Rust says about it (see `for_dag_code` in task/context.rs)."""
    from airflow.sdk.execution_time.task_instance import DagRun, TaskInstance

    dag = dags.get(given.get("dag_id"))
    task = dag.task_dict.get(given.get("task_id")) if dag is not None else None
    ti = TaskInstance(given.get("ti") or {}, task, given)
    dag_run = DagRun(given.get("dag_run") or {})
    values = {
        "dag": dag,
        "dag_run": dag_run,
        "inlets": getattr(task, "inlets", None) or [],
        "outlets": getattr(task, "outlets", None) or [],
        "map_index_template": given.get("map_index_template"),
        "params": updraft_values.decode(given.get("params") or {}),
        "run_id": given.get("run_id"),
        "task": task,
        "task_instance": ti,
        "task_reschedule_count": given.get("task_reschedule_count") or 0,
        "templates_dict": updraft_values.decode(given.get("templates_dict")),
        "ti": ti,
        "try_number": ti.try_number,
        "partition_key": (given.get("dag_run") or {}).get("partition_key"),
        "task_instance_key_str": "__".join(
            str(part) for part in (given.get("dag_id"), given.get("task_id"), given.get("run_id"))
        ),
    }
    lazy = {
        "conn": lambda: _accessors().ConnectionAccessor(),
        "var": lambda: _accessors().variables(),
        "macros": lambda: __import__("airflow.sdk.execution_time.macros", None, None, ["macros"]),
        "outlet_events": lambda: _asset_events().OutletEvents(),
        "inlet_events": lambda: _asset_events().InletEvents(values["inlets"]),
        "triggering_asset_events": lambda: _asset_events().triggering_asset_events(
            given.get("triggering_asset_events") or []
        ),
        "task_state_store": lambda: _accessors().TaskStateStore(ti.id),
        "partition_date": lambda: moment((given.get("dag_run") or {}).get("partition_date")),
        "prev_start_date_success": lambda: _accessors().PreviousDate(ti.id, "start_date"),
        "prev_end_date_success": lambda: _accessors().PreviousDate(ti.id, "end_date"),
    }
    assets = [*values["inlets"], *values["outlets"]]
    if any(hasattr(type(asset), "_updraft_profile") for asset in assets):
        lazy["asset_state_store"] = lambda: _accessors().AssetStateStores(values["inlets"], values["outlets"])
    logical_date = given.get("logical_date")
    if logical_date:
        day = logical_date[:10]
        values["ds"] = day
        values["ds_nodash"] = day.replace("-", "")
        values["task_instance_key_str"] = f"{given.get('dag_id')}__{given.get('task_id')}__{values['ds_nodash']}"
        lazy["logical_date"] = lambda: moment(logical_date)
        lazy["data_interval_start"] = lambda: moment(given.get("data_interval_start"))
        lazy["data_interval_end"] = lambda: moment(given.get("data_interval_end"))
        lazy["prev_data_interval_start_success"] = lambda: _accessors().PreviousDate(ti.id, "data_interval_start")
        lazy["prev_data_interval_end_success"] = lambda: _accessors().PreviousDate(ti.id, "data_interval_end")
        lazy["ts"] = lambda: moment(logical_date).isoformat()
        lazy["ts_nodash"] = lambda: moment(logical_date).strftime("%Y%m%dT%H%M%S")
        lazy["ts_nodash_with_tz"] = lambda: moment(logical_date).isoformat().replace("-", "").replace(":", "")
    return LazyContext(values, lazy)


def _accessors():
    import airflow.sdk.execution_time.context as accessors

    return accessors


def _asset_events():
    import airflow.sdk.execution_time.asset_events as events

    return events


def call(function, args, kwargs, given):
    """Calls a function of the Dag file, and runs what it gives to the end."""
    if given is None:
        return finish(function(*args, **kwargs))
    from airflow.sdk.definitions.context import set_current_context

    context = shared(given)
    with set_current_context(context):
        named = call_arguments(function, args, _offered(function, kwargs, context))
        return finish(function(*args, **named))


def _offered(function, kwargs, context):
    """What a function may take: its keyword arguments, and over them what it asks for of the context."""
    asked = parameters(function)
    if any(p.kind == "VAR_KEYWORD" for p in asked):
        return {**context.whole(), **kwargs}
    return {**{p.name: context[p.name] for p in asked if p.name in context and p.name not in kwargs}, **kwargs}


def resolve(value, given):
    """The value of something that is known only while a task runs."""
    from airflow.sdk.definitions.context import set_current_context

    context = shared(given or {})
    with set_current_context(context):
        return value.resolve(context)


def finish(result):
    """Runs a coroutine to its end and exhausts a generator; what else there is comes back as it is."""
    if hasattr(result, "send") and hasattr(result, "throw"):
        if hasattr(result, "cr_code"):
            return run_coroutine(result)
        if hasattr(result, "gi_code"):
            return _exhaust(result)
    return result


def run_coroutine(coroutine, like=None):
    """Runs a coroutine to its end; on an event loop when the Dag code (that of `like`, if given) uses one."""
    if "asyncio" in sys.modules or _imports_asyncio(like or coroutine.cr_code):
        import asyncio

        return _run_beside(asyncio, coroutine)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("the coroutine waits for something, but nothing in the Dag file has imported asyncio")


def _run_beside(asyncio, coroutine):
    """Runs a coroutine on a loop of its own, also where one runs already and waits for its result."""
    if asyncio._get_running_loop() is None:
        return asyncio.run(coroutine)
    # A loop within a loop ends the embedded Python; on a thread of its own it is welcome.
    import threading

    ended = []

    def run():
        try:
            ended.append((asyncio.run(coroutine), None))
        except BaseException as error:
            ended.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = ended[0]
    if error is not None:
        raise error
    return result


def _imports_asyncio(code):
    """Does the code, or a function in it, name asyncio? It may import it only when it runs."""
    return "asyncio" in code.co_names or any(
        _imports_asyncio(constant) for constant in code.co_consts if hasattr(constant, "co_names")
    )


def _exhaust(generator):
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return stop.value
