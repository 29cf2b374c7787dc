"""Texts of moments."""

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_TOKENS = (
    "LTS LT LLLL LLL LL L YYYY YY Y MMMM MMM MM Mo M DDDD DDD DD Do D dddd ddd dd d E e Qo Q wo HH H hh h mm m ss s "
    "SSSSSS SSSSS SSSS SSS SS S A ZZ Z zz z X x"
).split()


_PATTERNS = {
    "LTS": "h:mm:ss A",
    "LT": "h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "LLL": "MMMM D, YYYY h:mm A",
    "LL": "MMMM D, YYYY",
    "L": "MM/DD/YYYY",
}


def _ordinal(number):
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _offset(moment, separator):
    offset = moment.utcoffset()
    seconds = int(offset.total_seconds()) if offset is not None else 0
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{abs(seconds) // 3600:02d}{separator}{abs(seconds) // 60 % 60:02d}"


def _value(token, moment):
    hour = getattr(moment, "hour", 0)
    minute = getattr(moment, "minute", 0)
    second = getattr(moment, "second", 0)
    microsecond = getattr(moment, "microsecond", 0)
    if token in _PATTERNS:
        return format_moment(moment, _PATTERNS[token])
    if token[0] == "S":
        return f"{microsecond:06d}"[: len(token)]
    day_of_year = moment.timetuple().tm_yday if hasattr(moment, "timetuple") else 0
    weekday = moment.isoweekday()
    half = hour % 12 or 12
    values = {
        "YYYY": f"{moment.year:04d}",
        "YY": f"{moment.year % 100:02d}",
        "Y": str(moment.year),
        "MMMM": _MONTHS[moment.month - 1],
        "MMM": _MONTHS[moment.month - 1][:3],
        "MM": f"{moment.month:02d}",
        "Mo": _ordinal(moment.month),
        "M": str(moment.month),
        "DDDD": f"{day_of_year:03d}",
        "DDD": str(day_of_year),
        "DD": f"{moment.day:02d}",
        "Do": _ordinal(moment.day),
        "D": str(moment.day),
        "dddd": _DAYS[weekday - 1],
        "ddd": _DAYS[weekday - 1][:3],
        "dd": _DAYS[weekday - 1][:2],
        "d": str(weekday % 7),
        "e": str(weekday % 7),
        "wo": _ordinal(moment.isocalendar()[1]),
        "E": str(weekday),
        "Qo": _ordinal((moment.month + 2) // 3),
        "Q": str((moment.month + 2) // 3),
        "HH": f"{hour:02d}",
        "H": str(hour),
        "hh": f"{half:02d}",
        "h": str(half),
        "mm": f"{minute:02d}",
        "m": str(minute),
        "ss": f"{second:02d}",
        "s": str(second),
        "A": "AM" if hour < 12 else "PM",
    }
    if token in values:
        return values[token]
    if token in ("ZZ", "Z"):
        return _offset(moment, "" if token == "ZZ" else ":")
    if token in ("zz", "z"):
        return moment.tzname() if token == "zz" else str(getattr(moment.tzinfo, "name", None) or "")
    return str(int(moment.timestamp())) if token == "X" else str(int(moment.timestamp() * 1000))


def format_moment(moment, pattern):
    """A moment by a pattern of pendulum's tokens; text in brackets stays."""
    parts = []
    position = 0
    while position < len(pattern):
        if pattern[position] == "[":
            end = pattern.find("]", position)
            if end >= 0:
                parts.append(pattern[position + 1 : end])
                position = end + 1
                continue
        if pattern[position] == "\\" and position + 1 < len(pattern):
            parts.append(pattern[position + 1])
            position += 2
            continue
        for token in _TOKENS:
            if pattern.startswith(token, position):
                parts.append(_value(token, moment))
                position += len(token)
                break
        else:
            parts.append(pattern[position])
            position += 1
    return "".join(parts)


def parse_by(text, pattern):
    """The numbers in a text, by a pattern of pendulum's tokens."""
    import re

    names = {
        "YYYY": ("year", r"\d{4}"),
        "YY": ("short_year", r"\d{2}"),
        "MMMM": ("month_name", "|".join(_MONTHS)),
        "MMM": ("month_name", "|".join(name[:3] for name in _MONTHS)),
        "MM": ("month", r"\d{2}"),
        "M": ("month", r"\d{1,2}"),
        "DD": ("day", r"\d{2}"),
        "D": ("day", r"\d{1,2}"),
        "HH": ("hour", r"\d{2}"),
        "H": ("hour", r"\d{1,2}"),
        "hh": ("hour", r"\d{2}"),
        "h": ("hour", r"\d{1,2}"),
        "mm": ("minute", r"\d{2}"),
        "m": ("minute", r"\d{1,2}"),
        "ss": ("second", r"\d{2}"),
        "s": ("second", r"\d{1,2}"),
        "SSSSSS": ("fraction", r"\d{6}"),
        "SSS": ("fraction", r"\d{3}"),
        "A": ("half", "AM|PM|am|pm"),
        "Z": ("offset", r"[+-]\d{2}:?\d{2}"),
        "ZZ": ("offset", r"[+-]\d{2}:?\d{2}"),
        "z": ("zone", r"[A-Za-z_+\-0-9/]+"),
        "X": ("timestamp", r"\d+"),
    }
    expression = ""
    position = 0
    while position < len(pattern):
        if pattern[position] == "[":
            end = pattern.find("]", position)
            if end >= 0:
                expression += re.escape(pattern[position + 1 : end])
                position = end + 1
                continue
        for token in _TOKENS:
            if token in names and pattern.startswith(token, position):
                name, form = names[token]
                expression += f"(?P<{name}>{form})"
                position += len(token)
                break
        else:
            expression += re.escape(pattern[position])
            position += 1
    match = re.fullmatch(expression, text)
    if match is None:
        raise ValueError(f"String does not match format {pattern}")
    found = match.groupdict()
    if "month_name" in found:
        short = [name[:3].lower() for name in _MONTHS]
        found["month"] = short.index(found.pop("month_name")[:3].lower()) + 1
    if "short_year" in found:
        year = int(found.pop("short_year"))
        found["year"] = 2000 + year if year < 69 else 1900 + year
    if "half" in found:
        found["hour"] = int(found["hour"]) % 12 + (12 if found.pop("half").lower() == "pm" else 0)
    if "fraction" in found:
        found["microsecond"] = int(found.pop("fraction").ljust(6, "0"))
    return found


def in_words_from(delta_seconds, months):
    """How long a span is, roughly: pendulum's words for differences."""
    seconds = abs(delta_seconds)
    years = months // 12
    if years > 0:
        count, unit = (years + 1 if months % 12 > 6 else years), "year"
    elif months > 0:
        days = seconds - months * 30.44 * 86400
        count, unit = (months + 1 if days >= 27 * 86400 else months), "month"
    elif seconds >= 7 * 86400:
        weeks, days = divmod(seconds // 86400, 7)
        count, unit = (weeks + 1 if days > 3 else weeks), "week"
    elif seconds >= 86400:
        days, hours = divmod(seconds // 3600, 24)
        count, unit = (days + 1 if hours >= 22 else days), "day"
    elif seconds >= 3600:
        count, unit = seconds // 3600, "hour"
    elif seconds >= 60:
        count, unit = seconds // 60, "minute"
    elif seconds > 10:
        count, unit = seconds, "second"
    else:
        return "a few seconds"
    count = int(count)
    return f"{count} {unit}{'' if count == 1 else 's'}"
