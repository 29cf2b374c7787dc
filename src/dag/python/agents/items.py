"""What a run is made of: what the model said, what it called, and what came of it."""

from agents.exceptions import AgentsException, ModelBehaviorError
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal, ResponseOutputText
from updraft_record import REQUIRED, Record

# What the server says about an item, and may not be told.
_ONLY_OUTPUT = ("created_by",)


def input_item(raw):
    """An item of an answer as an item of the next request."""
    if isinstance(raw, dict):
        return dict(raw)
    item = raw.model_dump(exclude_unset=True)
    for name in _ONLY_OUTPUT:
        item.pop(name, None)
    return item


class RunItemBase(Record):
    """Something that happened in a run."""

    _positional = {"agent": REQUIRED, "raw_item": REQUIRED}
    type = ""

    def __class_getitem__(cls, item):
        return cls

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def to_input_item(self):
        """As an item of the next request."""
        return input_item(self.raw_item)

    def release_agent(self):
        """Nothing is to be released."""


class InputItem(RunItemBase):
    """Something that was said to the model."""

    type = "input_item"


class MessageOutputItem(RunItemBase):
    """The model said something."""

    type = "message_output_item"


class HandoffCallItem(RunItemBase):
    """The model hands over."""

    type = "handoff_call_item"


class HandoffOutputItem(RunItemBase):
    """Another agent has taken over."""

    _positional = {**RunItemBase._positional, "source_agent": REQUIRED, "target_agent": REQUIRED}
    type = "handoff_output_item"


class ToolCallItem(RunItemBase):
    """The model calls a tool."""

    _keyword = {"description": None, "title": None}
    type = "tool_call_item"

    @property
    def tool_name(self):
        """The tool's name."""
        return _of(self.raw_item, "name")

    @property
    def call_id(self):
        """The call's id."""
        return _of(self.raw_item, "call_id") or _of(self.raw_item, "id")


class ToolCallOutputItem(RunItemBase):
    """What a tool gave."""

    _positional = {**RunItemBase._positional, "output": REQUIRED}
    _keyword = {"custom_data": None}
    type = "tool_call_output_item"

    @property
    def call_id(self):
        """The call's id."""
        return _of(self.raw_item, "call_id")


class ReasoningItem(RunItemBase):
    """The model has thought."""

    type = "reasoning_item"


class MCPListToolsItem(RunItemBase):
    """The provider has listed the tools of an MCP server."""

    type = "mcp_list_tools_item"


class MCPApprovalRequestItem(RunItemBase):
    """The provider wants a call of an MCP server's tool approved."""

    type = "mcp_approval_request_item"


class MCPApprovalResponseItem(RunItemBase):
    """A call of an MCP server's tool was approved, or was not."""

    type = "mcp_approval_response_item"


class CompactionItem(RunItemBase):
    """The provider has shortened the conversation."""

    type = "compaction_item"


class ToolApprovalItem(RunItemBase):
    """A call that waits for approval."""

    _positional = {**RunItemBase._positional, "tool_name": None}
    type = "tool_approval_item"

    @property
    def name(self):
        """The tool's name."""
        return self.tool_name or _of(self.raw_item, "name")

    qualified_name = name

    @property
    def arguments(self):
        """The arguments as the model wrote them."""
        return _of(self.raw_item, "arguments")

    @property
    def call_id(self):
        """The call's id."""
        return _of(self.raw_item, "call_id") or _of(self.raw_item, "id")

    def to_input_item(self):
        """It is no item of a request."""
        raise AgentsException(
            "ToolApprovalItem cannot be converted to an input item. These items should be filtered out before preparing "
            "input for the API."
        )


RunItem = RunItemBase
TResponseInputItem = dict
TResponseOutputItem = object
TResponseStreamEvent = object


def _of(raw, name):
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)


class ModelResponse(Record):
    """An answer of the model."""

    _positional = {"output": REQUIRED, "usage": REQUIRED, "response_id": REQUIRED, "request_id": None, "raw_usage": None}

    def to_input_items(self):
        """The answer as items of the next request."""
        return [input_item(item) for item in self.output]


def input_items(items):
    """Items of a run as items of the next request."""
    return [item.to_input_item() for item in items if item.type != "tool_approval_item"]


class ItemHelpers:
    """What is often asked of items."""

    @classmethod
    def extract_last_content(cls, message):
        """The last text of a message, or its refusal."""
        if not isinstance(message, ResponseOutputMessage) or not message.content:
            return ""
        last = message.content[-1]
        if isinstance(last, ResponseOutputText):
            return last.text or ""
        if isinstance(last, ResponseOutputRefusal):
            return last.refusal
        raise ModelBehaviorError(f"Unexpected content type: {type(last)}")

    @classmethod
    def extract_last_text(cls, message):
        """The last text of a message, if it ends with one."""
        if isinstance(message, ResponseOutputMessage) and message.content:
            last = message.content[-1]
            if isinstance(last, ResponseOutputText):
                return last.text
        return None

    @classmethod
    def extract_text(cls, message):
        """All text of a message; None when it has none."""
        return _joined(message, ResponseOutputText, "text")

    @classmethod
    def extract_refusal(cls, message):
        """What a message says in refusing; None when it does not."""
        return _joined(message, ResponseOutputRefusal, "refusal")

    @classmethod
    def input_to_new_input_list(cls, input):
        """What was said to the model, as items."""
        if isinstance(input, str):
            return [{"content": input, "role": "user"}]
        return [dict(item) if isinstance(item, dict) else input_item(item) for item in input]

    @classmethod
    def text_message_outputs(cls, items):
        """All text that was said in a run."""
        return "".join(cls.text_message_output(item) for item in items if item.type == "message_output_item")

    @classmethod
    def text_message_output(cls, message):
        """All text of an item."""
        return _joined(message.raw_item, ResponseOutputText, "text") or ""

    @classmethod
    def tool_call_output_item(cls, tool_call, output, **kwargs):
        """What a tool gave, as an item of the next request."""
        return {"call_id": tool_call.call_id, "output": tool_output(output), "type": "function_call_output"}


def _joined(message, kind, name):
    if not isinstance(message, ResponseOutputMessage):
        return None
    return "".join(getattr(part, name) or "" for part in message.content if isinstance(part, kind)) or None


def tool_output(output):
    """What a tool gave as the model sees it: text, or parts of text, pictures and files."""
    if isinstance(output, str):
        return output
    several = isinstance(output, (list, tuple))
    parts = [_part(one) for one in (output if several else [output])]
    if parts and all(part is not None for part in parts):
        return parts
    return str(output)


def _part(value):
    from agents.tool import ToolOutputFileContent, ToolOutputImage, ToolOutputText

    kinds = {"text": ToolOutputText, "image": ToolOutputImage, "file": ToolOutputFileContent}
    if isinstance(value, dict):
        cls = kinds.get(value.get("type"))
        try:
            value = cls(**{name: item for name, item in value.items() if name in cls._keyword}) if cls else None
        except TypeError:
            value = None
    if isinstance(value, ToolOutputText):
        return {"type": "input_text", "text": value.text}
    for cls in (ToolOutputImage, ToolOutputFileContent):
        if isinstance(value, cls):
            given = {name: getattr(value, name) for name in cls._keyword if name != "type"}
            return {"type": f"input_{value.type}", **{name: one for name, one in given.items() if one is not None}}
    return None
