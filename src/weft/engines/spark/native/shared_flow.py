"""Scopes of several key sets over one source: one read, and one chain of aggregations for all.

A copy of an event goes to each scope that keeps it, with the keys that the scope groups by; the
others are NULL in it. The place in the plan tells the rows of scopes apart. What regroups slices of
more keys gets copies of these in the same way, and none of the events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from weft.engines.spark.native.aggregation import Branch, Flow
from weft.engines.spark.native.emit import Emission
from weft.engines.spark.native.levels import Level
from weft.engines.spark.native.shared_events import key_names, roots_of
from weft.engines.spark.sql.fan_out import NODE, START
from weft.engines.spark.sql.kinds import native_of
from weft.engines.spark.sql.readings import reading_of, shapes_of
from weft.plan.nodes import regroups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft.engines.spark.native.events import Events
    from weft.engines.spark.sql.readings import Place
    from weft.engines.spark.text_rows import Rows
    from weft.plan.planned_scope import PlannedScope


@dataclass(frozen=True)
class SharedFlow(Flow):
    """Compiles the windows of several scopes to rows (all keys, place, start, all partials)."""

    scopes: tuple[PlannedScope, ...]
    all_keys: Mapping[str, str]  # of every scope: its expression -> its column

    @classmethod
    def of(cls, scopes: Sequence[PlannedScope], events: Sequence[Events]) -> Self:
        """Prepare scopes whose events are copies in one frame."""
        rolls = tuple(roll for scope in scopes for roll in scope.rolls)
        partials = tuple(dict.fromkeys(p for scope in scopes for p in scope.partials))
        shapes = dict.fromkeys(shape for roll in rolls for shape in shapes_of(roll.window))
        return cls(
            events[0],
            events[0].frame,
            Branch(rolls, partials),
            {shape: i for i, shape in enumerate(shapes)},
            {p: native_of(p) for p in partials},
            {p: f"p{i}" for i, p in enumerate(partials)},
            with_last=False,
            own_partials_only=False,
            scopes=tuple(scopes),
            all_keys=key_names(scopes),
        )

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(self.all_keys.values())

    def rows(self) -> Rows:
        """Return the rows of every window of every scope, under the numbers of their places."""
        *_, rows = self.steps()
        return rows

    def _handed_out(self, rows: Rows) -> Rows:
        return rows

    def emission(self, rows: Rows, scope: PlannedScope, events: Events) -> Emission:
        """Return what reads the results of a scope off the rows of all."""
        ids = self.levels.ids
        numbers = {s: ids[roll, s] for roll in scope.rolls for s in shapes_of(roll.window)}
        return Emission(rows, events, numbers, self.names, {})

    def _clustered(self, rows: Rows) -> Rows:
        # Rows that are regrouped move in any case, when they have become fewer.
        regrouped = any(scope.regroups for scope in self.scopes)
        return rows.repartition(*self._keys) if self.all_keys and not regrouped else rows

    def _copied(self, rows: Rows, kept: Sequence[str], level: Level, *, from_rows: bool) -> Rows:
        """Fan rows out; copies for places of fewer keys have NULL for the others."""
        copies = super()._copied(rows, kept, level, from_rows=from_rows)
        places = self._places_of(level)
        if not any(regroups(node) for node, _ in places.values()):
            return copies
        columns = {name: name for name in kept}
        for text, name in self.all_keys.items():
            having = [n for n, (node, _) in places.items() if text in dict(node.keys).values()]
            if len(having) < len(places):
                listed = ", ".join(map(str, having)) or "-1"
                columns[name] = f"CASE WHEN {NODE} IN ({listed}) THEN {name} END AS {name}"
        return copies.selectExpr(*columns.values(), NODE, START)

    def _from_events(self, level: Level) -> Rows:
        """Read events by the scope that they belong to."""
        places = self._places_of(level)
        readings = {}
        for at, (scan, keys) in enumerate(roots_of(self.scopes)):
            own = [
                n for n, (node, _) in places.items() if (scan, keys) == (node.inputs[0], node.keys)
            ]
            found = [reading_of(places[n], n, scan, None) for n in sorted(own)]
            readings[at] = [reading for reading in found if reading is not None]
        return super()._from_events(Level(readings, level.special))

    def _places_of(self, level: Level) -> dict[int, Place]:
        own = level.places
        return {number: place for place, number in self.levels.ids.items() if number in own}
