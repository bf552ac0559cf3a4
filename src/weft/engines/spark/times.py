"""Instants in Spark: microseconds inside, the source's own timestamps outside.

Everything here gives the same answer whatever the time zone of the Spark session: a timestamp
without a zone is taken as UTC, and calendars are computed on dates, which have no zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from weft.errors import DataError
from weft.time import DAY

if TYPE_CHECKING:
    from pyspark.sql import Column

    from weft.window import CalendarWindow

_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
# Spark truncates dates to these; a week begins on Monday, as ISO has it.
_TRUNCATE = {"week": "WEEK", "month": "MONTH", "quarter": "QUARTER", "year": "YEAR"}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_DAYS = {"day": 1, "week": 7}


def micros_of(time: Column, type: DataType, name: str) -> Column:
    """Read an event's time as microseconds since 1970 UTC; NULL stays NULL."""
    if isinstance(type, TimestampType):
        return F.unix_micros(time)
    if isinstance(type, TimestampNTZType):
        return _micros_of_zoneless(time)
    if isinstance(type, DateType):
        return F.unix_date(time).cast("bigint") * F.lit(DAY)
    if isinstance(type, IntegralType):
        return time.cast("bigint")
    raise DataError(
        f"the time column {name!r} is of type {type.simpleString()}",
        hint="use a timestamp, a date, or an integer of microseconds since 1970 UTC",
    )


def timestamp_of(micros: Column, type: DataType) -> Column:
    """Return microseconds as a timestamp of the kind that events of this time type have."""
    if isinstance(type, TimestampNTZType | DateType):
        return _zoneless(micros)
    return F.timestamp_micros(micros)


def _micros_of_zoneless(time: Column) -> Column:
    # `unix_micros` would go through the session's zone, where some local times do not exist.
    seconds = (time - F.expr(_EPOCH)).cast("interval second").cast("decimal(18, 6)")
    return (seconds * F.lit(1_000_000)).cast("bigint")


def _zoneless(micros: Column) -> Column:
    return F.expr(_EPOCH) + F.expr("INTERVAL '0.000001' SECOND") * micros


def floor_to(time: Column, offset_us: int, slide_us: int) -> Column:
    """Return the last position `offset + m*slide` at or before a time, also before 1970."""
    return time - F.pmod(time - F.lit(offset_us).cast("bigint"), F.lit(slide_us).cast("bigint"))


def whole(dividend: Column, divisor: Column) -> Column:
    """Divide integers without a remainder or a double; both are positive or zero."""
    return F.call_function("div", dividend, divisor)


def calendar_start(window: CalendarWindow, time: Column) -> Column:
    """Return where the calendar unit that holds a time begins."""
    first = _first_day(window, _local_date(window, time))
    following = _midnight(window, _next(window, first))
    # Where clocks go back over midnight, the old date returns after the new one began.
    return F.when(following <= time, following).otherwise(_midnight(window, first))


def calendar_end(window: CalendarWindow, start: Column) -> Column:
    """Return where the calendar unit that begins at `start` ends."""
    return _midnight(window, _next(window, _local_date(window, start)))


def _local_date(window: CalendarWindow, time: Column) -> Column:
    local = F.convert_timezone(F.lit("UTC"), F.lit(window.zone), _zoneless(time))
    return local.cast("date")


def _first_day(window: CalendarWindow, day: Column) -> Column:
    return day if window.unit == "day" else F.trunc(day, _TRUNCATE[window.unit])


def _next(window: CalendarWindow, first: Column) -> Column:
    if window.unit in _DAYS:
        return F.date_add(first, _DAYS[window.unit])
    return F.add_months(first, _MONTHS[window.unit])


def _midnight(window: CalendarWindow, day: Column) -> Column:
    # A midnight that does not exist, or exists twice, is the first instant of its day.
    local = day.cast("timestamp_ntz")
    return _micros_of_zoneless(F.convert_timezone(F.lit(window.zone), F.lit("UTC"), local))
