"""Durable runs."""

from pydantic_ai.capabilities import AbstractCapability


class AirflowDurability(AbstractCapability):
    """Records the steps of a run for its retries."""

    def __init__(self, *, models=None, event_stream_handler=None, name=None):
        self.models = models
        self.event_stream_handler = event_stream_handler
        self.name = name
