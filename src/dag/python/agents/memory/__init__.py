"""Conversations that go on from run to run."""

from updraft_lazy import lazy_names

__getattr__, _ = lazy_names(
    __name__,
    {
        "agents.memory.session": ("Session", "SessionABC", "SessionSettings"),
        "agents.memory.sqlite_session": ("SQLiteSession",),
    },
    fallback=True,
)
