"""Settings of models."""

from updraft_lazy import lazy_names

# What has no stand-in imports, and says so when it is needed.
__getattr__, _ = lazy_names(__name__, {}, fallback=True)


class ModelSettings(dict):
    """Settings of a model: a dict with known keys."""
