"""Values on the border to Rust: JSON text, the arguments of operators, XComs in wire form, objects that stay here."""

try:
    from _json import encode_basestring as _quoted
    from _json import make_scanner as _make_scanner
except ImportError:  # an interpreter without the accelerator
    _quoted = _make_scanner = None

_kept = {}
_handles = {}


def keep(value):
    """A handle for an object that Rust may ask about later."""
    handle = _handles.get(id(value))
    if handle is None:
        handle = len(_kept) + 1
        _kept[handle] = value
        _handles[id(value)] = handle
    return handle


def kept(handle):
    """The object behind a handle."""
    try:
        return _kept[handle]
    except KeyError:
        raise LookupError(f"the Dag interpreter keeps no object with handle {handle}") from None


def forget():
    """Drops every object."""
    _kept.clear()
    _handles.clear()


class _Scanning:
    """How JSON text is read: Python's own rules, with NaN and infinities refused."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    memo = {}

    @staticmethod
    def parse_constant(name):
        raise ValueError(f"{name} is not JSON")

    parse_float = float
    parse_int = int


_scan = None


def from_json(text):
    """Reads JSON text."""
    global _scan
    if _scan is None:
        if _make_scanner is None:
            import json

            _scan = json.JSONDecoder(parse_constant=_Scanning.parse_constant).scan_once
        else:
            _scan = _make_scanner(_Scanning)
    text = text.strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("no JSON value") from None
    if end != len(text):
        raise ValueError(f"more text after the JSON value, at {end}")
    return value


def to_json(value):
    """Writes plain data as compact JSON text."""
    parts = []
    _write(value, parts)
    return "".join(parts)


def _write(value, parts):
    if isinstance(value, str):
        parts.append(_text(value))
    elif value is None:
        parts.append("null")
    elif value is True:
        parts.append("true")
    elif value is False:
        parts.append("false")
    elif isinstance(value, int):
        parts.append(int.__repr__(value))
    elif isinstance(value, float):
        if value != value or value in (_INFINITY, -_INFINITY):
            raise ValueError(f"{value!r} is not JSON; use a number or None")
        parts.append(float.__repr__(value))
    elif isinstance(value, dict):
        separator = "{"
        for key, item in value.items():
            parts.append(separator)
            parts.append(_text(key))
            parts.append(":")
            _write(item, parts)
            separator = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, (list, tuple)):
        separator = "["
        for item in value:
            parts.append(separator)
            _write(item, parts)
            separator = ","
        parts.append("]" if value else "[]")
    else:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_INFINITY = float("inf")


def _text(value):
    if _quoted is None:
        import json

        return json.dumps(value, ensure_ascii=False)
    quoted = _quoted(value)
    try:
        quoted.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair can't travel as UTF-8; as an escape it is what Python's json writes.
        quoted = "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in quoted)
    return quoted


def qualified_name(cls):
    """`module.QualName` of a class."""
    return f"{cls.__module__}.{cls.__qualname__}"


def short_repr(value, limit=500):
    """`repr`, cut to a length that is good to show, whatever the object does."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


# Arguments of operators: `Argument` in dag/definitions.rs ---------------------------------------


def argument(value):
    """An argument of an operator, as plain data with references where objects stood."""
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str or kind is int:
        return value
    if kind is float:
        return value if value == value and value not in (_INFINITY, -_INFINITY) else _reference(value)
    if isinstance(value, str):
        return str(getattr(value, "value", value)) if _is_enum(value) else str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if kind is list:
        return [argument(item) for item in value]
    if kind is dict:
        if "$" in value or not all(type(key) is str for key in value):
            return {"$": "dict", "items": [[argument(key), argument(item)] for key, item in value.items()]}
        return {key: argument(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [argument(item) for item in value]}
    if isinstance(value, (set, frozenset)):
        return {"$": "set", "items": [argument(item) for item in value]}
    # Asked of the class: an unavailable object has every attribute.
    if hasattr(kind, "iter_references"):
        operator = getattr(value, "operator", None)
        if operator is not None:
            return {"$": "xcom", "task_id": operator.task_id, "key": value.key}
        return _reference(value, resolve=True)
    if isinstance(value, list):
        return [argument(item) for item in value]
    time = _time(value)
    if time is not None:
        return time
    return _reference(value)


def _is_enum(value):
    return hasattr(type(value), "__members__")


def _time(value):
    if hasattr(type(value), "total_seconds"):
        return {"$": "timedelta", "value": repr(value.total_seconds())}
    if not hasattr(type(value), "isoformat"):
        return None
    import datetime

    if isinstance(value, datetime.datetime):
        return {"$": "datetime", "value": datetime.datetime.isoformat(value)}
    if isinstance(value, datetime.date):
        return {"$": "date", "value": datetime.date.isoformat(value)}
    if isinstance(value, datetime.time):
        return {"$": "time", "value": datetime.time.isoformat(value)}
    return None


def _reference(value, resolve=False):
    return {
        "$": "object",
        "handle": keep(value),
        "class": qualified_name(type(value)),
        "repr": short_repr(value),
        "resolve": resolve,
    }


# XComs in wire form ------------------------------------------------------------------------------


def encode(value):
    """A value in XCom wire form, as Airflow's `airflow.sdk.serde` writes it."""
    import updraft_xcom

    return updraft_xcom.encode(value)


def decode(value):
    """The Python value of an XCom in wire form."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    import updraft_xcom

    return updraft_xcom.decode(value)
