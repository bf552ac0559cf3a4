"""When slices and instances end: the one time that tells Spark when a row is finished.

A state is keyed by the end alone; where an instance starts follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.spark.sql.fan_out import NODE, START, constant, with_special
from weft.engines.spark.sql.instants import calendar_end, calendar_start
from weft.engines.spark.sql.slice_bounds import slice_end
from weft.plan import Slice
from weft.plan.nodes import ends_read_open
from weft.window import CalendarWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weft.engines.spark.sql.readings import Place
    from weft.plan import Node

END = "finish"
_END_US = f"unix_micros({END})"
# All instants of a slice are in the same instances, so the last one stands for the slice.
_WITHIN_SLICE_US = 1


def end_of(places: Mapping[int, Place], nodes: Iterable[Node]) -> str:
    """Return the end of a row of one of these places, from its start, in microseconds."""
    own = {number: _own_end(place, nodes) for number, place in places.items()}
    special = {number: end for number, end in own.items() if end is not None}
    return _chosen(f"{START} + {_range(places)}", special, places)


def start_of(places: Mapping[int, Place]) -> str:
    """Return the start of a row of one of these places, or for a slice a time inside it."""
    special = {
        number: calendar_start(shape, f"({_END_US} - 1)")
        for number, (_, shape) in places.items()
        if isinstance(shape, CalendarWindow)
    }
    return _chosen(f"{_END_US} - {_range(places)}", special, places)


def _chosen(regular: str, special: Mapping[int, str], places: Mapping[int, Place]) -> str:
    if len(places) == 1:
        return next(iter(special.values()), regular)
    return with_special(regular, special)


def _own_end(place: Place, nodes: Iterable[Node]) -> str | None:
    node, shape = place
    if isinstance(node, Slice):
        return slice_end(START, node.edges, ends_read_open(node, nodes))
    return calendar_end(shape, START) if isinstance(shape, CalendarWindow) else None


def _range(places: Mapping[int, Place]) -> str:
    ranges = {
        number: shape.range_us if isinstance(shape, PeriodicWindow) else _WITHIN_SLICE_US
        for number, (_, shape) in places.items()
    }
    if len(set(ranges.values())) == 1:
        return f"{next(iter(ranges.values()))}L"
    dense = [ranges.get(number, 0) for number in range(max(ranges) + 1)]
    return f"get({constant(dense, 'array<bigint>')}, {NODE})"
