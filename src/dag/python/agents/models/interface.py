"""What a model is."""

import enum


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
