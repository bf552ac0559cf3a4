"""The checks that every data set makes of its options, with one wording for all of them."""

from __future__ import annotations

import datetime as dt
import operator
from difflib import get_close_matches
from numbers import Real
from typing import TYPE_CHECKING

from weft.errors import QueryError
from weft.time import Duration, duration_us, instant_us

if TYPE_CHECKING:
    from collections.abc import Iterable

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def whole(name: str, value: int, *, least: int) -> int:
    """Accept a whole number that is not below `least`.

    >>> whole("rows", 10, least=0)
    10
    >>> whole("rows", -1, least=0)
    Traceback (most recent call last):
    weft.errors.QueryError: rows cannot be -1
    hint: give a whole number, 0 or more
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise QueryError(
            f"{name} cannot be {value!r}", hint=f"give a whole number, {least} or more"
        )
    return number


def non_negative(name: str, value: float) -> float:
    """Accept a finite number that is not below zero.

    >>> non_negative("skew", 1)
    1.0
    """
    return _between(name, value, 0.0, _LARGEST, "give a number, 0 or more")


def positive(name: str, value: float) -> float:
    """Accept a finite number above zero.

    >>> positive("rate", 0)
    Traceback (most recent call last):
    weft.errors.QueryError: rate cannot be 0
    hint: give a number above 0
    """
    return _between(name, value, _SMALLEST, _LARGEST, "give a number above 0")


def share(name: str, value: float) -> float:
    """Accept a part of the whole, between 0 and 1.

    >>> share("late_share", 0.05)
    0.05
    """
    return _between(name, value, 0.0, 1.0, "give a number between 0 and 1, such as 0.05")


def non_negative_us(name: str, value: Duration) -> int:
    """Accept a duration that does not run backwards, as microseconds.

    >>> non_negative_us("disorder", "2 seconds")
    2000000
    """
    found_us = duration_us(value)
    if found_us < 0:
        raise QueryError(f"{name} cannot be {value!r}", hint="give a duration of 0 or more")
    return found_us


def start_us(value: dt.datetime | int) -> int:
    """Accept the instant of the first event, as microseconds since 1970 UTC.

    >>> start_us(dt.datetime(1970, 1, 2, tzinfo=dt.UTC))
    86400000000
    """
    if isinstance(value, bool) or not isinstance(value, dt.datetime | int):
        raise QueryError(
            f"start cannot be {type(value).__name__} {value!r}",
            hint="give a datetime.datetime, or an int of microseconds since 1970 UTC",
        )
    return instant_us(value)


def known(what: str, value: str, choices: Iterable[str]) -> str:
    """Accept one of `choices`, and suggest the nearest one otherwise.

    >>> known("format", "parqet", ("parquet", "csv"))
    Traceback (most recent call last):
    weft.errors.QueryError: unknown format 'parqet'
    hint: did you mean 'parquet'? the choices are parquet, csv
    """
    names = list(choices)
    if value in names:
        return value
    close = get_close_matches(str(value).lower(), names, n=1)
    suggestion = f"did you mean {close[0]!r}? " if close else ""
    raise QueryError(
        f"unknown {what} {value!r}", hint=f"{suggestion}the choices are {', '.join(names)}"
    )


_SMALLEST = 5e-324
_LARGEST = 1.7976931348623157e308


def _between(name: str, value: float, least: float, most: float, hint: str) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    # Written so that NaN, which is neither above nor below anything, is refused too.
    if not (is_number and least <= value <= most):
        raise QueryError(f"{name} cannot be {value!r}", hint=hint)
    return float(value)
