"""`Agent`: can be made in a Dag file; only the worker's own agent tasks run."""

_NOT_HERE = (
    "an Agent can't be run from Dag code here: use AgentOperator or @task.agent, or run this task on a Python worker"
)


class Agent:
    """A model with tools, as Dag files build one."""

    def __init__(self, model=None, **kwargs):
        self.model = model
        self.name = kwargs.get("name")
        self.output_type = kwargs.get("output_type", str)
        self.toolsets = kwargs.get("toolsets") or []
        self.tools = list(kwargs.get("tools") or ())
        self._settings = kwargs

    def __class_getitem__(cls, item):
        return cls

    @classmethod
    def from_file(cls, path, **kwargs):
        """An agent from a file."""
        return cls(**kwargs)

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
        raise RuntimeError(_NOT_HERE)

    def run_sync(self, *args, **kwargs):
        """Not available."""
        raise RuntimeError(_NOT_HERE)

    def run_stream(self, *args, **kwargs):
        """Not available."""
        raise RuntimeError(_NOT_HERE)

    iter = run_stream
