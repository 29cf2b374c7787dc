"""What a model is."""

import enum

from updraft_record import REQUIRED, Record


class ModelTracing(enum.Enum):
    """What spans tell of a request."""

    DISABLED = 0
    ENABLED = 1
    ENABLED_WITHOUT_DATA = 2

    def is_disabled(self):
        """Is there no span at all?"""
        return self is ModelTracing.DISABLED

    def include_data(self):
        """Do spans tell what was said?"""
        return self is ModelTracing.ENABLED


class ModelQuery(Record):
    """What `get_response` and `stream_response` are called with."""

    _positional = {
        "system_instructions": REQUIRED,
        "input": REQUIRED,
        "model_settings": REQUIRED,
        "tools": REQUIRED,
        "output_schema": REQUIRED,
        "handoffs": REQUIRED,
        "tracing": REQUIRED,
        "previous_response_id": None,
        "conversation_id": None,
        "prompt": None,
    }


class Model:
    """Something that answers."""

    async def get_response(
        self,
        system_instructions,
        input,
        model_settings,
        tools,
        output_schema,
        handoffs,
        tracing,
        *,
        previous_response_id,
        conversation_id,
        prompt,
    ):
        """One answer."""
        raise NotImplementedError

    def stream_response(self, *args, **kwargs):
        """One answer, event by event."""
        raise NotImplementedError

    async def close(self):
        """There is nothing to close."""


class ModelProvider:
    """Something that knows models by their names."""

    def get_model(self, model_name):
        """The model of a name; the default one for None."""
        raise NotImplementedError

    async def aclose(self):
        """There is nothing to close."""
