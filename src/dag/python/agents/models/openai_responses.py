"""Models that are asked over the Responses API."""

from agents.exceptions import UserError
from agents.items import ItemHelpers, ModelResponse
from agents.models.chat_messages import FAKE_RESPONSES_ID
from agents.models.interface import Model, ModelQuery
from agents.models.official import headers, is_official, without_none
from agents.tool import HOSTED, FunctionTool
from agents.tracing import SpanError, response_span
from agents.usage import Usage, of_answer

# Tools of the provider that can be asked for by name.
_NAMED = (
    "file_search",
    "web_search",
    "web_search_preview",
    "computer_use_preview",
    "image_generation",
    "code_interpreter",
    "mcp",
)


class OpenAIResponsesModel(Model):
    """A model that is asked over the Responses API."""

    def __init__(self, model, openai_client, *, model_is_explicit=True):
        self.model = model
        self._client = openai_client

    def _supports_default_prompt_cache_key(self):
        return is_official(self._client)

    async def get_response(self, *args, **kwargs):
        """One answer."""
        query = ModelQuery(*args, **kwargs)
        tracing = query.tracing
        with response_span(disabled=tracing.is_disabled()) as span:
            try:
                answer = await self._ask(query, False)
                usage = Usage() if answer.usage is None else of_answer(answer.usage)
                if answer.usage is not None:
                    span.span_data.usage = usage.as_span()
                if tracing.include_data():
                    span.span_data.response = answer
                    span.span_data.input = query.input
            except Exception as error:
                _failed(span, "Error getting response", error, tracing)
                raise
        return ModelResponse(answer.output, usage, answer.id, getattr(answer, "_request_id", None))

    async def stream_response(self, *args, **kwargs):
        """One answer, event by event."""
        query = ModelQuery(*args, **kwargs)
        tracing = query.tracing
        with response_span(disabled=tracing.is_disabled()) as span:
            try:
                stream = await self._ask(query, True)
                async for event in stream:
                    if event.type == "response.completed":
                        if event.response.usage is not None:
                            span.span_data.usage = of_answer(event.response.usage).as_span()
                        if tracing.include_data():
                            span.span_data.response = event.response
                            span.span_data.input = query.input
                    yield event
            except Exception as error:
                _failed(span, "Error streaming response", error, tracing)
                raise

    async def _ask(self, query, stream):
        settings, tools = query.model_settings, query.tools
        includes = list(settings.response_include or ())
        for tool in tools:
            if getattr(tool, "include_search_results", False):
                includes.append("file_search_call.results")
        if settings.top_logprobs is not None:
            includes.append("message.output_text.logprobs")
        parallel = settings.parallel_tool_calls
        text = _format(query.output_schema)
        if settings.verbosity is not None:
            text = {**(text or {}), "verbosity": settings.verbosity}
        given = {
            "previous_response_id": query.previous_response_id,
            "conversation": query.conversation_id,
            "instructions": query.system_instructions,
            "model": self.model,
            "input": _without_fakes(ItemHelpers.input_to_new_input_list(query.input)),
            "include": list(dict.fromkeys(includes)),
            "tools": [_tool(tool) for tool in tools] + [_handoff(one) for one in query.handoffs],
            "prompt": query.prompt,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "truncation": settings.truncation,
            "max_output_tokens": settings.max_tokens,
            "tool_choice": _tool_choice(settings.tool_choice),
            "parallel_tool_calls": parallel if tools or parallel is False else None,
            "stream": stream or None,
            "text": text,
            "store": settings.store,
            "prompt_cache_retention": settings.prompt_cache_retention,
            "prompt_cache_options": settings.prompt_cache_options,
            "reasoning": settings.reasoning,
            "metadata": settings.metadata,
            "context_management": settings.context_management,
            "top_logprobs": settings.top_logprobs,
        }
        sent = without_none(given, settings.extra_args, "responses.create()")
        sent["extra_headers"] = headers(settings)
        sent["extra_query"] = settings.extra_query
        sent["extra_body"] = settings.extra_body
        return await self._client.responses.create(**sent)


def _failed(span, message, error, tracing):
    shown = str(error) if tracing.include_data() else "Error details are redacted."
    span.set_error(SpanError(message=message, data={"error": shown}))


def _without_fakes(items):
    """Items without what another API put into them."""
    kept = []
    for item in items:
        if item.get("type") == "reasoning" and item.get("provider_data"):
            continue
        item = {name: value for name, value in item.items() if name != "provider_data"}
        if item.get("id") == FAKE_RESPONSES_ID:
            del item["id"]
        kept.append(item)
    return kept


def _format(schema):
    if schema is None or schema.is_plain_text():
        return None
    inside = {"type": "json_schema", "name": "final_output", "schema": schema.json_schema()}
    return {"format": {**inside, "strict": schema.is_strict_json_schema()}}


def _tool(tool):
    if isinstance(tool, FunctionTool):
        return _function(tool.name, tool.params_json_schema, tool.strict_json_schema, tool.description)
    if isinstance(tool, HOSTED):
        return tool._sent()
    raise UserError(f"Unknown tool type: {type(tool)}, tool")


def _handoff(one):
    return _function(one.tool_name, one.input_json_schema, one.strict_json_schema, one.tool_description)


def _function(name, parameters, strict, description):
    return {"name": name, "parameters": parameters, "strict": strict, "type": "function", "description": description}


def _tool_choice(choice):
    from agents.model_settings import MCPToolChoice

    if isinstance(choice, MCPToolChoice):
        return {"server_label": choice.server_label, "type": "mcp", "name": choice.name}
    if choice is None or choice in ("auto", "required", "none"):
        return choice
    if choice in _NAMED:
        return {"type": choice}
    return {"type": "function", "name": choice}
