"""Where agent skills come from."""

from updraft_record import REQUIRED, Record


class GitSkills(Record):
    """Skills in a git repository."""

    _positional = {"repo_url": REQUIRED, "conn_id": None, "path": "", "branch": None}


SkillSource = object


def resolve_skills(sources):
    """Clones what is in git and gives the folders; the worker does this for its own agent tasks only."""
    raise RuntimeError("resolve_skills is not available in Dag code here; give the sources to AgentSkillsToolset")
