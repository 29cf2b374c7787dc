"""Calls the functions behind tasks and callbacks as Airflow's runners do.

A generator function is run to its end, and the `Metadata` that it yields goes to the outlet events. A generator that a
plain function returns is a value like any other.
"""

from updraft_signature import call_arguments, parameters, unwrap

_GENERATOR = 0x20
_COROUTINE = 0x80
_ASYNC_GENERATOR = 0x200


def _flags(function):
    function = unwrap(function)
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)
    return code.co_flags if code is not None else 0


def run(function, args, kwargs, outlet_events, logger="task"):
    """The result of the function. `outlet_events` is a function that gives the outlet events of the context."""
    if not _flags(function) & _GENERATOR:
        return function(*args, **kwargs)
    generator = function(*args, **kwargs)
    while True:
        try:
            item = next(generator)
        except StopIteration as stop:
            return stop.value
        if not _note(item, outlet_events):
            import updraft_log

            updraft_log.send(logger, "warning", f"Ignoring unknown data of {type(item)!r} received from task")


def _note(item, outlet_events):
    from airflow.sdk.definitions.asset import Metadata

    if not isinstance(item, Metadata):
        return False
    events = outlet_events()
    events[item.asset].extra.update(item.extra)
    if item.alias:
        events[item.alias].add(item.asset, extra=item.extra)
    return True


async def _run_async(function, args, kwargs, outlet_events):
    if not _flags(function) & _ASYNC_GENERATOR:
        return await function(*args, **kwargs)
    results = []
    async for item in function(*args, **kwargs):
        _note(item, outlet_events)
        results.append(item)
    return results


def execute(operator, context):
    """`PythonOperator.execute`: calls the operator's function with what it asks for."""
    value = call(operator, context)
    import updraft_log

    shown = f"was: {value}" if operator.show_return_value_in_logs else "not shown"
    updraft_log.send(logger_name(operator), "info", f"Done. Returned value {shown}")
    return value


def call(operator, context):
    """What the operator's function returns."""
    context.update(operator.op_kwargs, templates_dict=getattr(operator, "templates_dict", None))
    function = operator.python_callable
    args = tuple(operator.op_args)
    takes_everything = any(p.kind == "VAR_KEYWORD" for p in parameters(function))
    kwargs = call_arguments(function, args, context.whole() if takes_everything else context)
    operator.op_kwargs = kwargs
    logger = logger_name(operator)

    def outlet_events():
        return context["outlet_events"]

    if _flags(function) & (_COROUTINE | _ASYNC_GENERATOR):
        from updraft_context import run_coroutine

        return run_coroutine(_run_async(function, args, kwargs, outlet_events), like=unwrap(function).__code__)
    return run(function, args, kwargs, outlet_events, logger)


def poke(sensor, context):
    """Calls a sensor's function with what it asks for."""
    function = sensor.python_callable
    takes_everything = any(p.kind == "VAR_KEYWORD" for p in parameters(function))
    kwargs = call_arguments(function, tuple(sensor.op_args), context.whole() if takes_everything else context)
    found = function(*sensor.op_args, **kwargs)
    return found if hasattr(found, "is_done") else bool(found)


def logger_name(operator):
    """The logger of an operator."""
    cls = type(operator)
    own = getattr(operator, "_logger_name", None)
    return f"airflow.task.operators.{own or f'{cls.__module__}.{cls.__name__}'}"
