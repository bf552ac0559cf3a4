"""Joins of streams: the batch plan, with groups that close as the watermark passes.

Every stateful operator knows the event time of its rows by one marked column: a group of a slice
closes when the span of the slice begins, a group of an instant at the instant, and two streams are
matched at instants, so that Spark forgets both sides of an instant which has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from weft.engines.spark.joins.compile import JoinCompilation
from weft.engines.spark.joins.mode import Running
from weft.engines.spark.joins.row_set import INSTANT
from weft.engines.spark.joins.spans import next_instant
from weft.engines.spark.streaming.streams import CompiledStream
from weft.engines.spark.streaming.watermark import DELAY_KEY, OF_WATERMARK, watermarked
from weft.errors import QueryError, UnsupportedError
from weft.plan import Join
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from weft.engines.spark.joins.row_set import Rows
    from weft.plan import Emit, Plan, Scan, Slice

_CLOSES, _CLOSES_TOO = "closes", "closes_too"


def compile_stream_joins(plan: Plan, sources: Mapping[str, DataFrame]) -> list[CompiledStream]:
    """Return the rows of every join of the plan as a stream of its own."""
    return [_compiled(emit, sources) for emit in plan.emits if isinstance(emit.inputs[0], Join)]


def _compiled(emit: Emit, sources: Mapping[str, DataFrame]) -> CompiledStream:
    _check_streams(emit, sources)
    rows = JoinCompilation.of(emit, sources, StreamRunning()).result()
    end = emit.window_columns[2]
    if isinstance(rows.schema[end].dataType, TimestampType):
        # What reads this stream may go on with stateful operators of its own.
        rows = rows.withMetadata(end, OF_WATERMARK)
    return CompiledStream(rows, {emit.query: lambda given: given})


def _check_streams(emit: Emit, sources: Mapping[str, DataFrame]) -> None:
    """Refuse streams that would have to be kept for ever, or whose windows would never close."""
    join = emit.inputs[0]
    assert isinstance(join, Join)
    streams = [side for side in join.sides if sources[side.scan.source].isStreaming]
    for side in streams:
        if side.window is None:
            raise UnsupportedError(
                f"{side.alias} is a stream without a window, and its rows would be kept for ever",
                hint=f"give it a window, such as {side.alias} [RANGE 1 HOUR SLIDE 1 MINUTE], or "
                "read it with spark.read",
            )
    if not any(isinstance(side.window, PeriodicWindow) for side in streams):
        raise UnsupportedError(
            f"no stream of join {emit.query!r} has a window that moves, so none ever closes",
            hint="give a stream a window, such as [RANGE 1 HOUR SLIDE 1 MINUTE]",
        )


class StreamRunning(Running):
    """Streams, and tables beside them; tables are grouped and matched as in a batch."""

    def source(self, frame: DataFrame, scan: Scan) -> DataFrame:
        """Take the stream with the watermark that it has."""
        if not frame.isStreaming:
            return frame
        assert scan.time is not None
        if scan.watermark_us is None and not any(
            DELAY_KEY in (field.metadata or {}) for field in frame.schema
        ):
            raise QueryError(
                f"the stream {scan.source!r} has no watermark, so none of its windows would ever "
                "close",
                hint=f"say how late events may be: df.withWatermark({scan.time!r}, '10 minutes')",
            )
        return watermarked(frame, scan.source, scan.time, scan.watermark_us)

    def plain(self, frame: DataFrame, picked: Sequence[str]) -> DataFrame:
        """Pick expressions without their metadata: only what closes speaks of the watermark."""
        rows = frame.selectExpr(*picked)
        for field in rows.schema:
            if DELAY_KEY in (field.metadata or {}):
                rows = rows.withMetadata(field.name, {})
        return rows

    def grouped(
        self, frame: DataFrame, keys: Sequence[str], when: Sequence[str], made: Sequence[Column]
    ) -> DataFrame:
        """Aggregate by keys, and by when rows count; a group is put out when that begins."""
        if not frame.isStreaming:
            return super().grouped(frame, keys, when, made)
        begins, *others = when
        closing = _marked(frame, begins, _CLOSES).drop(begins)
        groups = closing.groupBy(*keys, _CLOSES, *others).agg(*made)
        return _unmarked(groups, _CLOSES, begins)

    def sliced(
        self,
        frame: DataFrame,
        keys: Sequence[str],
        start: str,
        made: Sequence[Column],
        classes: Sequence[tuple[int, int]],
    ) -> DataFrame:
        """Aggregate by keys and slice; a slice is put out when it ends."""
        if not frame.isStreaming:
            return super().sliced(frame, keys, start, made, classes)
        closing = _marked(frame, next_instant(classes, start), _CLOSES)
        return closing.groupBy(*keys, start, _CLOSES).agg(*made).drop(_CLOSES)

    def shared(self, node: Slice, make: Callable[[], DataFrame]) -> DataFrame:
        """Compute slices for each join: Spark has no way to share the state of an operator."""
        return make()

    def at_instants(self, left: DataFrame, right: DataFrame, on: Sequence[str]) -> DataFrame:
        """Match rows that count at the same instant."""
        if not (left.isStreaming and right.isStreaming):
            return super().at_instants(left, right, on)
        closing = _marked(right, INSTANT, _CLOSES).drop(INSTANT)
        return _marked(left, INSTANT, _CLOSES).join(closing, [*on, _CLOSES]).drop(_CLOSES)

    def since(self, left: Rows, right: Rows, on: Sequence[str]) -> DataFrame:
        """Match rows with those that count for ever, since an instant.

        Of a landmark stream all rows are kept, for any later one may match; of the other, those
        whose span has not ended.
        """
        if not right.frame.isStreaming:
            return super().since(left, right, on)
        compare = "<=" if left.at_instants else "<"
        closing = _marked(left.frame, left.when[-1], _CLOSES).alias("own")
        others = _marked(right.frame, right.when[0], _CLOSES_TOO).alias("other")
        ties = [f"own.{v} = other.{v}" for v in on]
        met = closing.join(
            others, F.expr(" AND ".join([*ties, f"{_CLOSES_TOO} {compare} {_CLOSES}"]))
        )
        return met.drop(*(F.col(f"other.{v}") for v in on), _CLOSES, _CLOSES_TOO)


def _marked(frame: DataFrame, micros: str, name: str) -> DataFrame:
    closes = F.expr(f"timestamp_micros({micros})").alias(name, metadata=OF_WATERMARK)
    return frame.select("*", closes)


def _unmarked(frame: DataFrame, name: str, micros: str) -> DataFrame:
    others = [F.col(f"`{other}`") for other in frame.columns if other != name]
    return frame.select(*others, F.expr(f"unix_micros({name})").alias(micros))
