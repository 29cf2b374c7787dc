"""`SandboxToolset`: a sandbox to run commands in."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_tool_prefix
from updraft_hold import hold


class SandboxToolset(AirflowToolset):
    """Runs commands and keeps files in a sandbox."""

    # For `updraft check`, where a function of the Dag uses it.
    _updraft_needs = "a sandbox (SandboxToolset), which the worker does not have"

    agent_template_fields = ("attach_to",)

    def __init__(
        self,
        backend,
        *,
        spec=None,
        default_command_timeout=60.0,
        max_command_timeout=300.0,
        max_output_lines=2000,
        max_output_bytes=51200,
        max_read_bytes=5242880,
        tool_prefix="",
        attach_to=None,
        owner=None,
        exports=None,
        export_conn_id=None,
        max_export_bytes=1073741824,
    ):
        check_tool_prefix(tool_prefix)
        hold(self, locals())
        fault = next(self._faults(), None)
        if fault is not None:
            raise ValueError(fault)

    def _faults(self):
        """What the arguments get wrong, the first thing first."""
        usual, most = self.default_command_timeout, self.max_command_timeout
        if usual > most:
            yield f"default_command_timeout is {usual}, and may be at most max_command_timeout, which is {most}."
        attached = self.attach_to is not None
        if attached and self.spec is not None:
            yield "spec and attach_to exclude each other: the task that made the sandbox has said what it is like."
        if attached and not self.attach_to:
            yield "attach_to is empty: give the handle of a sandbox, or leave it out."
        if attached and self.exports:
            yield "exports and attach_to exclude each other: the task that made the sandbox takes the files out of it."
        if not attached and self.owner is not None:
            yield "owner is for a sandbox of another task: give its handle as attach_to."
        if not self.exports and self.export_conn_id is not None:
            yield "export_conn_id is for exports, and there are none."

    @property
    def id(self):
        """`sandbox-`, the backend's name and the prefix."""
        suffix = f"-{self.tool_prefix}" if self.tool_prefix else ""
        return f"sandbox-{self.backend.name}{suffix}"

    def airflow_tools(self):
        """Not available."""
        from updraft_unavailable import refuse

        refuse("SandboxToolset")

    __enter__ = airflow_tools

    def __exit__(self, *exception):
        """Nothing was entered."""
