"""Operators that take up a job again after a retry."""


class ResumableJobMixin:
    """Submits a job once and follows it across tries."""

    external_id_key = "external_id"

    def __init__(self, *, durable=True, **kwargs):
        super().__init__(**kwargs)
        self.durable = durable
