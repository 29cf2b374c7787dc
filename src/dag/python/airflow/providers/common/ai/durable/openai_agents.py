"""Runs an agent of the OpenAI Agents SDK so that a retry of the task takes up where the try before it ended.

The journal is the worker's (`agent/durable`); what is a step, and what was asked in it, is said here.
"""

import contextvars
import copy
import json

import _updraft
import updraft_values
from agents.agent import Agent
from agents.exceptions import (
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRefusalError,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
)
from agents.items import ModelResponse, tool_output
from agents.models.interface import Model, ModelProvider
from agents.run import Runner
from agents.run_config import RunConfig
from agents.tool import FunctionTool
from agents.usage import Usage
from openai.objects import built
from updraft_tool_results import mask

__all__ = ["run_durably", "run_durably_sync"]

# The model's answers were at fault: another try that took them from the journal would end the same way.
_MODEL_AT_FAULT = (
    ModelBehaviorError,
    ModelRefusalError,
    MaxTurnsExceeded,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
)

_KEPT_BY_SERVER = ("previous_response_id", "conversation_id", "auto_previous_response_id")

# The run whose recorded call is under way: what it does inside is no step of the same run.
_inside = contextvars.ContextVar("common_ai_durable_call", default=None)


async def run_durably(starting_agent, input, *, run_config=None, **kwargs):
    """Runs an agent as `Runner.run` does; a retry of the task replays what has been done."""
    from airflow.sdk.definitions.context import get_current_context

    try:
        get_current_context()
    except RuntimeError:
        # Outside of a task there is nothing to take up.
        return await Runner.run(starting_agent, input, run_config=run_config, **kwargs)
    kept = [name for name in _KEPT_BY_SERVER if kwargs.get(name)]
    if kept:
        raise ValueError(
            f"run_durably() cannot replay a run that keeps its conversation on OpenAI's servers ({', '.join(kept)}): a "
            "replayed model call never reaches it."
        )
    run = _Run()
    config = copy.copy(run_config) if run_config is not None else RunConfig()
    config.model_provider = _DurableProvider(config.model_provider, run)
    if isinstance(config.model, Model):
        config.model = _DurableModel(config.model, run)
    try:
        result = await Runner.run(_agent(starting_agent, run, {}), input, run_config=config, **kwargs)
    except BaseException as error:
        run.ask("fail", model_at_fault=isinstance(error, _MODEL_AT_FAULT) and not run.tool_failed)
        raise
    run.ask("succeed")
    return result


def run_durably_sync(starting_agent, input, *, run_config=None, **kwargs):
    """As `run_durably`, for code that is no coroutine."""
    # Brings the loop that the run needs.
    import asyncio  # noqa: F401

    from updraft_context import run_coroutine

    return run_coroutine(run_durably(starting_agent, input, run_config=run_config, **kwargs))


def _ask(operation, **given):
    asked = {"durable": {"operation": operation, **given}}
    answer = updraft_values.from_json(_updraft.agent(updraft_values.to_json(asked)))
    if isinstance(answer, dict) and "error" in answer:
        raise ValueError(answer["error"])
    return answer


class _Run:
    def __init__(self):
        self.number = _ask("start")["run"]
        # A tool that ends a run is at fault itself, whatever it raised.
        self.tool_failed = False

    def ask(self, operation, **given):
        return _ask(operation, run=self.number, **given)

    def claim(self, name, kind, asked):
        return self.ask("claim", name=name, kind=kind, fingerprint=_digest(asked))

    def is_inside(self):
        return _inside.get() is self


def _digest(asked):
    import hashlib

    text = json.dumps(asked, sort_keys=True, default=lambda value: type(value).__name__)
    return hashlib.sha256(text.encode()).hexdigest()


def _agent(agent, run, made):
    """A copy of an agent whose steps are recorded, and those of the agents that it hands over to."""
    if id(agent) in made:
        return made[id(agent)]
    # Before its handoffs: agents hand over to each other.
    durable = made[id(agent)] = agent.clone()
    if isinstance(agent.model, Model):
        durable.model = _DurableModel(agent.model, run)
    durable.tools = [_tool(tool, run) for tool in agent.tools]
    durable.handoffs = [_agent(one, run, made) if isinstance(one, Agent) else one for one in agent.handoffs]
    return durable


def _tool(tool, run):
    # Where a function decides whether a call needs approval, it has to see the call.
    if not isinstance(tool, FunctionTool) or callable(tool.needs_approval):
        return tool
    durable = copy.copy(tool)
    invoke = tool.on_invoke_tool

    async def call(ctx, arguments):
        if run.is_inside():
            return await invoke(ctx, arguments)
        try:
            given = json.loads(arguments) if arguments else {}
        except ValueError:
            given = arguments
        given = given if isinstance(given, dict) else {"arguments": given}
        asked = {"name": tool.name, "args": mask(given), "tool_call_id": ctx.tool_call_id}
        step = run.claim(f"tool:{tool.name}", "tool", asked)
        if step["replayed"]:
            return step["payload"]
        run.ask("begin", step=step["step"])
        token = _inside.set(run)
        try:
            output = await invoke(ctx, arguments)
        except Exception:
            run.tool_failed = True
            run.ask("raise", step=step["step"])
            raise
        finally:
            _inside.reset(token)
        # What was raised and told to the model in other words is not recorded: a retry calls again.
        if getattr(ctx, "_handled_error", None) is not None:
            if tool._failure_error_function is not _default():
                run.ask("raise", step=step["step"])
        else:
            run.ask("record", step=step["step"], payload=mask(_as_sent(output)))
        return output

    durable.on_invoke_tool = call
    return durable


def _default():
    from agents.tool import default_tool_error_function

    return default_tool_error_function


def _as_sent(output):
    """A result as the model sees it, so that a replayed one reads the same."""
    if isinstance(output, str):
        return output
    if isinstance(tool_output(output), str):
        return tool_output(output)
    many = isinstance(output, (list, tuple))
    plain = [
        one if isinstance(one, dict) else {name: getattr(one, name) for name in one._names()}
        for one in (output if many else [output])
    ]
    return plain if many else plain[0]


class _DurableProvider(ModelProvider):
    """Models by their names, whose steps are recorded."""

    def __init__(self, provider, run):
        self.provider = provider
        self.run = run
        self.models = {}

    def get_model(self, model_name):
        """The model of a name."""
        if model_name not in self.models:
            self.models[model_name] = _DurableModel(self.provider.get_model(model_name), self.run)
        return self.models[model_name]


class _DurableModel(Model):
    """A model whose answers are recorded, or taken from the record."""

    def __init__(self, model, run):
        self.wrapped = model
        self.run = run

    def _supports_default_prompt_cache_key(self):
        supports = getattr(self.wrapped, "_supports_default_prompt_cache_key", None)
        return bool(supports()) if supports is not None else False

    async def get_response(self, *args, **kwargs):
        """One answer."""
        run = self.run
        if run.is_inside():
            return await self.wrapped.get_response(*args, **kwargs)
        step = run.claim("model", "model", _asked(self.wrapped, *args, **kwargs))
        if step["replayed"]:
            payload = step["payload"]
            return ModelResponse(built(payload["output"]), Usage(), payload.get("response_id"))
        run.ask("begin", step=step["step"])
        try:
            response = await self.wrapped.get_response(*args, **kwargs)
        except Exception:
            run.tool_failed = True
            run.ask("raise", step=step["step"])
            raise
        output = [item.model_dump(mode="json", exclude_unset=True) for item in response.output]
        run.ask("record", step=step["step"], payload={"output": mask(output), "response_id": response.response_id})
        return response

    def stream_response(self, *args, **kwargs):
        """One answer, event by event, which is not recorded."""
        return self.wrapped.stream_response(*args, **kwargs)


def _asked(model, instructions, input, settings, tools, schema, handoffs, tracing, **more):
    """What a request asks, as plain data."""
    settings = settings.to_json_dict()
    if settings.get("extra_args"):
        # Made anew in each try.
        settings["extra_args"] = {k: v for k, v in settings["extra_args"].items() if k != "prompt_cache_key"}
    return {
        "model": f"{type(model).__module__}.{type(model).__qualname__}:{getattr(model, 'model', None)}",
        "instructions": instructions,
        "input": _without_none(mask(input)),
        "settings": settings,
        "tools": [_told(tool) for tool in tools],
        "output": schema.json_schema() if schema is not None and not schema.is_plain_text() else None,
        "handoffs": [[one.tool_name, one.input_json_schema] for one in handoffs],
        "prompt": more.get("prompt"),
    }


def _told(tool):
    if isinstance(tool, FunctionTool):
        return [tool.name, tool.description, tool.params_json_schema, tool.strict_json_schema]
    return [type(tool).__name__, tool._sent()]


def _without_none(value):
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value
