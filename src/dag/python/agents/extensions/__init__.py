"""What the SDK has beside its core."""

from updraft_lazy import lazy_names

__getattr__, _ = lazy_names(
    __name__, {"agents.extensions.handoff_filters": (), "agents.extensions.handoff_prompt": ()}, fallback=True
)
