"""`AgentSkillsToolset`: skills that an agent loads."""

from airflow.providers.common.ai.utils.toolset_base import check_max_retries
from pydantic_ai.toolsets.abstract import AbstractToolset
from updraft_hold import hold


class AgentSkillsToolset(AbstractToolset):
    """Offers skills from folders and git repositories."""

    def __init__(self, sources, *, exclude_tools=None, exclude_resources=None, max_retries=None):
        check_max_retries(max_retries)
        hold(self, locals(), "_")
        self._sources = list(sources)

    @property
    def id(self):
        """None."""
        return None

    def _updraft_spec(self, describe):
        from airflow.providers.common.ai.skills import describe_source

        return {
            "skills": {
                "sources": [describe_source(source) for source in self._sources],
                "exclude_tools": sorted(str(name) for name in self._exclude_tools or ()),
                "exclude_resources": [str(pattern) for pattern in self._exclude_resources or ()],
                "max_retries": self._max_retries,
            }
        }
