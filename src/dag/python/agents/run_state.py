"""Where a run stands that waits for approval."""


class RunState:
    """Where a run stands: calls can be approved, and `Runner.run(agent, state)` goes on."""

    def __init__(self, result):
        self._result = result
        self._context = result.context_wrapper

    def __class_getitem__(cls, item):
        return cls

    def get_interruptions(self):
        """The calls that wait."""
        return list(self._result.interruptions)

    def approve(self, approval_item, always_approve=False):
        """Approves a call, or all of its tool."""
        self._context.approve_tool(approval_item, always_approve)

    def reject(self, approval_item, always_reject=False, rejection_message=None):
        """Rejects a call, or all of its tool."""
        self._context.reject_tool(approval_item, always_reject, rejection_message)

    def to_json(self, *args, **kwargs):
        """Not available."""
        from updraft_unavailable import refuse

        refuse("a RunState as JSON")

    to_string = to_json

    @classmethod
    def from_json(cls, *args, **kwargs):
        """Not available."""
        from updraft_unavailable import refuse

        refuse("a RunState out of JSON")

    from_string = from_json
