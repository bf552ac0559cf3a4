"""Where the local engine cuts time for a Slice of the plan: periodic edges and calendars together.

A stream could read the newest slice open and cut at begins alone (Carbone et al., "Cutty"); here
ends always cut as well, so a window is a whole number of slices in batch and in the stream.
Windows that events delimit do not cut time; they are found among the events themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.engines.local.values.calendar import CalendarTable
from weft.kernels.grouping.slices import EdgeHorizon, Slices, slices_of_classes
from weft.plan.joins import end_class
from weft.plan.nodes import periodic_parts
from weft.window import CalendarWindow, Edges
from weft.window.edges import even_or_not

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.kernels.partials import Int64s
    from weft.window import EdgeClass, Window


@dataclass(frozen=True, slots=True, eq=False)
class MixedSlices:
    """Slices between the edges of calendars and, if there are any, of periodic classes.

    The ordinal of a slice is its first instant.
    """

    calendars: tuple[CalendarTable, ...]
    periodic: EdgeHorizon | None

    def slice_of(self, times_us: npt.ArrayLike) -> Int64s:
        """Return the first instant of the slice that holds each instant."""
        return self.bounds(times_us)[0]

    def bounds(self, ordinals: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return the first instant of the slice around each instant, and the first after it."""
        times = np.ascontiguousarray(ordinals, np.int64)
        around = [table.around(times) for table in self.calendars]
        if self.periodic is not None:
            around.append(self.periodic.bounds(self.periodic.slice_of(times)))
        starts = np.maximum.reduce([start for start, _ in around])
        return starts, np.minimum.reduce([end for _, end in around])


def edges_as_cut(edges: Edges, readers: Iterable[Window] = ()) -> Edges:
    """Return the edges that are cut for these: with the ends of readers, even where that is cheap.

    >>> edges_as_cut(Edges(((0, 10), (0, 15), (0, 25)))).classes
    ((0, 5),)
    """
    classes: list[EdgeClass] = list(edges.classes)
    if edges.slicing == "begins":
        classes += [end_class(part) for reader in readers for part in periodic_parts(reader)]
    if classes and not any(isinstance(w, CalendarWindow) for w in edges.windows):
        classes = list(even_or_not(classes))
    return Edges(tuple(classes), edges.windows)


def slices_of_edges(edges: Edges) -> Slices | None:
    """Return the slices between edges as they are cut; None where nothing but events cuts."""
    calendars = tuple(CalendarTable(w) for w in edges.windows if isinstance(w, CalendarWindow))
    if calendars:
        periodic = EdgeHorizon.of(edges.classes) if edges.classes else None
        return MixedSlices(calendars, periodic)
    return slices_of_classes(edges.classes) if edges.classes else None
