"""Plain scalars of YAML 1.1: which texts are numbers, dates and bools."""

import datetime
import re

_BOOLS = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)")
_SIXTIETHS = re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF|nan|NaN|NAN)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?"
    r"[ \t]*(Z|([-+])(\d\d?)(?::?(\d\d))?)?"
)


def value_of(text):
    """The value of a plain scalar."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    first = text[0]
    if first.isdigit() or first in "+-.":
        number = _number(text)
        if number is not None:
            return number
        if _DATE.fullmatch(text):
            try:
                return datetime.date.fromisoformat(text)
            except ValueError:
                return text
        found = _MOMENT.fullmatch(text)
        if found:
            return _moment(found)
    return text


def _number(text):
    if _INT.fullmatch(text):
        digits = text.replace("_", "")
        sign = -1 if digits[0] == "-" else 1
        digits = digits.lstrip("+-")
        if digits == "0":
            return 0
        for prefix, base in (("0b", 2), ("0x", 16), ("0", 8)):
            if digits.startswith(prefix):
                return sign * int(digits[len(prefix) :], base)
        return sign * int(digits)
    if _FLOAT.fullmatch(text) and text not in (".", "-.", "+."):
        return float(text.replace("_", ""))
    if _SIXTIETHS.fullmatch(text):
        value = 0
        for part in text.replace("_", "").lstrip("+-").split(":"):
            value = value * 60 + int(part)
        return -value if text[0] == "-" else value
    found = _SPECIAL.fullmatch(text)
    if found:
        value = float(found.group(2).lower())
        return -value if found.group(1) == "-" else value
    return None


def _moment(found):
    year, month, day, hour, minute, second, fraction, zone, sign, zone_hours, zone_minutes = found.groups()
    moment = datetime.datetime(
        int(year), int(month), int(day), int(hour), int(minute), int(second), int((fraction or "0")[:6].ljust(6, "0"))
    )
    if zone is None:
        return moment
    if zone == "Z":
        return moment.replace(tzinfo=datetime.timezone.utc)
    offset = datetime.timedelta(hours=int(zone_hours), minutes=int(zone_minutes or 0))
    return moment.replace(tzinfo=datetime.timezone(-offset if sign == "-" else offset))


def is_text(text):
    """Would the text, written plainly, be read as a text?"""
    return bool(text) and isinstance(value_of(text), str)
