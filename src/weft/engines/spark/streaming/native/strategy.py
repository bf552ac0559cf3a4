"""The `native` strategy for streams: chained stateful aggregations, no Python in the data path.

Events are aggregated once per key and slice; in append mode a slice leaves its state when the
watermark passes its end, is fanned out to all windows that hold it, and is aggregated again. The
end of the window carries the watermark on, so the second state, which all windows of all queries
share, knows when a window is finished.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from weft.cost.strategies import SHIPPED_PARTIALS, native_obstacles
from weft.cost.streams import stream_obstacles
from weft.engines.base import Unsupported
from weft.engines.spark.native.aggregation import Branch, Flow, aggregated
from weft.engines.spark.native.emit import Emission
from weft.engines.spark.native.levels import Level
from weft.engines.spark.sql.fan_out import NODE, START, fan_out
from weft.engines.spark.sql.kinds import SPARK_KINDS
from weft.engines.spark.sql.readings import Place, reading_of, shapes_of
from weft.engines.spark.streaming.native.end_times import END, end_of, start_of
from weft.engines.spark.streaming.native.events import events_of
from weft.engines.spark.streaming.streams import CompiledStream
from weft.engines.spark.streaming.watermark import OF_WATERMARK, watermarked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.engines.spark.native.events import Events
    from weft.engines.spark.sql.partials import Aggregation
    from weft.engines.spark.streaming.streams import Stream
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
        return _compiled(stream, events_of(stream, timed))


def _twice(scope: PlannedScope) -> Iterator[tuple[Node, str]]:
    seen = set()
    for roll in scope.rolls:
        if roll.window in seen:
            yield roll, f"{roll.window} is computed in two ways, and one row cannot wait for both"
        seen.add(roll.window)


def _compiled(stream: Stream, events: tuple[Events, ...]) -> CompiledStream:
    rolls = tuple(roll for scope in stream.scopes for roll in scope.rolls)
    partials = tuple(dict.fromkeys(p for scope in stream.scopes for p in scope.partials))
    shapes = dict.fromkeys(shape for roll in rolls for shape in shapes_of(roll.window))
    flow = StreamFlow(
        events[0],
        events[0].frame,
        Branch(rolls, partials),
        {shape: i for i, shape in enumerate(shapes)},
        {p: SPARK_KINDS[p.kind] for p in partials},
        {p: f"p{i}" for i, p in enumerate(partials)},
        with_last=False,
        own_partials_only=False,
        stream=stream,
        all_keys=tuple(dict.fromkeys(key for own in events for key in own.keys)),
    )
    *_, rows = flow.steps()
    results = {
        query: partial(_result, flow.emission(rows, scope, own), scope.emits_of(query))
        for scope, own in zip(stream.scopes, events, strict=True)
        for query in scope.queries
    }
    return CompiledStream(rows, results)


def _result(emission: Emission, emits: Sequence[Emit], rows: DataFrame) -> DataFrame:
    result = replace(emission, rows=rows).result(emits)
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
class StreamFlow(Flow):
    """The chain of batch, over all scopes of a stream, with a state in place of each aggregation.

    A state knows by the end of a row when it is finished, so rows are grouped by their ends.
    """

    stream: Stream
    all_keys: tuple[str, ...]  # of every scope

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.all_keys

    def emission(self, rows: DataFrame, scope: PlannedScope, events: Events) -> Emission:
        """Return what reads the results of a scope off the rows of all."""
        ids = self.levels.ids
        numbers = {s: ids[roll, s] for roll in scope.rolls for s in shapes_of(roll.window)}
        return Emission(rows, events, numbers, self.names, {})

    def _clustered(self, rows: DataFrame) -> DataFrame:
        return rows  # a state distributes its rows itself

    def _from_events(self, level: Level) -> DataFrame:
        """Read events by the scope that they belong to."""
        places = {number: place for place, number in self.levels.ids.items()}
        readings = {}
        for at, scope in enumerate(self.stream.scopes):
            own = [n for n in sorted(level.places) if places[n][0] in set(scope.nodes)]
            found = [reading_of(places[n], n, scope.scan, None) for n in own]
            readings[at] = [reading for reading in found if reading is not None]
        return super()._from_events(Level(readings, level.special))

    def _aggregated(
        self,
        rows: DataFrame,
        kept: Sequence[str],
        level: Level,
        made: Mapping[str, Aggregation],
    ) -> DataFrame:
        """Fan rows out to the places of one level, and aggregate in one state."""
        places = self._places(level)
        copies = fan_out(rows, kept, level.readings, level.special)
        end = F.expr(f"timestamp_micros({end_of(places, self.stream.nodes)})")
        ended = copies.select(*kept, NODE, end.alias(END, metadata=OF_WATERMARK))
        by = (*self._keys, NODE, END) if len(places) > 1 else (*self._keys, END)
        node = NODE if len(places) > 1 else f"{min(places)} AS {NODE}"
        return aggregated(ended, by, made).selectExpr(
            *self._keys, node, f"{start_of(places)} AS {START}", *self.names.values()
        )

    def _places(self, level: Level) -> dict[int, Place]:
        own = level.places
        return {number: place for place, number in self.levels.ids.items() if number in own}
