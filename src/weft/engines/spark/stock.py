"""What Spark does without weft: one `window()` aggregation for each window, all of them unioned.

It is what a shared plan is measured against and compared with; no strategy uses it.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.errors import QueryError, UnsupportedError
from weft.expression import column
from weft.window import PeriodicWindow, SessionWindow, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from weft.aggregates import AggregateCall
    from weft.query import Query

# Aggregates whose name means something else in Spark.
_SPARK_NAMES = {"var": "var_samp", "stddev": "stddev_samp"}
_OF_DISTINCT = {"count_distinct": "count", "sum_distinct": "sum", "avg_distinct": "avg"}


def stock(query: Query, frame: DataFrame) -> DataFrame:
    """Return the rows of a query as stock Spark computes them, under weft's columns.

    Windows that Spark has no function for are refused.
    """
    if query.time is None:
        raise QueryError(
            f"query {query.name!r} names no event time", hint="give Query(..., time='...')"
        )
    kept = frame if query.where is None else frame.where(query.where)
    parts = [_aggregated(query, query.time, label, w, kept) for label, w in query.windows]
    return reduce(lambda a, b: a.union(b), parts)


def _aggregated(query: Query, time: str, label: str, window: Window, frame: DataFrame) -> DataFrame:
    keys = [F.expr(text).alias(name) for name, text in query.keys]
    calls = [F.expr(spark_call(call)).alias(alias) for alias, call in query.aggs]
    named, start, end = query.window_columns
    instance = _instance(F.col(column(time)), window).alias("instance")
    rows = frame.groupBy(*keys, instance).agg(*calls)
    return rows.select(
        *(name for name, _ in query.keys),
        F.lit(label).alias(named),
        F.col("instance.start").alias(start),
        F.col("instance.end").alias(end),
        *(alias for alias, _ in query.aggs),
    )


def _instance(time: Column, window: Window) -> Column:
    if isinstance(window, PeriodicWindow) and window.slide_us <= window.range_us:
        spans = (window.range_us, window.slide_us, window.offset_us)
        return F.window(time, *(f"{span_us} microseconds" for span_us in spans))
    if isinstance(window, SessionWindow):
        return F.session_window(time, f"{window.gap_us} microseconds")
    raise UnsupportedError(
        f"stock Spark has no function for {window}", hint="compare with the reference engine"
    )


def spark_call(call: AggregateCall) -> str:
    """Write an aggregate call as Spark's SQL has it.

    >>> from weft import agg
    >>> spark_call(agg.count()), spark_call(agg.stddev("temp"))
    ('count(1)', 'stddev_samp(temp)')
    """
    if call.function == "count" and not call.args:
        return "count(1)"
    if call.function in _OF_DISTINCT:
        return f"{_OF_DISTINCT[call.function]}(DISTINCT {call.args[0]})"
    words = (*call.args, *(repr(p) for p in call.parameters))
    return f"{_SPARK_NAMES.get(call.function, call.function)}({', '.join(words)})"
