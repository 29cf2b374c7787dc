"""Runs the agents that Dag code builds: the loop is the worker's, their functions and output types stay here."""

import sys

import _updraft
import updraft_values

# What the functions of an agent are told of its run, by the run's id.
_contexts = {}


def name_of(agent):
    """The name of the variable that holds an agent, where its run was asked for."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") in ("updraft_agent", "pydantic_ai.agent"):
        frame = frame.f_back
    if frame is not None:
        for variables in (frame.f_locals, frame.f_globals):
            for name, value in variables.items():
                if value is agent:
                    return name
    return None


def context(run_id):
    """What tools and functions of this run get as `RunContext`, or None when it is no run of an agent of Dag code."""
    return _contexts.get(run_id)


def run(
    agent,
    prompt,
    *,
    output_type,
    history,
    conversation_id,
    run_id,
    model,
    instructions,
    deps,
    model_settings,
    usage_limits,
    usage,
    metadata,
    retries,
    toolsets,
):
    """Runs an agent to its answer: `AgentRunResult`, or the exception that pydantic-ai raises."""
    import uuid

    from pydantic_ai.exceptions import UserError
    from pydantic_ai.messages import to_data
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.usage import RunUsage

    chosen = model if model is not None else agent.model
    if chosen is None:
        raise UserError("`model` must either be set on the agent or included when calling it.")
    if output_type is not None and agent._output_validators:
        raise UserError("Cannot set a custom run `output_type` when the agent has output validators")
    capabilities = _capabilities(agent)
    run_id = run_id or str(uuid.uuid4())
    usage = RunUsage() if usage is None else usage
    ctx = _contexts[run_id] = _run_context(agent, chosen, prompt, deps, usage, usage_limits, run_id, metadata)
    past = to_data(history or ())
    try:
        answer = _ask(
            {
                "run_id": run_id,
                "conversation_id": conversation_id,
                "params": {
                    "name": agent.name or "agent",
                    "model_settings": {
                        **(agent.model_settings or {}),
                        **capabilities["settings"],
                        **(model_settings or {}),
                    },
                    "retries": retries if retries is not None else agent.retries,
                    "end_strategy": agent.end_strategy,
                },
                "model": _model(chosen),
                "prompt": _prompt(prompt),
                "system_prompts": [] if past else _texts(agent._system_prompts, ctx),
                "message_history": past,
                "usage_limits": _limits(usage_limits),
                "usage": _usage_data(usage),
                "output": _output(output_type or agent.output_type, agent._output_validators, ctx),
                "toolsets": _specs(
                    [
                        *_own_tools(agent, instructions),
                        *agent.toolsets,
                        *(toolsets or ()),
                        *capabilities["toolsets"],
                    ]
                ),
                "native_tools": capabilities["native_tools"],
                "durable": _durable(agent),
            }
        )
    finally:
        del _contexts[run_id]
    for name, value in answer["usage"].items():
        setattr(usage, name, value)
    return AgentRunResult(
        output=_output_value(answer["output"]),
        run_id=run_id,
        conversation_id=answer["conversation_id"],
        metadata=metadata if metadata is not None else agent.metadata,
        usage=usage,
        messages=answer["messages"],
        new_message_index=answer["new_message_index"],
    )


def _capabilities(agent):
    # How its steps are recorded is asked for apart.
    others = [one for one in agent.capabilities if type(one).__name__ != "AirflowDurability"]
    if not others:
        return {"settings": {}, "native_tools": [], "toolsets": []}
    from updraft_capabilities import resolve
    from updraft_unavailable import refuse

    found = resolve(others)
    if found["unsupported"] is not None:
        refuse(f"the capability {found['unsupported']} of an Agent")
    return found


def _ask(request):
    """Has the worker run the agent, and does for it what it asks meanwhile."""
    step = _step({"start": request})
    run = step["run"]
    raised = None
    try:
        while "done" not in step:
            call = step["call"]
            text, error = _served(call)
            if error is not None:
                if not isinstance(error, Exception) or type(error).__name__ in _ENDS:
                    raise error
                raised = raised or error
            step = _step({"run": run, "answer": [call["number"], text]})
    finally:
        _step({"run": run, "end": True})
    answer = step["done"]
    error = answer.get("error")
    if error is None:
        return answer
    if raised is not None and error["class"] == "RuntimeError":
        # What a function of the Dag raised ended the run.
        raise raised
    raise _exception(error["class"], error["message"])


# Exceptions that end what runs, whoever waits for it.
_ENDS = ("AirflowTaskTerminated", "AirflowTaskTimeout")


def _step(asked):
    return updraft_values.from_json(_updraft.agent(updraft_values.to_json(asked)))


def _served(call):
    """What a function of updraft_runtime gives, and the exception behind it if there was one."""
    import updraft_failure
    import updraft_runtime

    text = getattr(updraft_runtime, call["function"])(*call["arguments"])
    error = updraft_values.from_json(text).get("error")
    return text, None if error is None else updraft_failure.kept(error["kept"])


def _exception(name, message):
    module, _, name = name.rpartition(".")
    if module == "pydantic_ai.exceptions":
        import pydantic_ai.exceptions as home

        if name == "FallbackExceptionGroup":
            return home.FallbackExceptionGroup("All models from FallbackModel failed", [home.ModelAPIError(None, message)])
        made = getattr(home, name, None)
        if not (isinstance(made, type) and issubclass(made, Exception)):
            made = home.AgentRunError
        made = home.HTTP_ERRORS.get(name, made)
    else:
        import builtins

        made = getattr(builtins, name, RuntimeError)
    try:
        return made(message)
    except TypeError:
        # Its constructor wants more than is known here.
        error = made.__new__(made)
        error.args = (message,)
        error.message = message
        return error


def _run_context(agent, model, prompt, deps, usage, usage_limits, run_id, metadata):
    from pydantic_ai.tools import RunContext

    return RunContext(
        deps=deps,
        model=model,
        usage=usage,
        usage_limits=usage_limits,
        agent=agent,
        prompt=prompt,
        run_id=run_id,
        metadata=metadata,
    )


def _model(model):
    if isinstance(model, str):
        return {"model": model}
    described = getattr(type(model), "_updraft_model", None)
    if described is None:
        from updraft_unavailable import refuse

        refuse(f"a model of the class {type(model).__name__}")
    return described(model)


def _prompt(prompt):
    if prompt is None or isinstance(prompt, str):
        return prompt
    parts = []
    for part in prompt:
        text = getattr(part, "content", part) if type(part).__name__ == "TextContent" else part
        if not isinstance(text, str):
            from updraft_unavailable import refuse

            refuse(f"a prompt with a {type(part).__name__}")
        parts.append(text)
    return parts


def _texts(given, ctx):
    """Texts, and what functions among them give."""
    return [text for text in (_text(part, ctx) for part in given) if text]


def _text(part, ctx):
    if not callable(part):
        return part
    from updraft_context import finish
    from updraft_signature import parameters

    return finish(part(ctx) if parameters(part) else part())


def _own_tools(agent, instructions):
    """The agent's functions as toolsets: one for each part of the instructions, what is fixed first, and its tools."""
    from pydantic_ai.toolsets.function import FunctionToolset

    parts = []
    for given in (agent._instructions, instructions):
        texts = [part for part in given if isinstance(part, str)]
        if texts:
            parts.append("\n\n".join(texts))
    parts += [part for part in [*agent._instructions, *instructions] if not isinstance(part, str)]
    made = [FunctionToolset(id=f"<agent instructions {n}>", instructions=part) for n, part in enumerate(parts)]
    return [*made, FunctionToolset(agent.tools, id="<agent>")]


def _specs(toolsets):
    from updraft_extract import _toolset

    return [_toolset(toolset) for toolset in toolsets]


def _durable(agent):
    """How the run's steps are recorded; None when the agent has no `AirflowDurability`."""
    from airflow.providers.common.ai.durable import AirflowDurability

    durability = next((one for one in agent.capabilities if isinstance(one, AirflowDurability)), None)
    if durability is None:
        return None
    if durability.models or durability.event_stream_handler:
        from updraft_unavailable import refuse

        refuse("AirflowDurability with models or an event_stream_handler")
    name = durability.name or agent.name
    if not name:
        from pydantic_ai.exceptions import UserError

        raise UserError(
            "An agent with AirflowDurability needs a name, by which its steps are known on every attempt: Agent(name=...) "
            "or AirflowDurability(name=...)."
        )
    from updraft_toolsets import step_under_way

    return {"name": name, "within": step_under_way()}


def _limits(limits):
    if limits is None:
        return None
    from updraft_extract import _usage_limits

    return _usage_limits(limits)


def _output(output_type, validators, ctx):
    if output_type is str and not validators:
        return None
    if validators:
        output_type = ValidatedOutput(output_type, validators, ctx)
    return updraft_values.keep(output_type)


class ValidatedOutput:
    """An output type with functions that see each answer before it counts."""

    def __init__(self, output_type, validators, ctx):
        self.output_type = output_type
        self._validators = validators
        self._ctx = ctx

    def check(self, value):
        """The answer after each of the functions. A `ModelRetry` of theirs asks the model again."""
        from updraft_context import finish
        from updraft_signature import parameters

        for validate in self._validators:
            value = finish(validate(self._ctx, value) if len(parameters(validate)) > 1 else validate(value))
        return value


def _output_value(output):
    if "handle" in output:
        return updraft_values.kept(output["handle"])
    return output.get("text")


_COUNTS = ("requests", "tool_calls", "input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens")


def _usage_data(usage):
    return {name: getattr(usage, name) for name in _COUNTS}
