"""Types with limits."""

from typing import Annotated, Any

from pydantic.errors import Fault
from pydantic.fields import FieldInfo
from pydantic.functional_validators import AfterValidator

PositiveInt = Annotated[int, FieldInfo(gt=0)]
NegativeInt = Annotated[int, FieldInfo(lt=0)]
NonNegativeInt = Annotated[int, FieldInfo(ge=0)]
NonPositiveInt = Annotated[int, FieldInfo(le=0)]
PositiveFloat = Annotated[float, FieldInfo(gt=0)]
NegativeFloat = Annotated[float, FieldInfo(lt=0)]
NonNegativeFloat = Annotated[float, FieldInfo(ge=0)]
NonPositiveFloat = Annotated[float, FieldInfo(le=0)]
FiniteFloat = Annotated[float, FieldInfo(allow_inf_nan=False)]
StrictStr = Annotated[str, FieldInfo(strict=True)]
StrictInt = Annotated[int, FieldInfo(strict=True)]
StrictFloat = Annotated[float, FieldInfo(strict=True)]
StrictBool = Annotated[bool, FieldInfo(strict=True)]
StrictBytes = Annotated[bytes, FieldInfo(strict=True)]
JsonValue = Any
ByteSize = int


class StringConstraints:
    """Limits of a text."""

    def __init__(self, *, strip_whitespace=None, to_upper=None, to_lower=None, **kwargs):
        self.constraints = {name: value for name, value in kwargs.items() if value is not None}
        self._strip = strip_whitespace
        self._upper = to_upper
        self._lower = to_lower
        self.mode = "before"
        self.func = self._change if strip_whitespace or to_upper or to_lower else None

    def _change(self, value):
        if not isinstance(value, str):
            return value
        value = value.strip() if self._strip else value
        value = value.upper() if self._upper else value
        return value.lower() if self._lower else value


def constr(**kwargs):
    """A text with limits."""
    return Annotated[str, StringConstraints(**kwargs)]


def conint(**kwargs):
    """A whole number with limits."""
    return Annotated[int, FieldInfo(**kwargs)]


def confloat(**kwargs):
    """A number with limits."""
    return Annotated[float, FieldInfo(**kwargs)]


def conbytes(**kwargs):
    """Bytes with limits."""
    return Annotated[bytes, FieldInfo(**kwargs)]


def condecimal(**kwargs):
    """A decimal with limits."""
    from decimal import Decimal

    return Annotated[Decimal, FieldInfo(**kwargs)]


def condate(**kwargs):
    """A date with limits."""
    from datetime import date

    return Annotated[date, FieldInfo(**kwargs)]


def conlist(item_type, *, min_length=None, max_length=None, **kwargs):
    """A list with limits."""
    return Annotated[list[item_type], FieldInfo(min_length=min_length, max_length=max_length)]


def conset(item_type, *, min_length=None, max_length=None):
    """A set with limits."""
    return Annotated[set[item_type], FieldInfo(min_length=min_length, max_length=max_length)]


class _Text(str):
    """A text of a certain form."""

    _json_schema = {"type": "string"}

    @classmethod
    def _check_value(cls, value):
        if not isinstance(value, str):
            raise Fault("string_type", "Input should be a valid string", value)
        return cls._checked(value)


class EmailStr(_Text):
    """An e-mail address."""

    _json_schema = {"format": "email", "type": "string"}

    @classmethod
    def _checked(cls, value):
        name, at, domain = value.strip().rpartition("@")
        if not name or not at or "." not in domain or " " in value.strip():
            raise Fault(
                "value_error",
                "value is not a valid email address: An email address must have an @-sign and a domain.",
                value,
            )
        return f"{name}@{domain.lower()}"


class AnyUrl(_Text):
    """An address."""

    _json_schema = {"format": "uri", "minLength": 1, "type": "string"}
    _schemes = None

    @classmethod
    def _checked(cls, value):
        scheme, separator, rest = value.strip().partition("://")
        if not separator or not scheme or not rest:
            raise Fault("url_parsing", "Input should be a valid URL, relative URL without a base", value)
        if cls._schemes is not None and scheme.lower() not in cls._schemes:
            raise Fault("url_scheme", "URL scheme should be 'http' or 'https'", value)
        if "/" not in rest:
            rest += "/"
        return cls(f"{scheme.lower()}://{rest}")

    @property
    def scheme(self):
        """The scheme."""
        return self.partition("://")[0]

    @property
    def host(self):
        """The host."""
        return self.partition("://")[2].partition("/")[0].rpartition("@")[2].partition(":")[0]

    def _dumped(self):
        return str(self)


class HttpUrl(AnyUrl):
    """A web address."""

    _json_schema = {"format": "uri", "maxLength": 2083, "minLength": 1, "type": "string"}
    _schemes = ("http", "https")


class SecretStr:
    """A text that `repr` and dumps hide."""

    _json_schema = {"format": "password", "type": "string", "writeOnly": True}

    def __init__(self, secret_value):
        self._secret_value = secret_value

    @classmethod
    def _check_value(cls, value):
        return value if isinstance(value, cls) else cls(value)

    def get_secret_value(self):
        """The text."""
        return self._secret_value

    def _dumped(self):
        return str(self)

    def __str__(self):
        return "**********" if self._secret_value else ""

    def __repr__(self):
        return f"{type(self).__name__}({str(self)!r})"

    def __eq__(self, other):
        return type(self) is type(other) and self._secret_value == other._secret_value

    def __hash__(self):
        return hash(self._secret_value)

    def __len__(self):
        return len(self._secret_value)


class SecretBytes(SecretStr):
    """Bytes that `repr` and dumps hide."""


def _aware(value):
    if value.tzinfo is None:
        raise ValueError("Input should have timezone info")
    return value


def _naive(value):
    if value.tzinfo is not None:
        raise ValueError("Input should not have timezone info")
    return value


def __getattr__(name):
    import datetime

    if name in ("AwareDatetime", "FutureDatetime", "PastDatetime"):
        return Annotated[datetime.datetime, AfterValidator(_aware)] if name == "AwareDatetime" else datetime.datetime
    if name == "NaiveDatetime":
        return Annotated[datetime.datetime, AfterValidator(_naive)]
    if name in ("FutureDate", "PastDate"):
        return datetime.date
    if name in ("UUID1", "UUID3", "UUID4", "UUID5"):
        import uuid

        return uuid.UUID
    if name in ("FilePath", "DirectoryPath"):
        import pathlib

        return pathlib.Path
    if name in ("Base64Str", "Base64Bytes"):
        return str if name == "Base64Str" else bytes
    if name == "Json":
        return Any
    raise AttributeError(f"module 'pydantic.types' has no attribute {name!r}")


def parse_duration(text):
    """A timedelta from ISO 8601 text, from `[days ]hh:mm[:ss]` or from seconds."""
    import datetime
    import re

    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(
        rf"([+-])?P(?:{number}W)?(?:{number}D)?(?:T(?:{number}H)?(?:{number}M)?(?:{number}S)?)?", text.strip()
    )
    if match:
        sign, *parts = match.groups()
        weeks, days, hours, minutes, seconds = (float(part or 0) for part in parts)
        delta = datetime.timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
        return -delta if sign == "-" else delta
    match = re.fullmatch(r"([+-])?(?:(\d+) (?:days?,? )?)?(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?", text.strip())
    if match:
        sign, days, hours, minutes, seconds = match.groups()
        delta = datetime.timedelta(
            days=int(days or 0), hours=int(hours), minutes=int(minutes), seconds=float(seconds or 0)
        )
        return -delta if sign == "-" else delta
    try:
        return datetime.timedelta(seconds=float(text))
    except ValueError:
        raise Fault(
            "time_delta_parsing", "Input should be a valid duration, invalid digit in duration", text
        ) from None


def format_duration(delta):
    """A timedelta as ISO 8601 text."""
    sign = "-" if delta.days < 0 else ""
    delta = abs(delta)
    text = f"{sign}P"
    if delta.days:
        text += f"{delta.days}D"
    hours, rest = divmod(delta.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    clock = f"{hours}H" if hours else ""
    clock += f"{minutes}M" if minutes else ""
    if seconds or delta.microseconds:
        clock += f"{seconds}.{delta.microseconds:06d}".rstrip("0").rstrip(".") + "S"
    if clock:
        text += "T" + clock
    return text + ("T0S" if text in ("P", "-P") else "")
