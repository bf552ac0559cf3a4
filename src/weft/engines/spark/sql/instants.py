"""Arithmetic on instants, as SQL text.

Text costs one call to Spark where a tree of columns costs hundreds. Everything here gives the
same answer whatever the time zone of the Spark session: a timestamp without a zone
is taken as UTC, and calendars are computed on dates, which have no zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.window import CalendarWindow

_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
# Spark truncates dates to these; a week begins on Monday, as ISO has it.
_TRUNCATE = {"week": "WEEK", "month": "MONTH", "quarter": "QUARTER", "year": "YEAR"}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


def micros_of_zoneless(time: str) -> str:
    """Read a timestamp without a zone as microseconds since 1970, as if it were in UTC."""
    # `unix_micros` would go through the session's zone, where some local times do not exist.
    seconds = f"cast(cast({time} - {_EPOCH} AS interval second) AS decimal(18, 6))"
    return f"cast({seconds} * 1000000 AS bigint)"


def zoneless(micros: str) -> str:
    """Return microseconds since 1970 as a timestamp without a zone, in UTC."""
    return f"({_EPOCH} + INTERVAL '0.000001' SECOND * ({micros}))"


def floor_to(time: str, offset_us: int, slide_us: int) -> str:
    """Return the last position `offset + m*slide` at or before a time, also before 1970.

    >>> floor_to("time", 0, 5), floor_to("time", 2, 5)
    ('time - pmod(time, 5L)', 'time - pmod(time - 2L, 5L)')
    """
    position = f"{time} - {offset_us}L" if offset_us else time
    return f"{time} - pmod({position}, {slide_us}L)"


def calendar_start(window: CalendarWindow, time: str) -> str:
    """Return where the calendar unit that holds a time begins."""
    first = _first_day(window, _local_date(window, time))
    following = _midnight(window, _next(window, first))
    # Where clocks go back over midnight, the old date returns after the new one began.
    own = _midnight(window, first)
    return f"CASE WHEN {following} <= {time} THEN {following} ELSE {own} END"


def calendar_end(window: CalendarWindow, start: str) -> str:
    """Return where the calendar unit that begins at `start` ends."""
    return _midnight(window, _next(window, _local_date(window, start)))


def _local_date(window: CalendarWindow, time: str) -> str:
    return f"cast(convert_timezone('UTC', '{window.zone}', {zoneless(time)}) AS date)"


def _first_day(window: CalendarWindow, day: str) -> str:
    return day if window.unit == "day" else f"trunc({day}, '{_TRUNCATE[window.unit]}')"


def _next(window: CalendarWindow, first: str) -> str:
    if window.unit in _DAYS:
        return f"date_add({first}, {_DAYS[window.unit]})"
    return f"add_months({first}, {_MONTHS[window.unit]})"


def _midnight(window: CalendarWindow, day: str) -> str:
    # A midnight that does not exist, or exists twice, is the first instant of its day.
    local = f"cast({day} AS timestamp_ntz)"
    return micros_of_zoneless(f"convert_timezone('{window.zone}', 'UTC', {local})")
