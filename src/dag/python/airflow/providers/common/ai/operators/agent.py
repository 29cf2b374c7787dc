"""`AgentOperator`: an LLM with tools."""

from datetime import timedelta

from airflow.providers.common.ai.utils.toolset_base import iter_toolsets
from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class AgentOperator(BaseOperator):
    """Runs an agent on a prompt; what the model answers is the task's result."""

    _updraft_kind = "agent"
    deserialization_allowed_class_fields = ("output_type",)
    template_fields = (
        "prompt",
        "llm_conn_id",
        "model_id",
        "fallback_conn_ids",
        "system_prompt",
        "agent_params",
        "message_history",
        "usage_limits",
    )

    def __init__(
        self,
        *,
        prompt,
        llm_conn_id,
        model_id=None,
        fallback_conn_ids=None,
        system_prompt="",
        output_type=str,
        toolsets=None,
        capabilities=None,
        enable_tool_logging=True,
        agent_params=None,
        usage_limits=None,
        durable=False,
        cache_prompt=True,
        message_history=None,
        enable_hitl_review=False,
        max_hitl_iterations=5,
        hitl_timeout=None,
        hitl_poll_interval=10.0,
        serialize_output=False,
        tool_approval_timeout=None,
        on_tool_approval_timeout="fail",
        tool_approval_assigned_users=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
        self.agent_params = agent_params or {}
        fault = next(self._faults(), None)
        if fault is not None:
            raise ValueError(fault)

    def _faults(self):
        """What the arguments get wrong, the first thing first."""
        reviewed = self.enable_hitl_review
        if self.durable and reviewed:
            yield "durable=True and enable_hitl_review=True cannot be used together."
        if self.durable and any(type(c).__name__ == "AirflowDurability" for c in self._declared_capabilities()):
            yield "durable=True brings AirflowDurability along, which is a capability here too: leave one out."
        if reviewed and self.message_history is not None:
            yield "message_history and enable_hitl_review=True cannot be used together."
        if self.durable or reviewed:
            leaves = [leaf for toolset in self._declared_toolsets() for leaf in iter_toolsets(toolset)]
            yield from self._sandbox_faults([leaf for leaf in leaves if type(leaf).__name__ == "SandboxToolset"])
            if self.durable:
                yield from self._id_faults([leaf for leaf in leaves if _is_recorded(leaf)])
        timeout, then = self.tool_approval_timeout, self.on_tool_approval_timeout
        if then not in ("fail", "deny"):
            yield f"on_tool_approval_timeout must be 'fail' or 'deny', got {then!r}."
        if timeout is None:
            if then == "deny":
                yield "on_tool_approval_timeout='deny' needs a tool_approval_timeout to fire."
        elif timeout <= timedelta(0):
            yield f"tool_approval_timeout must be positive, got {timeout!r}."

    def _declared_capabilities(self):
        within = self.agent_params.get("capabilities") if isinstance(self.agent_params, dict) else None
        return [*(self.capabilities or ()), *(within or ())]

    def _declared_toolsets(self):
        within = self.agent_params.get("toolsets") if isinstance(self.agent_params, dict) else None
        held = [getattr(c, "toolset", None) for c in self._declared_capabilities() if type(c).__name__ == "Toolset"]
        return [*(self.toolsets or ()), *(within or ()), *(toolset for toolset in held if toolset is not None)]

    def _sandbox_faults(self, sandboxes):
        if self.durable and sandboxes:
            yield (
                "durable=True does not go with a SandboxToolset: a retry takes the recorded results and gets a sandbox "
                "without the files they tell of. Leave durable=True out, or give the sandbox a task of its own."
            )
        if self.enable_hitl_review and any(sandbox.attach_to is None for sandbox in sandboxes):
            yield (
                "enable_hitl_review=True does not go with a SandboxToolset that makes its own sandbox: after the "
                "review the agent runs again, in a sandbox without the files it wrote before. Name the sandbox of "
                "another task (attach_to=...), leave the review out, or give the sandbox a task of its own."
            )

    def _id_faults(self, recorded):
        nameless = {type(leaf).__name__ for leaf in recorded if leaf.id is None}
        if any(callable(toolset) and not hasattr(toolset, "get_tools") for toolset in self._declared_toolsets()):
            nameless.add("DynamicToolset")
        if nameless:
            yield (
                f"durable=True records tool calls by the id of their toolset, and there is none on a "
                f"{' and a '.join(sorted(nameless))}. Give each toolset an id=... of its own (the id of a Toolset "
                "capability does not count), and wrap a function that makes a toolset: "
                "DynamicToolset(function, id='orders')."
            )
        by_id = {}
        for leaf in recorded:
            # A toolset that is listed twice is one toolset.
            by_id.setdefault(leaf.id, set()).add(id(leaf))
        shared = [repr(name) for name, toolsets in by_id.items() if len(toolsets) > 1]
        if shared:
            yield (
                f"durable=True records tool calls by the id of their toolset, and several toolsets have the id "
                f"{' or '.join(shared)}: give each an id of its own."
            )

    def execute(self, context):
        """Done by the worker."""
        raise RuntimeError(
            "AgentOperator.execute can't be called from Dag code here: the worker runs the agent itself."
        )


def _is_recorded(toolset):
    """Are the toolset's calls recorded under its id? Those of the provider's own toolsets have names without."""
    kind = type(toolset)
    if kind.__name__ == "MCPToolset":
        return kind.__module__.startswith("pydantic_ai")
    return kind.__name__ in ("FunctionToolset", "DynamicToolset")
