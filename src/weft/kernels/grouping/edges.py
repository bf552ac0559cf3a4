"""The edges of a set of classes at run time: a table of one period.

An edge class (residue, modulus) stands for the instants `residue + m * modulus` for every integer
m. The slices of a set of classes are the intervals `[edge, next edge)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.errors import InternalError
from weft.kernels.compiled import unlocked
from weft.kernels.parallel import over_chunks, threads_for
from weft.window.edges import primitive_classes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.window.edges import EdgeClass

Int64s = npt.NDArray[np.int64]

# The most edges a period table holds: making it takes some milliseconds, whatever the events.
TABLE_EDGES = 1 << 17
TABLE_GRAINS = 1 << 22  # the most cells of its direct lookup; 16 MB


def marks_per_period(classes: Iterable[EdgeClass]) -> int:
    """Count the edges of one period of all classes, coinciding ones several times.

    >>> marks_per_period([(0, 3), (2, 3), (0, 8), (6, 8)])
    22
    """
    chosen = tuple(classes)
    period = lcm(*(modulus for _, modulus in chosen))
    return sum(period // modulus for _, modulus in chosen)


@dataclass(frozen=True, slots=True, eq=False)
class PeriodTable:
    """The edges of one period; numbers every slice of all time.

    Slices are numbered by their first edge: edge j of period q has ordinal `q * m + j`, with m
    edges in a period. Before 1970 ordinals are negative; division always rounds down.

    >>> table = PeriodTable.of([(0, 3), (2, 3)])
    >>> table.slice_of(np.array([-1, 0, 1, 2, 3, 4, 5])).tolist()
    [-1, 0, 0, 1, 2, 2, 3]
    >>> [bounds.tolist() for bounds in table.bounds(np.array([-1, 0, 1]))]
    [[-1, 0, 2], [0, 2, 3]]
    """

    period_us: int
    edges_us: Int64s  # of one period, from the first that is not negative, ascending
    grain_us: int  # all edges are a multiple of this away from the first one
    slice_of_grain: npt.NDArray[np.int32]  # empty where it would be too large

    @classmethod
    def of(cls, classes: Iterable[EdgeClass]) -> PeriodTable:
        """Enumerate one period; edges that are evenly spaced become a period of one slice."""
        chosen = primitive_classes(classes)
        period = lcm(*(modulus for _, modulus in chosen))
        if marks_per_period(chosen) > TABLE_EDGES:
            raise InternalError(f"a period of {marks_per_period(chosen)} edges for a table")
        marks = np.sort(np.concatenate([np.arange(r, period, m) for r, m in chosen]))
        edges = marks[np.diff(marks, prepend=-1) != 0]
        steps = np.diff(edges, append=edges[0] + period)
        if np.all(steps == steps[0]):
            period, edges, steps = int(steps[0]), edges[:1], steps[:1]
        grain = gcd(period, int(np.gcd.reduce(edges - edges[0])))
        if period // grain > TABLE_GRAINS:
            return cls(period, edges, grain, np.empty(0, np.int32))
        lookup = np.repeat(np.arange(edges.size, dtype=np.int32), steps // grain)
        return cls(period, edges, grain, lookup)

    @property
    def width_us(self) -> int | None:
        """The width of all slices, if they have the same."""
        return self.period_us if self.edges_us.size == 1 else None

    def slice_of(self, times_us: npt.ArrayLike) -> Int64s:
        """Return the ordinal of the slice that holds each instant."""
        times = np.ascontiguousarray(times_us, np.int64)
        out = np.empty(times.size, np.int64)
        known = (self.period_us, self.edges_us, self.grain_us, self.slice_of_grain)

        def number(start: int, stop: int) -> None:
            _number(times[start:stop], *known, out[start:stop])

        over_chunks(number, times.size, threads_for(times.size))
        return out

    def bounds(self, ordinals: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return the first instant of each slice and the first one after it."""
        numbers = np.asarray(ordinals, np.int64)
        return self._edge(numbers), self._edge(numbers + 1)

    def _edge(self, ordinals: Int64s) -> Int64s:
        if self.edges_us.size == 1:
            starts: Int64s = ordinals * self.period_us + self.edges_us[0]
            return starts
        periods, within = np.divmod(ordinals, self.edges_us.size)
        return periods * self.period_us + self.edges_us[within]


@unlocked
def _number(
    times: Int64s,
    period: int,
    edges: Int64s,
    grain: int,
    slice_of_grain: npt.NDArray[np.int32],
    out: Int64s,
) -> None:
    # Events come almost in order: most of them lie in the slice of the one before, and asking
    # that first saves the divisions.
    first, start, end, ordinal = edges[0], np.int64(0), np.int64(0), np.int64(0)
    for i in range(times.size):
        if not start <= times[i] < end:
            turns = (times[i] - first) // period
            past = times[i] - first - turns * period
            if slice_of_grain.size:
                within = np.int64(slice_of_grain[past // grain])
            else:
                within = np.searchsorted(edges, past + first, side="right") - 1
            ordinal = turns * edges.size + within
            start = turns * period + edges[within]
            if within + 1 < edges.size:
                end = turns * period + edges[within + 1]
            else:
                end = (turns + 1) * period + first
        out[i] = ordinal
