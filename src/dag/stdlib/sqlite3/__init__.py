"""`sqlite3` without a database: what others import, and a refusal to connect."""

apilevel, paramstyle, threadsafety = "2.0", "qmark", 1
sqlite_version, sqlite_version_info, version = "0.0.0", (0, 0, 0), "2.6.0"
PARSE_DECLTYPES, PARSE_COLNAMES, SQLITE_OK = 1, 2, 0


class Warning(Exception):
    pass


class Error(Exception):
    pass


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


def connect(*args, **kwargs):
    raise OperationalError(
        "databases can't be opened from the Dag interpreter; give the agent a SQLToolset, or run this task on a Python worker"
    )


class Connection:
    __init__ = connect


class Cursor:
    __init__ = connect


class Row:
    __init__ = connect


class Blob:
    __init__ = connect


Binary = memoryview
_adapters, _converters = {}, {}


def register_adapter(kind, adapter):
    _adapters[kind] = adapter


def register_converter(name, converter):
    _converters[name] = converter


def complete_statement(statement):
    return statement.rstrip().endswith(";")


def __getattr__(name):
    if name in ("Date", "Time", "Timestamp"):
        import datetime

        return {"Date": datetime.date, "Time": datetime.time, "Timestamp": datetime.datetime}[name]
    raise AttributeError(f"module 'sqlite3' has no attribute {name!r}")
