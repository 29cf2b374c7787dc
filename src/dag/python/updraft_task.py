"""The Dag code of one try, in the order of Airflow's task runner: hooks, callbacks, `execute`, the retry policy.

Rust decides when each step comes (task/dag_code.rs). Every step gets a request with the context that Rust describes, and
works on one operator and one context for the whole try.
"""

import updraft_callable
import updraft_context
import updraft_values

# The operator of the try, with rendered fields, and the context that it belongs to.
_prepared = (None, None)


def _context(request):
    return updraft_context.shared(request["context"])


def _operator(context, request):
    """The operator that runs: a copy with its rendered fields; for a mapped task the one of its map index."""
    global _prepared
    if _prepared[0] is context:
        return _prepared[1]
    task = context["task"]
    fields = {name: updraft_values.decode(value) for name, value in (request.get("fields") or {}).items()}
    mapped = {name: updraft_values.decode(value) for name, value in (request.get("mapped") or {}).items()}
    operator = _unmapped(task, fields, mapped) if task.is_mapped else _copy(task)
    for name, value in fields.items():
        if name not in operator.__dict__ and not hasattr(type(operator), name):
            continue
        if value is None and task.is_mapped:
            # Left out: the constructor of the unmapped operator has filled it in.
            continue
        setattr(operator, name, value)
    context["task"] = operator
    context["ti"].__dict__["task"] = operator
    _prepared = (context, operator)
    return operator


def _task(context, request):
    """The operator of the try; the task as the Dag file has it when the try did not come to its arguments."""
    if "fields" in request:
        try:
            return _operator(context, request)
        except Exception:
            # What the operator's constructor raised is the failure itself, or was logged with it.
            pass
    return context["task"]


def _copy(task):
    operator = object.__new__(type(task))
    operator.__dict__.update(task.__dict__)
    # Rendered values are no XComs any more, so that setting them wires nothing.
    operator.__dict__["_instantiated"] = False
    return operator


def _unmapped(task, fields, mapped):
    from airflow.sdk.bases.operator import operator_parameters

    takes = operator_parameters(task.operator_class)
    kwargs = {**task.partial_kwargs, **mapped}
    kwargs.update((name, value) for name, value in fields.items() if name in takes and value is not None)
    is_setup, is_teardown, fails_run = (
        kwargs.pop(name, False) for name in ("is_setup", "is_teardown", "on_failure_fail_dagrun")
    )
    if task.python_callable is not None:
        kwargs["python_callable"] = task.python_callable
        kwargs["multiple_outputs"] = task.multiple_outputs
    operator = task.operator_class(
        task_id=task.task_id,
        dag=task.dag,
        task_group=task.task_group,
        params=task.params,
        _updraft_from_mapped=True,
        **kwargs,
    )
    operator.is_setup, operator.is_teardown, operator.on_failure_fail_dagrun = is_setup, is_teardown, fails_run
    operator.upstream_task_ids = task.upstream_task_ids
    operator.downstream_task_ids = task.downstream_task_ids
    operator.__dict__["_instantiated"] = False
    return operator


def _run(function, context, *args):
    return updraft_callable.run(function, (context, *args), {}, lambda: context["outlet_events"])


def _overridden(operator, name):
    from airflow.sdk.bases.operator import BaseOperator

    method = getattr(operator, name)
    return getattr(method, "__func__", method) is not getattr(BaseOperator, name)


def prepare(request):
    """Before the work: `pre_execute`, then `on_execute_callback`."""
    from airflow.sdk.definitions.context import set_current_context

    context = _context(request)
    operator = _operator(context, request)
    with set_current_context(context):
        if operator._pre_execute_hook is not None:
            _run(operator._pre_execute_hook, context)
        if _overridden(operator, "pre_execute"):
            _run(operator.pre_execute, context)
        _callbacks("on_execute_callback", operator, context)


def execute(request):
    """The work of an operator that runs here."""
    from airflow.sdk.definitions.context import set_current_context

    context = _context(request)
    operator = _operator(context, request)
    _export(context, request["context"].get("logical_date"))
    with set_current_context(context):
        result = _work(operator.execute, context)
        _finish(operator, context, result)
    return updraft_values.encode(result) if operator.do_xcom_push else None


def branch(request):
    """Follows the downstream tasks that a model has chosen."""
    from airflow.sdk.definitions.context import set_current_context

    context = _context(request)
    operator = _operator(context, request)
    with set_current_context(context):
        result = operator.do_branch(context, updraft_values.decode(request["choice"]))
    return updraft_values.encode(result) if operator.do_xcom_push else None


def notify(request):
    """Tells the notifiers of an operator whose answer waits for a person."""
    import updraft_review
    from airflow.sdk.definitions.context import set_current_context

    context = _context(request)
    operator = _operator(context, request)
    with set_current_context(context):
        updraft_review.notify(operator, context, request["subject"], request["body"])


def resume(request):
    """Goes on where a task has stopped to wait."""
    from airflow.sdk.definitions.context import set_current_context

    context = _context(request)
    operator = _operator(context, request)
    arguments = {name: updraft_values.decode(value) for name, value in (request["kwargs"] or {}).items()}
    _export(context, request["context"].get("logical_date"))
    with set_current_context(context):
        result = _work(operator.resume_execution, request["method"], arguments, context)
        if request.get("finish"):
            _finish(operator, context, result)
    return updraft_values.encode(result) if operator.do_xcom_push else None


def _work(function, *args):
    """What an operator returns. What it asks of the triggerer is made ready here, because that may fail as well."""
    from airflow.sdk.exceptions import TaskDeferred

    try:
        return function(*args)
    except TaskDeferred as error:
        import updraft_trigger

        error.deferral = updraft_trigger.deferral(error)
        raise


def _export(context, logical_date):
    """Puts what Airflow's task runner tells operators into `os.environ`."""
    import os

    ti, run, task = context["ti"], context["dag_run"], context["task"]
    email = task.email
    if logical_date:
        # As `isoformat` writes it.
        logical_date = logical_date.replace("Z", "+00:00").replace(".000000", "")
    told = {
        "DAG_EMAIL": ",".join(email) if isinstance(email, (list, tuple)) else email,
        "DAG_OWNER": task.owner,
        "DAG_ID": ti.dag_id,
        "TASK_ID": ti.task_id,
        "LOGICAL_DATE": logical_date,
        "TRY_NUMBER": ti.try_number,
        "DAG_RUN_ID": ti.run_id,
        "TEAM_NAME": getattr(run, "team_name", None),
    }
    os.environ.update({f"AIRFLOW_CTX_{name}": str(value) for name, value in told.items() if value})


def finish(request):
    """After work that was done elsewhere: `post_execute`."""
    from airflow.sdk.definitions.context import set_current_context

    context = _context(request)
    with set_current_context(context):
        _finish(_operator(context, request), context, updraft_values.decode(request["result"]))


def _finish(operator, context, result):
    if operator._post_execute_hook is not None:
        _run(operator._post_execute_hook, context, result)
    if _overridden(operator, "post_execute"):
        _run(operator.post_execute, context)


def _callbacks(kind, operator, context):
    callbacks = getattr(operator, kind, None) or ()
    for index, callback in enumerate(callbacks if isinstance(callbacks, (list, tuple, set)) else (callbacks,)):
        try:
            _run(callback, context)
        except Exception as error:
            _say("error", "Failed to run task callback", error, kind=kind, index=index, callback=repr(callback))


def _say(level, event, error=None, **fields):
    import updraft_log

    if error is not None:
        fields["error_detail"] = updraft_log.error_detail(error)
    updraft_log.send("task", level, event, **fields)


def end(request):
    """After the end of the try: the callbacks of its state."""
    context = _context(request)
    task = _task(context, request)
    fields = context["ti"].__dict__
    fields["state"], fields["end_date"] = request["state"], updraft_context.moment(request["end_date"])
    context["exception"] = _exception(request["error"])
    _callbacks(request["callback"], task, context)


def retry_decision(request):
    """What the task's retry policy says about a failure; None when it has no say."""
    context = _context(request)
    task = _task(context, request)
    try:
        decision = task.retry_policy.evaluate(
            exception=_exception(request["error"]),
            try_number=context["ti"].try_number,
            max_tries=context["ti"].max_tries,
            context=context,
        )
        action = decision.action.value
        if decision.reason:
            _say("info", "Retry policy decision", action=action, reason=decision.reason)
        delay = decision.retry_delay
        return {
            "action": action,
            "retry_delay_seconds": delay.total_seconds() if delay is not None else None,
            "reason": decision.reason,
        }
    except Exception as error:
        _say("error", "Retry policy evaluation failed, falling back to default behaviour", error)
        return None


def added(request):
    """What Dag code put into the context, for the template of the map index: values in XCom wire form, else as text."""
    context = _context(request)
    found = {}
    for key, value in dict.items(context):
        if key not in context.given:
            try:
                found[key] = updraft_values.encode(value)
            except (TypeError, ValueError, AttributeError, RecursionError):
                found[key] = str(value)
    return found


def outlet_events(request):
    """What goes with the events of the outlets."""
    events = dict.get(_context(request), "outlet_events")
    return events.plain() if events is not None else []


def kill(text):
    """The exception that ends a task on SIGTERM, once the operator has cleaned up. Called between two instructions."""
    from airflow.sdk.exceptions import AirflowTaskTerminated

    on_kill()
    return AirflowTaskTerminated(text)


def time_out(text):
    """The exception that ends a task at its execution_timeout. Called between two instructions."""
    from airflow.sdk.exceptions import AirflowTaskTimeout

    return AirflowTaskTimeout(text)


def on_kill(request=None):
    """Lets the operator clean up what it has started."""
    operator = _prepared[1]
    if operator is None or not _overridden(operator, "on_kill"):
        return
    try:
        operator.on_kill()
    except Exception as error:
        _say("error", "on_kill failed", error)


def _exception(described):
    """The exception object behind a failure: the very one if Dag code raised it, else one like it."""
    if described is None:
        return None
    import updraft_failure

    return updraft_failure.kept(described["kept"]) or updraft_failure.like(described["class"], described["message"])


def needs(request):
    """What a task's functions need and have not: for `updraft check`."""
    import updraft_needs

    return updraft_needs.of_task(request["dag_id"], request["task_id"])
