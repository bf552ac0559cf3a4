"""The order in which windows are computed: level by level, each level in one aggregation.

Rows of the level below are fanned out to the nodes that read them; those that are still needed
above are handed on as they are. So a factor tree is as many aggregations as it is deep.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from weft.engines.spark.sql.fan_out import Reading
from weft.engines.spark.sql.readings import Place, Shape, places_of, reading_of, special_start
from weft.plan import Node, Roll, Scan, Slice
from weft.plan.nodes import topological

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Level:
    """One aggregation: how rows reach the places of this level."""

    readings: Mapping[int, list[Reading]]  # by the place that rows come from
    special: Mapping[int, str]  # starts that no reading can tell

    @property
    def places(self) -> frozenset[int]:
        """The numbers of the places that rows of this level belong to."""
        return frozenset(r.node for found in self.readings.values() for r in found)


@dataclass(frozen=True)
class Levels:
    """The levels of some windows, the first of which reads events."""

    rolls: tuple[Roll, ...]
    numbers: Mapping[Shape, int]  # the order of windows
    whole: Levels | None = None  # of which these are some, under the same numbers

    @cached_property
    def _nodes(self) -> tuple[Node, ...]:
        return topological(self.rolls)

    @cached_property
    def _heights(self) -> dict[Slice | Roll, int]:
        """How far above the events every node lies."""
        found: dict[Node, int] = {}
        for node in self._nodes:
            found[node] = max((found[i] + 1 for i in node.inputs), default=0)
        return {node: height for node, height in found.items() if isinstance(node, Slice | Roll)}

    @cached_property
    def ids(self) -> dict[Place, int]:
        """A number for every place; windows that are handed to users come first."""
        if self.whole is not None:
            return self.whole.ids
        emitted = [p for roll in self.rolls for p in places_of(roll)]
        emitted.sort(key=lambda place: self.numbers[place[1]] if place[1] else 0)
        others = [p for node in self._heights for p in places_of(node)]
        return {place: i for i, place in enumerate(dict.fromkeys((*emitted, *others)))}

    @cached_property
    def emitted(self) -> tuple[Place, ...]:
        """The places whose rows are handed to users, in the order of their numbers."""
        if self.whole is not None:
            return self.whole.emitted
        wanted = frozenset(self.rolls)
        return tuple(place for place in self.ids if place[0] in wanted)

    def by_node(self, counts: Mapping[tuple[int, int], int]) -> dict[Node, int]:
        """Add up counts of (height, place) by node; rows that are only handed on do not count."""
        found: dict[Node, int] = {}
        for (node, _), number in self.ids.items():
            height = self._heights[node]
            found[node] = found.get(node, 0) + counts.get((height, number), 0)
        return found

    def __iter__(self) -> Iterator[Level]:
        yield self._first()
        for height in range(2, max(self._heights.values()) + 1):
            yield self._next(height)

    def _first(self) -> Level:
        scan = next(node for node in self._nodes if isinstance(node, Scan))
        places = [p for node, h in self._heights.items() if h == 1 for p in places_of(node)]
        readings = [r for p in places if (r := reading_of(p, self.ids[p], scan, None))]
        return Level({0: readings}, self._special((place, scan) for place in places))

    def _next(self, height: int) -> Level:
        readings: dict[int, list[Reading]] = {}
        pairs: list[tuple[Place, Node]] = []
        for node, own in self._heights.items():
            if own == height:
                for feeder in node.inputs:
                    assert isinstance(feeder, Slice | Roll)
                    pairs += [(place, feeder) for place in places_of(node)]
                    self._read(node, feeder, readings)
            elif own < height and self._needed_above(node, height):
                for place in places_of(node):
                    readings.setdefault(self.ids[place], []).append(Reading(self.ids[place]))
        return Level(readings, self._special(pairs))

    def _read(
        self, node: Slice | Roll, feeder: Slice | Roll, readings: dict[int, list[Reading]]
    ) -> None:
        for place in places_of(node):
            for source in places_of(feeder):
                found = reading_of(place, self.ids[place], feeder, source[1])
                if found is not None:
                    readings.setdefault(self.ids[source], []).append(found)

    def _needed_above(self, node: Slice | Roll, height: int) -> bool:
        if node in self._emitted_nodes:
            return True
        return self._highest_reader.get(node, 0) > height

    @cached_property
    def _emitted_nodes(self) -> frozenset[Node]:
        return frozenset(self.rolls)

    @cached_property
    def _highest_reader(self) -> dict[Node, int]:
        found: dict[Node, int] = {}
        for node, height in self._heights.items():
            for feeder in node.inputs:
                found[feeder] = max(found.get(feeder, 0), height)
        return found

    def _special(self, pairs: Iterable[tuple[Place, Node]]) -> dict[int, str]:
        found = {self.ids[p]: special_start(p, feeder, self._nodes) for p, feeder in pairs}
        return {number: start for number, start in found.items() if start is not None}
