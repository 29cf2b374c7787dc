"""What a tool knows about the call that it answers."""

from agents.run_context import RunContextWrapper


class ToolContext(RunContextWrapper):
    """The run's context, with the call."""

    def __init__(
        self,
        context,
        usage=None,
        tool_name=None,
        tool_call_id=None,
        tool_arguments=None,
        tool_call=None,
        *,
        tool_namespace=None,
        agent=None,
        run_config=None,
        turn_input=None,
        tool_input=None,
    ):
        super().__init__(context, usage, turn_input, tool_input)
        self.tool_name = tool_name
        self.tool_call_id = tool_call_id
        self.tool_arguments = tool_arguments
        self.tool_call = tool_call
        self.tool_namespace = tool_namespace
        self.agent = agent
        self.run_config = run_config

    @property
    def qualified_tool_name(self):
        """The name with its namespace."""
        return f"{self.tool_namespace}.{self.tool_name}" if self.tool_namespace else self.tool_name

    @classmethod
    def from_agent_context(cls, context, tool_call_id, tool_call=None, agent=None, *, run_config=None, **kwargs):
        """The context of one call in a run."""
        made = cls(
            context.context,
            context.usage,
            tool_call.name if tool_call is not None else None,
            tool_call_id,
            tool_call.arguments if tool_call is not None else None,
            tool_call,
            agent=agent,
            run_config=run_config,
            turn_input=context.turn_input,
            tool_input=context.tool_input,
        )
        return made._shared(context)
