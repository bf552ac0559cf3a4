"""Where the slice of an event begins, by arithmetic on its time."""

from __future__ import annotations

from math import gcd, lcm
from typing import TYPE_CHECKING

from weft.cost.edges.rates import edge_rate
from weft.engines.spark.sql.fan_out import constant
from weft.engines.spark.sql.instants import calendar_end, calendar_start, floor_to
from weft.plan.joins import end_class
from weft.window import CalendarWindow, EdgeClass, Edges, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable

# One division per event instead of a search is worth up to twice the slices.
_SPARE_EDGES = 2.0
# A table of granules that stays in the first-level cache.
_LARGEST_TABLE = 4096
# Each class costs a division per event.
_MOST_CLASSES = 16


def slice_start(time: str, edges: Edges, open_ends: Iterable[PeriodicWindow] = ()) -> str:
    """Return the last edge at or before a time, or one that lies nearer.

    Slices may come out finer than the plan's where that takes less work per event. `open_ends`
    are windows read from begins-only slices: in batch nothing is open, so their ends cut too.
    """
    classes = classes_cut(edges, open_ends)
    starts = [calendar_start(w, time) for w in edges.windows if isinstance(w, CalendarWindow)]
    if classes:
        starts.append(_periodic_edge(time, classes, after=False))
    return starts[0] if len(starts) == 1 else f"greatest({', '.join(starts)})"


def slice_end(time: str, edges: Edges, open_ends: Iterable[PeriodicWindow] = ()) -> str:
    """Return where the slice of a time ends, as `slice_start` cuts it."""
    classes = classes_cut(edges, open_ends)
    ends = [
        calendar_end(w, calendar_start(w, time))
        for w in edges.windows
        if isinstance(w, CalendarWindow)
    ]
    if classes:
        ends.append(_periodic_edge(time, classes, after=True))
    return ends[0] if len(ends) == 1 else f"least({', '.join(ends)})"


def classes_cut(edges: Edges, open_ends: Iterable[PeriodicWindow] = ()) -> tuple[EdgeClass, ...]:
    """Return the classes that slices are really cut at: those of the edges, or panes.

    >>> classes_cut(Edges(((0, 6), (3, 6)))), classes_cut(Edges(((0, 60), (0, 77))))
    (((0, 3),), ((0, 60), (0, 77)))
    """
    classes = tuple(dict.fromkeys((*edges.classes, *sorted(map(end_class, open_ends)))))
    if not classes:
        return classes
    pane = pane_of(classes)
    return (pane,) if len(classes) == 1 or _panes_suffice(classes, pane[1]) else classes


def _periodic_edge(time: str, classes: tuple[EdgeClass, ...], *, after: bool) -> str:
    """Return the edge that a slice begins with, or the one after it."""
    first, size = pane_of(classes)
    if len(classes) == 1:
        return floor_to(time, first, size) + (f" + {size}L" if after else "")
    period = lcm(*(modulus for _, modulus in classes))
    if period // size <= _LARGEST_TABLE:
        return _looked_up(time, classes, first, size, period, after=after)
    if after:
        ends = [f"{floor_to(time, residue, modulus)} + {modulus}L" for residue, modulus in classes]
        return f"least({', '.join(ends)})"
    starts = [floor_to(time, residue, modulus) for residue, modulus in classes]
    return f"greatest({', '.join(starts)})"


def pane_of(classes: Iterable[EdgeClass]) -> EdgeClass:
    """Return the single class, as coarse as can be, that holds all of these.

    >>> pane_of([(0, 6), (2, 4)]), pane_of([(1, 4), (3, 8)])
    ((0, 2), (1, 2))
    """
    chosen = tuple(classes)
    first = chosen[0][0]
    size = gcd(*(modulus for _, modulus in chosen), *(residue - first for residue, _ in chosen))
    return first % size, size


def _panes_suffice(classes: tuple[EdgeClass, ...], size: int) -> bool:
    return len(classes) > _MOST_CLASSES or edge_rate(classes) * size * _SPARE_EDGES >= 1


def _looked_up(
    time: str,
    classes: tuple[EdgeClass, ...],
    first: int,
    size: int,
    period: int,
    *,
    after: bool,
) -> str:
    """Look the edge up in a table of one period: `floor(t / L) * L + table[(t mod L) div g]`."""
    edge = edge_after if after else edge_before
    table = [edge(position, classes) for position in range(first, first + period, size)]
    position = f"{time} - {first}L" if first else time
    within = f"pmod({position}, {period}L)"
    starts = constant([start - first for start in table], "array<bigint>")
    return f"{time} - {within} + get({starts}, cast({within} div {size}L AS int))"


def edge_before(position: int, classes: Iterable[EdgeClass]) -> int:
    """Return the last edge at or before a position.

    >>> edge_before(7, [(0, 4), (2, 5)])
    7
    >>> edge_before(6, [(0, 4), (2, 5)])
    4
    """
    return max(position - (position - residue) % modulus for residue, modulus in classes)


def edge_after(position: int, classes: Iterable[EdgeClass]) -> int:
    """Return the first edge after a position.

    >>> edge_after(7, [(0, 4), (2, 5)]), edge_after(8, [(0, 4), (2, 5)])
    (8, 12)
    """
    return min(position - (position - residue) % modulus + modulus for residue, modulus in classes)
