"""Spans of other agent frameworks."""

from contextvars import ContextVar

_identified = ContextVar("common_ai_task_identity", default=False)


def is_identified():
    """Do spans say whose task they belong to?"""
    return _identified.get()


class agent_framework_tracing:
    """Within the block, spans of an agent framework say whose task they belong to."""

    def __enter__(self):
        from airflow.sdk import get_current_context

        # Without a task there is nobody they could belong to, which is an error in Airflow, too.
        get_current_context()
        self._token = _identified.set(True)

    def __exit__(self, exc_type, exc, tb):
        _identified.reset(self._token)
        return False
