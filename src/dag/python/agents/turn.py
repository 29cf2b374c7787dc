"""One turn: what the model's answer asks for, and what comes of it."""

import agents.tracing as tracing
from agents.exceptions import ModelBehaviorError, ModelRefusalError, UserError
from agents.items import (
    CompactionItem,
    HandoffCallItem,
    HandoffOutputItem,
    ItemHelpers,
    MCPApprovalRequestItem,
    MCPListToolsItem,
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents.agent import ToolsToFinalOutputResult
from agents.tool import FunctionTool, awaited
from agents.tool_calls import call_tools

# What the provider did itself, by the kinds of items that say so, and the names by which it goes.
_HOSTED = {
    "file_search_call": "file_search",
    "web_search_call": "web_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
    "mcp_call": "mcp",
}
# What only programs on the agent's own machine do.
_LOCAL = ("computer_call", "local_shell_call", "shell_call", "apply_patch_call", "custom_tool_call")


class Turn:
    """What the model's answer asks for, and what comes of it."""

    def __init__(self, run, agent, response, tools, handoffs, schema):
        self.run = run
        self.agent = agent
        self.response = response
        self.schema = schema
        self.functions = {tool.name: tool for tool in tools if isinstance(tool, FunctionTool)}
        self.handoffs = {one.tool_name: one for one in handoffs}
        # What was there before, and what has come, as the model is told of it.
        self.before = list(run.items)
        self.items = []
        # What has come, as the run tells of it.
        self._all_items = None
        # What the run began with, when a handoff has changed it.
        self.input = None
        self.calls = []
        self.handed = []
        self.missing = []
        self.used = []
        self.interruptions = []
        # Does it go on where calls waited for approval?
        self.goes_on = False
        self.next_agent = None
        self.is_final = False
        self.final_output = None

    @property
    def all_items(self):
        """What has come, as the run tells of it."""
        return self.items if self._all_items is None else self._all_items

    def _add(self, item):
        self.items.append(item)
        self.run.tell_item(item)

    def read(self):
        """Sorts what the answer holds."""
        for output in self.response.output:
            kind = getattr(output, "type", None)
            if kind == "message":
                self._add(MessageOutputItem(self.agent, output))
            elif kind == "reasoning":
                self._add(ReasoningItem(self.agent, output))
            elif kind == "function_call":
                self._read_call(output)
            elif kind in _HOSTED:
                self._add(ToolCallItem(self.agent, output))
                self.used.append(_HOSTED[kind])
            elif kind == "mcp_list_tools":
                self._add(MCPListToolsItem(self.agent, output))
            elif kind == "mcp_approval_request":
                self._add(MCPApprovalRequestItem(self.agent, output))
            elif kind == "compaction":
                self._add(CompactionItem(self.agent, output))
            elif kind in _LOCAL:
                raise ModelBehaviorError(f"Model produced {kind.replace('_', ' ')} without a tool for it.")
        self.run.used.setdefault(id(self.agent), []).extend(self.used)

    def _read_call(self, call):
        self.used.append(call.name)
        if call.name in self.handoffs:
            self._add(HandoffCallItem(self.agent, call))
            self.handed.append((call, self.handoffs[call.name]))
            self.run.ctx._note_call(call)
            return
        tool = self.functions.get(call.name)
        if tool is not None:
            self._add(ToolCallItem(self.agent, call, description=tool.description))
            self.calls.append((call, tool))
            self.run.ctx._note_call(call)
            return
        tracing.attach_error_to_current_span("Tool not found", {"tool_name": call.name})
        if self.run.config.tool_not_found_behavior != "return_error_to_model":
            raise ModelBehaviorError(f"Tool {call.name} not found in agent {self.agent.name}")
        self._add(ToolCallItem(self.agent, call))
        self.missing.append(call)

    async def act(self):
        """Does what is asked for."""
        await self._call(self.calls)
        for call in self.missing:
            told = await self._told("tool_not_found", call, f"Tool '{call.name}' not found.")
            self._add(ToolCallOutputItem(self.agent, ItemHelpers.tool_call_output_item(call, told), told))
        return await self._conclude()

    async def go_on(self, run):
        """Goes on where calls waited for approval."""
        self.run = run
        self.goes_on = True
        self.before = [item for item in run.items if item not in self.items]
        known = list(self.items)
        waiting = {item.call_id for item in self.interruptions}
        self.items = [item for item in self.items if item.type != "tool_approval_item"]
        self.interruptions = []
        await self._call([(call, tool) for call, tool in self.calls if call.call_id in waiting])
        await self._conclude()
        # What was told of before is not told of again.
        self._all_items = [item for item in self.all_items if item not in known]
        return self

    async def _call(self, calls):
        self.results = await call_tools(self, calls)
        for result in self.results:
            if result.run_item.type == "tool_approval_item":
                self.interruptions.append(result.run_item)
                self.items.append(result.run_item)
            else:
                self._add(result.run_item)
        self.results = [result for result in self.results if result.run_item.type != "tool_approval_item"]

    async def _told(self, kind, call, message, error=None):
        """What the model is told of a call that was not made."""
        formatter = self.run.config.tool_error_formatter
        if formatter is None:
            return message
        from agents.run_config import ToolErrorFormatterArgs

        given = ToolErrorFormatterArgs(kind, "function", call.name, call.call_id, message, self.run.ctx, error)
        told = await awaited(formatter(given))
        return message if told is None else told

    async def rejected(self, call):
        """What the model is told of a call that was rejected."""
        from agents.tool import DEFAULT_APPROVAL_REJECTION_MESSAGE

        said = self.run.ctx.get_rejection_message(call.name, call.call_id)
        if said is not None:
            return said
        return await self._told("approval_rejected", call, DEFAULT_APPROVAL_REJECTION_MESSAGE)

    async def _conclude(self):
        if self.interruptions:
            return self
        if self.handed:
            await self._hand_over()
            return self
        final = await self._from_tools()
        if final.is_final_output:
            await self._end(self._fitting(final.final_output))
            return self
        if self.calls or self.missing:
            return self
        messages = [item for item in self.items if item.type == "message_output_item"]
        if not messages and self.used:
            return self
        said = messages[-1].raw_item if messages else None
        refusal = ItemHelpers.extract_refusal(said)
        if refusal:
            await self._refused(refusal)
        elif self.schema is None or self.schema.is_plain_text():
            await self._end(ItemHelpers.extract_text(said) or "")
        else:
            await self._structured(ItemHelpers.extract_text(said))
        return self

    def _fitting(self, output):
        # Where text is wanted, text is given.
        return str(output) if self.agent.output_type in (None, str) else output

    async def _end(self, output):
        self.is_final = True
        self.final_output = output
        await self.run.end_agent(output)

    async def _refused(self, refusal):
        error = ModelRefusalError(refusal)
        handled = await self.run.handled("model_refusal", error)
        if handled is None:
            raise error
        await self._end_with(handled)

    async def _end_with(self, handled):
        from agents.loop import message_item

        output, in_history = handled
        if in_history:
            self._add(message_item(self.agent, output))
        await self._end(output)

    async def _structured(self, text):
        if text:
            try:
                output = self.schema.validate_json(text)
            except ModelBehaviorError as error:
                handled = await self.run.handled("invalid_final_output", error)
                if handled is None:
                    raise
            else:
                await self._end(output)
                return
        else:
            error = ModelBehaviorError("Model returned no final output for the structured output type.")
            handled = await self.run.handled("invalid_final_output", error)
            if handled is None:
                # It is asked again.
                return
        await self._end_with(handled)

    async def _from_tools(self):
        """Whether what the tools gave is the answer."""
        behavior = self.agent.tool_use_behavior
        if not self.results or behavior == "run_llm_again":
            return ToolsToFinalOutputResult(False)
        if behavior == "stop_on_first_tool":
            return ToolsToFinalOutputResult(True, self.results[0].output)
        if isinstance(behavior, dict):
            names = behavior.get("stop_at_tool_names", ())
            for result in self.results:
                if result.tool.name in names:
                    return ToolsToFinalOutputResult(True, result.output)
            return ToolsToFinalOutputResult(False)
        return await awaited(behavior(self.run.ctx, self.results))

    async def _hand_over(self):
        run = self.run
        call, handoff = self.handed[0]
        ignored = "Multiple handoffs detected, ignoring this one."
        for other, _ in self.handed[1:]:
            self._add(ToolCallOutputItem(self.agent, ItemHelpers.tool_call_output_item(other, ignored), ignored))
        with tracing.handoff_span(from_agent=self.agent.name) as span:
            target = await handoff.on_invoke_handoff(run.ctx, call.arguments)
            span.span_data.to_agent = target.name
            if len(self.handed) > 1:
                asked = [one.agent_name for _, one in self.handed]
                span.set_error(
                    tracing.SpanError(message="Multiple handoffs requested", data={"requested_agents": asked})
                )
            told = ItemHelpers.tool_call_output_item(call, handoff.get_transfer_message(target))
            self._add(HandoffOutputItem(self.agent, told, self.agent, target))
            await run.hooks.on_handoff(run.ctx, self.agent, target)
            if self.agent.hooks is not None:
                await self.agent.hooks.on_handoff(run.ctx, target, self.agent)
            await self._filter(handoff)
        self.next_agent = target

    async def _filter(self, handoff):
        """What of the conversation the next agent sees."""
        from agents.handoffs import HandoffInputData, nest_handoff_history

        config = self.run.config
        choose = handoff.input_filter if handoff.input_filter is not None else config.handoff_input_filter
        nested = handoff.nest_handoff_history
        nested = config.nest_handoff_history if nested is None else nested
        if choose is None and not nested:
            return
        given = self.run.input
        history = tuple(given) if isinstance(given, list) else given
        data = HandoffInputData(history, tuple(self.before), tuple(self.items), self.run.ctx)
        if choose is None:
            seen = nest_handoff_history(data, history_mapper=config.handoff_history_mapper)
        else:
            if not callable(choose):
                raise UserError(f"Invalid input filter: {choose}")
            seen = await awaited(choose(data))
            if not isinstance(seen, HandoffInputData):
                raise UserError(f"Invalid input filter result: {seen}")
        self.input = seen.input_history if isinstance(seen.input_history, str) else list(seen.input_history)
        self.before = list(seen.pre_handoff_items)
        self._all_items = list(seen.new_items)
        self.items = list(seen.new_items if seen.input_items is None else seen.input_items)
