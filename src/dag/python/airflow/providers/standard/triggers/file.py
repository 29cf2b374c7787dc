"""Triggers that wait for files, where the triggerer runs."""

from airflow.sdk.bases.trigger import BaseEventTrigger, BaseTrigger
from updraft_hold import hold


class FileTrigger(BaseTrigger):
    """Fires when a file is there."""

    def __init__(self, filepath, recursive=False, poke_interval=5.0, **kwargs):
        super().__init__()
        hold(self, locals())

    def serialize(self):
        """Its class and its arguments."""
        names = ("filepath", "recursive", "poke_interval")
        return (
            "airflow.providers.standard.triggers.file.FileTrigger",
            {name: getattr(self, name) for name in names},
        )


class FileDeleteTrigger(BaseEventTrigger):
    """Fires when a file is there, and deletes it."""

    def __init__(self, filepath, poke_interval=5.0, **kwargs):
        super().__init__()
        hold(self, locals())

    def serialize(self):
        """Its class and its arguments."""
        return (
            "airflow.providers.standard.triggers.file.FileDeleteTrigger",
            {"filepath": self.filepath, "poke_interval": self.poke_interval},
        )
