"""Hooks: what talks to a system."""

from airflow.sdk.definitions._internal.logging_mixin import LoggingMixin


class BaseHook(LoggingMixin):
    """The base of hooks."""

    def __init__(self, logger_name=None):
        super().__init__()
        self._logger_name = logger_name

    @classmethod
    def get_connection(cls, conn_id):
        """The connection of that id."""
        from airflow.sdk.definitions.connection import Connection

        return Connection.get(conn_id)

    @classmethod
    async def aget_connection(cls, conn_id):
        """The connection of that id."""
        return cls.get_connection(conn_id)

    @classmethod
    def get_hook(cls, conn_id, hook_params=None):
        """The hook for a connection."""
        return cls.get_connection(conn_id).get_hook(hook_params=hook_params)

    @classmethod
    async def aget_hook(cls, conn_id, hook_params=None):
        """The hook for a connection."""
        return cls.get_hook(conn_id, hook_params)

    def get_conn(self):
        """The client of the system."""
        raise NotImplementedError

    @classmethod
    def get_connection_form_widgets(cls):
        """For Airflow's UI."""
        return {}

    @classmethod
    def get_ui_field_behaviour(cls):
        """For Airflow's UI."""
        return {}
