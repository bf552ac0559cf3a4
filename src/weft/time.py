"""Durations and instants as int64 microseconds, the only unit of time inside weft."""

from __future__ import annotations

import datetime as dt
import re
from fractions import Fraction

from weft.errors import DataError, QueryError, suggest

Duration = str | int | dt.timedelta

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_UNITS = {
    "microsecond": MICROSECOND,
    "millisecond": MILLISECOND,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "week": WEEK,
}
_SHORT = {
    "us": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "sec": SECOND,
    "m": MINUTE,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
    "w": WEEK,
}
_LABELS = ((WEEK, "w"), (DAY, "d"), (HOUR, "h"), (MINUTE, "m"), (SECOND, "s"), (MILLISECOND, "ms"))
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z_]+)")
_CALENDAR_UNITS = ("month", "quarter", "year")


def unit_us(word: str) -> int:
    """Translate a unit of time, singular, plural or short, into microseconds.

    >>> unit_us("minutes"), unit_us("min"), unit_us("HOUR")
    (60000000, 60000000, 3600000000)
    >>> unit_us("minuts")
    Traceback (most recent call last):
    weft.errors.QueryError: unknown unit of time 'minuts'
    hint: did you mean 'minutes'?
    """
    key = word.lower()
    found = (
        _SHORT.get(key) or _UNITS.get(key.removesuffix("s")) or _SHORT.get(key.removesuffix("s"))
    )
    if found is not None:
        return found
    if key.removesuffix("s") in _CALENDAR_UNITS:
        raise QueryError(
            f"a {key.removesuffix('s')} has no fixed length",
            hint=f"use weft.calendar('{key.removesuffix('s')}') in Python, "
            f"CalendarWindow('{key.removesuffix('s')}') in SQL",
        )
    known = [f"{unit}s" for unit in _UNITS] + list(_UNITS)
    raise QueryError(
        f"unknown unit of time {word!r}",
        hint=suggest(key, known, f"use one of {', '.join(_UNITS)}"),
    )


def duration_us(value: Duration) -> int:
    """Read a duration: text such as "1 hour 30 minutes", a timedelta, or microseconds.

    >>> duration_us("20 minutes"), duration_us("1h 30m"), duration_us("1.5 seconds")
    (1200000000, 5400000000, 1500000)
    >>> duration_us(dt.timedelta(milliseconds=500)), duration_us(7)
    (500000, 7)
    """
    if isinstance(value, bool) or not isinstance(value, str | int | dt.timedelta):
        raise QueryError(
            f"a duration cannot be {type(value).__name__} {value!r}",
            hint="write '20 minutes', a datetime.timedelta, or an int of microseconds",
        )
    if isinstance(value, int):
        return value
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    text = value.strip()
    text = re.sub(r"^interval\b\s*", "", text, flags=re.IGNORECASE)
    total, at = Fraction(0), 0
    for term in _TERM.finditer(text):
        if term.start() != at:
            break
        total += Fraction(term.group(1)) * unit_us(term.group(2))
        at = term.end()
    if at != len(text) or at == 0:
        raise QueryError(
            f"cannot read {value!r} as a duration",
            hint="write a number and a unit, such as '20 minutes' or '1 hour 30 minutes'",
        )
    if total.denominator != 1:
        raise QueryError(
            f"{value!r} is not a whole number of microseconds",
            hint="microseconds are the finest unit",
        )
    return int(total)


def format_us(duration: int) -> str:
    """Print a duration with the largest unit that fits without a remainder.

    >>> format_us(1_200_000_000), format_us(90_000_000), format_us(7), format_us(0)
    ('20m', '90s', '7us', '0s')
    """
    if duration == 0:
        return "0s"
    for size, label in _LABELS:
        if duration % size == 0:
            return f"{duration // size}{label}"
    return f"{duration}us"


def instant_us(value: dt.datetime | int) -> int:
    """Convert an instant to microseconds since 1970 UTC; a naive datetime is taken as UTC.

    >>> instant_us(dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)), instant_us(5)
    (1000000, 5)
    """
    if isinstance(value, int):
        return value
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return (value - EPOCH) // dt.timedelta(microseconds=1)


def instant(us: int) -> dt.datetime:
    """Convert microseconds since 1970 UTC to a datetime in UTC.

    >>> instant(-1).isoformat()
    '1969-12-31T23:59:59.999999+00:00'
    """
    try:
        return EPOCH + dt.timedelta(microseconds=us)
    except OverflowError:
        raise DataError(
            f"an instant of {us} microseconds is outside the years 1 to 9999",
            hint="is the time column in microseconds since 1970? filter other events out",
        ) from None
