"""Checks of values by types, in pydantic's lax mode: what may be converted is converted.

A check is a function `check(value) -> value` that raises `Fault` or `Faults`.
"""

from pydantic.errors import Fault, Faults, at

_NONE = type(None)
_simple = {}


def check_for(annotation, constraints=None, owner=None):
    """The check for a type."""
    if constraints:
        return _constrained(check_for(annotation, None, owner), constraints)
    check = _simple.get(annotation) if _hashable(annotation) else None
    if check is not None:
        return check
    return _compound(annotation, owner)


_NAMES = {"NoneType": "none", "Any": "any", "object": "any", "Decimal": "decimal", "UUID": "uuid"}


def display_name(annotation):
    """How messages name a type: as pydantic names the check of it."""
    import typing

    if annotation is None:
        return "none"
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        others = [argument for argument in arguments if argument is not _NONE]
        name = ",".join(display_name(argument) for argument in others)
        name = name if len(others) == 1 else f"union[{name}]"
        return f"nullable[{name}]" if _NONE in arguments else name
    if origin is typing.Annotated:
        return _annotated_name(arguments)
    if origin is typing.Literal:
        return f"literal[{','.join(repr(value) for value in arguments)}]"
    if type(annotation).__name__ == "TypeAliasType":
        return display_name(annotation.__value__)
    kind = origin or annotation
    name = getattr(kind, "__name__", None) or str(kind)
    if hasattr(kind, "__members__"):
        mixin = next((f"{t.__name__}-" for t in (str, int, float) if issubclass(kind, t)), "")
        return f"{mixin}enum[{name}]"
    if kind in (list, set, frozenset):
        return f"{name}[{display_name(arguments[0]) if arguments else 'any'}]"
    if kind is dict:
        return f"dict[{','.join(map(display_name, arguments)) if arguments else 'any,any'}]"
    if kind is tuple and arguments:
        return f"tuple[{', '.join('...' if a is ... else display_name(a) for a in arguments)}]"
    return _NAMES.get(name, name)


def _annotated_name(arguments):
    annotation, *metadata = arguments
    name = display_name(annotation)
    for item in metadata:
        limits = getattr(item, "constraints", None)
        if name in ("int", "str", "float") and isinstance(limits, dict) and set(limits) - {"strict"}:
            name = f"constrained-{name}"
        function = getattr(item, "func", None)
        if function is not None and hasattr(type(item), "mode"):
            name = f"function-{item.mode}[{getattr(function, '__name__', 'function')}(), {name}]"
    return name


def _hashable(annotation):
    try:
        hash(annotation)
    except TypeError:
        return False
    return True


def _simple_check(*types):
    def decorate(function):
        for kind in types:
            _simple[kind] = function
        return function

    return decorate


@_simple_check(str)
def _check_str(value):
    if isinstance(value, str):
        return str(value.value) if hasattr(type(value), "__members__") else value
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            raise Fault(
                "string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string", value
            ) from None
    raise Fault("string_type", "Input should be a valid string", value)


@_simple_check(int)
def _check_int(value):
    if type(value) is int:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise Fault("finite_number", "Input should be a finite number", value)
        if value == int(value):
            return int(value)
        raise Fault("int_from_float", "Input should be a valid integer, got a number with a fractional part", value)
    if isinstance(value, str):
        text = value.strip()
        head, dot, zeros = text.partition(".")
        if dot and not zeros.strip("0"):
            text = head
        try:
            return int(text)
        except ValueError:
            raise Fault(
                "int_parsing", "Input should be a valid integer, unable to parse string as an integer", value
            ) from None
    if type(value).__name__ == "Decimal" and value == int(value):
        return int(value)
    raise Fault("int_type", "Input should be a valid integer", value)


@_simple_check(float)
def _check_float(value):
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            raise Fault(
                "float_parsing", "Input should be a valid number, unable to parse string as a number", value
            ) from None
    if hasattr(type(value), "__float__"):
        return float(value)
    raise Fault("float_type", "Input should be a valid number", value)


_WORDS = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


@_simple_check(bool)
def _check_bool(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if isinstance(value, (int, str)):
        raise Fault("bool_parsing", "Input should be a valid boolean, unable to interpret input", value)
    raise Fault("bool_type", "Input should be a valid boolean", value)


@_simple_check(bytes)
def _check_bytes(value):
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise Fault("bytes_type", "Input should be a valid bytes", value)


@_simple_check(_NONE, None)
def _check_none(value):
    if value is None:
        return None
    raise Fault("none_required", "Input should be None", value)


@_simple_check(object)
def _check_anything(value):
    return value


def _constrained(check, constraints):
    limits = [
        (name, _LIMITS[name], limit) for name, limit in constraints.items() if name in _LIMITS and limit is not None
    ]
    if constraints.get("strict"):
        check = _strict(check)

    def constrained(given):
        value = check(given)
        if value is None:
            return None
        for name, test, limit in limits:
            fault = test(value, limit)
            if fault is not None:
                kind, message = fault
                raise Fault(kind, message, given, ctx={name: limit})
        return value

    return constrained


def _strict(check):
    def strict(value):
        checked = check(value)
        if checked is not value and checked != value or type(checked) is not type(value):
            kind = {str: "string", int: "int", float: "float", bool: "bool"}.get(type(checked), "value")
            names = {"string": "string", "int": "integer", "float": "number", "bool": "boolean"}
            raise Fault(f"{kind}_type", f"Input should be a valid {names.get(kind, 'value')}", value)
        return checked

    return strict


def _plural(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def _length_fault(value, limit, short):
    length = len(value)
    if (length >= limit) if short else (length <= limit):
        return None
    bound = "at least" if short else "at most"
    if isinstance(value, str):
        kind = "string_too_short" if short else "string_too_long"
        return kind, f"String should have {bound} {_plural(limit, 'character')}"
    if isinstance(value, bytes):
        return ("bytes_too_short" if short else "bytes_too_long"), f"Data should have {bound} {_plural(limit, 'byte')}"
    name = {list: "List", dict: "Dictionary", set: "Set", frozenset: "Frozenset", tuple: "Tuple"}.get(
        type(value), "Value"
    )
    kind = "too_short" if short else "too_long"
    return kind, f"{name} should have {bound} {_plural(limit, 'item')} after validation, not {length}"


def _pattern_fault(value, pattern):
    import re

    source = getattr(pattern, "pattern", pattern)
    if re.search(pattern, value):
        return None
    return "string_pattern_mismatch", f"String should match pattern '{source}'"


def _compare(kind, words, test):
    def limit(value, bound):
        return None if test(value, bound) else (kind, f"Input should be {words} {bound}")

    return limit


_LIMITS = {
    "gt": _compare("greater_than", "greater than", lambda a, b: a > b),
    "ge": _compare("greater_than_equal", "greater than or equal to", lambda a, b: a >= b),
    "lt": _compare("less_than", "less than", lambda a, b: a < b),
    "le": _compare("less_than_equal", "less than or equal to", lambda a, b: a <= b),
    "multiple_of": _compare("multiple_of", "a multiple of", lambda a, b: a % b == 0),
    "min_length": lambda value, limit: _length_fault(value, limit, True),
    "max_length": lambda value, limit: _length_fault(value, limit, False),
    "pattern": _pattern_fault,
    "allow_inf_nan": lambda value, allowed: (
        None
        if allowed or (value == value and value not in (float("inf"), float("-inf")))
        else ("finite_number", "Input should be a finite number")
    ),
}


def _compound(annotation, owner):
    import typing

    if annotation is typing.Any:
        return _check_anything
    if isinstance(annotation, str):
        return check_for(evaluate(annotation, owner), None, owner)
    if isinstance(annotation, typing.ForwardRef):
        return check_for(evaluate(annotation.__forward_arg__, owner), None, owner)
    if isinstance(annotation, typing.TypeVar):
        bound = getattr(annotation, "__bound__", None)
        return check_for(bound, None, owner) if bound is not None else _check_anything
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Annotated:
        return _annotated(arguments, owner)
    if origin is typing.Literal:
        return _literal(arguments)
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        return _union(arguments, owner)
    if origin in (typing.Final, typing.ClassVar, typing.Required, typing.NotRequired):
        return check_for(arguments[0], None, owner) if arguments else _check_anything
    if type(annotation).__name__ == "TypeAliasType":
        return check_for(annotation.__value__, None, owner)
    if type(annotation).__name__ == "NewType":
        return check_for(annotation.__supertype__, None, owner)
    container = _container(origin or annotation, arguments, owner)
    if container is not None:
        return container
    if isinstance(annotation, type):
        return _class(annotation, owner)
    if origin is not None and isinstance(origin, type):
        return _class(origin, owner)
    return _check_anything


def evaluate(text, owner):
    """The type that a text names, where the model was defined."""
    import sys
    import typing

    module = sys.modules.get(getattr(owner, "__module__", None))
    names = dict(vars(typing)) if module is None else dict(module.__dict__)
    names.update(getattr(owner, "_parent_namespace", None) or {})
    if owner is not None:
        names[owner.__name__] = owner
    try:
        return eval(text, names)
    except NameError as error:
        from pydantic.errors import PydanticUserError

        raise PydanticUserError(
            f"`{getattr(owner, '__name__', 'type')}` is not fully defined; you should define {error.name!r}, "
            "then call `model_rebuild()`.",
            "class-not-fully-defined",
        ) from error


def _annotated(arguments, owner):
    from pydantic.fields import FieldInfo

    annotation, *metadata = arguments
    constraints = {}
    functions = []
    for item in metadata:
        if isinstance(item, FieldInfo):
            constraints.update(item.constraints)
        elif hasattr(item, "constraints") and isinstance(item.constraints, dict):
            constraints.update(item.constraints)
        elif hasattr(type(item), "mode") and hasattr(item, "func"):
            functions.append(item)
    check = check_for(annotation, constraints, owner)
    for item in functions:
        check = with_function(check, item.func, item.mode)
    return check


def with_function(check, function, mode, info=None):
    """A check with a function before it, after it, around it or in its place."""
    if mode == "skip" or function is None and mode != "instance":
        return _check_anything if mode == "skip" else check
    if mode == "instance":
        return check

    def call(*args):
        extra = (info,) if info is not None and _wants_info(function, len(args)) else ()
        try:
            return function(*args, *extra)
        except (Fault, Faults):
            raise
        except AssertionError as error:
            raise Fault("assertion_error", f"Assertion failed, {error}", args[0], ctx={"error": error}) from error
        except ValueError as error:
            raise from_value_error(error, args[0]) from error

    if mode == "before":
        return lambda value: check(call(value))
    if mode == "plain":
        return call
    if mode == "wrap":
        return lambda value: call(value, check)
    return lambda value: call(check(value))


def from_value_error(error, value):
    """The fault for a ValueError that a validator raised."""
    from pydantic.errors import ValidationError

    if isinstance(error, ValidationError):
        return Faults(error._faults)
    return Fault("value_error", f"Value error, {error}", value, ctx={"error": error})


def _wants_info(function, given):
    import updraft_signature

    params = [p for p in updraft_signature.parameters(function) if p.positional]
    return len(params) > given


def _literal(values):
    def check(value):
        for allowed in values:
            if value == allowed and type(value) is type(allowed):
                return allowed
            if hasattr(type(allowed), "__members__") and value == allowed.value:
                return allowed
            if isinstance(value, str) and isinstance(allowed, str) and str(value) == allowed:
                return allowed
        raise Fault("literal_error", f"Input should be {_choices(values)}", value, ctx={"expected": _choices(values)})

    return check


def _choices(values):
    shown = [repr(getattr(value, "value", value)) for value in values]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _union(members, owner):
    nullable = _NONE in members
    others = [member for member in members if member is not _NONE]
    checks = [(member, check_for(member, None, owner)) for member in others]
    if len(checks) == 1:
        check = checks[0][1]
        return (lambda value: None if value is None else check(value)) if nullable else check

    def check(value):
        if value is None and nullable:
            return None
        for member, test in checks:
            # The member whose value this is already, before one that it could be converted to.
            if isinstance(member, type) and type(value) is member:
                return test(value)
        faults = []
        for member, test in checks:
            try:
                return test(value)
            except (Fault, Faults) as error:
                faults.extend(at(error, display_name(member)))
        raise Faults(faults)

    return check


def _items(checks_for_item, values):
    faults = []
    made = []
    for index, value in enumerate(values):
        try:
            made.append(checks_for_item(value))
        except (Fault, Faults) as error:
            faults.extend(at(error, index))
    if faults:
        raise Faults(faults)
    return made


def _container(kind, arguments, owner):
    import collections.abc as abc

    if kind in (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable):
        item = check_for(arguments[0], None, owner) if arguments else _check_anything

        def check_list(value):
            if isinstance(value, list) or isinstance(value, (tuple, set, frozenset)) or hasattr(value, "__next__"):
                return _items(item, value)
            raise Fault("list_type", "Input should be a valid list", value)

        return check_list
    if kind in (set, frozenset, abc.Set, abc.MutableSet):
        item = check_for(arguments[0], None, owner) if arguments else _check_anything
        make = frozenset if kind is frozenset else set

        def check_set(value):
            if isinstance(value, (list, tuple, set, frozenset)):
                return make(_items(item, value))
            raise Fault("set_type", "Input should be a valid set", value)

        return check_set
    if kind is tuple:
        return _tuple(arguments, owner)
    if kind in (dict, abc.Mapping, abc.MutableMapping):
        return _dict(arguments, owner)
    if kind is type or kind is abc.Callable:
        return _check_anything
    return None


def _tuple(arguments, owner):
    if not arguments or (len(arguments) == 2 and arguments[1] is ...):
        item = check_for(arguments[0], None, owner) if arguments else _check_anything

        def check_any_length(value):
            if isinstance(value, (list, tuple, set, frozenset)):
                return tuple(_items(item, value))
            raise Fault("tuple_type", "Input should be a valid tuple", value)

        return check_any_length
    checks = [check_for(argument, None, owner) for argument in arguments]

    def check(value):
        if not isinstance(value, (list, tuple)):
            raise Fault("tuple_type", "Input should be a valid tuple", value)
        faults = []
        made = []
        for index, test in enumerate(checks):
            if index >= len(value):
                faults.append(Fault("missing", "Field required", value, (index,)))
                continue
            try:
                made.append(test(value[index]))
            except (Fault, Faults) as error:
                faults.extend(at(error, index))
        if len(value) > len(checks):
            count = _plural(len(checks), "item")
            faults.append(
                Fault("too_long", f"Tuple should have at most {count} after validation, not {len(value)}", value)
            )
        if faults:
            raise Faults(faults)
        return tuple(made)

    return check


def _dict(arguments, owner):
    key_check = check_for(arguments[0], None, owner) if arguments else _check_anything
    value_check = check_for(arguments[1], None, owner) if len(arguments) > 1 else _check_anything

    def check(value):
        if not isinstance(value, dict) and not hasattr(type(value), "keys"):
            raise Fault("dict_type", "Input should be a valid dictionary", value)
        faults = []
        made = {}
        for key in value.keys():
            try:
                checked_key = key_check(key)
            except (Fault, Faults) as error:
                faults.extend(at(error, key, "[key]"))
                continue
            try:
                made[checked_key] = value_check(value[key])
            except (Fault, Faults) as error:
                faults.extend(at(error, key))
        if faults:
            raise Faults(faults)
        return made

    return check


def _class(cls, owner):
    if hasattr(cls, "_check_model"):
        return cls._check_model
    if hasattr(cls, "_check_value"):
        return cls._check_value
    if hasattr(cls, "__members__"):
        return _enum(cls)
    if hasattr(cls, "__required_keys__") or hasattr(cls, "__total__"):
        return _typed_dict(cls)
    if hasattr(cls, "__dataclass_fields__"):
        return _dataclass(cls)
    parser = _parser(cls)
    if parser is not None:
        return parser

    def check(value):
        if isinstance(value, cls):
            return value
        raise Fault(
            "is_instance_of", f"Input should be an instance of {cls.__name__}", value, ctx={"class": cls.__name__}
        )

    return check


def _enum(cls):
    def check(value):
        if isinstance(value, cls):
            return value
        try:
            return cls(value)
        except ValueError:
            expected = _choices([member.value for member in cls])
            raise Fault("enum", f"Input should be {expected}", value, ctx={"expected": expected}) from None

    return check


def _typed_dict(cls):
    import typing

    hints = typing.get_type_hints(cls, include_extras=True)
    required = getattr(cls, "__required_keys__", frozenset(hints))
    checks = {name: check_for(hint, None, cls) for name, hint in hints.items()}

    def check(value):
        if not isinstance(value, dict):
            raise Fault("dict_type", "Input should be a valid dictionary", value)
        faults = []
        made = {}
        for name, test in checks.items():
            if name not in value:
                if name in required:
                    faults.append(Fault("missing", "Field required", value, (name,)))
                continue
            try:
                made[name] = test(value[name])
            except (Fault, Faults) as error:
                faults.extend(at(error, name))
        if faults:
            raise Faults(faults)
        return made

    return check


def _dataclass(cls):
    checks = None

    def check(value):
        nonlocal checks
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise Fault("dataclass_type", f"Input should be a dictionary or an instance of {cls.__name__}", value)
        if checks is None:
            import typing

            hints = typing.get_type_hints(cls, include_extras=True)
            checks = {name: check_for(hints.get(name, object), None, cls) for name in cls.__dataclass_fields__}
        faults = []
        made = {}
        for name, item in value.items():
            if name not in checks:
                continue
            try:
                made[name] = checks[name](item)
            except (Fault, Faults) as error:
                faults.extend(at(error, name))
        if faults:
            raise Faults(faults)
        try:
            return cls(**made)
        except TypeError:
            missing = [name for name in checks if name not in made and _is_needed(cls.__dataclass_fields__[name])]
            raise Faults([Fault("missing", "Field required", value, (name,)) for name in missing]) from None

    return check


def _is_needed(field):
    return all(type(value).__name__ == "_MISSING_TYPE" for value in (field.default, field.default_factory))


# How pydantic names what is wrong with the text of a date or time.
_TIMES = {
    "date": ("date_from_datetime_parsing", "Input should be a valid date or datetime", 10),
    "datetime": ("datetime_from_date_parsing", "Input should be a valid datetime or date", 10),
    "time": ("time_parsing", "Input should be in a valid time format", 5),
}


def _time_fault(kind, text):
    name, message, shortest = _TIMES[kind]
    why = "input is too short" if len(text.strip()) < shortest else _part_out_of_range(kind, text.strip())
    if why is None:
        why = "invalid character in hour" if kind == "time" else "invalid character in year"
    return Fault(name, f"{message}, {why}", text, ctx={"error": why})


def _part_out_of_range(kind, text):
    import datetime

    if kind == "time":
        for place, unit, most in ((0, "hour", 23), (3, "minute", 59), (6, "second", 59)):
            digits = text[place : place + 2]
            if digits.isdigit() and int(digits) > most:
                return f"{unit} value is outside expected range of 0-{most}"
        return None
    year, month, day = text[:4], text[5:7], text[8:10]
    if not (year + month + day).isdigit():
        return None
    if not 1 <= int(month) <= 12:
        return "month value is outside expected range of 1-12"
    try:
        datetime.date(max(int(year), 1), int(month), int(day))
    except ValueError:
        return "day value is outside expected range"
    # What is no datetime is read as a date.
    return "unexpected extra characters at the end of the input" if len(text) > 10 else None


def _date_of_moment(text):
    """The date in the text of a datetime, if its time is midnight."""
    import datetime

    try:
        moment = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise _time_fault("date", text) from None
    if moment.time() == datetime.time():
        return moment.date()
    message = "Datetimes provided to dates should have zero time - e.g. be exact dates"
    raise Fault("date_from_datetime_inexact", message, text)


def _parser(cls):
    """The check for a class of the standard library that has a text form."""
    name = f"{cls.__module__.lstrip('_')}.{cls.__name__}".replace("pydatetime.", "datetime.").replace(
        "pydecimal.", "decimal."
    )
    if name in ("datetime.datetime", "datetime.date", "datetime.time"):
        kind = name.rpartition(".")[2]

        def check_time(value):
            import datetime

            if isinstance(value, cls) and not (kind == "date" and isinstance(value, datetime.datetime)):
                return value
            if kind == "date" and isinstance(value, datetime.datetime):
                return value.date()
            if kind == "datetime" and isinstance(value, datetime.date):
                return cls(value.year, value.month, value.day)
            if kind == "datetime" and isinstance(value, (int, float)) and not isinstance(value, bool):
                return cls.fromtimestamp(value, datetime.timezone.utc)
            if isinstance(value, str):
                try:
                    return cls.fromisoformat(value.strip())
                except ValueError:
                    if kind == "date":
                        return _date_of_moment(value)
                    raise _time_fault(kind, value) from None
            raise Fault(f"{kind}_type", f"Input should be a valid {kind}", value)

        return check_time
    if name == "datetime.timedelta":

        def check_delta(value):
            if isinstance(value, cls):
                return value
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return cls(seconds=value)
            if isinstance(value, str):
                from pydantic.types import parse_duration

                return parse_duration(value)
            raise Fault("time_delta_type", "Input should be a valid duration", value)

        return check_delta
    if name == "decimal.Decimal":

        def check_decimal(value):
            if isinstance(value, cls):
                return value
            if isinstance(value, bool) or not isinstance(value, (int, float, str)):
                raise Fault(
                    "decimal_type", "Decimal input should be an integer, float, string or Decimal object", value
                )
            try:
                return cls(str(value).strip())
            except ArithmeticError:
                raise Fault("decimal_parsing", "Input should be a valid decimal", value) from None

        return check_decimal
    if name == "uuid.UUID":

        def check_uuid(value):
            if isinstance(value, cls):
                return value
            if isinstance(value, str):
                try:
                    return cls(value)
                except ValueError as error:
                    raise Fault("uuid_parsing", f"Input should be a valid UUID, {error}", value) from None
            raise Fault("uuid_type", "UUID input should be a string, bytes or UUID object", value)

        return check_uuid
    if cls.__module__.startswith("pathlib") or cls.__name__ in ("Path", "PurePath"):

        def check_path(value):
            if isinstance(value, cls):
                return value
            if isinstance(value, str):
                return cls(value)
            raise Fault("path_type", f"Input is not a valid path for {cls}", value)

        return check_path
    return None
