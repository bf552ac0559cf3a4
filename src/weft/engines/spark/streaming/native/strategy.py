"""The `native` strategy for streams: chained stateful aggregations, no Python in the data path.

Events are aggregated once per key and slice; in append mode a slice leaves its state when the
watermark passes its end, is fanned out to all windows that hold it, and is aggregated again. The
end of the window carries the watermark on, so the second state, which all windows of all queries
share, knows when a window is finished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from weft.cost.strategies import SHIPPED_PARTIALS, native_obstacles
from weft.cost.streams import stream_obstacles
from weft.engines.base import Unsupported
from weft.engines.spark.native.aggregation import aggregated
from weft.engines.spark.native.shared_events import events_of
from weft.engines.spark.native.shared_flow import SharedFlow
from weft.engines.spark.sql.fan_out import NODE, START
from weft.engines.spark.streaming.native.end_times import END, end_of, start_of
from weft.engines.spark.streaming.streams import CompiledStream
from weft.engines.spark.streaming.watermark import OF_WATERMARK, watermarked
from weft.engines.spark.text_rows import taken

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.engines.spark.native.emit import Emission
    from weft.engines.spark.native.events import Events
    from weft.engines.spark.native.levels import Level
    from weft.engines.spark.sql.partials import Aggregation
    from weft.engines.spark.streaming.streams import Stream
    from weft.engines.spark.text_rows import Rows
    from weft.plan import Emit, Node
    from weft.plan.planned_scope import PlannedScope


class NativeStreamStrategy:
    """Compiles a stream to a chain of as many states as the plan has levels: one or two."""

    name = "native"

    def unsupported(self, stream: Stream) -> tuple[Unsupported, ...]:
        """What batch cannot do either, and what would need a state of another kind."""
        found = [Unsupported(node, why) for node in stream.nodes for why in native_obstacles(node)]
        for scope in stream.scopes:
            others = stream_obstacles(scope.nodes, SHIPPED_PARTIALS)
            found += [Unsupported(node, why) for node, why in (*others, *_twice(scope))]
        return tuple(found)

    def compile(self, stream: Stream, source: DataFrame) -> CompiledStream:
        """Return the rows of all windows of all queries, each once, when its window closes."""
        assert stream.scan.time is not None
        timed = watermarked(source, stream.source, stream.scan.time, stream.watermark_us)
        return _compiled(stream, events_of(stream.scopes, timed))


def _twice(scope: PlannedScope) -> Iterator[tuple[Node, str]]:
    seen = set()
    for roll in scope.rolls:
        if roll.window in seen:
            yield roll, f"{roll.window} is computed in two ways, and one row cannot wait for both"
        seen.add(roll.window)


def _compiled(stream: Stream, events: tuple[Events, ...]) -> CompiledStream:
    flow = StreamFlow.of(stream.scopes, events)
    rows = taken(flow.rows())
    results = {
        query: partial(_result, flow.emission(rows, scope, own), scope.emits_of(query))
        for scope, own in zip(stream.scopes, events, strict=True)
        for query in scope.queries
    }
    return CompiledStream(rows, results)


def _result(emission: Emission, emits: Sequence[Emit], rows: DataFrame) -> DataFrame:
    result = taken(replace(emission, rows=rows).result(emits))
    end = emits[0].window_columns[2]
    if not isinstance(result.schema[end].dataType, TimestampType):
        return result
    # What reads this stream may go on with stateful operators of its own.
    columns = [F.col(f"`{name.replace('`', '``')}`") for name in result.columns]
    named = zip(result.columns, columns, strict=True)
    return result.select(
        *(c.alias(name, metadata=OF_WATERMARK) if name == end else c for name, c in named)
    )


@dataclass(frozen=True)
class StreamFlow(SharedFlow):
    """The chain of batch, over all scopes of a stream, with a state in place of each aggregation.

    A state knows by the end of a row when it is finished, so rows are grouped by their ends.
    """

    @property
    def _source(self) -> DataFrame:
        return self.frame  # text does not tell the end that a watermark speaks of

    def _clustered(self, rows: Rows) -> Rows:
        return rows  # a state distributes its rows itself

    def _aggregated(
        self,
        rows: Rows,
        kept: Sequence[str],
        level: Level,
        made: Mapping[str, Aggregation],
        *,
        from_rows: bool,
    ) -> Rows:
        """Fan rows out to the places of one level, and aggregate in one state."""
        places = self._places_of(level)
        copies = taken(self._copied(rows, kept, level, from_rows=from_rows))
        end = F.expr(f"timestamp_micros({end_of(places, self._nodes)})")
        ended = copies.select(*kept, NODE, end.alias(END, metadata=OF_WATERMARK))
        by = (*self._keys, NODE, END) if len(places) > 1 else (*self._keys, END)
        node = NODE if len(places) > 1 else f"{min(places)} AS {NODE}"
        return aggregated(ended, by, made).selectExpr(
            *self._keys, node, f"{start_of(places)} AS {START}", *self.names.values()
        )

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        return tuple(dict.fromkeys(node for scope in self.scopes for node in scope.nodes))
