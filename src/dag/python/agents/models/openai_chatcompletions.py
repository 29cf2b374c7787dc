"""Models that are asked over the Chat Completions API."""

import time

from agents.exceptions import ModelBehaviorError
from agents.items import ModelResponse
from agents.models import chat_messages
from agents.models.interface import Model, ModelQuery
from agents.models.official import headers, is_official, without_none
from agents.tracing import generation_span, model_span_errors
from agents.usage import of_completion


class OpenAIChatCompletionsModel(Model):
    """A model that is asked over the Chat Completions API."""

    def __init__(
        self,
        model,
        openai_client,
        should_replay_reasoning_content=None,
        strict_feature_validation=False,
        buffer_streamed_tool_calls=False,
    ):
        self.model = model
        self._client = openai_client
        self._strict = strict_feature_validation

    def _supports_default_prompt_cache_key(self):
        return is_official(self._client)

    async def get_response(self, *args, **kwargs):
        """One answer."""
        query = ModelQuery(*args, **kwargs)
        tracing = query.tracing
        with self._span(query) as span, model_span_errors(span, "Error getting response", tracing):
            answer = await self._ask(span, query, False)
            if not answer.choices:
                error = getattr(answer, "error", None)
                told = f": {error}" if error is not None else ""
                raise ModelBehaviorError(
                    f"ChatCompletion response has no choices (possible provider error payload){told}"
                )
            choice = answer.choices[0]
            message = choice.message
            usage = of_completion(answer.usage)
            said = message.content or message.refusal or message.tool_calls
            if choice.finish_reason == "content_filter" and not said:
                message.refusal = "Response withheld by the provider's content filter."
            if tracing.include_data():
                span.span_data.output = [message.model_dump()]
            span.span_data.usage = usage.as_span()
            provider_data = {"model": self.model, "response_id": answer.id}
            items = chat_messages.items(message, provider_data)
            return ModelResponse(items, usage, None, getattr(answer, "_request_id", None))

    async def stream_response(self, *args, **kwargs):
        """One answer, event by event."""
        from agents.models.chat_stream import events

        query = ModelQuery(*args, **kwargs)
        tracing = query.tracing
        with self._span(query) as span, model_span_errors(span, "Error streaming response", tracing):
            stream = await self._ask(span, query, True)
            begun = {
                "id": chat_messages.FAKE_RESPONSES_ID,
                "created_at": time.time(),
                "model": self.model,
                "object": "response",
                "output": [],
                "tool_choice": "auto",
                "tools": [],
                "parallel_tool_calls": False,
            }
            async for event in events(stream, begun, self.model):
                if event.type == "response.completed":
                    if tracing.include_data():
                        span.span_data.output = [event.response.model_dump()]
                    if event.response.usage is not None:
                        from agents.usage import of_answer

                        span.span_data.usage = of_answer(event.response.usage).as_span()
                yield event

    def _span(self, query):
        config = {**query.model_settings.to_traceable_dict(), "base_url": str(self._client.base_url)}
        if not query.tracing.include_data():
            del config["metadata"]
        return generation_span(model=str(self.model), model_config=config, disabled=query.tracing.is_disabled())

    async def _ask(self, span, query, stream):
        settings = query.model_settings
        messages = chat_messages.messages(query.input)
        if query.system_instructions:
            messages.insert(0, {"content": query.system_instructions, "role": "system"})
        if query.tracing.include_data():
            span.span_data.input = messages
        functions = [chat_messages.tool(tool) for tool in query.tools]
        functions += [chat_messages.handoff(one) for one in query.handoffs]
        official = is_official(self._client)
        given = {
            "model": self.model,
            "messages": messages,
            "tools": functions or None,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "frequency_penalty": settings.frequency_penalty,
            "presence_penalty": settings.presence_penalty,
            "max_tokens": settings.max_tokens,
            "tool_choice": chat_messages.tool_choice(settings.tool_choice),
            "response_format": _format(query.output_schema),
            "parallel_tool_calls": settings.parallel_tool_calls if functions else None,
            "stream": stream or None,
            "stream_options": _stream_options(settings, official) if stream else None,
            "store": settings.store if settings.store is not None else (True if official else None),
            "reasoning_effort": settings.reasoning.effort if settings.reasoning is not None else None,
            "verbosity": settings.verbosity,
            "top_logprobs": settings.top_logprobs,
            "logprobs": True if settings.top_logprobs is not None else None,
            "prompt_cache_retention": settings.prompt_cache_retention,
            "prompt_cache_options": settings.prompt_cache_options,
            "metadata": settings.metadata,
        }
        sent = without_none(given, settings.extra_args, "chat.completions.create()")
        sent["extra_headers"] = headers(settings)
        sent["extra_query"] = settings.extra_query
        sent["extra_body"] = settings.extra_body
        return await self._client.chat.completions.create(**sent)


def _format(schema):
    if schema is None or schema.is_plain_text():
        return None
    inside = {"name": "final_output", "strict": schema.is_strict_json_schema(), "schema": schema.json_schema()}
    return {"type": "json_schema", "json_schema": inside}


def _stream_options(settings, official):
    usage = settings.include_usage if settings.include_usage is not None else (True if official else None)
    return None if usage is None else {"include_usage": usage}
