"""`PostgresHook`: a PostgreSQL database."""

from airflow.providers.common.sql.hooks.sql import DbApiHook
from updraft_native_hook import not_here


class PostgresHook(DbApiHook):
    """Runs statements on a PostgreSQL database."""

    conn_name_attr = "postgres_conn_id"
    default_conn_name = "postgres_default"
    conn_type = "postgres"
    hook_name = "Postgres"
    supports_autocommit = True

    def __init__(
        self, *args, database=None, options=None, enable_log_db_messages=False, sqlalchemy_scheme=None, **kwargs
    ):
        super().__init__(*args, **kwargs)
        self.database = database
        self.options = options
        self.enable_log_db_messages = enable_log_db_messages

    def _updraft_settings(self):
        return {"schema": self.database, "options": self.options}

    copy_expert = not_here("reads or writes files of the worker")
