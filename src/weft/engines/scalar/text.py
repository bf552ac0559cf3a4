"""Text in SQL: how values are written, and the functions and patterns over strings."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal
from functools import lru_cache
from typing import Any


def text_of_double(value: float, *, single: bool = False) -> str:
    """Write a double as Java does, the shortest digits that read back as the same number.

    >>> [text_of_double(v) for v in (1e20, 1.0, 0.001, 1e-4, 1e7, float("nan"))]
    ['1.0E20', '1.0', '0.001', '1.0E-4', '1.0E7', 'NaN']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    shortest = Decimal(_shortest_single(value) if single else repr(value))
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(shortest, "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = shortest.as_tuple()
    kept = "".join(map(str, digits)).rstrip("0")
    return f"{'-' if sign else ''}{kept[0]}.{kept[1:] or '0'}E{shortest.adjusted()}"


def _shortest_single(value: float) -> str:
    for digits in range(1, 9):
        written = f"{value:.{digits}g}"
        if (
            abs(float(written)) < 3.5e38
            and struct.unpack("f", struct.pack("f", float(written)))[0]
            == struct.unpack("f", struct.pack("f", value))[0]
        ):
            return written
    return f"{value:.9g}"


def text_of(value: Any) -> str:
    """Write a value as CAST(value AS STRING) does in Spark, times in UTC.

    >>> text_of(True), text_of(dt.datetime(2024, 1, 1, 12, 0, 0, 500000, tzinfo=dt.UTC))
    ('true', '2024-01-01 12:00:00.5')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return text_of_double(value)
        case Decimal():
            return format(value, "f")
        case dt.datetime():
            utc = value if value.tzinfo is None else value.astimezone(dt.UTC)
            written = f"{utc:%Y-%m-%d %H:%M:%S}".rjust(19, "0")
            fraction = f".{utc.microsecond:06d}".rstrip("0") if utc.microsecond else ""
            return written + fraction
        case dt.date():
            return value.isoformat()
        case bytes():
            return value.decode()
        case _:
            return str(value)


@lru_cache(maxsize=1024)
def _pattern(pattern: str, escape: str) -> re.Pattern[str]:
    wild = {"%": ".*", "_": "."}
    written, at = [], 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == escape:
            at += 1
            # Only a wildcard or the escape itself can be escaped.
            if at == len(pattern) or pattern[at] not in ("%", "_", escape):
                raise ValueError(f"{pattern!r} ends or goes on after its escape {escape!r}")
            written.append(re.escape(pattern[at]))
        else:
            written.append(wild.get(letter) or re.escape(letter))
        at += 1
    return re.compile("".join(written), re.DOTALL)


def like(value: str, pattern: str, escape: str = "\\") -> bool:
    r"""Match a whole text: % any letters, _ one letter, and the escape takes the next as it is.

    >>> like("50%", r"50\%"), like("501", r"50\%"), like("a_b", "a!_b", "!")
    (True, False, True)
    """
    return _pattern(pattern, escape).fullmatch(value) is not None


def substring(value: str, start: int, length: int | None = None) -> str:
    """Cut from a place that counts from 1, or from the end when negative.

    A start before the text uses up the length, as in Spark.

    >>> substring("abc", 2), substring("abc", -5, 3), substring("abc", 0, 2)
    ('bc', 'a', 'ab')
    """
    first = start - 1 if start > 0 else len(value) + start if start < 0 else 0
    stop = len(value) if length is None else first + max(length, 0)
    return value[max(first, 0) : max(stop, 0)]


def trim(value: str, letters: str = " ", position: str = "BOTH") -> str:
    """Strip letters at the ends; without any named, spaces alone.

    >>> trim("  a\\t "), trim("xxax", "x", "LEADING")
    ('a\\t', 'ax')
    """
    strip = {"LEADING": value.lstrip, "TRAILING": value.rstrip}.get(position, value.strip)
    return strip(letters)
