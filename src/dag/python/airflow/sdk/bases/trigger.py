"""Triggers: what deferred tasks wait for. They run in Airflow's triggerer, never here."""


class BaseTrigger:
    """Yields events."""

    def __init__(self, **kwargs):
        for name, value in kwargs.items():
            setattr(self, name, value)

    def serialize(self):
        """Its class and its arguments."""
        raise NotImplementedError

    async def run(self):
        """Yields events."""
        raise NotImplementedError


class BaseEventTrigger(BaseTrigger):
    """Yields events for assets."""


class TriggerEvent:
    """What a trigger yields."""

    def __init__(self, payload, **kwargs):
        self.payload = payload


class StartTriggerArgs:
    """How a task starts from a trigger."""

    def __init__(self, trigger_cls, next_method, trigger_kwargs=None, next_kwargs=None, timeout=None):
        self.trigger_cls = trigger_cls
        self.next_method = next_method
        self.trigger_kwargs = trigger_kwargs
        self.next_kwargs = next_kwargs
        self.timeout = timeout
