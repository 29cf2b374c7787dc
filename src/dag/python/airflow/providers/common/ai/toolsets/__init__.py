"""The provider's toolsets."""

from updraft_lazy import lazy_names

_HERE = "airflow.providers.common.ai.toolsets"

__getattr__, __all__ = lazy_names(
    __name__,
    {
        f"{_HERE}.sql": ("SQLToolset",),
        f"{_HERE}.hook": ("HookToolset",),
        f"{_HERE}.mcp": ("MCPToolset",),
        f"{_HERE}.skills": ("AgentSkillsToolset",),
        f"{_HERE}.logging": ("LoggingToolset",),
        f"{_HERE}.object_storage": ("ObjectStorageToolset",),
        f"{_HERE}.datafusion": ("DataFusionToolset",),
        f"{_HERE}.sandbox": ("SandboxToolset",),
        f"{_HERE}.managed_agent": ("BaseManagedAgentToolset", "ManagedAgentToolset"),
    },
    fallback=True,
)
