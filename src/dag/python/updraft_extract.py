"""What a loaded Dag file says, as the plain data of `dag/definitions.rs`."""

import re

from airflow.sdk.definitions._internal.node import NOTSET
from updraft_values import argument, keep, short_repr


def dag_file(dags):
    """`DagFile`."""
    return {"dags": [_dag(dag) for dag in dags], "unavailable_modules": _unavailable_modules()}


def _unavailable_modules():
    import sys

    unavailable = sys.modules.get("updraft_unavailable")
    modules = getattr(unavailable, "modules", None)
    return sorted(modules() if callable(modules) else modules or ())


def _params(params):
    values = {}
    schemas = {}
    for name, param in params.raw_items():
        if param.value is not NOTSET:
            values[name] = _plain(param.value)
        schema = {key: _plain(item) for key, item in param.schema.items()}
        if param.description is not None:
            schema.setdefault("description", param.description)
        if schema:
            schemas[name] = schema
    return values, schemas


def _plain(value):
    """JSON without references: for params, which Airflow keeps as JSON."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(getattr(value, "value", value))
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return str(value)


def _dag(dag):
    params, schemas = _params(dag.params)
    mapped_over = _mapped_over(dag)
    return {
        "dag_id": dag.dag_id,
        "location": dag._location,
        "params": params,
        "params_schema": schemas,
        "render_template_as_native_obj": dag.render_template_as_native_obj,
        "template_searchpath": [str(path) for path in dag.template_searchpath or ()],
        "user_defined_macros": [[name, argument(v)] for name, v in (dag.user_defined_macros or {}).items()],
        "user_defined_filters": [[name, argument(v)] for name, v in (dag.user_defined_filters or {}).items()],
        "tasks": [_task(task, mapped_over) for task in dag.tasks],
    }


def _mapped_over(dag):
    """Ids of the tasks whose return values something is expanded over."""
    found = set()
    groups = set()
    for task in dag.tasks:
        if task.is_mapped:
            found.update(operator.task_id for operator, _ in task.expand_input.iter_references())
        for group in task.iter_mapped_task_groups():
            if id(group) not in groups:
                groups.add(id(group))
                found.update(operator.task_id for operator, _ in group._expand_input.iter_references())
    return found


def _seconds(value):
    return value.total_seconds() if hasattr(value, "total_seconds") else value


def _expansion(expand_input):
    if isinstance(expand_input.value, dict):
        return {"product": [[name, argument(value)] for name, value in expand_input.value.items()]}
    return {"kwargs": argument(expand_input.value)}


def _task(task, mapped_over):
    params, schemas = _params(task.params)
    cls = task.operator_class if task.is_mapped else type(task)
    expansions = [_expansion(group._expand_input) for group in task.iter_mapped_task_groups()]
    expansions.reverse()
    if task.is_mapped:
        expansions.append(_expansion(task.expand_input))
    return {
        "task_id": task.task_id,
        "operator": task.operator_name,
        "module": cls.__module__,
        "location": task._location,
        "upstream_task_ids": sorted(task.upstream_task_ids),
        "downstream_task_ids": sorted(task.downstream_task_ids),
        "queue": task.queue,
        "retries": max(task.retries or 0, 0),
        "retry_delay": _seconds(task.retry_delay),
        "execution_timeout": _seconds(task.execution_timeout),
        "do_xcom_push": bool(task.do_xcom_push),
        "multiple_outputs": bool(task.multiple_outputs),
        "trigger_rule": str(getattr(task.trigger_rule, "value", task.trigger_rule)),
        "map_index_template": task.map_index_template,
        "params": params,
        "params_schema": schemas,
        "template_fields": list(task.template_fields),
        "expansions": expansions,
        "is_mapped": bool(task.is_mapped),
        "mapped_task_group": _mapped_task_group(task),
        "template_ext": [str(ending) for ending in getattr(task, "template_ext", None) or ()],
        "mapped_over": task.task_id in mapped_over,
        "outlets": _assets(task.outlets),
        "inlets": _assets(task.inlets),
        "dag_code": _dag_code(_Settings(task), cls),
        "ignored": _ignored(_Settings(task)),
        "kind": _kind(task, cls),
    }


_CALLBACKS = (
    "on_execute_callback",
    "on_failure_callback",
    "on_success_callback",
    "on_retry_callback",
    "on_skipped_callback",
)


def _dag_code(settings, cls):
    """Names of what the interpreter is asked for beside the task's own work."""
    from airflow.sdk.bases.operator import BaseOperator

    names = [name for name in _CALLBACKS if getattr(settings, name)]
    if settings.retry_policy is not None:
        names.append("retry_policy")
    for name in ("pre_execute", "post_execute"):
        hook = (
            settings._task.partial_kwargs.get(name) if settings._task.is_mapped else getattr(settings, f"_{name}_hook")
        )
        if hook is not None or getattr(cls, name) is not getattr(BaseOperator, name):
            names.append(name)
    return names


def _ignored(settings):
    """Settings that a Python worker would act on, and that nobody acts on here."""
    ignored = []
    if settings.email and (settings.email_on_failure or settings.email_on_retry):
        ignored.append("email")
    return ignored


def _mapped_task_group(task):
    group = task.get_closest_mapped_task_group()
    return group.group_id if group is not None else None


def _assets(items):
    if not isinstance(items, (list, tuple, set)):
        items = [items] if items is not None else []
    profiles = []
    for item in items:
        if hasattr(type(item), "_updraft_profile"):
            profiles.append(item._updraft_profile())
    return profiles


class _Settings:
    """A task's constructor arguments: those of a plain task, or what `.partial` was given with defaults for the rest."""

    def __init__(self, task):
        self._task = task
        self._expanded = ()
        if task.is_mapped:
            value = task.expand_input.value
            self._expanded = value if isinstance(value, dict) else ()

    def __getattr__(self, name):
        task = self._task
        if not task.is_mapped:
            return getattr(task, name, None)
        if name in self._expanded and task.python_callable is None:
            return None
        if name == "python_callable":
            # A decorator's function, or the argument that `PythonOperator.partial` was given.
            return task.python_callable or task.partial_kwargs.get(name)
        try:
            return getattr(task, name)
        except AttributeError:
            return None


def _kind(task, cls):
    kind, reason = _how(cls)
    settings = _Settings(task)
    if kind == "agent":
        return {"agent": _agent(settings)}
    if kind == "llm":
        return _llm(settings, task, cls)
    if kind == "python" or kind == "bash" and _allows_bash():
        return _python(settings, cls)
    if kind == "empty":
        return "empty"
    if kind == "stub":
        return {"stub": _stub(settings)}
    return {"unsupported": {"reason": reason}}


def _allows_bash():
    import _updraft

    return (_updraft.config("updraft", "allow_bash") or "").strip().lower() in ("true", "t", "1")


def _how(cls):
    """The kind of a task by its operator class; None with the reason why there is none."""
    from airflow.sdk.bases.operator import BaseOperator

    definer = next((base for base in cls.__mro__ if "_updraft_kind" in base.__dict__), BaseOperator)
    kind = definer._updraft_kind
    if cls._updraft_takes_anything:
        return None, cls._updraft_reason
    needed = cls._updraft_needs
    if kind == "python" and needed is not None:
        bare = next(base for base in reversed(cls.__mro__) if "_updraft_needs" in base.__dict__ and base._updraft_needs)
        if getattr(cls, needed) is getattr(bare, needed) and cls.execute is bare.execute:
            return None, cls._updraft_reason
    if cls.execute is definer.execute:
        return kind, cls._updraft_reason
    if kind in ("python", "empty", "bash") or (definer is BaseOperator and cls._updraft_reason is BaseOperator._updraft_reason):
        # A class with an `execute` of its own: Python like any other.
        return "python", None
    if kind is None:
        return None, cls._updraft_reason
    return None, f"the class overrides execute of {definer.__name__}, which is not run natively yet"


def _python(settings, cls):
    function = settings.python_callable
    if function is None and "python_callable" in settings._expanded:
        return {"unsupported": {"reason": "its python_callable is known only when the Dag runs"}}
    return {
        "python": {
            "name": getattr(function, "__name__", None) or cls.__name__,
            "function": keep(function) if function is not None else None,
            "fields": [[name, argument(getattr(settings, name))] for name in settings._task.template_fields],
        }
    }


def _stub(settings):
    """A task of another language: what its function would be called with."""
    import inspect

    parameters = inspect.signature(settings.python_callable).parameters.values()
    return {
        "dag_id": settings._task.dag.dag_id,
        "name": settings.python_callable.__name__,
        "parameters": [parameter.name for parameter in parameters],
        "defaults": {p.name: _plain_default(p) for p in parameters if p.default is not p.empty},
        "op_args": argument(settings.op_args),
        "op_kwargs": argument(settings.op_kwargs),
    }


def _plain_default(parameter):
    import json

    try:
        return json.loads(json.dumps(parameter.default))
    except (TypeError, ValueError):
        raise TypeError(
            f"the default of {parameter.name} must be plain data, as it goes to a task of another language, and is "
            f"{parameter.default!r}"
        ) from None


def _call(settings):
    function = settings.python_callable
    return {
        "function": keep(function),
        "name": getattr(function, "__name__", type(function).__name__),
        "op_args": argument(settings.op_args),
        "op_kwargs": argument(settings.op_kwargs),
        "templates_dict": argument(settings.templates_dict),
    }


def _agent(settings):
    decorated = settings.python_callable is not None
    agent_params = settings.agent_params
    beside = agent_params if isinstance(agent_params, dict) else {}
    toolsets = list(settings.toolsets or beside.get("toolsets") or ())
    if beside.get("tools"):
        from pydantic_ai.toolsets import FunctionToolset

        toolsets.insert(0, FunctionToolset(tools=list(beside["tools"])))
    capabilities = _capabilities(settings.capabilities or beside.get("capabilities"))
    toolsets.extend(capabilities.pop("toolsets", ()))
    if settings.capabilities is not None and beside.get("capabilities") is not None:
        capabilities["fault"] = "Pass capabilities either as capabilities=... or in agent_params, not both."
    return {
        "prompt_function": _call(settings) if decorated else None,
        "prompt": None if decorated else argument(settings.prompt),
        "llm_conn_id": argument(settings.llm_conn_id),
        "model_id": argument(settings.model_id),
        "fallback_conn_ids": argument(settings.fallback_conn_ids),
        "system_prompt": argument(settings.system_prompt),
        "agent_params": argument(agent_params),
        "message_history": argument(settings.message_history),
        "usage_limits": _usage_limits(settings.usage_limits),
        "output_type": _output_type(settings.output_type),
        "toolsets": [_toolset(toolset) for toolset in toolsets],
        "capabilities": capabilities,
        "enable_tool_logging": bool(settings.enable_tool_logging),
        "durable": bool(settings.durable),
        "cache_prompt": bool(settings.cache_prompt),
        "serialize_output": bool(settings.serialize_output),
        "hitl_review": _hitl_review(settings) if settings.enable_hitl_review else None,
    }


def _hitl_review(settings):
    """How a person reviews the answers."""
    return {
        "max_iterations": settings.max_hitl_iterations,
        "timeout": _seconds(settings.hitl_timeout),
        "poll_interval": settings.hitl_poll_interval,
    }


def _capabilities(given):
    if not given:
        return {}
    from updraft_capabilities import resolve

    return resolve(given)


def _llm(settings, task, cls):
    """One question without tools: an agent that has none."""
    kind, output_type = cls._updraft_question(settings, task)
    if isinstance(kind, dict) and "unsupported" in kind:
        return kind
    question = {
        "model_settings": argument(settings.model_settings),
        "output_retries": argument(settings.output_retries),
        "kind": kind,
        "approval": _approval(settings),
        "fields": [[name, _question_field(getattr(settings, name))] for name in cls._updraft_own_fields],
    }
    agent = {**_agent(settings), "output_type": _output_type(output_type), "llm": question}
    agent["serialize_output"] = agent["serialize_output"] or cls._updraft_serializes
    return {"agent": agent}


def _approval(settings):
    """Who must see the answer before it counts, and when."""
    policy = settings.decision_policy
    notifiers = settings.approval_notifiers or ()
    bars = {}
    if isinstance(settings.branches, dict):
        bars = {str(name): getattr(option, "min_confidence", None) for name, option in settings.branches.items()}
    return {
        "require_approval": bool(settings.require_approval),
        "min_confidence": policy.min_confidence if policy is not None else None,
        "on_uncertain": policy.on_uncertain if policy is not None else "review",
        "branch_bars": {name: bar for name, bar in bars.items() if bar is not None},
        "timeout": _seconds(settings.approval_timeout),
        "on_timeout": settings.on_approval_timeout or "fail",
        "allow_modifications": bool(settings.allow_modifications),
        "assigned_users": [
            {"id": user["id"], "name": user["name"]} for user in settings.approval_assigned_users or ()
        ],
        "has_notifiers": bool(notifiers),
    }


def _question_field(value):
    """A template field. Of objects that describe branches, the model gets the description."""
    if not isinstance(value, dict):
        return argument(value)
    return {str(name): argument(getattr(item, "description", item)) for name, item in value.items()}


def _usage_limits(limits):
    """A `UsageLimits` object as the envelope of its fields; a dict or a template as it is."""
    from sys import modules

    usage = modules.get("pydantic_ai.usage")
    if usage is None or not isinstance(limits, usage.UsageLimits):
        return argument(limits)
    fields = {name: getattr(limits, name) for name in limits._keyword}
    if fields["cost_limit"] is not None:
        fields["cost_limit"] = str(fields["cost_limit"])
    return {"__classname__": "pydantic_ai.usage.UsageLimits", "__version__": 0, "__data__": argument(fields)}


def _output_type(output_type):
    if output_type is str or output_type is None:
        return "text"
    name = getattr(output_type, "__name__", None) or short_repr(output_type)
    return {"python": {"handle": keep(output_type), "name": name}}


def _toolset(toolset):
    if isinstance(toolset, str):
        # What Rust authors have registered under this name.
        return {"named": {"name": toolset}}
    if hasattr(type(toolset), "_updraft_spec"):
        own = _own_functions(type(toolset))
        described = _derived(type(toolset), own) if own else toolset._updraft_spec(_toolset)
        if described is not None:
            return described
    origin = getattr(toolset, "_unavailable_origin", None)
    if origin is not None:
        return {"unsupported": {"class": origin[1].removesuffix("()"), "module": origin[0]}}
    described = _python_toolset(toolset)
    if described is not None:
        return described
    cls = type(toolset) if not isinstance(toolset, type) and not hasattr(toolset, "__code__") else toolset
    return {
        "unsupported": {
            "class": getattr(cls, "__name__", type(toolset).__name__),
            "module": getattr(cls, "__module__", None) or type(toolset).__module__,
            "reason": getattr(cls, "_updraft_reason", None),
        }
    }


def _stand_in(cls):
    return next(base for base in cls.__mro__ if _is_stand_in(base))


def _own_functions(cls):
    """What a Dag's class does in its own way, beyond how it is made: the worker's counterpart would pass over it."""
    own = cls.__mro__[: cls.__mro__.index(_stand_in(cls))]
    functions = {name for base in own for name, value in vars(base).items() if hasattr(type(value), "__get__")}
    harmless = {"__init__", "__dict__", "__weakref__", "__eq__", "__hash__", "__repr__"}
    return sorted(functions - harmless)


def _derived(cls, own):
    """A class with functions of its own over a toolset of the worker; None where the toolset wraps others."""
    from pydantic_ai.toolsets.wrappers import CombinedToolset, WrapperToolset

    stand_in = _stand_in(cls)
    if issubclass(stand_in, (CombinedToolset, WrapperToolset)):
        return None
    name = stand_in.__name__
    reason = f"derives {name} and defines {', '.join(own)}: derive WrapperToolset, and wrap a {name} in it"
    # Airflow's name for the module of a Dag file begins with a hash of its path.
    module = re.sub("^unusual_prefix_[0-9a-f]+_", "", cls.__module__)
    return {"unsupported": {"class": cls.__name__, "module": module, "reason": reason}}


# Toolsets of pydantic-ai and the provider that have neither a counterpart nor an implementation in Python here.
_NOT_YET = {
    "ApprovalRequiredToolset",
    "IncludeReturnSchemasToolset",
    "ExternalToolset",
}


def _python_toolset(toolset):
    """A toolset that runs in the interpreter: of functions, of a hook, or of a class of the Dag's own."""
    from pydantic_ai.toolsets.abstract import AbstractToolset

    if not isinstance(toolset, AbstractToolset):
        return None
    own = next(cls for cls in type(toolset).__mro__ if "get_tools" in cls.__dict__)
    if own is AbstractToolset or type(toolset).__name__ in _NOT_YET and _is_stand_in(type(toolset)):
        return None
    if hasattr(toolset, "_updraft_obstacle") and toolset._updraft_obstacle() is not None:
        return {"unsupported": toolset._updraft_obstacle()}
    inner = [toolset.wrapped] if hasattr(toolset, "wrapped") else getattr(toolset, "toolsets", None) or ()
    return {
        "python": {
            "handle": keep(toolset),
            "class": type(toolset).__name__,
            "id": toolset.id,
            "templated": _templated(toolset),
            "inner": [_toolset(item) for item in inner],
        }
    }


def _templated(toolset):
    fields = toolset._updraft_templated() if hasattr(toolset, "_updraft_templated") else {}
    return [[name, argument(value)] for name, value in fields.items()]


def _is_stand_in(cls):
    return cls.__module__.partition(".")[0] in ("airflow", "pydantic_ai")
