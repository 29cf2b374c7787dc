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
        columns = answer["columns"]
        self.description = [(name, None, None, None, None, None, None) for name in columns] or None
        self._rows = [tuple(_value(cell) for cell in row) for row in answer["rows"]]
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
        if "float" in cell:
            return float(cell["float"])
        return cell["json"]
    if isinstance(cell, list):
        return [_value(item) for item in cell]
    return cell


def _parameters(given):
    """Parameters as the worker takes them; None when there are none."""
    if not given:
        return None
    if hasattr(given, "items"):
        return {str(name): _parameter(value) for name, value in given.items()}
    if isinstance(given, (str, bytes)):
        raise TypeError("parameters must be a list or a dict, not text")
    return [_parameter(value) for value in given]


def _parameter(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (bytes, bytearray)):
        import base64

        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, (int, float)) or type(value).__name__ == "Decimal":
        return {"number": str(value)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_parameter(item) for item in value]
    if type(value).__name__ in ("datetime", "date", "time", "DateTime", "Date", "Time", "UUID"):
        return str(value)
    raise TypeError(f"a parameter is a {type(value).__name__}, which has no literal in SQL")


class DbApiHook(BaseHook):
    """Runs statements on the database of a connection."""

    conn_name_attr = None
    default_conn_name = "default_conn_id"
    conn_type = None
    hook_name = None
    supports_autocommit = False

    def __init__(self, *args, schema=None, log_sql=True, **kwargs):
        super().__init__()
        if not self.conn_name_attr:
            raise Exception("conn_name_attr is not defined")
        named = kwargs.get(self.conn_name_attr, self.default_conn_name)
        setattr(self, self.conn_name_attr, args[0] if len(args) == 1 else named)
        self.schema = schema
        self.log_sql = log_sql

    def get_conn_id(self) -> str:
        """The connection's id."""
        return getattr(self, self.conn_name_attr)

    def _updraft_settings(self):
        """What the hook was made with that goes over its connection: `schema`, `options`."""
        return {}

    def run(
        self,
        sql: str | Iterable[str],
        autocommit: bool = False,
        parameters: Iterable | Mapping[str, Any] | None = None,
        handler: Any = None,
        split_statements: bool = False,
        return_last: bool = True,
    ) -> Any:
        """Run one statement or several, in one session; they are committed together.

        :param sql: The statement, or a list of them.
        :param autocommit: Commit each statement when it has run, on databases that can.
        :param parameters: Values for the statement's placeholders: a list, or a dict for named ones.
        :param handler: A function that is given the cursor and makes the result.
        :param split_statements: Split one text into statements first; pass a list of statements instead.
        :param return_last: Give the result of the last statement of a text that was split.
        """
        if split_statements:
            raise ValueError("split_statements is not done by the worker: pass a list of statements")
        obstacle = self._updraft_obstacle()
        if obstacle is not None:
            raise ValueError(f"{type(self).__name__} does not run on this worker: it {obstacle}")
        statements = [sql] if isinstance(sql, str) else list(sql)
        if not any(statement.strip() for statement in statements):
            raise ValueError("List of SQL statements is empty")
        answers = ask(
            "sql",
            self.get_conn_id(),
            conn_type=self.conn_type,
            statements=statements,
            parameters=_parameters(parameters),
            autocommit=bool(autocommit),
            fetch=handler is not None,
            log_sql=bool(self.log_sql),
            **self._updraft_settings(),
        )
        self.descriptions = []
        if handler is None:
            return None
        results = []
        for cursor in map(_Cursor, answers):
            self.descriptions.append(cursor.description)
            results.append(handler(cursor))
        return results[0] if isinstance(sql, str) else results

    def _updraft_obstacle(self):
        """Why the hook, as it was made, can't run here; None when it can."""
        return None

    def get_records(self, sql: str | list[str], parameters: Iterable | Mapping[str, Any] | None = None) -> Any:
        """Run a statement and give all rows.

        :param sql: The statement, or a list of them; then the rows of each are given.
        :param parameters: Values for the statement's placeholders: a list, or a dict for named ones.
        """
        return self.run(sql=sql, parameters=parameters, handler=fetch_all_handler)

    def get_first(self, sql: str | list[str], parameters: Iterable | Mapping[str, Any] | None = None) -> Any:
        """Run a statement and give the first row.

        :param sql: The statement, or a list of them; then the first row of each is given.
        :param parameters: Values for the statement's placeholders: a list, or a dict for named ones.
        """
        return self.run(sql=sql, parameters=parameters, handler=fetch_one_handler)

    @property
    def last_description(self):
        """The columns of the last statement that was given a handler."""
        return self.descriptions[-1] if getattr(self, "descriptions", None) else None

    def test_connection(self):
        """Can the database be reached?"""
        try:
            self.get_first("SELECT 1")
        except Exception as error:
            return False, str(error)
        return True, "Connection successfully tested"

    get_df = get_df_by_chunks = not_here("needs pandas or polars, which the worker does not have")
    get_pandas_df = get_pandas_df_by_chunks = get_df
    get_conn = get_cursor = not_here("hands out the connection object of a Python driver")
    get_sqlalchemy_engine = get_uri = not_here("needs SQLAlchemy")
    insert_rows = not_here("writes rows through a Python driver")
    bulk_load = bulk_dump = not_here("reads or writes files of the worker")
