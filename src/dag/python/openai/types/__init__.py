"""What the APIs answer and take."""

from updraft_lazy import lazy_names

__getattr__, _ = lazy_names(
    __name__, {"openai.types.responses": (), "openai.types.chat": (), "openai.types.shared": ("Reasoning",)}, fallback=True
)
