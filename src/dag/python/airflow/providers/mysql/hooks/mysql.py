"""`MySqlHook`: a MySQL or MariaDB database."""

from airflow.providers.common.sql.hooks.sql import DbApiHook
from updraft_native_hook import not_here


class MySqlHook(DbApiHook):
    """Runs statements on a MySQL or MariaDB database."""

    conn_name_attr = "mysql_conn_id"
    default_conn_name = "mysql_default"
    conn_type = "mysql"
    hook_name = "MySQL"
    supports_autocommit = True

    def __init__(self, *args, local_infile=False, init_command=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.local_infile, self.init_command = local_infile, init_command

    def _updraft_settings(self):
        return {"schema": self.schema}

    def _updraft_obstacle(self):
        for name in ("local_infile", "init_command"):
            if getattr(self, name):
                return f"has {name}, which is not done natively"
        return None

    bulk_load_custom = not_here("reads files of the worker")
    get_iam_token = not_here("needs an AWS client")
