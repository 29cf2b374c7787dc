"""Moments from text in many forms."""

import datetime as _datetime
import re

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_WEEKDAYS = "mon tue wed thu fri sat sun".split()
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*([ap]\.?m\.?)?", re.IGNORECASE)
_HOUR = re.compile(r"\b(\d{1,2})\s*([ap]\.?m\.?)(?!\w)", re.IGNORECASE)
_ZONE = re.compile(r"(?:\s|(?<=\d))(Z|UTC|GMT)\b|(?<=[\d\s])([+-])(\d{2}):?(\d{2})\s*$", re.IGNORECASE)


class ParserError(ValueError):
    """A text is no moment."""


def isoparse(text):
    """A moment from ISO text."""
    return _datetime.datetime.fromisoformat(text)


def parse(timestr, parserinfo=None, *, dayfirst=False, yearfirst=False, default=None, ignoretz=False, fuzzy=False, **_):
    """A moment from text."""
    text = timestr.decode() if isinstance(timestr, bytes) else timestr
    base = default or _datetime.datetime.now().replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        moment = _datetime.datetime.fromisoformat(text.strip())
        if ":" not in text and len(text.strip()) <= 10:
            return base.replace(year=moment.year, month=moment.month, day=moment.day)
        return moment.replace(tzinfo=None) if ignoretz else moment
    except ValueError:
        pass
    rest = text
    zone = None
    found = _ZONE.search(rest)
    if found:
        zone = _datetime.timezone.utc
        if found.group(2):
            minutes = int(found.group(3)) * 60 + int(found.group(4))
            zone = _datetime.timezone(_datetime.timedelta(minutes=-minutes if found.group(2) == "-" else minutes))
        rest = rest[: found.start()] + " " + rest[found.end() :]
    clock, rest = _clock(rest)
    day = _day(rest, dayfirst, yearfirst, text)
    if not day and not clock:
        raise ParserError(f"Unknown string format: {text}")
    moment = base.replace(**{**day, **clock})
    return moment.replace(tzinfo=None if ignoretz else zone)


def _clock(text):
    found = _CLOCK.search(text)
    if found:
        hour, minute, second, fraction, half = found.groups()
    else:
        found = _HOUR.search(text)
        if not found:
            return {}, text.replace("T", " ")
        hour, half = found.groups()
        minute = second = fraction = None
    hour = int(hour)
    if half:
        hour = hour % 12 + (12 if half.lower().startswith("p") else 0)
    clock = {"hour": hour}
    if minute is not None:
        clock["minute"] = int(minute)
        clock["second"] = int(second or 0)
        clock["microsecond"] = int((fraction or "0")[:6].ljust(6, "0"))
    return clock, (text[: found.start()].rstrip("T ") + " " + text[found.end() :])


def _day(text, dayfirst, yearfirst, whole):
    month = None
    numbers = []
    for word in re.findall(r"[A-Za-z]+|\d+", re.sub(r"(\d)(st|nd|rd|th)\b", r"\1", text)):
        if word.isdigit():
            numbers.append(word)
        elif word[:3].lower() in _MONTHS and month is None:
            month = _MONTHS.index(word[:3].lower()) + 1
        elif word[:3].lower() not in _WEEKDAYS and word.lower() not in ("of", "at", "on", "and", "t"):
            raise ParserError(f"Unknown string format: {whole}")
    if len(numbers) == 1 and len(numbers[0]) == 8 and month is None:
        return {"year": int(numbers[0][:4]), "month": int(numbers[0][4:6]), "day": int(numbers[0][6:])}
    if not numbers and month is None:
        return {}
    year = next((number for number in numbers if len(number) == 4), None)
    if month is not None:
        others = [number for number in numbers if number is not year]
        day = {"month": month}
        if others:
            day["day"] = int(others[0])
            year = year or (others[1] if len(others) > 1 else None)
        if year:
            day["year"] = _full_year(year)
        return day
    if year is not None and numbers and numbers[0] is year:
        order = ("year", "month", "day")
    elif yearfirst:
        order = ("year", "month", "day")
    elif dayfirst or (numbers and int(numbers[0]) > 12):
        order = ("day", "month", "year")
    else:
        order = ("month", "day", "year")
    day = dict(zip(order, (int(number) for number in numbers)))
    if "year" in day:
        day["year"] = _full_year(str(day["year"]))
    return day


def _full_year(text):
    year = int(text)
    if len(text) > 2:
        return year
    return 2000 + year if year < 69 else 1900 + year
