"""`PostgresHook`: a PostgreSQL database."""

from airflow.providers.common.sql.hooks.sql import DbApiHook


class PostgresHook(DbApiHook):
    """Runs statements on a PostgreSQL database."""

    conn_name_attr = "postgres_conn_id"
    default_conn_name = "postgres_default"
    conn_type = "postgres"
    hook_name = "Postgres"
    supports_autocommit = True

    def __init__(self, *args, options=None, enable_log_db_messages=False, **kwargs):
        super().__init__(*args, **kwargs)
        self.options = options
        self.enable_log_db_messages = enable_log_db_messages
