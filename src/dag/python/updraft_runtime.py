"""What Rust calls: `load` a Dag file, `call` a function that stayed, `resolve` a value, take a `step` of a try, `forget`.

Each takes and returns text; a failure is an answer too, never an exception.
"""

import sys

import _updraft
import updraft_values

_MODULE_PREFIX = "unusual_prefix_"


def load(path):
    """Runs a Dag file: `{"ok": DagFile}` (see dag/definitions.rs), or `{"error": Failure}`."""
    try:
        import updraft_aliases

        updraft_aliases.install()
        module = _run_dag_file(path)
        import updraft_context
        from updraft_extract import dag_file

        dags = _dags_of(module)
        updraft_context.dags = {dag.dag_id: dag for dag in dags}
        return updraft_values.to_json({"ok": dag_file(dags)})
    except BaseException as error:
        return _failed(error)


def module_name(path):
    """The name under which Airflow imports a Dag file: its classes carry it in XComs."""
    # The module with the types first: the embedded Python has them nowhere else.
    import _hashlib

    digest = _hashlib.openssl_sha1(path.encode("utf-8", "surrogateescape")).hexdigest()
    file_name = path.rpartition("/")[2]
    stem = file_name.rpartition(".")[0] or file_name
    return f"{_MODULE_PREFIX}{digest}_{stem}"


def _run_dag_file(path):
    from airflow.sdk.definitions._internal.contextmanager import DagContext

    folder = _updraft.dag_folder()
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    code = compile(_updraft.dag_source(), path, "exec", dont_inherit=True)
    name = module_name(path)
    module = type(sys)(name)
    module.__file__ = path
    sys.modules[name] = module
    DagContext.autoregistered_dags.clear()
    DagContext.current_autoregister_module_name = name
    try:
        exec(code, module.__dict__)
    finally:
        DagContext.current_autoregister_module_name = None
    return module


def _dags_of(module):
    """The Dags at module level and those whose blocks closed, in the order in which they were made."""
    from airflow.sdk.definitions._internal.contextmanager import DagContext

    dags = sys.modules.get("airflow.sdk.definitions.dag")
    if dags is None:
        return []
    found = {dag._serial: dag for dag in DagContext.autoregistered_dags}
    for value in list(module.__dict__.values()):
        if isinstance(value, dags.DAG):
            found[value._serial] = value
    by_id = {}
    for _, dag in sorted(found.items()):
        dag.validate()
        dag.check_cycle()
        by_id.pop(dag.dag_id, None)
        by_id[dag.dag_id] = dag
    return list(by_id.values())


def call(handle, args_json, kwargs_json, context_json):
    """Calls a function that stayed: `{"ok": result in XCom wire form}`, or `{"error": Failure}`.

    With a context the function gets what it asks for of it; with `null` it is called as is.
    """
    try:
        import updraft_context

        function = updraft_values.kept(handle)
        args = updraft_values.decode(updraft_values.from_json(args_json)) or []
        kwargs = updraft_values.decode(updraft_values.from_json(kwargs_json)) or {}
        context = updraft_values.from_json(context_json)
        result = updraft_context.call(function, args, kwargs, context)
        return updraft_values.to_json({"ok": updraft_values.encode(result)})
    except BaseException as error:
        return _failed(error)


def resolve(handle, context_json):
    """The value, in XCom wire form, of something that is known only while a task runs."""
    try:
        import updraft_context

        value = updraft_values.kept(handle)
        result = updraft_context.resolve(value, updraft_values.from_json(context_json))
        return updraft_values.to_json({"ok": updraft_values.encode(result)})
    except BaseException as error:
        return _failed(error)


def step(name, request_json):
    """A step of a try (see updraft_task): its answer as plain data."""
    try:
        import updraft_task

        answer = getattr(updraft_task, name)(updraft_values.from_json(request_json))
        return updraft_values.to_json({"ok": answer})
    except BaseException as error:
        return _failed(error)


def toolset(handle, operation, payload_json, context_json):
    """Does one thing with a toolset or a filter that stayed: `{"ok": ...}`, or `{"error": Failure}`."""
    return _operate("updraft_toolsets", handle, operation, payload_json, context_json)


def output(handle, operation, payload_json, context_json):
    """Does one thing with an output type that stayed: `{"ok": ...}`, or `{"error": Failure}`."""
    return _operate("updraft_output", handle, operation, payload_json, context_json)


def _operate(module, handle, operation, payload_json, context_json):
    try:
        operate = __import__(module).operate
        import updraft_context
        from airflow.sdk.definitions.context import set_current_context

        payload = updraft_values.from_json(payload_json)
        context = updraft_values.from_json(context_json)
        if context is None:
            result = operate(handle, operation, payload)
        else:
            with set_current_context(updraft_context.build(context)):
                result = operate(handle, operation, payload)
        return updraft_values.to_json({"ok": result})
    except BaseException as error:
        return _failed(error)


def interruption(kind, text):
    """The exception to raise in the code that runs."""
    import updraft_task

    return getattr(updraft_task, kind)(text)


def forget():
    """Drops every object that was kept."""
    updraft_values.forget()
    failures = sys.modules.get("updraft_failure")
    if failures is not None:
        failures.forget()
    contexts = sys.modules.get("airflow.sdk.definitions._internal.contextmanager")
    if contexts is not None:
        contexts.DagContext.autoregistered_dags.clear()
    return "null"


def _failed(error):
    import updraft_failure

    described = updraft_failure.describe(error)
    described["kept"] = updraft_failure.keep(error)
    return updraft_values.to_json({"error": described})
