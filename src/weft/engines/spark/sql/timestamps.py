"""Instants at the borders: the source's own timestamps outside, microseconds inside."""

from __future__ import annotations

from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from weft.engines.spark.sql.instants import micros_of_zoneless, zoneless
from weft.errors import DataError
from weft.time import DAY


def micros_of(time: str, type: DataType, name: str) -> str:
    """Read an event's time as microseconds since 1970 UTC; NULL stays NULL."""
    if isinstance(type, TimestampType):
        return f"unix_micros({time})"
    if isinstance(type, TimestampNTZType):
        return micros_of_zoneless(time)
    if isinstance(type, DateType):
        return f"unix_date({time}) * {DAY}L"
    if isinstance(type, IntegralType):
        return f"cast({time} AS bigint)"
    raise DataError(
        f"the time column {name!r} is of type {type.simpleString()}",
        hint="use a timestamp, a date, or an integer of microseconds since 1970 UTC",
    )


def timestamp_of(micros: str, type: DataType) -> str:
    """Return microseconds as a timestamp of the kind that events of this time type have."""
    if isinstance(type, TimestampNTZType | DateType):
        return zoneless(micros)
    return f"timestamp_micros({micros})"
