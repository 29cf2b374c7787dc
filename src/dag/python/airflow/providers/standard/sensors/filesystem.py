"""`FileSensor`: waits for a file."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class FileSensor(BaseSensorOperator):
    """Waits until a file is there."""

    template_fields = ("filepath", "fs_conn_id")

    def __init__(
        self,
        *,
        filepath,
        fs_conn_id="fs_default",
        recursive=False,
        deferrable=False,
        start_from_trigger=False,
        trigger_kwargs=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
