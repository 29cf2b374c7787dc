"""Agents that a vendor runs, as tools."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset
from updraft_hold import hold


class BaseManagedAgentToolset(AirflowToolset):
    """One tool that asks another agent."""

    def __init__(self, *, tool_name, description=None, timeout=None, max_retries=1):
        hold(self, locals(), "_")

    @property
    def timeout(self):
        """How long the agent may take."""
        return self._timeout

    @property
    def id(self):
        """`managed-agent-` and the tool's name."""
        return f"managed-agent-{self._tool_name}"


class ManagedAgentToolset(BaseManagedAgentToolset):
    """Asks the agent behind a client."""

    def __init__(
        self,
        client,
        *,
        tool_name,
        description=None,
        timeout=None,
        max_retries=1,
        replayable=False,
        vendor_options=None,
    ):
        hold(self, locals(), "_")

    @property
    def client(self):
        """The client."""
        return self._client
