"""`Agent`: a model with instructions, tools and other agents to hand over to."""

from updraft_record import REQUIRED, Fresh, Record

_BEHAVIORS = ("run_llm_again", "stop_on_first_tool")


class StopAtTools(dict):
    """The tools at which a run ends."""


class ToolsToFinalOutputResult(Record):
    """Whether what tools gave is the answer."""

    _positional = {"is_final_output": REQUIRED, "final_output": None}


def _settings():
    from agents.models.default_models import get_default_model_settings

    return get_default_model_settings()


class AgentBase(Record):
    """What agents have in common."""

    def __class_getitem__(cls, item):
        return cls


class Agent(AgentBase):
    """A model with instructions, tools and other agents to hand over to."""

    _positional = {
        "name": REQUIRED,
        "handoff_description": None,
        "tools": Fresh(list),
        "mcp_servers": Fresh(list),
        "mcp_config": Fresh(dict),
        "instructions": None,
        "prompt": None,
        "handoffs": Fresh(list),
        "model": None,
        "model_settings": Fresh(_settings),
        "input_guardrails": Fresh(list),
        "output_guardrails": Fresh(list),
        "output_type": None,
        "hooks": None,
        "tool_use_behavior": "run_llm_again",
        "reset_tool_choice": True,
    }

    def _made(self):
        self._check("name", isinstance(self.name, str), "a string")
        self._check(
            "handoff_description", self.handoff_description is None or isinstance(self.handoff_description, str),
            "a string or None",
        )
        for name in ("tools", "mcp_servers", "handoffs", "input_guardrails", "output_guardrails"):
            self._check(name, isinstance(getattr(self, name), list), "a list")
        self._check("mcp_config", isinstance(self.mcp_config, dict), "a dict")
        instructions = self.instructions
        good = instructions is None or isinstance(instructions, str) or callable(instructions)
        self._check("instructions", good, "a string, callable, or None")
        self._check_model()
        output = self.output_type
        if output is not None and not isinstance(output, type):
            from typing import get_origin

            from agents.agent_output import AgentOutputSchemaBase

            good = isinstance(output, AgentOutputSchemaBase) or get_origin(output) is not None
            self._check("output_type", good, "a type, AgentOutputSchemaBase, or None")
        if self.hooks is not None:
            from agents.lifecycle import AgentHooksBase

            self._check("hooks", isinstance(self.hooks, AgentHooksBase), "an AgentHooks instance or None")
        behavior = self.tool_use_behavior
        good = behavior in _BEHAVIORS if isinstance(behavior, str) else isinstance(behavior, dict) or callable(behavior)
        self._check(
            "tool_use_behavior", good, "'run_llm_again', 'stop_on_first_tool', StopAtTools dict, or callable"
        )
        self._check("reset_tool_choice", isinstance(self.reset_tool_choice, bool), "a boolean")

    def _check_model(self):
        from agents.model_settings import coerced
        from agents.models.default_models import get_default_model_settings

        model = self.model
        if model is not None and not isinstance(model, str):
            from agents.models.interface import Model

            self._check("model", isinstance(model, Model), "a string, Model, or None")
        self.model_settings = coerced(self.model_settings, "Agent model_settings")
        if model is not None and self.model_settings == get_default_model_settings():
            # Settings that nobody gave are those of the model.
            self.model_settings = get_default_model_settings(model if isinstance(model, str) else "")

    def _check(self, name, good, wanted):
        if not good:
            given = type(getattr(self, name)).__name__
            raise TypeError(f"Agent {name} must be {wanted}, got {given}")

    # One agent is not another for being made alike.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def clone(self, **changed):
        """Another agent, with something else about it."""
        return type(self)(**{**{name: getattr(self, name) for name in self._positional}, **changed})

    def as_tool(
        self,
        tool_name,
        tool_description,
        custom_output_extractor=None,
        is_enabled=True,
        on_stream=None,
        run_config=None,
        max_turns=None,
        hooks=None,
        previous_response_id=None,
        conversation_id=None,
        session=None,
        **more,
    ):
        """The agent as a tool of another one, which gets its answer."""
        from agents.agent_tool import make

        return make(
            self,
            tool_name,
            tool_description,
            custom_output_extractor=custom_output_extractor,
            is_enabled=is_enabled,
            on_stream=on_stream,
            run_config=run_config,
            max_turns=max_turns,
            hooks=hooks,
            previous_response_id=previous_response_id,
            conversation_id=conversation_id,
            session=session,
            **more,
        )

    async def get_system_prompt(self, run_context):
        """The instructions, also those that a function makes."""
        if not callable(self.instructions):
            return self.instructions
        import inspect

        from agents.tool import awaited

        named = [name for name in inspect.signature(self.instructions).parameters]
        if len(named) != 2:
            raise TypeError(
                "'instructions' callable must accept exactly 2 arguments (context, agent), "
                f"but got {len(named)}: {named}"
            )
        return await awaited(self.instructions(run_context, self))

    async def get_all_tools(self, run_context):
        """The tools that are on, with those of the MCP servers before them."""
        from agents.tool import FunctionTool, is_on

        tools = []
        if self.mcp_servers:
            from agents.mcp.tools import of_servers

            tools = await of_servers(self, run_context)
        for tool in self.tools:
            if not isinstance(tool, FunctionTool) or await is_on(tool, run_context, self):
                tools.append(tool)
        return tools
