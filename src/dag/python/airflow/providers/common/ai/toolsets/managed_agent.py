"""Agents that a vendor runs, as tools."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset


class BaseManagedAgentToolset(AirflowToolset):
    """One tool that asks another agent."""

    def __init__(self, *, tool_name, description=None, timeout=None, max_retries=1):
        self._tool_name = tool_name
        self._description = description
        self._timeout = timeout
        self._max_retries = max_retries

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
        super().__init__(tool_name=tool_name, description=description, timeout=timeout, max_retries=max_retries)
        self._client = client
        self._replayable = replayable
        self._vendor_options = vendor_options

    @property
    def client(self):
        """The client."""
        return self._client
