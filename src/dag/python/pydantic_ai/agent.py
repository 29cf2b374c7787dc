"""`Agent`: can be made in a Dag file; only the worker's own agent tasks run."""


def _refuse():
    from updraft_source import user_location
    from updraft_unavailable import NotHereError

    where = user_location()
    raise NotHereError(
        f"an Agent can't be run from Dag code here ({where['file']}:{where['line']}): use AgentOperator or @task.agent, "
        "or send this task to a queue that a Python worker serves"
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
        self.end_strategy = end_strategy
        self.toolsets = list(toolsets or ())
        self.tools = list(tools)
        self.capabilities = list(capabilities or ())

    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def from_file(cls, path, **kwargs):
        """An agent from a file, which only a run would read."""
        return cls(**{name: value for name, value in kwargs.items() if name in ("model", "name", "output_type")})

    from_spec = from_file

    def _decorator(self, func):
        def decorate(function):
            return function

        return decorate if func is None else func

    def tool(self, func=None, /, **kwargs):
        """A decorator that adds a tool."""
        if func is not None:
            self.tools.append(func)
        return self._decorator(func)

    tool_plain = tool

    def instructions(self, func=None, /, **kwargs):
        """A decorator that adds to the system prompt."""
        return self._decorator(func)

    system_prompt = instructions
    output_validator = instructions

    async def run(self, *args, **kwargs):
        """Not available."""
        _refuse()

    def run_sync(self, *args, **kwargs):
        """Not available."""
        _refuse()

    def run_stream(self, *args, **kwargs):
        """Not available."""
        _refuse()

    iter = run_stream
