"""A conversation told to the next agent in one message."""

import json

_PREAMBLE = "For context, here is the conversation so far between the user and the previous agent:"
_MARKERS = ("<CONVERSATION HISTORY>", "</CONVERSATION HISTORY>")
_SUMMED_UP = ("function_call", "function_call_output", "reasoning")

_markers = list(_MARKERS)


def set_conversation_history_wrappers(*, start=None, end=None):
    """What stands before and after the conversation."""
    _markers[:] = [_markers[0] if start is None else start, _markers[1] if end is None else end]


def reset_conversation_history_wrappers():
    """As it was."""
    _markers[:] = _MARKERS


def get_conversation_history_wrappers():
    """What stands before and after the conversation."""
    return tuple(_markers)


def default_handoff_history_mapper(transcript):
    """One message that tells of the conversation."""
    lines = [f"{number}. {_line(item)}" for number, item in enumerate(transcript, 1)]
    lines = lines or ["(no previous turns recorded)"]
    return [{"role": "assistant", "content": "\n".join([_PREAMBLE, _markers[0], *lines, _markers[1]])}]


def _line(item):
    content = item.get("content")
    if isinstance(item.get("role"), str) and (content is None or isinstance(content, str) and "\n" not in content):
        name = f" ({item['name']})" if item.get("name") else ""
        return f"{item['role']}{name}: {content or ''}"
    return json.dumps({k: v for k, v in item.items() if k != "provider_data"}, ensure_ascii=False, default=str)


def nest_handoff_history(handoff_input_data, *, history_mapper=None):
    """What the next agent sees: the conversation in one message, and after it what can't be told so."""
    data = handoff_input_data
    begun = data.input_history
    begun = [{"role": "user", "content": begun}] if isinstance(begun, str) else list(begun)
    pending = []
    for item in begun:
        told = _told_before(item)
        pending.extend([item] if told is None else told)
    plain = [(item.to_input_item(), False) for item in data.pre_handoff_items if item.type != "tool_approval_item"]
    plain += [(item.to_input_item(), True) for item in data.new_items if item.type != "tool_approval_item"]
    if history_mapper is not None:
        history = history_mapper(pending + [item for item, _ in plain])
    else:
        history = []
        for item, is_new in plain:
            if _is_summed_up(item, is_new):
                pending.append(item)
                continue
            if pending or not history:
                history.extend(default_handoff_history_mapper(pending))
                pending = []
            history.append(item)
        if pending or not history:
            history.extend(default_handoff_history_mapper(pending))
    return data.clone(input_history=tuple(history), pre_handoff_items=(), input_items=())


def _is_summed_up(item, is_new):
    role = item.get("role")
    if is_new and role:
        return False
    return role == "assistant" and not is_new or item.get("type") in _SUMMED_UP


def _told_before(item):
    """The conversation that an earlier message tells of; None of any other message."""
    content = item.get("content")
    head = f"{_PREAMBLE}\n{_markers[0]}\n"
    if item.get("role") != "assistant" or not isinstance(content, str) or not content.startswith(head):
        return None
    told = []
    for line in content[len(head) :].removesuffix(f"\n{_markers[1]}").split("\n"):
        number, dot, rest = line.partition(". ")
        if not dot or not number.isdigit():
            continue
        try:
            told.append(json.loads(rest))
        except ValueError:
            role, _, said = rest.partition(": ")
            told.append({"role": role, "content": said})
    return told
