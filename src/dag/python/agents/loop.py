"""The loop of a run: ask the model, do what it asks for, ask again."""

import asyncio
import uuid

import agents.agent_output as agent_output
import agents.tracing as tracing
from agents.exceptions import (
    AgentsException,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    OutputGuardrailTripwireTriggered,
    RunErrorDetails,
    UserError,
)
from agents.guardrails import check_input, check_output
from agents.items import ItemHelpers, MessageOutputItem, ModelResponse, input_items
from agents.lifecycle import RunHooks
from agents.result import RunResult, RunResultStreaming
from agents.run_config import CallModelData, ModelInputData, RunConfig
from agents.run_context import AgentHookContext, RunContextWrapper
from agents.run_state import RunState
from agents.stream_events import AgentUpdatedStreamEvent, RawResponsesStreamEvent, of_item
from agents.tool import awaited, is_on
from agents.turn import Turn
from agents.usage import Usage, of_answer

# What an agent's span need not tell of: other spans do.
_TOLD_ELSEWHERE = (ModelBehaviorError, InputGuardrailTripwireTriggered, OutputGuardrailTripwireTriggered)


class Run:
    """One run: where it stands, and how it goes on."""

    def __init__(
        self,
        agent,
        input,
        *,
        context=None,
        max_turns=None,
        hooks=None,
        run_config=None,
        error_handlers=None,
        previous_response_id=None,
        auto_previous_response_id=False,
        conversation_id=None,
        session=None,
    ):
        if isinstance(run_config, dict):
            run_config = RunConfig(**run_config)
        if hooks is not None and not isinstance(hooks, RunHooks):
            raise TypeError(f"Run hooks must be instances of RunHooks. Received {type(hooks).__name__}.")
        self.agent = agent
        self.starting_agent = agent
        self.max_turns = max_turns
        self.hooks = hooks or RunHooks()
        self.config = run_config or RunConfig()
        self.error_handlers = error_handlers or {}
        self.previous_response_id = previous_response_id
        self.chained = auto_previous_response_id or previous_response_id is not None
        self.conversation_id = conversation_id
        self.session = session
        self.turns = 0
        # What the model is told of: what the run began with, and what came since, as a handoff may have filtered it.
        self.input = input
        self.items = []
        # All that came since.
        self.new_items = []
        self.responses = []
        self.guardrail_results = {name: [] for name in ("input", "output", "tool_input", "tool_output")}
        # Names of the tools that each agent has used.
        self.used = {}
        self.resumed = None
        self.filtered = False
        self.stream = None
        # Items of a conversation that the server keeps: from here on they are new to it.
        self.sent = 0
        self.cache_key = None
        self.trace_id = None
        if isinstance(input, RunState):
            self._take_up(input)
        else:
            self.ctx = _context(context)
            self.given = input
        self.tell_start = self.resumed is None

    def _take_up(self, state):
        before = state._result._run
        for name in ("input", "given", "items", "new_items", "responses", "used", "turns", "ctx", "filtered", "sent", "trace_id"):
            setattr(self, name, getattr(before, name))
        self.items, self.new_items, self.responses = list(self.items), list(self.new_items), list(self.responses)
        self.agent = before.agent
        self.session = self.session or before.session
        self.resumed = before.pending

    # From outside -----------------------------------------------------------------------------------------------

    async def go(self):
        """Runs to the answer."""
        if tracing.get_current_trace() is not None:
            return await self._traced()
        config = self.config
        trace_id = config.trace_id if self.resumed is None else self.trace_id
        trace = tracing.trace(
            config.workflow_name, trace_id, config.group_id, config.trace_metadata, None, config.tracing_disabled
        )
        trace.goes_on = self.resumed is not None
        self.trace_id = trace.trace_id
        with trace:
            return await self._traced()

    def streamed(self):
        """Begins, and gives what the events are read from."""
        self.stream = RunResultStreaming(
            **{**self._values(None), "current_agent": self.agent, "current_turn": 0, "max_turns": self.max_turns}
        )
        self.stream._events = asyncio.Queue()
        self.stream._task = asyncio.ensure_future(self._stream())
        return self.stream

    async def _stream(self):
        try:
            result = await self.go()
            self.stream.__dict__.update(self._values(result.final_output, result.interruptions))
        finally:
            self.stream._events.put_nowait(None)

    def _tell(self, event):
        if self.stream is not None and event is not None:
            self.stream._events.put_nowait(event)

    def tell_item(self, item):
        """Tells who reads the stream of an item."""
        self._tell(of_item(item))

    def _values(self, final_output, interruptions=()):
        return {
            "input": self.given,
            "new_items": self.new_items,
            "raw_responses": self.responses,
            "final_output": final_output,
            "input_guardrail_results": self.guardrail_results["input"],
            "output_guardrail_results": self.guardrail_results["output"],
            "tool_input_guardrail_results": self.guardrail_results["tool_input"],
            "tool_output_guardrail_results": self.guardrail_results["tool_output"],
            "context_wrapper": self.ctx,
            "interruptions": list(interruptions),
            "max_turns": self.max_turns,
            "_last_agent": self.agent,
            "_original_input": self.input,
            "_model_items": self.items if self.filtered else None,
            "_run": self,
        }

    # The loop ---------------------------------------------------------------------------------------------------

    async def _traced(self):
        before = self.ctx.usage.as_span()
        is_told = self.config.tracing is None or self.config.tracing.get("include_task_and_turn_spans", True)
        task = tracing.task_span(self.config.workflow_name, disabled=not is_told)
        if is_told:
            task.start(mark_as_current=True)
        self.span = None
        try:
            await self._begin_session()
            return await self._loop(is_told)
        except Exception as error:
            if isinstance(error, AgentsException):
                error.run_data = self._error_details()
            if self.span is not None and self.span.error is None and not isinstance(error, _TOLD_ELSEWHERE):
                told = str(error) if self.config.trace_include_sensitive_data else "Error details are redacted."
                self.span.set_error(tracing.SpanError(message="Error in agent run", data={"error": told}))
            raise
        finally:
            if self.span is not None:
                self.span.finish(reset_current=True)
            if is_told:
                task.span_data.usage = _task_usage(self.ctx.usage.since(before))
                task.finish(reset_current=True)

    def _error_details(self):
        return RunErrorDetails(
            input=self.input,
            new_items=self.new_items,
            raw_responses=self.responses,
            last_agent=self.agent,
            context_wrapper=self.ctx,
            input_guardrail_results=self.guardrail_results["input"],
            output_guardrail_results=self.guardrail_results["output"],
            tool_input_guardrail_results=self.guardrail_results["tool_input"],
            tool_output_guardrail_results=self.guardrail_results["tool_output"],
        )

    async def _loop(self, is_told):
        self._tell(AgentUpdatedStreamEvent(self.agent))
        while True:
            if self.span is None:
                schema = agent_output.of_agent(self.agent)
                output = schema.name() if schema is not None else "str"
                self.span = tracing.agent_span(self.agent.name, [], [], output)
                self.span.start(mark_as_current=True)
            if self.resumed is None:
                self.turns += 1
                if self.stream is not None:
                    self.stream.current_turn = self.turns
                if self.max_turns is not None and self.turns > self.max_turns:
                    return await self._too_many_turns()
            before = self.ctx.usage.as_span()
            # What goes on is in the turn that it began in.
            has_span = is_told and self.resumed is None
            span = tracing.turn_span(self.turns, self.agent.name, disabled=not has_span)
            if has_span:
                span.start(mark_as_current=True)
            try:
                turn = await self._turn_with_checks()
            finally:
                if has_span:
                    span.span_data.usage = _turn_usage(self.ctx.usage.since(before))
                    span.finish(reset_current=True)
            self.tell_start = False
            ended = await self._after(turn)
            if ended is not None:
                return ended

    async def _turn_with_checks(self):
        if self.resumed is not None:
            pending, self.resumed = self.resumed, None
            return await pending.go_on(self)
        if self.turns > 1:
            return await self._turn()
        agent = self.starting_agent
        checks = agent.input_guardrails + list(self.config.input_guardrails or ())
        first = [check for check in checks if not check.run_in_parallel]
        beside = [check for check in checks if check.run_in_parallel]
        given = self.input if isinstance(self.input, str) else list(self.input)
        found = self.guardrail_results["input"]
        await check_input(first, agent, given, self.ctx, found)
        if not beside:
            return await self._turn()
        checking = asyncio.ensure_future(check_input(beside, agent, given, self.ctx, found))
        turning = asyncio.ensure_future(self._turn(yielding=True))
        try:
            await checking
            return await turning
        finally:
            for task in (checking, turning):
                if not task.done():
                    task.cancel()
            await asyncio.gather(checking, turning, return_exceptions=True)

    async def _turn(self, yielding=False):
        if yielding:
            # What is checked beside this turn begins before it, and may end it before anything is asked.
            for _ in range(4):
                await asyncio.sleep(0)
        agent, ctx = self.agent, self.ctx
        ctx.turn_input = ItemHelpers.input_to_new_input_list(self.input)
        if self.tell_start:
            told = AgentHookContext(ctx.context, ctx.usage, ctx.turn_input)._shared(ctx)
            await self.hooks.on_agent_start(told, agent)
            if agent.hooks is not None:
                await agent.hooks.on_start(told, agent)
        tools = await agent.get_all_tools(ctx)
        instructions = await agent.get_system_prompt(ctx)
        handoffs = await _handoffs(agent, ctx)
        self.span.span_data.handoffs = [one.agent_name for one in handoffs]
        self.span.span_data.tools = [tool.name for tool in tools]
        schema = agent_output.of_agent(agent)
        response = await self._ask(agent, instructions, tools, handoffs, schema)
        turn = Turn(self, agent, response, tools, handoffs, schema)
        turn.read()
        if agent.hooks is not None:
            await agent.hooks.on_llm_end(ctx, agent, response)
        await self.hooks.on_llm_end(ctx, agent, response)
        return await turn.act()

    async def _ask(self, agent, instructions, tools, handoffs, schema):
        ctx, config = self.ctx, self.config
        told = self._model_input()
        if config.call_model_input_filter is not None:
            data = ModelInputData(told, instructions)
            data = await awaited(config.call_model_input_filter(CallModelData(data, agent, ctx.context)))
            if not isinstance(data, ModelInputData):
                raise UserError("call_model_input_filter must return a ModelInputData instance")
            told, instructions = data.input, data.instructions
        settings = agent.model_settings.resolve(config.model_settings)
        if agent.reset_tool_choice and self.used.get(id(agent)):
            settings = _with(settings, tool_choice=None)
        model = self._model(agent)
        settings = self._with_cache_key(model, settings)
        await self.hooks.on_llm_start(ctx, agent, instructions, told)
        if agent.hooks is not None:
            await agent.hooks.on_llm_start(ctx, agent, instructions, told)
        arguments = (instructions, told, settings, tools, schema, handoffs, self._model_tracing())
        kept = {
            "previous_response_id": self.previous_response_id,
            "conversation_id": self.conversation_id,
            "prompt": await _prompt(agent, ctx),
        }
        if self.stream is None:
            response = await model.get_response(*arguments, **kept)
        else:
            response = await self._read_stream(model.stream_response(*arguments, **kept))
        ctx.usage.add(response.usage)
        if self.chained and response.response_id is not None:
            self.previous_response_id = response.response_id
        self.responses.append(response)
        return response

    async def _read_stream(self, events):
        from agents.exceptions import ModelBehaviorError

        final = None
        async for event in events:
            self._tell(RawResponsesStreamEvent(event))
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                final = event.response
        if final is None:
            raise ModelBehaviorError("Model did not produce a final response!")
        usage = Usage(requests=1) if final.usage is None else of_answer(final.usage)
        return ModelResponse(final.output, usage, final.id)

    def _model_input(self):
        begun = ItemHelpers.input_to_new_input_list(self.input)
        if self.conversation_id is None and not (self.chained and self.responses):
            return begun + input_items(self.items)
        # The server has what it was told, and what it answered.
        came = [item for item in self.items[self.sent :] if item.type in ("tool_call_output_item", "handoff_output_item")]
        self.sent = len(self.items)
        return (begun if not self.responses else []) + input_items(came)

    def _model(self, agent):
        from agents.models.interface import Model

        chosen = self.config.model if self.config.model is not None else agent.model
        return chosen if isinstance(chosen, Model) else self.config.model_provider.get_model(chosen)

    def _model_tracing(self):
        from agents.models.interface import ModelTracing

        if self.config.tracing_disabled:
            return ModelTracing.DISABLED
        if self.config.trace_include_sensitive_data:
            return ModelTracing.ENABLED
        return ModelTracing.ENABLED_WITHOUT_DATA

    def _with_cache_key(self, model, settings):
        """Requests of one run to OpenAI itself share a key by which they are cached."""
        supports = getattr(model, "_supports_default_prompt_cache_key", None)
        given = (settings.extra_args or {}, settings.extra_body or {})
        if supports is None or not supports() or any("prompt_cache_key" in one for one in given):
            return settings
        if self.cache_key is None:
            self.cache_key = self._new_cache_key()
        return _with(settings, extra_args={**(settings.extra_args or {}), "prompt_cache_key": self.cache_key})

    def _new_cache_key(self):
        groups = (
            ("conversation", self.conversation_id),
            ("session", getattr(self.session, "session_id", None)),
            ("group", self.config.group_id),
        )
        for kind, value in groups:
            if value and value.strip():
                import hashlib

                return f"agents-sdk:{kind}:{hashlib.sha256(value.strip().encode()).hexdigest()[:32]}"
        return f"agents-sdk:run:{uuid.uuid4().hex}"

    # After a turn -----------------------------------------------------------------------------------------------

    async def _after(self, turn):
        """The result, when the turn has brought it."""
        self.items = turn.before + turn.items
        self.new_items.extend(turn.all_items)
        if turn.input is not None:
            self.input = turn.input
            self.filtered = True
        if turn.interruptions:
            self.pending = turn
            await self._save(turn.all_items)
            return RunResult(**self._values(None, turn.interruptions))
        if turn.next_agent is not None:
            await self._save(turn.all_items)
            self.agent = turn.next_agent
            self.span.finish(reset_current=True)
            self.span = None
            self.tell_start = True
            if self.stream is not None:
                self.stream.current_agent = self.agent
            self._tell(AgentUpdatedStreamEvent(self.agent))
            return None
        if turn.is_final:
            checks = self.agent.output_guardrails + list(self.config.output_guardrails or ())
            await check_output(checks, self.agent, turn.final_output, self.ctx, self.guardrail_results["output"])
            await self._save(turn.all_items)
            return RunResult(**self._values(turn.final_output))
        await self._save(turn.all_items)
        return None

    async def _too_many_turns(self):
        self.span.set_error(tracing.SpanError(message="Max turns exceeded", data={"max_turns": self.max_turns}))
        error = MaxTurnsExceeded(f"Max turns ({self.max_turns}) exceeded")
        handled = await self.handled("max_turns", error)
        if handled is None:
            raise error
        output, in_history = handled
        if in_history:
            item = message_item(self.agent, output)
            self.items.append(item)
            self.new_items.append(item)
            await self._save([item])
        await self.end_agent(output)
        checks = self.agent.output_guardrails + list(self.config.output_guardrails or ())
        await check_output(checks, self.agent, output, self.ctx, self.guardrail_results["output"])
        self.turns = self.max_turns
        return RunResult(**self._values(output))

    async def handled(self, kind, error):
        """What the caller makes of a failure: an answer, and whether it was said. None when it makes nothing of it."""
        from agents.run_config import RunErrorHandlerInput, RunErrorHandlerResult

        handler = self.error_handlers.get(kind)
        if handler is None:
            return None
        made = await awaited(handler(RunErrorHandlerInput(error, self.ctx, self._error_details())))
        if made is None:
            return None
        if isinstance(made, RunErrorHandlerResult):
            return made.final_output, made.include_in_history
        if isinstance(made, dict) and "final_output" in made:
            return made["final_output"], made.get("include_in_history", True)
        return made, True

    async def end_agent(self, output):
        """Tells of the answer."""
        told = AgentHookContext(self.ctx.context, self.ctx.usage, self.ctx.turn_input)._shared(self.ctx)
        await self.hooks.on_agent_end(told, self.agent, output)
        if self.agent.hooks is not None:
            await self.agent.hooks.on_end(told, self.agent, output)

    # Sessions ---------------------------------------------------------------------------------------------------

    async def _begin_session(self):
        if self.session is None or self.resumed is not None:
            return
        settings = self.config.session_settings
        limit = getattr(settings, "limit", None)
        history = await self.session.get_items(**({"limit": limit} if limit is not None else {}))
        new = ItemHelpers.input_to_new_input_list(self.input)
        if self.config.session_input_callback is not None:
            self.input = await awaited(self.config.session_input_callback(history, new))
        else:
            self.input = history + new
        self.given = self.given if isinstance(self.given, str) else new
        await self.session.add_items(new)

    async def _save(self, items):
        if self.session is not None:
            saved = input_items(items)
            if saved:
                await self.session.add_items(saved)


def _context(given):
    from agents.tool_context import ToolContext

    if isinstance(given, ToolContext):
        # An agent that runs as a tool: it counts with the run that called it, and decides for itself.
        return RunContextWrapper(given.context, given.usage)
    return given if isinstance(given, RunContextWrapper) else RunContextWrapper(given)


def _with(settings, **changed):
    return type(settings)(**{**{name: getattr(settings, name) for name in settings._names()}, **changed})


async def _handoffs(agent, ctx):
    from agents.handoffs import Handoff, handoff

    made = []
    for one in agent.handoffs:
        one = one if isinstance(one, Handoff) else handoff(one)
        if await is_on(one, ctx, agent):
            made.append(one)
    return made


async def _prompt(agent, ctx):
    """A prompt that is kept at OpenAI, as it is named in a request."""
    prompt = agent.prompt
    if prompt is None:
        return None
    if callable(prompt):
        prompt = await awaited(prompt(RunErrorDetails(context=ctx, agent=agent)))
    sent = {"id": prompt["id"], "version": prompt.get("version"), "variables": prompt.get("variables") or {}}
    return {name: value for name, value in sent.items() if value is not None}


def message_item(agent, output):
    """What was answered, as if the model had said it."""
    from agents.models.chat_messages import FAKE_RESPONSES_ID
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    if isinstance(output, str):
        text = output
    else:
        import json

        text = json.dumps(output.model_dump(mode="json") if hasattr(output, "model_dump") else output)
    content = [ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])]
    fields = {"id": FAKE_RESPONSES_ID, "type": "message", "role": "assistant", "status": "completed"}
    return MessageOutputItem(agent, ResponseOutputMessage(content=content, **fields))


def _turn_usage(usage):
    if not any((usage["requests"], usage["total_tokens"])):
        return None
    details = usage["input_tokens_details"]
    return {
        "input_tokens": usage["input_tokens"],
        "output_tokens": usage["output_tokens"],
        "cached_input_tokens": details["cached_tokens"],
        "cache_write_input_tokens": details["cache_write_tokens"],
    }


def _task_usage(usage):
    made = _turn_usage(usage)
    return None if made is None else {**made, "requests": usage["requests"], "total_tokens": usage["total_tokens"]}
