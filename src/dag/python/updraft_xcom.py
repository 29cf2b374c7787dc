"""XComs in wire form: JSON with an envelope around what JSON can't say, as Airflow's `airflow.sdk.serde` writes it.

Also read here: the `{"$": kind}` form in which Rust passes arguments of operators (see dag/definitions.rs).
"""

from updraft_values import kept, qualified_name

CLASS = "__classname__"
VERSION = "__version__"
DATA = "__data__"

_MAX_DEPTH = 200


def encode(value, depth=0):
    """A value in wire form.

    Raises TypeError for what Airflow does not put into an XCom, ValueError for NaN and infinities.
    """
    if depth > _MAX_DEPTH:
        raise RecursionError("maximum recursion depth reached for serialization")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (str, int, float)):
        if hasattr(type(value), "__members__"):
            return encode(value.value, depth + 1)
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            raise ValueError(
                f"Out of range float values are not JSON compliant: {value!r}. Return None or a text instead of it."
            )
        for kind in (str, int, float):
            if isinstance(value, kind):
                return value if type(value) is kind else kind(value)
    if type(value) is list:
        return [encode(item, depth + 1) for item in value]
    if type(value) is dict or (isinstance(value, dict) and not hasattr(type(value), "serialize")):
        if CLASS in value or "__id__" in value:
            raise AttributeError(f"reserved key {CLASS} found in dict to serialize")
        return {str(key): encode(item, depth + 1) for key, item in value.items()}
    if isinstance(value, tuple):
        return _envelope("builtins.tuple", 1, [encode(item, depth + 1) for item in value])
    if isinstance(value, frozenset):
        return _envelope("builtins.frozenset", 1, [encode(item, depth + 1) for item in value])
    if isinstance(value, set):
        return _envelope("builtins.set", 1, [encode(item, depth + 1) for item in value])
    for known in (_encode_time, _encode_number):
        encoded = known(value)
        if encoded is not None:
            return encoded
    cls = type(value)
    if hasattr(cls, "model_dump") and hasattr(cls, "model_fields"):
        return _envelope(qualified_name(cls), 1, value.model_dump(mode="json"))
    if callable(getattr(cls, "serialize", None)) and not isinstance(value, type):
        return _envelope(qualified_name(cls), getattr(cls, "__version__", 1), encode(value.serialize(), depth + 1))
    fields = getattr(cls, "__dataclass_fields__", None) or getattr(cls, "__attrs_attrs__", None)
    if fields is not None and not isinstance(value, type):
        names = list(fields) if isinstance(fields, dict) else [field.name for field in fields]
        data = {name: encode(getattr(value, name), depth + 1) for name in names}
        return _envelope(qualified_name(cls), getattr(cls, "__version__", 0), data)
    raise TypeError(
        f"Cannot serialize object of type {cls}. Give it a `serialize()` method and a `deserialize(data, version)` "
        "staticmethod, or decorate the class with @dataclass or @attr.define. See: "
        "https://airflow.apache.org/docs/apache-airflow/stable/authoring-and-scheduling/serializers.html"
    )


def _envelope(name, version, data):
    return {CLASS: name, VERSION: version, DATA: data}


def _encode_time(value):
    if not any(hasattr(type(value), name) for name in ("isoformat", "total_seconds", "utcoffset")):
        return None
    import datetime

    if isinstance(value, datetime.timedelta):
        return _envelope("datetime.timedelta", 2, value.total_seconds())
    pendulum = type(value).__module__.startswith("pendulum")
    if isinstance(value, datetime.datetime):
        name = "pendulum.datetime.DateTime" if pendulum else "datetime.datetime"
        return _envelope(name, 2, {"timestamp": value.timestamp(), "tz": _encode_zone(value.tzinfo, value, pendulum)})
    if isinstance(value, datetime.date):
        return _envelope("pendulum.date.Date" if pendulum else "datetime.date", 2, value.isoformat())
    if isinstance(value, datetime.tzinfo):
        zone = _encode_zone(value, None, True)
        return _envelope(zone[DATA][1], 1, zone[DATA][0])
    return None


def _encode_zone(zone, moment, pendulum):
    import datetime

    if zone is None:
        return None
    offset = zone.utcoffset(moment)
    name = getattr(zone, "key", None) or getattr(zone, "name", None)
    if zone is datetime.timezone.utc or (name == "UTC" and not pendulum):
        tuple_data = ["UTC", "pendulum.tz.timezone.FixedTimezone", 1, True]
    elif pendulum and isinstance(name, str) and not name.startswith(("+", "-")):
        tuple_data = [name, "pendulum.tz.timezone.Timezone", 1, True]
    elif isinstance(name, str) and not name.startswith(("+", "-")):
        tuple_data = [name, "zoneinfo.ZoneInfo", 1, True]
    else:
        # Airflow writes a fixed offset of the standard library in a form that it can't read back.
        tuple_data = [int(offset.total_seconds()) if offset else 0, "pendulum.tz.timezone.FixedTimezone", 1, True]
    return _envelope("builtins.tuple", 1, tuple_data)


def _encode_number(value):
    name = type(value).__name__
    if name == "Decimal":
        if not value.is_finite():
            raise ValueError(f"Out of range float values are not JSON compliant: {value!r}")
        whole = value == value.to_integral_value() and value.as_tuple().exponent >= 0
        return _envelope("decimal.Decimal", 1, int(value) if whole else float(value))
    if name == "UUID" and type(value).__module__ == "uuid":
        return _envelope("uuid.UUID", 1, str(value))
    return None


def decode(value):
    """The Python value behind a wire form."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$" in value:
        known, decoded = _decode_argument(value)
        if known:
            return decoded
    if CLASS in value and VERSION in value:
        return _decode_class(value[CLASS], value.get(DATA))
    if "__type" in value and "__var" in value:
        return _decode_legacy(value["__type"], value["__var"])
    return {key: decode(item) for key, item in value.items()}


def _decode_argument(value):
    kind = value["$"]
    if kind == "object" and "handle" in value:
        return True, kept(value["handle"])
    if "items" in value and kind in ("tuple", "set", "dict"):
        if kind == "dict":
            return True, {decode(key): decode(item) for key, item in value["items"]}
        items = [decode(item) for item in value["items"]]
        return True, tuple(items) if kind == "tuple" else set(items)
    if "value" in value and kind in ("datetime", "date", "time", "timedelta"):
        import datetime

        text = value["value"]
        if kind == "timedelta":
            return True, datetime.timedelta(seconds=float(text))
        return True, getattr(datetime, kind).fromisoformat(text)
    return False, None


def _decode_legacy(kind, data):
    if kind == "dict":
        return {key: decode(item) for key, item in data.items()}
    if kind in ("tuple", "set", "frozenset"):
        items = [decode(item) for item in data]
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)
    if kind == "timedelta":
        import datetime

        return datetime.timedelta(seconds=data)
    if kind == "datetime":
        import pendulum

        return pendulum.from_timestamp(data)
    return decode(data)


def _decode_class(name, data):
    if name in ("builtins.tuple", "builtins.set", "builtins.frozenset"):
        items = [decode(item) for item in data]
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[name[9:]](items)
    if name in ("datetime.datetime", "pendulum.datetime.DateTime", "pendulum.DateTime"):
        return _decode_datetime(name, data)
    if name == "datetime.timedelta":
        import datetime

        return datetime.timedelta(seconds=data)
    if name == "datetime.date":
        import datetime

        return datetime.date.fromisoformat(data)
    if name == "pendulum.date.Date":
        import pendulum

        return pendulum.Date.fromisoformat(data)
    if name in ("zoneinfo.ZoneInfo", "pendulum.tz.timezone.Timezone", "pendulum.tz.timezone.FixedTimezone"):
        return _zone(data)
    if name == "decimal.Decimal":
        import decimal

        return decimal.Decimal(str(data))
    if name == "uuid.UUID":
        import uuid

        return uuid.UUID(data)
    cls = find_class(name)
    decoded = decode(data)
    if cls is None:
        return decoded
    if hasattr(cls, "model_validate"):
        return cls.model_validate(decoded)
    if hasattr(cls, "deserialize"):
        return cls.deserialize(decoded, 1)
    if isinstance(decoded, dict):
        return cls(**decoded)
    return cls(decoded)


def _zone(name):
    import pendulum

    return pendulum.timezone(name)


def _decode_datetime(name, data):
    import pendulum

    zone = data.get("tz")
    zone = decode(zone) if isinstance(zone, dict) else zone
    if isinstance(zone, (list, tuple)):
        zone = zone[0] or "UTC"
    moment = pendulum.from_timestamp(data["timestamp"], tz=_zone(zone) if zone is not None else "UTC")
    if name.startswith("datetime."):
        import datetime

        moment = datetime.datetime(
            moment.year,
            moment.month,
            moment.day,
            moment.hour,
            moment.minute,
            moment.second,
            moment.microsecond,
            None if zone is None else moment.tzinfo,
        )
    return moment


def find_class(name):
    """The class of that qualified name; None when its module is not here.

    The name of a Dag file's module holds a hash of its path, which differs between machines: a class of another
    machine's copy of this file is this file's.
    """
    import sys

    module_name, _, rest = name.rpartition(".")
    attributes = [rest]
    while module_name:
        module = sys.modules.get(module_name) or _same_dag_file(module_name)
        if module is None and not module_name.startswith("unusual_prefix_"):
            try:
                __import__(module_name)
                module = sys.modules.get(module_name)
            except ImportError:
                module = None
        if module is not None:
            found = module
            for attribute in attributes:
                found = getattr(found, attribute, None)
            return found if isinstance(found, type) else None
        module_name, _, rest = module_name.rpartition(".")
        attributes.insert(0, rest)
    return None


def _same_dag_file(module_name):
    if not module_name.startswith("unusual_prefix_"):
        return None
    import sys

    stem = module_name[len("unusual_prefix_") + 41 :]
    for name, module in list(sys.modules.items()):
        if name.startswith("unusual_prefix_") and name[len("unusual_prefix_") + 41 :] == stem:
            return module
    return None
