"""`SQLToolset`: a database for an agent."""

from airflow.providers.common.ai.utils.toolset_base import AirflowToolset, check_max_retries
from updraft_hold import hold

_ALL = object()


class SQLToolset(AirflowToolset):
    """Lists tables, describes them and runs queries on one connection."""

    agent_template_fields = ("_db_conn_id",)

    def __init__(
        self,
        db_conn_id,
        *,
        allowed_tables=_ALL,
        allowed_functions=None,
        schema=None,
        allow_writes=False,
        max_rows=50,
        max_result_bytes=65536,
        max_columns=100,
        max_retries=None,
    ):
        check_max_retries(max_retries)
        if allowed_tables is not _ALL and not allowed_tables:
            raise ValueError(
                f"allowed_tables must name at least one table, got {allowed_tables!r}. Omit the argument to expose "
                "every table in the schema. An empty or missing value is rejected rather than read as "
                "'no restriction' so that an allow-list built at runtime cannot silently widen to every table."
            )
        hold(self, locals(), "_")
        self._allowed_tables = None if allowed_tables is _ALL else list(allowed_tables)
        self._allowed_functions = list(allowed_functions or ())

    @property
    def id(self):
        """`sql-` and the connection."""
        return f"sql-{self._db_conn_id}"

    def _updraft_spec(self, describe):
        from updraft_values import argument

        return {
            "sql": {
                "db_conn_id": argument(self._db_conn_id),
                "allowed_tables": _texts(self._allowed_tables),
                "allowed_functions": _texts(self._allowed_functions),
                "schema": self._schema,
                "allow_writes": bool(self._allow_writes),
                "max_rows": int(self._max_rows),
                "max_result_bytes": int(self._max_result_bytes),
                "max_columns": int(self._max_columns),
                "max_retries": self._max_retries,
            }
        }


def _texts(items):
    return None if items is None else [str(item) for item in items]
