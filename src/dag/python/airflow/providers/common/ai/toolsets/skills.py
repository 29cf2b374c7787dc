"""`AgentSkillsToolset`: skills that an agent loads."""

from airflow.providers.common.ai.utils.toolset_base import check_max_retries
from pydantic_ai.toolsets.abstract import AbstractToolset


class AgentSkillsToolset(AbstractToolset):
    """Offers skills from folders and git repositories."""

    def __init__(self, sources, *, exclude_tools=None, exclude_resources=None, max_retries=None):
        check_max_retries(max_retries)
        self._sources = list(sources)
        self._exclude_tools = exclude_tools
        self._exclude_resources = exclude_resources
        self._max_retries = max_retries

    @property
    def id(self):
        """None."""
        return None

    def _updraft_spec(self, describe):
        if type(self) is not AgentSkillsToolset:
            return None
        return {
            "skills": {
                "sources": [_source(source) for source in self._sources],
                "exclude_tools": sorted(str(name) for name in self._exclude_tools or ()),
                "exclude_resources": [str(pattern) for pattern in self._exclude_resources or ()],
                "max_retries": self._max_retries,
            }
        }


def _source(source):
    from airflow.providers.common.ai.skills import GitSkills

    if isinstance(source, GitSkills):
        return {
            "git": {
                "repo_url": str(source.repo_url),
                "conn_id": source.conn_id or None,
                "path": str(source.path or ""),
                "branch": source.branch or None,
            }
        }
    if hasattr(source, "__fspath__"):
        source = source.__fspath__()
    if isinstance(source, str):
        return {"folder": source}
    return {"other": type(source).__name__}
