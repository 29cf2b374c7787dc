"""Toolsets that run in the interpreter: functions and hooks of the Dag file, and classes that it derives.

Rust calls `toolset(handle, operation, payload, context)` through `updraft_runtime`.
"""

import copy
import sys

import _updraft
import updraft_context
import updraft_values
from updraft_context import run_coroutine

# The toolset of the run, the tools it last gave and how often it was asked for them, by handle.
_open = {}
_tools = {}
_steps = {}
# The durable steps whose tools run, the innermost last.
_steps_under_way = []


class JsonSchemaArguments:
    """A tool's arguments are checked by this JSON schema; the worker does it before it asks here."""

    def __init__(self, schema):
        self.schema = schema

    def validate_python(self, value, **kwargs):
        """The value: it was checked."""
        return value


def operate(handle, operation, payload):
    """Does one thing with a toolset."""
    return _OPERATIONS[operation](handle, payload, _run_context(payload))


def _run_context(payload):
    agents = sys.modules.get("updraft_agent")
    ctx = agents.context(payload.get("run_id")) if agents is not None else None
    if ctx is not None:
        # Of an agent that Dag code runs: each call has its own.
        own = copy.copy(ctx)
        own.tool_name = payload.get("name")
        own.max_retries = payload.get("max_retries") or 0
        return own
    from pydantic_ai.tools import RunContext
    from pydantic_ai.usage import RunUsage

    return RunContext(
        deps=None,
        model=None,
        usage=RunUsage(),
        run_id=payload.get("run_id"),
        tool_name=payload.get("name"),
        max_retries=payload.get("max_retries") or 0,
    )


def _enter(handle, payload, ctx):
    async def enter():
        toolset = updraft_values.kept(handle)
        if payload.get("fields"):
            toolset = toolset._updraft_rendered(payload["fields"])
        if hasattr(toolset, "for_run"):
            toolset = await toolset.for_run(ctx) or toolset
        await toolset.__aenter__()
        return toolset

    _open[handle] = run_coroutine(enter())


def _leave(handle, payload, ctx):
    toolset = _open.pop(handle, None)
    _tools.pop(handle, None)
    _steps.pop(handle, None)
    if toolset is not None:
        run_coroutine(_exit(toolset))


async def _exit(toolset):
    await toolset.__aexit__(None, None, None)


def _current(handle):
    return _open.get(handle) or updraft_values.kept(handle)


def _instructions(handle, payload, ctx):
    given = run_coroutine(_current(handle).get_instructions(ctx))
    if given is None:
        return []
    parts = given if isinstance(given, (list, tuple)) else [given]
    return [str(getattr(part, "content", part)) for part in parts]


def _list(handle, payload, ctx):
    """The tools, which are asked for at the beginning of each step."""
    ctx.run_step = _steps[handle] = _steps.get(handle, 0) + 1
    if hasattr(_open.get(handle), "for_run_step"):
        _open[handle] = run_coroutine(_open[handle].for_run_step(ctx))
    tools = run_coroutine(_current(handle).get_tools(ctx))
    _tools[handle] = tools
    return [_describe(name, tool) for name, tool in tools.items()]


def _describe(name, tool):
    definition = tool.tool_def
    validator = tool.args_validator
    described = definition_data(definition)
    described["name"] = name
    described["max_retries"] = tool.max_retries
    described["accepts"] = validator.schema if isinstance(validator, JsonSchemaArguments) else None
    described["check"] = bool(described["accepts"] is None or getattr(tool, "args_validator_func", None))
    return described


def definition_data(definition):
    """A `ToolDefinition` as plain data."""
    return {
        "name": definition.name,
        "description": definition.description,
        "parameters": definition.parameters_json_schema,
        "sequential": bool(definition.sequential),
    }


def _tool(handle, name, ctx):
    tools = _tools.get(handle)
    if tools is None or name not in tools:
        tools = _tools[handle] = run_coroutine(_current(handle).get_tools(ctx))
    return tools[name]


def _check(handle, payload, ctx):
    """`{"args"}`, or what the model is told: `{"errors"}` or `{"retry"}`."""
    from pydantic_ai.exceptions import ModelRetry

    tool = _tool(handle, payload["name"], ctx)
    args = payload["args"]
    try:
        checked = _checked(tool, args)
        more = getattr(tool, "args_validator_func", None)
        if more is not None:
            given = more(ctx, **checked)
            if hasattr(given, "cr_code"):
                run_coroutine(given)
    except ModelRetry as retry:
        return {"retry": retry.message}
    except Exception as error:
        errors = getattr(error, "errors", None)
        if errors is None:
            raise
        return {"errors": [fault_data(fault) for fault in errors(include_url=False, include_context=False)]}
    return {"args": args}


def _checked(tool, args):
    checked = tool.args_validator.validate_python(args)
    return checked if isinstance(checked, dict) else args


def fault_data(fault):
    """An error item of pydantic as plain data."""
    return {
        "type": fault["type"],
        "loc": list(fault["loc"]),
        "msg": fault["msg"],
        "input": jsonable(fault.get("input")),
    }


def _call(handle, payload, ctx):
    """`{"value"}`; what the model is told instead: `{"retry"}` or `{"failed"}`; `{"not_json"}` for what is no step's."""
    from pydantic_ai.exceptions import ModelRetry, ToolFailed

    name = payload["name"]
    tool = _tool(handle, name, ctx)
    step = payload.get("step")
    _steps_under_way.append(step)
    try:
        args = _checked(tool, payload["args"])
        result = run_coroutine(_current(handle).call_tool(name, args, ctx, tool))
    except ModelRetry as retry:
        return {"retry": retry.message}
    except ToolFailed as failed:
        return {"failed": failed.message}
    finally:
        _steps_under_way.pop()
    if type(result).__name__ == "ToolReturn" and hasattr(result, "return_value"):
        for field in ("content", "tools"):
            if getattr(result, field, None) is not None:
                from updraft_unavailable import refuse

                refuse(f"ToolReturn({field}=...)")
        result = result.return_value
    if step is not None:
        why = _not_json(result)
        if why is not None:
            return {"not_json": why}
    return {"value": jsonable(result, base64=True)}


def step_under_way():
    """The place of the durable step whose tool runs now; None outside of one."""
    return next((step for step in reversed(_steps_under_way) if step is not None), None)


def _not_json(value):
    """Why a durable run can't record a value; None when it can."""
    from pydantic_core import to_jsonable_python

    try:
        to_jsonable_python(value)
    except Exception as error:
        return str(error)
    return None


def _keeps(handle, payload, ctx):
    """Does a filter function keep the tool?"""
    from pydantic_ai.tools import ToolDefinition

    given = payload["tool"]
    definition = ToolDefinition(
        name=given["name"],
        description=given["description"],
        parameters_json_schema=given["parameters"],
        sequential=given["sequential"],
    )
    kept = updraft_values.kept(handle)(ctx, definition)
    return bool(run_coroutine(kept) if hasattr(kept, "cr_code") else kept)


_OPERATIONS = {
    "open": _enter,
    "close": _leave,
    "instructions": _instructions,
    "tools": _list,
    "check": _check,
    "call": _call,
    "keeps": _keeps,
}


def jsonable(value, base64=False):
    """A value as JSON data, whatever it is; bytes as text, or as base64 with the alphabet for URLs."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {str(key): jsonable(item, base64) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item, base64) for item in value]
    if base64 and isinstance(value, (bytes, bytearray)):
        from base64 import urlsafe_b64encode

        return urlsafe_b64encode(value).decode()
    from pydantic_core import to_jsonable_python

    try:
        return jsonable(to_jsonable_python(value), base64)
    except Exception:
        return str(value)


# The worker's own toolsets, as seen from Python ---------------------------------------------------


def native(toolset, operation, **payload):
    """Asks the worker's counterpart of a stand-in."""
    from pydantic_ai.exceptions import ModelRetry, ToolFailed
    from updraft_extract import _toolset

    request = {"handle": updraft_values.keep(toolset), "spec": _toolset(toolset), "operation": operation, **payload}
    answer = _ask(request)
    while "wanted" in answer:
        # A token_provider: the worker can't call it while it is waited for here.
        function = answer["wanted"]
        given = updraft_context.call(updraft_values.kept(function), [], {}, None)
        answer = _ask({**request, "given": [function, updraft_values.encode(given)]})
    if "retry" in answer:
        raise ModelRetry(answer["retry"])
    if "failed" in answer:
        raise ToolFailed(answer["failed"])
    if "fatal" in answer:
        raise RuntimeError(answer["fatal"])
    return answer.get("value")


def _ask(request):
    return updraft_values.from_json(_updraft.toolset(updraft_values.to_json(request)))


def native_tools(toolset, ctx):
    """The tools of the worker's counterpart."""
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets.abstract import ToolsetTool

    tools = {}
    for given in native(toolset, "tools"):
        definition = ToolDefinition(
            name=given["name"],
            description=given["description"],
            parameters_json_schema=given["parameters"],
            sequential=given["sequential"],
        )
        retries = given["max_retries"]
        tools[given["name"]] = ToolsetTool(
            toolset=toolset,
            tool_def=definition,
            max_retries=ctx.max_retries if retries is None else retries,
            args_validator=JsonSchemaArguments(given["parameters"]),
        )
    return tools
