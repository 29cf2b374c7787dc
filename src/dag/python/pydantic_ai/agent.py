"""`Agent`: a model with tools, as Dag files build one. The worker runs it; its functions run here."""

from updraft_unavailable import refuse

# What an agent of pydantic-ai takes and the worker has nothing for, with the values that ask for nothing.
_NOT_HERE = {
    "max_concurrency": (None,),
    "tool_timeout": (None,),
    "validation_context": (None,),
}
_NOT_IN_A_RUN = (
    "cancellation_token",
    "capabilities",
    "conversation",
    "deferred_tool_results",
    "event_stream_handler",
    "spec",
    "timeout",
    "workspace",
)


class Agent:
    """A model with tools, as Dag files build one."""

    def __init__(
        self,
        model=None,
        *,
        output_type=str,
        instructions=None,
        system_prompt=(),
        deps_type=object,
        name=None,
        description=None,
        model_settings=None,
        retries=None,
        validation_context=None,
        tools=(),
        toolsets=None,
        defer_model_check=False,
        end_strategy="graceful",
        metadata=None,
        tool_timeout=None,
        max_concurrency=None,
        capabilities=None,
    ):
        self.model = model
        self.output_type = output_type
        self.deps_type = deps_type
        self.name = name
        self.description = description
        self.model_settings = model_settings
        self.retries = retries
        self.end_strategy = end_strategy
        self.metadata = metadata
        self.toolsets = list(toolsets or ())
        self.tools = list(tools)
        self.capabilities = list(capabilities or ())
        self._instructions = _listed(instructions)
        self._system_prompts = _listed(system_prompt)
        self._output_validators = []
        # Refused when it runs: a Dag file may build an agent that only Python workers run.
        given = {"max_concurrency": max_concurrency, "tool_timeout": tool_timeout}
        given["validation_context"] = validation_context
        self._not_here = [name for name, value in given.items() if value not in _NOT_HERE[name]]

    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def from_file(cls, path, **kwargs):
        """An agent as a YAML or JSON file describes it; arguments go over the file, instructions beside it."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        import _updraft
        from updraft_values import from_json

        return cls.from_spec(from_json(_updraft.yaml_data(text)), **kwargs)

    @classmethod
    def from_spec(cls, spec, **kwargs):
        """An agent from plain data, as `from_file` finds it in a file."""
        made = {}
        for name, value in spec.items():
            if name in ("$schema",) or value in (None, [], {}):
                continue
            if name not in ("model", "name", "description", "instructions", "model_settings", "retries", "end_strategy"):
                refuse(f"{name!r} of an agent's spec")
            made[name] = value
        both = [*_listed(made.get("instructions")), *_listed(kwargs.pop("instructions", None))]
        settings = {**(made.get("model_settings") or {}), **(kwargs.pop("model_settings", None) or {})}
        made.update(kwargs)
        return cls(instructions=both or None, model_settings=settings or None, **{
            name: value for name, value in made.items() if name not in ("instructions", "model_settings")
        })

    def tool(self, func=None, /, **kwargs):
        """A decorator for a tool that takes the run's context first."""
        return self._add_tool(func, True, kwargs)

    def tool_plain(self, func=None, /, **kwargs):
        """A decorator for a tool that takes its arguments alone."""
        return self._add_tool(func, False, kwargs)

    def _add_tool(self, func, takes_ctx, kwargs):
        from pydantic_ai.tools import Tool

        retries = kwargs.pop("retries", None)
        if retries is not None:
            kwargs["max_retries"] = retries
        return _decorator(func, lambda function: self.tools.append(Tool(function, takes_ctx=takes_ctx, **kwargs)))

    def instructions(self, func=None, /):
        """A decorator for a function that adds to the instructions of each run."""
        return _decorator(func, self._instructions.append)

    def system_prompt(self, func=None, /, *, dynamic=False):
        """A decorator for a function that adds to the system prompt of a conversation's first run."""
        if dynamic:
            refuse("system_prompt(dynamic=True)")
        return _decorator(func, self._system_prompts.append)

    def output_validator(self, func=None, /):
        """A decorator for a function that checks an answer, or makes another of it."""
        return _decorator(func, self._output_validators.append)

    def run_sync(
        self,
        user_prompt=None,
        *,
        output_type=None,
        message_history=None,
        conversation_id=None,
        run_id=None,
        model=None,
        instructions=None,
        deps=None,
        model_settings=None,
        usage_limits=None,
        usage=None,
        metadata=None,
        retries=None,
        infer_name=True,
        toolsets=None,
        **more,
    ):
        """Runs the agent to its answer."""
        import updraft_agent

        for name, value in more.items():
            if name not in _NOT_IN_A_RUN:
                raise TypeError(f"AbstractAgent.run_sync() got an unexpected keyword argument {name!r}")
            if value is not None:
                refuse(f"{name}= of a run")
        if self._not_here:
            refuse(f"{self._not_here[0]}= of an Agent")
        if infer_name and self.name is None:
            self.name = updraft_agent.name_of(self)
        return updraft_agent.run(
            self,
            user_prompt,
            output_type=output_type,
            history=message_history,
            conversation_id=conversation_id,
            run_id=run_id,
            model=model,
            instructions=_listed(instructions),
            deps=deps,
            model_settings=model_settings,
            usage_limits=usage_limits,
            usage=usage,
            metadata=metadata,
            retries=retries,
            toolsets=toolsets,
        )

    async def run(self, user_prompt=None, **kwargs):
        """Runs the agent to its answer. Nothing else of the event loop runs meanwhile."""
        return self.run_sync(user_prompt, **kwargs)

    def run_stream(self, *args, **kwargs):
        """Not available."""
        refuse("a run whose answer is streamed")

    run_stream_sync = run_stream_events = run_stream

    def override(self, **kwargs):
        """Not available."""
        refuse("Agent.override()")

    def iter(self, *args, **kwargs):
        """Not available."""
        refuse("a run that is stepped through")


def _listed(given):
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _decorator(func, add):
    def decorate(function):
        add(function)
        return function

    return decorate if func is None else decorate(func)
