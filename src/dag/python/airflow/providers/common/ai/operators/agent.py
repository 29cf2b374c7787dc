"""`AgentOperator`: an LLM with tools."""

from datetime import timedelta

from airflow.providers.common.ai.utils.toolset_base import iter_toolsets
from airflow.sdk.bases.operator import BaseOperator


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
        self.prompt = prompt
        self.llm_conn_id = llm_conn_id
        self.model_id = model_id
        self.fallback_conn_ids = fallback_conn_ids
        self.system_prompt = system_prompt
        self.output_type = output_type
        self.serialize_output = serialize_output
        self.toolsets = toolsets
        self.enable_tool_logging = enable_tool_logging
        self.agent_params = agent_params or {}
        self.capabilities = capabilities
        self.usage_limits = usage_limits
        self.message_history = message_history
        self.durable = durable
        self.cache_prompt = cache_prompt
        if durable and enable_hitl_review:
            raise ValueError("durable=True and enable_hitl_review=True cannot be used together.")
        if durable and any(type(c).__name__ == "AirflowDurability" for c in self._declared_capabilities()):
            raise ValueError(
                "durable=True attaches AirflowDurability itself; pass durable=True or the capability, not both."
            )
        if message_history is not None and enable_hitl_review:
            raise ValueError("message_history and enable_hitl_review=True cannot be used together.")
        if durable or enable_hitl_review:
            self._refuse_sandboxes(durable, enable_hitl_review)
        if durable:
            self._require_toolset_ids()
        self.enable_hitl_review = enable_hitl_review
        self.max_hitl_iterations = max_hitl_iterations
        self.hitl_timeout = hitl_timeout
        self.hitl_poll_interval = hitl_poll_interval
        if on_tool_approval_timeout not in ("fail", "deny"):
            raise ValueError(f"on_tool_approval_timeout must be 'fail' or 'deny', got {on_tool_approval_timeout!r}.")
        if tool_approval_timeout is not None and tool_approval_timeout <= timedelta(0):
            raise ValueError(f"tool_approval_timeout must be positive, got {tool_approval_timeout!r}.")
        if on_tool_approval_timeout == "deny" and tool_approval_timeout is None:
            raise ValueError("on_tool_approval_timeout='deny' needs a tool_approval_timeout to fire.")
        self.tool_approval_timeout = tool_approval_timeout
        self.on_tool_approval_timeout = on_tool_approval_timeout
        self.tool_approval_assigned_users = tool_approval_assigned_users

    def _declared_capabilities(self):
        within = self.agent_params.get("capabilities") if isinstance(self.agent_params, dict) else None
        return [*(self.capabilities or ()), *(within or ())]

    def _declared_toolsets(self):
        within = self.agent_params.get("toolsets") if isinstance(self.agent_params, dict) else None
        held = [getattr(c, "toolset", None) for c in self._declared_capabilities() if type(c).__name__ == "Toolset"]
        return [*(self.toolsets or ()), *(within or ()), *(toolset for toolset in held if toolset is not None)]

    def _leaves(self):
        return [leaf for toolset in self._declared_toolsets() for leaf in iter_toolsets(toolset)]

    def _refuse_sandboxes(self, durable, enable_hitl_review):
        sandboxes = [leaf for leaf in self._leaves() if type(leaf).__name__ == "SandboxToolset"]
        if durable and sandboxes:
            raise ValueError(
                "durable=True cannot be used with a SandboxToolset: cached tool results would be replayed without "
                "touching the sandbox, so the workspace would not match the transcript. Drop durable=True, or move "
                "the sandbox work into its own task."
            )
        if enable_hitl_review and any(sandbox.attach_to is None for sandbox in sandboxes):
            raise ValueError(
                "enable_hitl_review=True cannot be used with a SandboxToolset that provisions its own sandbox: a "
                "regenerated run would start from an empty sandbox while its history describes files from the first "
                "run. Attach the toolset to a sandbox another task provisioned (attach_to=...), drop "
                "enable_hitl_review=True, or move the sandbox work into its own task."
            )

    def _require_toolset_ids(self):
        needy = {"FunctionToolset", "DynamicToolset"}
        leaves = [
            leaf
            for leaf in self._leaves()
            if type(leaf).__name__ in needy
            or (type(leaf).__name__ == "MCPToolset" and type(leaf).__module__.startswith("pydantic_ai"))
        ]
        missing = {type(leaf).__name__ for leaf in leaves if leaf.id is None}
        if any(callable(t) and not hasattr(t, "get_tools") for t in self._declared_toolsets()):
            missing.add("DynamicToolset")
        kinds = sorted(missing)
        if kinds:
            raise ValueError(
                f"durable=True needs a unique id on every {' and '.join(kinds)}, such as {kinds[0]}(..., id='orders'): "
                "durable replay records each tool call under it. Set it on the toolset itself, and pass a function "
                "that builds a toolset as DynamicToolset(function, id=...); the id of a Toolset capability around a "
                "toolset does not reach it."
            )
        first = {}
        twice = []
        for leaf in leaves:
            if first.setdefault(leaf.id, leaf) is not leaf and leaf.id not in twice:
                twice.append(leaf.id)
        if twice:
            raise ValueError(
                "durable=True needs a unique id on each toolset, but more than one toolset has the id "
                f"{' or '.join(repr(name) for name in twice)}: durable replay records each tool call under its "
                "toolset's id, so a retry could not tell their calls apart."
            )

    def execute(self, context):
        """Done by the worker."""
        raise RuntimeError(
            "AgentOperator.execute can't be called from Dag code here: the worker runs the agent itself."
        )
