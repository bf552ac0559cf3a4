"""Windows that slide with the events, SlidingWindow and [RANGE r], over tables and streams.

Every event is a row, and where departures count another one at the instant at which it leaves the
window. The rows roll in one shuffle, as those of OVER do, and those of one key and instant, which
have the same results, become one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from weft.aggregates import AggregateCall
from weft.engines.spark.anchors.instants import OneOfInstant
from weft.engines.spark.sql.timestamps import micros_of, timestamp_of
from weft.engines.spark.streaming.watermark import OWN_TIME, watermarked
from weft.errors import QueryError, suggest
from weft.expression import column
from weft.features.runs import bind_features, plan_bound, run_plan
from weft.plan.anchors import EventFeatures, FeatureQuery
from weft.running import columns_of_table
from weft.time import format_us
from weft.window.trailing import Trailing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from weft.parsing.anchored import SlidingStatement
    from weft.plan.anchors import FeaturePlan
    from weft.window.trailing import AnchoredWindow

_ROWS, _AT, _CAME = "rows", "weft_at", "weft_came"
_HELD, _COMING, _LEAVING = "weft_held", "weft_coming", "weft_leaving"


@dataclass(frozen=True)
class SlidingRows:
    """A statement over one table or stream: the plan that it runs, and the rows that this reads."""

    statement: SlidingStatement
    plan: FeaturePlan
    rows: DataFrame
    keys: tuple[str, ...]  # columns of the rows
    time_type: DataType  # of the events' own time

    @staticmethod
    def of(statement: SlidingStatement, frames: Mapping[str, DataFrame]) -> SlidingRows:
        """Plan a statement over DataFrames by name."""
        if statement.source not in frames:
            hint = suggest(statement.source, list(frames), f"the tables are {', '.join(frames)}")
            raise QueryError(f"there is no table {statement.source!r}", hint=hint)
        events = frames[statement.source]
        time = statement.time_among(columns_of_table(events).timestamps)
        type = events.schema[time].dataType
        keys = {f"weft_k{i}": text for i, (_, text) in enumerate(statement.keys)}
        rows = _timed(
            _kept(statement, events, time), statement, micros_of(column(time), type, time)
        )
        rows = rows.select("*", *(F.expr(text).alias(name) for name, text in keys.items()))
        asked = EventFeatures(
            _ROWS,
            _AT,
            tuple((name, name) for name in keys),
            _CAME if statement.departures else None,
            tuple(_outputs(statement)),
        )
        tables = {_ROWS: rows}
        query = bind_features(FeatureQuery(_ROWS, _AT, rolling=True, inputs=(asked,)), tables)
        return SlidingRows(statement, plan_bound(query, tables, "spark"), rows, tuple(keys), type)

    def results(self) -> DataFrame:
        """Return a row for each key and instant at which its window changes, in no order."""
        asked, tables = self.statement, {_ROWS: self.rows}
        found: DataFrame = run_plan(self.plan, tables, tables, "spark", [*self.keys, _AT])
        if asked.departures:
            # A late event is dropped, and nothing leaves with the row that it sent ahead.
            found = found.where(f"{_HELD} > 0 AND ({_COMING} > 0 OR {_LEAVING} > 0)")
        once = OneOfInstant(self.keys, _AT, ordered=not found.isStreaming)
        found = found.mapInArrow(once, found.schema)
        label, begin, end = asked.window_columns
        range_us = asked.window.range_us
        names = [name for name, _ in asked.keys]
        return found.select(
            *(F.col(own).alias(name) for own, name in zip(self.keys, names, strict=True)),
            F.lit(f"sliding {format_us(range_us)}").alias(label),
            F.expr(timestamp_of(f"try_subtract({_AT}, {range_us}L)", self.time_type)).alias(begin),
            F.expr(timestamp_of(_AT, self.time_type)).alias(end),
            *(F.col(f"weft_a{i}").alias(name) for i, name in enumerate(asked.aggs)),
        )


def _kept(statement: SlidingStatement, events: DataFrame, time: str) -> DataFrame:
    """Return the events that have a time and that the statement keeps; streams with a watermark."""
    if events.isStreaming:
        events = watermarked(events, statement.source, time, None)
        if OWN_TIME not in events.columns:
            # Rows have a time of their own; the watermark goes on to speak of the events'.
            events = events.withColumn(OWN_TIME, F.col(column(time)))
    events = events.where(f"{column(time)} IS NOT NULL")
    return events if statement.where is None else events.where(statement.where)


def _timed(events: DataFrame, statement: SlidingStatement, at: str) -> DataFrame:
    """Return a row for each event and, where departures count, for each that leaves."""
    if not statement.departures:
        return events.withColumn(_AT, F.expr(at))
    comes = f"struct({at} AS {_AT}, true AS {_CAME})"
    leaves = f"struct(try_add({at}, {statement.window.range_us}L) AS {_AT}, false AS {_CAME})"
    return events.selectExpr("*", f"inline(array({comes}, {leaves}))").where(f"{_AT} IS NOT NULL")


def _outputs(
    statement: SlidingStatement,
) -> Iterator[tuple[str, AnchoredWindow, AggregateCall]]:
    for i, call in enumerate(statement.aggs.values()):
        yield f"weft_a{i}", statement.window, call
    if statement.departures:
        yield _HELD, statement.window, AggregateCall("count")
        # The instant itself, and the one whose events leave the window at it.
        yield _COMING, Trailing(1, "right"), AggregateCall("count")
        leaving = Trailing(1, "right", lag_us=statement.window.range_us)
        yield _LEAVING, leaving, AggregateCall("count")
