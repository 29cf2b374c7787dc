"""Notifiers: callbacks that tell somebody."""

from airflow.sdk.definitions._internal.logging_mixin import LoggingMixin


class BaseNotifier(LoggingMixin):
    """Calls `notify` with the context."""

    template_fields = ()
    template_ext = ()

    def __init__(self, context=None):
        super().__init__()
        self.context = context or {}

    def notify(self, context):
        """Tells somebody."""
        raise NotImplementedError

    async def async_notify(self, context):
        """Tells somebody."""
        raise NotImplementedError

    def render_template_fields(self, context, jinja_env=None):
        """Templates of notifiers are not rendered on this worker."""

    def __call__(self, *args):
        return self.notify(args[0] if args else self.context)
