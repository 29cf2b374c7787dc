"""Classes whose methods are called as a run goes on."""


class RunHooksBase:
    """What happens in a run."""

    def __class_getitem__(cls, item):
        return cls

    async def on_llm_start(self, context, agent, system_prompt, input_items):
        """Before a request to the model."""

    async def on_llm_end(self, context, agent, response):
        """After the model's answer."""

    async def on_agent_start(self, context, agent):
        """An agent begins, or takes over."""

    async def on_agent_end(self, context, agent, output):
        """An agent has answered."""

    async def on_handoff(self, context, from_agent, to_agent):
        """One agent hands over to another."""

    async def on_tool_start(self, context, agent, tool):
        """Before a tool."""

    async def on_tool_end(self, context, agent, tool, result):
        """After a tool."""


class AgentHooksBase:
    """What happens to one agent."""

    def __class_getitem__(cls, item):
        return cls

    async def on_start(self, context, agent):
        """The agent begins, or takes over."""

    async def on_end(self, context, agent, output):
        """The agent has answered."""

    async def on_handoff(self, context, agent, source):
        """The agent has been handed over to."""

    async def on_tool_start(self, context, agent, tool):
        """Before a tool."""

    async def on_tool_end(self, context, agent, tool, result):
        """After a tool."""

    async def on_llm_start(self, context, agent, system_prompt, input_items):
        """Before a request to the model."""

    async def on_llm_end(self, context, agent, response):
        """After the model's answer."""


RunHooks = RunHooksBase
AgentHooks = AgentHooksBase
