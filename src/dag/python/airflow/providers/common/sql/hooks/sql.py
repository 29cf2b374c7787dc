"""`DbApiHook`: statements on a database; the worker's driver runs them."""

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk.bases.hook import BaseHook
from updraft_native_hook import ask, not_here


def fetch_all_handler(cursor):
    """All rows."""
    return cursor.fetchall() if cursor.description is not None else None


def fetch_one_handler(cursor):
    """The first row."""
    return cursor.fetchone() if cursor.description is not None else None


class _Cursor:
    """What a statement gave, for handlers."""

    def __init__(self, answer):
        columns = (answer or {}).get("columns") or ()
        self.description = [(name, None, None, None, None, None, None) for name in columns] or None
        self._rows = [tuple(_value(cell) for cell in row) for row in (answer or {}).get("rows") or ()]
        self.rowcount = len(self._rows) if columns else -1

    def fetchall(self):
        """The rows that are left."""
        rows, self._rows = self._rows, []
        return rows

    def fetchone(self):
        """The next row."""
        return self._rows.pop(0) if self._rows else None

    def __iter__(self):
        return iter(self.fetchall())


def _value(cell):
    if isinstance(cell, dict):
        if "base64" in cell:
            import base64

            return base64.b64decode(cell["base64"])
        return cell["json"]
    if isinstance(cell, list):
        return [_value(item) for item in cell]
    return cell


class DbApiHook(BaseHook):
    """Runs statements on the database of a connection."""

    conn_name_attr = None
    default_conn_name = "default_conn_id"
    conn_type = None
    supports_autocommit = False

    def __init__(self, *args, schema=None, log_sql=True, **kwargs):
        super().__init__()
        if not self.conn_name_attr:
            raise Exception("conn_name_attr is not defined")
        if len(args) == 1:
            setattr(self, self.conn_name_attr, args[0])
        elif self.conn_name_attr not in kwargs:
            setattr(self, self.conn_name_attr, self.default_conn_name)
        else:
            setattr(self, self.conn_name_attr, kwargs[self.conn_name_attr])
        self.schema = schema
        self.log_sql = log_sql

    def get_conn_id(self) -> str:
        """The connection's id."""
        return getattr(self, self.conn_name_attr)

    def run(
        self,
        sql: str | Iterable[str],
        autocommit: bool = False,
        parameters: Iterable | Mapping[str, Any] | None = None,
        handler: Any = None,
        split_statements: bool = False,
        return_last: bool = True,
    ) -> Any:
        """Run one statement or several, and commit.

        :param sql: The statement, or a list of them.
        :param autocommit: Without effect here: each statement is committed when it has run.
        :param parameters: Values for placeholders; write the values into the statement instead.
        :param handler: A function that is given the cursor and makes the result.
        :param split_statements: Split the text into statements first.
        :param return_last: Give the result of the last statement only.
        """
        if parameters:
            raise ValueError("parameters are not taken by the worker's databases yet: write the values into the SQL")
        statements = [sql] if isinstance(sql, str) else list(sql)
        if split_statements:
            raise ValueError("split_statements is not done by the worker: pass a list of statements")
        if not statements:
            raise ValueError("List of SQL statements is empty")
        results = []
        for statement in statements:
            if self.log_sql:
                self.log.info("Running statement: %s, parameters: %s", statement, parameters)
            answer = ask("sql", self.get_conn_id(), conn_type=self.conn_type, statements=[statement])
            results.append(handler(_Cursor(answer)) if handler is not None else None)
        if handler is None:
            return None
        return results[-1] if return_last or isinstance(sql, str) else results

    def get_records(
        self, sql: str | list[str], parameters: Iterable | Mapping[str, Any] | None = None
    ) -> Any:
        """Run a statement and give all rows.

        :param sql: The statement, or a list of them; the rows of the last are given.
        :param parameters: Values for placeholders; write the values into the statement instead.
        """
        return self.run(sql=sql, parameters=parameters, handler=fetch_all_handler)

    def get_first(self, sql: str | list[str], parameters: Iterable | Mapping[str, Any] | None = None) -> Any:
        """Run a statement and give the first row.

        :param sql: The statement, or a list of them; the row of the last is given.
        :param parameters: Values for placeholders; write the values into the statement instead.
        """
        return self.run(sql=sql, parameters=parameters, handler=fetch_one_handler)

    @not_here("data frames need pandas or polars")
    def get_df(self, sql, parameters=None, *, df_type="pandas", **kwargs):
        """Gives a data frame, on Python workers."""
        raise RuntimeError(
            "get_df needs pandas or polars, which the worker does not have; use get_records, or send the task to a "
            "queue that a Python worker serves"
        )

    get_pandas_df = get_df

    @not_here("a connection object of a Python driver")
    def get_conn(self):
        """Gives a driver's connection, on Python workers."""
        raise RuntimeError("the worker has no Python driver: use get_records, get_first or run")

    get_cursor = get_sqlalchemy_engine = get_conn
