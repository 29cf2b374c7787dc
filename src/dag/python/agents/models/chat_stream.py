"""A streamed answer of the Chat Completions API in the events of the Responses API."""

from agents.models.chat_messages import FAKE_RESPONSES_ID
from openai.objects import built
from openai.types.responses import Response


async def events(stream, begun, model):
    """The events for the chunks of an answer."""
    writer = _Writer(begun, model)
    async for chunk in stream:
        for event in writer.add(chunk):
            yield event
    for event in writer.end():
        yield event


class _Writer:
    def __init__(self, begun, model):
        self.response = begun
        self.model = model
        self.begun = False
        self.sequence = 0
        self.usage = None
        self.provider_data = {"model": model}
        # Text and refusals share a message, at the place of the first of them.
        self.parts = {}
        self.calls = {}
        self.finish = None

    def _event(self, kind, **fields):
        event = built({"type": kind, "sequence_number": self.sequence, **fields})
        self.sequence += 1
        return event

    def add(self, chunk):
        if not self.begun:
            self.begun = True
            yield self._event("response.created", response=dict(self.response))
        if getattr(chunk, "id", None):
            self.provider_data["response_id"] = chunk.id
        if chunk.usage is not None:
            self.usage = chunk.usage
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            delta = choice.delta
            if delta.content:
                yield from self._said("output_text", "text", delta.content)
            if delta.refusal:
                yield from self._said("refusal", "refusal", delta.refusal)
            for call in delta.tool_calls or ():
                yield from self._called(call)

    def _said(self, kind, name, delta):
        if not self.parts:
            yield self._event("response.output_item.added", output_index=0, item=self._message([], "in_progress"))
        place = {"item_id": FAKE_RESPONSES_ID, "output_index": 0}
        if kind not in self.parts:
            self.parts[kind] = (len(self.parts), name, "")
            empty = {"type": kind, name: ""}
            if kind == "output_text":
                empty["annotations"] = []
                empty["logprobs"] = []
            index = self.parts[kind][0]
            yield self._event("response.content_part.added", content_index=index, part=empty, **place)
        index, name, text = self.parts[kind]
        self.parts[kind] = (index, name, text + delta)
        more = {"logprobs": []} if kind == "output_text" else {}
        yield self._event(f"response.{kind}.delta", content_index=index, delta=delta, **place, **more)

    def _called(self, call):
        function = getattr(call, "function", None)
        known = self.calls.get(call.index)
        if known is None:
            known = self.calls[call.index] = {"call_id": "", "name": "", "arguments": "", "told": False}
        if getattr(call, "id", None):
            known["call_id"] = call.id
        if function is not None and getattr(function, "name", None):
            known["name"] += function.name
        delta = (getattr(function, "arguments", None) or "") if function is not None else ""
        known["arguments"] += delta
        place = {"output_index": (1 if self.parts else 0) + list(self.calls).index(call.index)}
        if not known["told"] and known["name"] and known["call_id"]:
            known["told"] = True
            item = {**self._call(known), "arguments": ""}
            yield self._event("response.output_item.added", item=item, **place)
            delta = known["arguments"]
        if known["told"] and delta:
            yield self._event(
                "response.function_call_arguments.delta", item_id=FAKE_RESPONSES_ID, delta=delta, **place
            )

    def _call(self, known):
        return {
            "id": FAKE_RESPONSES_ID,
            "call_id": known["call_id"],
            "name": known["name"],
            "arguments": known["arguments"],
            "type": "function_call",
            "provider_data": dict(self.provider_data),
        }

    def _message(self, content, status):
        return {
            "id": FAKE_RESPONSES_ID,
            "content": content,
            "role": "assistant",
            "type": "message",
            "status": status,
            "provider_data": dict(self.provider_data),
        }

    def end(self):
        if not self.begun:
            self.begun = True
            yield self._event("response.created", response=dict(self.response))
        output = []
        if self.parts:
            content = []
            place = {"item_id": FAKE_RESPONSES_ID, "output_index": 0}
            for kind, (index, name, text) in self.parts.items():
                part = {"type": kind, name: text}
                if kind == "output_text":
                    part["annotations"] = []
                    part["logprobs"] = []
                content.append(part)
                yield self._event("response.content_part.done", content_index=index, part=part, **place)
            message = self._message(content, "completed")
            yield self._event("response.output_item.done", output_index=0, item=message)
            output.append(message)
        for known in self.calls.values():
            item = self._call(known)
            if not known["told"]:
                yield self._event("response.output_item.added", output_index=len(output), item=item)
            yield self._event("response.output_item.done", output_index=len(output), item=item)
            output.append(item)
        whole = {**self.response, "output": output, "usage": _usage(self.usage)}
        made = Response.construct(**whole)
        event = self._event("response.completed")
        event.response = made
        yield event


def _usage(usage):
    if usage is None:
        return None
    from agents.usage import of_completion

    counted = of_completion(usage).as_span()
    del counted["requests"]
    return counted
