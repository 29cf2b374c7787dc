"""What a run carries along: the caller's own context, and the tokens used so far."""

from agents.usage import Usage


class RunContextWrapper:
    """The caller's context with what the run knows beside it."""

    def __init__(self, context=None, usage=None, turn_input=None, tool_input=None):
        self.context = context
        self.usage = Usage() if usage is None else usage
        self.turn_input = list(turn_input or ())
        self.tool_input = tool_input
        # What was decided about calls that wait for approval: by call id, and by tool name for all of its calls.
        self._decided = {}
        self._always = {}
        # Calls that have been made, by their ids.
        self._made = {}

    def __class_getitem__(cls, item):
        return cls

    def _shared(self, other):
        """Decides and counts as another context does."""
        for name in ("_decided", "_always", "_made"):
            setattr(self, name, getattr(other, name))
        return self

    def is_tool_approved(self, tool_name, call_id):
        """Was the call approved? None when nobody has decided."""
        decided = self._decided.get(call_id)
        return decided[0] if decided is not None else self._always.get(tool_name)

    def get_approval_status(self, tool_name, call_id, **kwargs):
        """As `is_tool_approved`."""
        return self.is_tool_approved(tool_name, call_id)

    def get_rejection_message(self, tool_name, call_id, **kwargs):
        """What the model is told of a call that was rejected, if something was said."""
        decided = self._decided.get(call_id)
        return decided[1] if decided is not None else None

    def approve_tool(self, approval_item, always_approve=False):
        """Approves a call, or all of a tool."""
        self._decided[approval_item.call_id] = (True, None)
        if always_approve:
            self._always[approval_item.tool_name] = True

    def reject_tool(self, approval_item, always_reject=False, rejection_message=None):
        """Rejects a call, or all of a tool."""
        self._decided[approval_item.call_id] = (False, rejection_message)
        if always_reject:
            self._always[approval_item.tool_name] = False

    def _note_call(self, call):
        """Refuses a call whose id belongs to another call that was made."""
        made = (call.name, call.arguments)
        if self._made.setdefault(call.call_id, made) != made:
            from agents.exceptions import ModelBehaviorError

            raise ModelBehaviorError(
                "Model reused a completed tool call ID for a different invocation. Use a unique call ID for each tool "
                "invocation."
            )


class AgentHookContext(RunContextWrapper):
    """What hooks of an agent get."""


TContext = object
