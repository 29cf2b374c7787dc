"""Filters of what the next agent sees."""

from agents.handoffs.history import default_handoff_history_mapper, nest_handoff_history

__all__ = ["default_handoff_history_mapper", "nest_handoff_history", "remove_all_tools"]

_TOOL_ITEMS = (
    "handoff_call_item",
    "handoff_output_item",
    "tool_call_item",
    "tool_call_output_item",
    "reasoning_item",
    "mcp_list_tools_item",
    "mcp_approval_request_item",
    "mcp_approval_response_item",
    "tool_approval_item",
)


def remove_all_tools(handoff_input_data):
    """Calls of tools and their results are left out."""
    data = handoff_input_data
    history = data.input_history
    if isinstance(history, tuple):
        history = tuple(item for item in history if not _is_tool_input(item))
    return data.clone(
        input_history=history,
        pre_handoff_items=_without_tools(data.pre_handoff_items),
        new_items=_without_tools(data.new_items),
        input_items=None if data.input_items is None else _without_tools(data.input_items),
    )


def _is_tool_input(item):
    kind = item.get("type") or ""
    return kind.endswith(("_call", "_call_output", "_list_tools", "_approval_request", "_approval_response")) or kind in (
        "reasoning",
        "tool_search_output",
        "program",
        "program_output",
    )


def _without_tools(items):
    return tuple(item for item in items if item.type not in _TOOL_ITEMS)
