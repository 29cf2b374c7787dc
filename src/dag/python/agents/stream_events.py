"""What is told of a run while it goes on."""

from updraft_record import REQUIRED, Record


class RawResponsesStreamEvent(Record):
    """An event of the model's answer, as it came."""

    _positional = {"data": REQUIRED, "type": "raw_response_event"}


class RunItemStreamEvent(Record):
    """Something has happened in the run."""

    _positional = {"name": REQUIRED, "item": REQUIRED, "type": "run_item_stream_event"}


class AgentUpdatedStreamEvent(Record):
    """An agent begins, or has taken over."""

    _positional = {"new_agent": REQUIRED, "type": "agent_updated_stream_event"}


StreamEvent = object

# The misspelt one is the SDK's.
_NAMES = {
    "message_output_item": "message_output_created",
    "handoff_call_item": "handoff_requested",
    "handoff_output_item": "handoff_occured",
    "tool_call_item": "tool_called",
    "tool_call_output_item": "tool_output",
    "reasoning_item": "reasoning_item_created",
    "mcp_list_tools_item": "mcp_list_tools",
    "mcp_approval_request_item": "mcp_approval_requested",
    "mcp_approval_response_item": "mcp_approval_response",
}


def of_item(item):
    """The event of an item; None of one that is not told of."""
    name = _NAMES.get(item.type)
    return None if name is None else RunItemStreamEvent(name, item)
