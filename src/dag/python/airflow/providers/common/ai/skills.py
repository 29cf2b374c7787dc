"""Where agent skills come from."""

import _updraft
import updraft_values
from updraft_record import REQUIRED, Record


class GitSkills(Record):
    """Skills in a git repository."""

    _positional = {"repo_url": REQUIRED, "conn_id": None, "path": "", "branch": None}


SkillSource = object


def describe_source(source):
    """A source as the worker takes it: `SkillSourceSpec` of dag/definitions.rs."""
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


class resolve_skills:
    """A context that gives the folders of the sources; what is cloned for it is gone when it ends."""

    def __init__(self, sources):
        self._sources = list(sources)
        self._cloned = None

    def __enter__(self):
        described = [describe_source(source) for source in self._sources]
        for source in described:
            if "other" in source:
                raise TypeError(f"Unsupported skill source {source['other']!r}; expected a path or GitSkills.")
        repositories = [source for source in described if "git" in source]
        clones = iter(())
        if repositories:
            self._cloned = _updraft.clone_skills(updraft_values.to_json(repositories))
            clones = iter(updraft_values.from_json(self._cloned)[1])
        return [next(clones) if "git" in source else source["folder"] for source in described]

    def __exit__(self, *exception):
        if self._cloned is not None:
            cloned, self._cloned = self._cloned, None
            _updraft.remove_skills(cloned)
        return False
