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
        """Renders the attributes that `template_fields` names."""
        from updraft_templates import render

        error = context.get("exception")
        more = {"exception": str(error)} if error is not None else {}
        task = context.get("task")
        if hasattr(task, "subject") and hasattr(task, "body"):
            # An answer that waits for a person: the worker's own view of the task does not know of it.
            more["task"] = {
                name: value
                for name, value in task.__dict__.items()
                if not name.startswith("_") and isinstance(value, (str, int, type(None)))
            }
        for name in self.template_fields:
            setattr(self, name, render(getattr(self, name), more))

    def __call__(self, *args):
        context = args[0] if args else self.context
        context.update({name: getattr(self, name) for name in self.template_fields})
        self.render_template_fields(context)
        try:
            self.notify(context)
        except Exception as error:
            self.log.error("Failed to send notification (sync): %s", error)
