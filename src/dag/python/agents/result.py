"""What came of a run."""

from agents.exceptions import AgentsException
from agents.items import ItemHelpers, input_items


class RunResultBase:
    """What came of a run."""

    def __init__(self, **values):
        self._input_guardrails = values.pop("input_guardrail_results", [])
        self.output_guardrail_results = []
        self.tool_input_guardrail_results = []
        self.tool_output_guardrail_results = []
        self.interruptions = []
        self.__dict__.update(values)

    @property
    def input_guardrail_results(self):
        """What the checks of the input have found."""
        return self._input_guardrails

    @property
    def last_agent(self):
        """The agent that answered."""
        return self._last_agent

    @property
    def last_response_id(self):
        """The id of the last answer; None of APIs that have none."""
        return self.raw_responses[-1].response_id if self.raw_responses else None

    def final_output_as(self, cls, raise_if_incorrect_type=False):
        """The answer, which is of this type."""
        if raise_if_incorrect_type and not isinstance(self.final_output, cls):
            raise TypeError(f"Final output is not of type {cls.__name__}")
        return self.final_output

    def to_input_list(self, *, mode="preserve_all"):
        """The whole conversation, as what the next run may begin with."""
        if mode not in ("preserve_all", "normalized"):
            raise ValueError(f"Unsupported to_input_list mode: {mode}")
        items = self.new_items
        if mode == "normalized" and self._model_items is not None:
            items = self._model_items
        begun = self.input if self._original_input is None else self._original_input
        return ItemHelpers.input_to_new_input_list(begun) + input_items(items)

    def to_state(self):
        """Where the run stands, to approve what waits and go on."""
        from agents.run_state import RunState

        return RunState(self)

    def release_agents(self, *, release_new_items=True):
        """Nothing is to be released."""


class RunResult(RunResultBase):
    """What came of a run."""

    def __str__(self):
        return f"RunResult:\n- Last agent: Agent(name={self.last_agent.name!r}, ...)\n- Final output: {self.final_output}"


class RunResultStreaming(RunResultBase):
    """A run that goes on while its events are read."""

    def __init__(self, **values):
        super().__init__(**values)
        self.is_complete = False
        self.run_loop_exception = None
        self._events = None
        self._task = None
        self._is_cancelled = False

    @property
    def last_agent(self):
        """The agent that speaks, or has answered."""
        return self.current_agent

    def cancel(self, mode="immediate"):
        """Ends the run."""
        self._is_cancelled = True
        self.is_complete = True
        if mode == "immediate" and self._task is not None:
            self._task.cancel()
        if self._events is not None:
            self._events.put_nowait(None)

    async def stream_events(self):
        """The events as they come."""
        import asyncio

        while not self._is_cancelled:
            event = await self._events.get()
            if event is None:
                break
            yield event
        self.is_complete = True
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
        except AgentsException as error:
            self.run_loop_exception = error
            raise
