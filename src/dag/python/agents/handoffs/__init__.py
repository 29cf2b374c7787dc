"""One agent hands over to another."""

import inspect
import json
import logging
import re

from agents.exceptions import ModelBehaviorError, UserError
from updraft_lazy import lazy_names
from updraft_record import REQUIRED, Record

logger = logging.getLogger("openai.agents")

__getattr__, _ = lazy_names(
    __name__,
    {
        "agents.handoffs.history": (
            "default_handoff_history_mapper",
            "get_conversation_history_wrappers",
            "nest_handoff_history",
            "reset_conversation_history_wrappers",
            "set_conversation_history_wrappers",
        )
    },
    fallback=True,
)


class HandoffInputData(Record):
    """What the next agent would see."""

    _positional = {
        "input_history": REQUIRED,
        "pre_handoff_items": REQUIRED,
        "new_items": REQUIRED,
        "run_context": None,
        "input_items": None,
    }

    def clone(self, **changed):
        """The same, with something else in it."""
        return type(self)(**{**{name: getattr(self, name) for name in self._positional}, **changed})


class Handoff(Record):
    """A way to another agent, as a tool."""

    _positional = {
        "tool_name": REQUIRED,
        "tool_description": REQUIRED,
        "input_json_schema": REQUIRED,
        "on_invoke_handoff": REQUIRED,
        "agent_name": REQUIRED,
        "input_filter": None,
        "nest_handoff_history": None,
        "strict_json_schema": True,
        "is_enabled": True,
    }

    def __class_getitem__(cls, item):
        return cls

    def get_transfer_message(self, agent):
        """What the call of the tool is answered with."""
        return json.dumps({"assistant": agent.name})

    @classmethod
    def default_tool_name(cls, agent):
        """`transfer_to_` and the agent."""
        return function_name(f"transfer_to_{agent.name}", warn_on_whitespace=False)

    @classmethod
    def default_tool_description(cls, agent):
        """What the model is told when nothing else is said."""
        return f"Handoff to the {agent.name} agent to handle the request. {agent.handoff_description or ''}"


def function_name(name, warn_on_whitespace=True):
    """A name that a function may have."""
    spaced = re.sub(r"\s", "_", name)
    plain = re.sub(r"[^a-zA-Z0-9_]", "_", spaced)
    made = plain.lower()
    if plain != name and (warn_on_whitespace or plain != spaced):
        logger.warning(
            "Tool name %r has characters that names of functions can't have; the model sees it as %r.", name, made
        )
    return made


def handoff(
    agent,
    tool_name_override=None,
    tool_description_override=None,
    on_handoff=None,
    input_type=None,
    input_filter=None,
    nest_handoff_history=None,
    is_enabled=True,
):
    """A way to an agent."""
    from agents.strict_schema import ensure_strict_json_schema

    adapter, schema = None, {}
    if input_type is not None:
        if on_handoff is None:
            raise UserError("You must provide on_handoff when input_type is provided")
        if not callable(on_handoff):
            raise UserError("on_handoff must be callable")
        if len(inspect.signature(on_handoff).parameters) != 2:
            raise UserError("on_handoff must take two arguments: context and input")
        from pydantic import TypeAdapter

        adapter = TypeAdapter(input_type)
        schema = adapter.json_schema()
    elif on_handoff is not None and len(inspect.signature(on_handoff).parameters) != 1:
        raise UserError("on_handoff must take one argument: context")

    async def invoke(ctx, input_json=None):
        from agents.tool import awaited

        if adapter is not None:
            await awaited(on_handoff(ctx, _checked(adapter, input_json)))
        elif on_handoff is not None:
            await awaited(on_handoff(ctx))
        return agent

    return Handoff(
        tool_name_override or Handoff.default_tool_name(agent),
        tool_description_override or Handoff.default_tool_description(agent),
        ensure_strict_json_schema(schema),
        invoke,
        agent.name,
        input_filter,
        nest_handoff_history,
        is_enabled=is_enabled,
    )


def _checked(adapter, text):
    from pydantic import ValidationError

    if text is None:
        raise ModelBehaviorError("Handoff function expected non-null input, but got None")
    try:
        return adapter.validate_json(text)
    except ValidationError:
        pass
    raise ModelBehaviorError("Invalid JSON when parsing model output")
