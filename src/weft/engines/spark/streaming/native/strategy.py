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
from weft.engines.spark.native.emit import Emission
from weft.engines.spark.native.events import TIME, Events
from weft.engines.spark.native.levels import Level, Levels
from weft.engines.spark.sql.fan_out import NODE, START, fan_out
from weft.engines.spark.sql.kinds import SPARK_KINDS
from weft.engines.spark.sql.readings import Place, reading_of, shapes_of
from weft.engines.spark.streaming.native.end_times import END, end_of, start_of
from weft.engines.spark.streaming.native.events import events_of
from weft.engines.spark.streaming.streams import CompiledStream
from weft.engines.spark.streaming.watermark import OF_WATERMARK, watermarked
from weft.plan import Emit, Node, Roll

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.aggregates import Partial
    from weft.engines.spark.scopes import PlannedScope
    from weft.engines.spark.sql.partials import Aggregation
    from weft.engines.spark.streaming.streams import Stream
    from weft.plan import Emit, Node, Roll


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
        return _Compilation(stream, events_of(stream, timed)).compiled()


def _twice(scope: PlannedScope) -> Iterator[tuple[Node, str]]:
    seen = set()
    for roll in scope.rolls:
        if roll.window in seen:
            yield roll, f"{roll.window} is computed in two ways, and one row cannot wait for both"
        seen.add(roll.window)


@dataclass(frozen=True)
class _Compilation:
    stream: Stream
    events: tuple[Events, ...]  # of each scope

    @cached_property
    def _partials(self) -> tuple[Partial, ...]:
        return tuple(dict.fromkeys(p for scope in self.stream.scopes for p in scope.partials))

    @cached_property
    def _names(self) -> dict[Partial, str]:
        return {p: f"p{i}" for i, p in enumerate(self._partials)}

    @cached_property
    def _rolls(self) -> tuple[Roll, ...]:
        return tuple(roll for scope in self.stream.scopes for roll in scope.rolls)

    @cached_property
    def _levels(self) -> Levels:
        shapes = (shape for roll in self._rolls for shape in shapes_of(roll.window))
        return Levels(self._rolls, {shape: i for i, shape in enumerate(dict.fromkeys(shapes))})

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for events in self.events for key in events.keys))

    def compiled(self) -> CompiledStream:
        first, *others = self._levels
        rows = self._from_events(self._by_scope(first))
        for level in others:
            rows = self._from_rows(rows, level)
        results = {
            query: partial(self._result, emission, scope.emits_of(query))
            for scope, events in zip(self.stream.scopes, self.events, strict=True)
            for emission in [self._emission(rows, scope, events)]
            for query in scope.queries
        }
        return CompiledStream(rows, results)

    def _emission(self, rows: DataFrame, scope: PlannedScope, events: Events) -> Emission:
        ids = self._levels.ids
        numbers = {s: ids[roll, s] for roll in scope.rolls for s in shapes_of(roll.window)}
        return Emission(rows, events, numbers, self._names, {})

    @staticmethod
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

    def _by_scope(self, first: Level) -> Level:
        """List the readings of events by the scope that they belong to."""
        places = {number: place for place, number in self._levels.ids.items()}
        readings = {}
        for at, scope in enumerate(self.stream.scopes):
            own = [n for n in sorted(first.places) if places[n][0] in set(scope.nodes)]
            found = [reading_of(places[n], n, scope.scan, None) for n in own]
            readings[at] = [reading for reading in found if reading is not None]
        return Level(readings, first.special)

    def _from_events(self, level: Level) -> DataFrame:
        events = self.events[0]
        made = {
            name: SPARK_KINDS[p.kind].lift(name, events.args(p), TIME)
            for p, name in self._names.items()
        }
        kept = (*self._keys, TIME, *events.arguments.values())
        return self._aggregated(events.frame, kept, level, made)

    def _from_rows(self, rows: DataFrame, level: Level) -> DataFrame:
        types = self.events[0]
        made = {
            name: SPARK_KINDS[p.kind].combine(name, types.arg_types(p))
            for p, name in self._names.items()
        }
        return self._aggregated(rows, (*self._keys, *self._names.values()), level, made)

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
            *self._keys, node, f"{start_of(places)} AS {START}", *self._names.values()
        )

    def _places(self, level: Level) -> dict[int, Place]:
        own = level.places
        return {number: place for place, number in self._levels.ids.items() if number in own}
