"""Items of a run in the words of the Chat Completions API, and its answers as items."""

import json
import logging

from agents.exceptions import AgentsException, UserError
from agents.tool import FunctionTool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.objects import built

# What this API gives has no ids of its own.
FAKE_RESPONSES_ID = "__fake_id__"

_EASY_KEYS = {"content", "role", "type", "phase"}

logger = logging.getLogger("openai.agents")


def messages(items):
    """The messages for items of a run."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    writer = _Writer()
    for item in items:
        writer.add(item)
    writer.flush()
    return writer.messages


class _Writer:
    def __init__(self):
        self.messages = []
        # What the model said last, which calls may still be added to.
        self.said = None

    def flush(self):
        if self.said is not None:
            if not self.said["tool_calls"]:
                del self.said["tool_calls"]
            self.messages.append(self.said)
            self.said = None

    def _calls(self):
        if self.said is None:
            self.said = {"role": "assistant", "content": None, "tool_calls": []}
        return self.said["tool_calls"]

    def add(self, item):
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict):
            raise UserError(f"Unhandled item type or structure: {item}")
        role = item.get("role")
        if _is_easy(item) or kind == "message" and role in ("user", "system", "developer"):
            self.flush()
            content = item["content"]
            self.messages.append({"role": role, "content": parts(content) if role == "user" else _texts(content)})
        elif kind == "message" and role == "assistant" and "content" in item:
            self.flush()
            self.said = _assistant(item)
        elif kind == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"] or "{}"}
            self._calls().append({"id": item["call_id"], "type": "function", "function": function})
        elif kind == "file_search_call":
            arguments = json.dumps({"queries": item.get("queries", []), "status": item.get("status")})
            function = {"name": "file_search_call", "arguments": arguments}
            self._calls().append({"id": item["id"], "type": "function", "function": function})
        elif kind == "function_call_output":
            self.flush()
            content = _tool_content(item["output"])
            self.messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": content})
        elif kind == "reasoning":
            # This API takes no thoughts.
            pass
        elif kind == "item_reference":
            raise UserError(f"Encountered an item_reference, which is not supported: {item}")
        elif kind == "compaction":
            raise UserError(
                "Compaction items are not supported for chat completions. Please use the Responses API to handle "
                "compaction."
            )
        else:
            raise UserError(f"Unhandled item type or structure: {item}")


def _is_easy(item):
    return (
        {"content", "role"} <= set(item) <= _EASY_KEYS
        and item.get("type", "message") == "message"
        and item["role"] in ("user", "assistant", "system", "developer")
    )


def _assistant(item):
    said = {"role": "assistant"}
    texts = []
    for part in item["content"]:
        if part["type"] == "output_text":
            texts.append(part["text"])
        elif part["type"] == "refusal":
            said["refusal"] = part["refusal"]
        elif part["type"] == "output_audio":
            raise UserError(f"Only audio IDs are supported for chat completions, but got: {part}")
        else:
            raise UserError(f"Unknown content type in ResponseOutputMessage: {part}")
    if texts:
        said["content"] = "\n".join(texts)
    said["tool_calls"] = []
    return said


def _tool_content(output):
    content = parts(output)
    if isinstance(content, str):
        return content
    content = [part for part in content if part.get("type") == "text"]
    if not content:
        logger.warning("A tool gave nothing but pictures or files, which the Chat Completions API does not take.")
    return content or "[tool output omitted]"


def _texts(content):
    content = parts(content)
    if isinstance(content, str):
        return content
    return [part for part in content if part.get("type") == "text"]


def parts(content):
    """The parts of what was said."""
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part):
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("input_text", "text"):
        return {"type": "text", "text": part["text"]}
    if kind == "image_url":
        return {"type": "image_url", "image_url": {"url": part["image_url"]["url"],
                                                   "detail": part["image_url"].get("detail", "auto")}}
    if kind == "input_image":
        if not part.get("image_url"):
            raise UserError(f"Only image URLs are supported for input_image {part}")
        detail = part.get("detail", "auto")
        return {
            "type": "image_url",
            "image_url": {"url": part["image_url"], "detail": "high" if detail == "original" else detail},
        }
    if kind == "input_audio":
        audio = part.get("input_audio")
        if not isinstance(audio, dict) or not audio.get("data") or not audio.get("format"):
            raise UserError(f"input_audio requires both data and format {part}")
        return {"type": "input_audio", "input_audio": {"data": audio["data"], "format": audio["format"]}}
    if kind == "input_file":
        file = {name: part[name] for name in ("file_data", "file_id", "filename") if part.get(name)}
        if "file_data" in file:
            file.pop("file_id", None)
        elif "file_id" not in file:
            raise UserError(f"Only file_data or file_id is supported for input_file {part}")
        return {"type": "file", "file": file}
    raise UserError(f"Unknown content: {part}")


def items(message, provider_data):
    """What a message of the model holds, as items of a run."""
    made = []
    beside = {"provider_data": provider_data} if provider_data else {}
    thought = getattr(message, "reasoning_content", None)
    if thought:
        summary = [{"text": thought, "type": "summary_text"}]
        fields = {"id": FAKE_RESPONSES_ID, "summary": summary, "type": "reasoning", **beside}
        made.append(ResponseReasoningItem.construct(**fields))
    if message.audio:
        raise AgentsException("Audio is not currently supported")
    content = []
    if message.content:
        cited = [_citation(one) for one in message.annotations or () if getattr(one, "type", None) == "url_citation"]
        content.append(ResponseOutputText(text=message.content, type="output_text", annotations=cited, logprobs=[]))
    if message.refusal:
        content.append(ResponseOutputRefusal(refusal=message.refusal, type="refusal"))
    if content:
        fields = {"id": FAKE_RESPONSES_ID, "content": content, "role": "assistant", "type": "message"}
        made.append(ResponseOutputMessage(**fields, status="completed", **beside))
    for call in message.tool_calls or ():
        if call.type == "function":
            fields = {"id": FAKE_RESPONSES_ID, "call_id": call.id, "arguments": call.function.arguments}
            made.append(
                ResponseFunctionToolCall(**fields, name=call.function.name, type="function_call", **beside)
            )
    return made


def _citation(annotation):
    cited = annotation.url_citation
    fields = {name: getattr(cited, name) for name in ("start_index", "end_index", "url", "title")}
    return built({"type": "url_citation", **fields})


def tool(one):
    """A tool as this API is told of it."""
    if not isinstance(one, FunctionTool):
        raise UserError(
            f"Hosted tools are not supported with the ChatCompletions API. Got tool type: {type(one)}, tool: {one}"
        )
    function = {"name": one.name, "description": one.description or "", "parameters": one.params_json_schema}
    return {"type": "function", "function": {**function, "strict": one.strict_json_schema}}


def handoff(one):
    """A way to another agent as this API is told of it."""
    function = {"name": one.tool_name, "description": one.tool_description, "parameters": one.input_json_schema}
    return {"type": "function", "function": {**function, "strict": one.strict_json_schema}}


def tool_choice(choice):
    """Which tool is to be called."""
    from agents.model_settings import MCPToolChoice

    if isinstance(choice, MCPToolChoice):
        raise UserError("MCPToolChoice is not supported for Chat Completions models")
    if choice is None or choice in ("auto", "required", "none"):
        return choice
    return {"type": "function", "function": {"name": choice}}
