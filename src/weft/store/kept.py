"""What a store keeps: sets of slices, each of some events by some keys, for some partials."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from weft.aggregates import Partial, partial_kind
from weft.aggregates.spark_sketches import MERGED_BY
from weft.engines.local.windows.slices import edges_as_cut, slices_of_edges
from weft.engines.local.windows.timed_plan import is_timed
from weft.errors import InternalError, UnsupportedError
from weft.plan.node_json import window_from_json, window_to_json
from weft.plan.scope import scopes_of
from weft.query import JoinQuery
from weft.window import Edges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.kernels.grouping.slices import Slices
    from weft.plan.scope import Scope
    from weft.query import Workload
    from weft.window import Window

START = "slice_start"  # the column with the first instant of each slice


@dataclass(frozen=True)
class SliceSet:
    """Slices of the events that pass one filter, by one set of keys.

    `levels` are where time is cut: first as events are, then as compaction has it. `keys` and
    `partials` go by the names of their columns in the files.
    """

    source: str
    time: str | None  # None until the first events tell
    where: str | None
    keys: tuple[tuple[str, str], ...]  # (column, expression)
    partials: tuple[tuple[str, Partial], ...]  # (column, partial)
    levels: tuple[Edges, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of every file, in order."""
        return (START, *(name for name, _ in self.keys), *(name for name, _ in self.partials))

    def column_of(self, partial: Partial) -> str:
        """Return the column that holds a partial."""
        return next(name for name, own in self.partials if own == partial)

    def slices(self, level: int) -> Slices:
        """Return where time is cut at a level."""
        found = slices_of_edges(self.levels[level])
        if found is None:
            raise InternalError("slices of time without edges")
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the set as JSON values."""
        return {
            "source": self.source,
            "time": self.time,
            "where": self.where,
            "keys": [list(key) for key in self.keys],
            "partials": [[name, p.kind, *p.args] for name, p in self.partials],
            "levels": [
                {
                    "classes": [list(c) for c in edges.classes],
                    "windows": [window_to_json(w) for w in edges.windows],
                }
                for edges in self.levels
            ],
        }

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> SliceSet:
        """Read a set back."""
        return cls(
            told["source"],
            told["time"],
            told["where"],
            tuple((name, text) for name, text in told["keys"]),
            tuple(
                (name, Partial(partial_kind(kind), tuple(args)))
                for name, kind, *args in told["partials"]
            ),
            tuple(
                Edges(
                    tuple((r, m) for r, m in edges["classes"]),
                    tuple(map(window_from_json, edges["windows"])),
                )
                for edges in told["levels"]
            ),
        )


def slice_sets(workload: Workload) -> tuple[SliceSet, ...]:
    """Choose the slices that serve a workload: the events of each filter once, by the finest keys.

    Windows cut where any of them begins or ends, evenly where that costs little, so that windows
    asked later find edges too; queries by fewer keys read the slices of those by more.
    """
    refuse_events(workload)
    found: list[list[Scope]] = []
    for scope in sorted(scopes_of(workload), key=lambda one: -len(one.keys)):
        home = next((group for group in found if _holds(group[0], scope)), None)
        if home is None:
            found.append([scope])
        else:
            home.append(scope)
    return tuple(_set_of(group) for group in found)


def refuse_events(workload: Workload) -> None:
    """Refuse what slices cannot answer: joins, and windows whose instances follow the events."""
    for query in workload:
        if isinstance(query, JoinQuery):
            raise UnsupportedError(
                f"join {query.name!r} matches events, and slices hold none",
                hint="run it over the events with weft.run",
            )
        for label, window in query.windows:
            if not is_timed(window):
                raise UnsupportedError(
                    f"window {label!r} of query {query.name!r}, {window}, begins and ends where "
                    "events do, and slices hold no events",
                    hint="run it over the events with weft.run; tumbling, hopping, cumulating and "
                    "calendar windows are served from slices",
                )


def _holds(finest: Scope, other: Scope) -> bool:
    same = (finest.scan.source, finest.scan.time, finest.scan.where)
    texts = {text for _, text in finest.keys}
    asked = (other.scan.source, other.scan.time, other.scan.where)
    return same == asked and {text for _, text in other.keys} <= texts


def _set_of(scopes: list[Scope]) -> SliceSet:
    finest = scopes[0]
    windows: dict[Window, None] = dict.fromkeys(w for scope in scopes for w in scope.windows)
    partials = dict.fromkeys(
        partial
        for scope in scopes
        for window in scope.windows
        for partial in (*scope.shareable_partials(window), *scope.holistic_partials(window))
    )
    for partial in partials:
        if partial.kind in MERGED_BY:
            raise UnsupportedError(
                f"{partial} is a sketch of Spark's own, which no other engine can read",
                hint="use approx_count_distinct or approx_percentile, or run it with weft.run",
            )
    taken = {START}
    keys = tuple((_name(name, taken), text) for name, text in finest.keys)
    return SliceSet(
        finest.scan.source,
        finest.scan.time,
        finest.scan.where,
        keys,
        tuple((_name(_told(partial), taken), partial) for partial in partials),
        (edges_as_cut(Edges.of(windows)),),
    )


def _told(partial: Partial) -> str:
    """Name the column of a partial in words.

    >>> _told(Partial("sum", ("price * quantity",))), _told(Partial("count_rows", ()))
    ('sum_price_quantity', 'count_rows')
    """
    words = re.findall(r"\w+", " ".join((partial.kind, *partial.args)))
    return "_".join(words)[:60]


def _name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name.casefold() in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name.casefold())
    return name


def with_times(sets: Iterable[SliceSet], times: dict[str, str]) -> tuple[SliceSet, ...]:
    """Return the sets with the time columns that the events have."""
    return tuple(
        one if one.time is not None else replace(one, time=times[one.source]) for one in sets
    )
