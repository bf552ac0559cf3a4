"""From events to the rows of all windows: one pass of aggregations, however many windows.

Nodes are computed level by level. A level is one aggregation for all its nodes together: rows of
the level below are fanned out to the nodes that read them, and those that are still needed above
are handed on as they are. So a factor tree is as many aggregations as it is deep, in one job that
reads the events once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.engines.spark.events import TIME, Events
from weft.engines.spark.fan_out import FEEDER, NODE, START, Reading, constant, fan_out
from weft.engines.spark.partials import Aggregation, NativePartial, SpreadPartial
from weft.engines.spark.readings import Place, Shape, places_of, reading_of, special_start
from weft.engines.spark.scopes import nodes_under
from weft.plan import Node, Roll, Scan, Slice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from weft.aggregates import Partial

ENTRY, LAST = "entry", "last"


@dataclass(frozen=True, slots=True)
class Branch:
    """Windows that are computed together: the same partials of the same events."""

    rolls: tuple[Roll, ...]
    partials: tuple[Partial, ...]
    spread: bool = False  # the one partial is kept as rows


@dataclass(frozen=True)
class Flow:
    """Compiles one branch to rows (keys, window, start, partials)."""

    events: Events
    frame: DataFrame
    branch: Branch
    numbers: Mapping[Shape, int]  # the windows of the scope
    natives: Mapping[Partial, NativePartial]
    names: Mapping[Partial, str]
    with_last: bool  # keep the time of the last event, which ends a session

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All that this branch is computed from, inputs first."""
        return nodes_under(self.branch.rolls)

    @cached_property
    def levels(self) -> dict[Slice | Roll, int]:
        """How far above the events every node lies."""
        found: dict[Node, int] = {}
        for node in self.nodes:
            found[node] = max((found[i] + 1 for i in node.inputs), default=0)
        return {n: level for n, level in found.items() if isinstance(n, Slice | Roll)}

    @cached_property
    def ids(self) -> dict[Place, int]:
        """A number for every place; windows that are handed to users come first."""
        emitted = [p for roll in self.branch.rolls for p in places_of(roll)]
        emitted.sort(key=lambda place: self.numbers[place[1]] if place[1] else 0)
        others = [p for node in self.levels for p in places_of(node)]
        return {place: i for i, place in enumerate(dict.fromkeys((*emitted, *others)))}

    def rows(self) -> DataFrame:
        """Return the rows of every window of the branch."""
        depth = max(self.levels.values())
        rows = self._first_level()
        if depth > 1 and self.events.keys:
            # Rows of a key stay together from here on: no further level moves a row.
            rows = rows.repartition(*self.events.keys)
        for level in range(2, depth + 1):
            rows = self._next_level(rows, level)
        if self.branch.spread:
            rows = self._collapsed(rows)
        return self._by_window(rows)

    @property
    def _keys(self) -> tuple[str, ...]:
        return (*self.events.keys, ENTRY) if self.branch.spread else self.events.keys

    @property
    def _columns(self) -> tuple[str, ...]:
        own = tuple(self.names[p] for p in self.branch.partials)
        return (*own, LAST) if self.with_last else own

    def _first_level(self) -> DataFrame:
        frame = self.frame
        if self.branch.spread:
            (partial,) = self.branch.partials
            native = self.natives[partial]
            assert isinstance(native, SpreadPartial)
            frame = frame.selectExpr("*", f"{native.entry(self.events.args(partial))} AS {ENTRY}")
        frame = frame.selectExpr("*", f"{TIME} AS {START}")
        places = [p for n, level in self.levels.items() if level == 1 for p in places_of(n)]
        scan = next(node for node in self.nodes if isinstance(node, Scan))
        readings = [r for p in places if (r := reading_of(p, self.ids[p], scan, None))]
        special = self._special((place, scan) for place in places)
        kept = (*self._keys, TIME, *self.events.arguments.values())
        return self._level(frame, kept, {0: readings}, special, self._lifts())

    def _next_level(self, rows: DataFrame, level: int) -> DataFrame:
        readings: dict[int, list[Reading]] = {}
        pairs: list[tuple[Place, Node]] = []
        for node, own in self.levels.items():
            if own == level:
                for feeder in node.inputs:
                    assert isinstance(feeder, Slice | Roll)
                    for place in places_of(node):
                        pairs.append((place, feeder))
                        for source in places_of(feeder):
                            found = reading_of(place, self.ids[place], feeder, source[1])
                            if found is not None:
                                readings.setdefault(self.ids[source], []).append(found)
            elif own < level and self._needed_after(node, level):
                for place in places_of(node):
                    readings.setdefault(self.ids[place], []).append(Reading(self.ids[place]))
        fed = rows.withColumnRenamed(NODE, FEEDER)
        kept = (*self._keys, *self._columns)
        return self._level(fed, kept, readings, self._special(pairs), self._combines())

    def _needed_after(self, node: Slice | Roll, level: int) -> bool:
        if node in self.branch.rolls:
            return True
        return any(node in n.inputs for n, own in self.levels.items() if own > level)

    def _special(self, pairs: Iterable[tuple[Place, Node]]) -> dict[int, str]:
        found = {self.ids[p]: special_start(p, feeder, self.nodes) for p, feeder in pairs}
        return {number: start for number, start in found.items() if start is not None}

    def _lifts(self) -> dict[str, Aggregation]:
        made = {
            self.names[p]: self.natives[p].lift(self.names[p], self.events.args(p), TIME)
            for p in self.branch.partials
        }
        return made | ({LAST: Aggregation({LAST: f"max({TIME})"})} if self.with_last else {})

    def _combines(self) -> dict[str, Aggregation]:
        made = {
            self.names[p]: self.natives[p].combine(self.names[p], self.events.arg_types(p))
            for p in self.branch.partials
        }
        return made | ({LAST: Aggregation({LAST: f"max({LAST})"})} if self.with_last else {})

    def _level(
        self,
        rows: DataFrame,
        kept: Sequence[str],
        readings: Mapping[int, Sequence[Reading]],
        special: Mapping[int, str],
        made: Mapping[str, Aggregation],
    ) -> DataFrame:
        """Fan rows out to the places of one level, and aggregate."""
        copies = fan_out(rows, kept, readings, special)
        places = {reading.node for found in readings.values() for reading in found}
        if len(places) > 1:
            return aggregated(copies, (*self._keys, NODE, START), made)
        # A column that is everywhere the same would still be hashed and moved.
        alone = aggregated(copies, (*self._keys, START), made)
        return alone.selectExpr("*", f"{places.pop()} AS {NODE}")

    def _collapsed(self, rows: DataFrame) -> DataFrame:
        (partial,) = self.branch.partials
        native, name = self.natives[partial], self.names[partial]
        assert isinstance(native, SpreadPartial)
        made = {name: native.collapse(name, ENTRY)}
        if self.with_last:
            made[LAST] = Aggregation({LAST: f"max({LAST})"})
        return aggregated(rows, (*self.events.keys, NODE, START), made)

    def _by_window(self, rows: DataFrame) -> DataFrame:
        """Number rows by their window, and blank partials that another Roll has of it."""
        emitted = [p for p in self.ids if p[0] in self.branch.rolls]
        windows = [self.numbers[shape] for _, shape in emitted if shape is not None]
        if windows == list(range(len(windows))):
            return rows
        columns = {name: name for name in self._columns}
        if len(set(windows)) < len(windows):
            for partial in self.branch.partials:
                has = [str(self.ids[p]) for p in emitted if partial in p[0].partials]
                name = self.names[partial]
                columns[name] = f"CASE WHEN {NODE} IN ({', '.join(has)}) THEN {name} END"
        return rows.selectExpr(
            *self.events.keys,
            f"get({constant(windows, 'array<int>')}, {NODE}) AS {NODE}",
            START,
            *(f"{column} AS {name}" for name, column in columns.items()),
        )


def aggregated(rows: DataFrame, by: Sequence[str], made: Mapping[str, Aggregation]) -> DataFrame:
    """Group rows, aggregate, and finish partials that are made of several aggregates."""
    grouped = rows.groupBy(*by).agg(*(column for a in made.values() for column in a.columns()))
    if all(a.result is None for a in made.values()):
        return grouped
    return grouped.selectExpr(*by, *(f"{a.result or name} AS {name}" for name, a in made.items()))
