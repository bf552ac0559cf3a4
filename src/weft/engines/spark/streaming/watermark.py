"""How late events may be: from the queries, or from the DataFrame that already says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import TimestampType

from weft.engines.spark.sql.timestamps import micros_of
from weft.errors import QueryError
from weft.expression import column
from weft.time import format_us

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark knows by this entry of a column's metadata that the watermark speaks of the column.
DELAY_KEY = "spark.watermarkDelayMs"
OF_WATERMARK = {DELAY_KEY: 0}
_MILLISECOND_US = 1000
OWN_TIME = "weft_event_time"


def watermarked(source: DataFrame, name: str, time: str, delay_us: int | None) -> DataFrame:
    """Return the stream with a watermark on its event time.

    Spark counts watermarks in milliseconds: a delay is rounded up, so that no event is dropped
    which the delay covers.
    """
    delay_ms = None if delay_us is None else -(-delay_us // _MILLISECOND_US)
    declared = {
        field.name: field.metadata[DELAY_KEY]
        for field in source.schema
        if DELAY_KEY in (field.metadata or {})
    }
    if declared:
        _check_declared(declared, name, time, delay_ms)
        return source
    if delay_ms is None:
        raise QueryError(
            f"the stream {name!r} has no watermark, so none of its windows would ever close",
            hint="say how late events may be: watermark='10 minutes' in the query, or "
            f"df.withWatermark({time!r}, '10 minutes')",
        )
    delay = f"{delay_ms} milliseconds"
    type = source.schema[time].dataType
    if isinstance(type, TimestampType):
        return source.withWatermark(column(time), delay)
    # Spark keeps watermarks of timestamps alone.
    micros = micros_of(column(time), type, time)
    own = source.selectExpr("*", f"timestamp_micros({micros}) AS {OWN_TIME}")
    return own.withWatermark(OWN_TIME, delay)


def delay_us_of(source: DataFrame, delay_us: int | None) -> int:
    """Return the delay of a stream that has a watermark: as declared, or as its queries ask."""
    declared = [f.metadata[DELAY_KEY] for f in source.schema if DELAY_KEY in (f.metadata or {})]
    return max((int(ms) * _MILLISECOND_US for ms in declared), default=delay_us or 0)


def _check_declared(declared: dict[str, int], name: str, time: str, delay_ms: int | None) -> None:
    if time not in declared and OWN_TIME not in declared:
        raise QueryError(
            f"the watermark of the stream {name!r} is on {', '.join(declared)}, and its event "
            f"time is {time}",
            hint=f"declare it on {time}, or leave it to the query: watermark='10 minutes'",
        )
    known = declared.get(time, delay_ms)
    if delay_ms is not None and known != delay_ms:
        raise QueryError(
            f"the stream {name!r} has a watermark of {format_us(int(known or 0) * 1000)}, and a "
            f"query asks for {format_us(delay_ms * 1000)}",
            hint="give the watermark once: in the query, or with df.withWatermark",
        )
