"""`SandboxToolset`: a sandbox to run commands in."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_tool_prefix


class SandboxToolset(AirflowToolset):
    """Runs commands and keeps files in a sandbox."""

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
        if default_command_timeout > max_command_timeout:
            raise ValueError(
                f"default_command_timeout ({default_command_timeout}) must not exceed "
                f"max_command_timeout ({max_command_timeout})."
            )
        check_tool_prefix(tool_prefix)
        if attach_to is not None:
            if spec is not None:
                raise ValueError(
                    "spec cannot be combined with attach_to: the sandbox is already provisioned, so its environment "
                    "and network policy belong to the task that created it."
                )
            if not attach_to:
                raise ValueError("attach_to must be a sandbox handle, not an empty string.")
            if exports:
                raise ValueError(
                    "exports cannot be combined with attach_to: the sandbox belongs to the task that created it, and "
                    "that task reads out whatever the agent left behind."
                )
        elif owner is not None:
            raise ValueError("owner only applies together with attach_to.")
        if export_conn_id is not None and not exports:
            raise ValueError("export_conn_id only applies together with exports.")
        self.backend = backend
        self.spec = spec
        self.default_command_timeout = default_command_timeout
        self.max_command_timeout = max_command_timeout
        self.max_output_lines = max_output_lines
        self.max_output_bytes = max_output_bytes
        self.max_read_bytes = max_read_bytes
        self.tool_prefix = tool_prefix
        self.attach_to = attach_to
        self.owner = owner
        self.exports = exports
        self.export_conn_id = export_conn_id
        self.max_export_bytes = max_export_bytes

    @property
    def id(self):
        """`sandbox-`, the backend's name and the prefix."""
        suffix = f"-{self.tool_prefix}" if self.tool_prefix else ""
        return f"sandbox-{self.backend.name}{suffix}"
