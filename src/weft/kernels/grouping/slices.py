"""Partial aggregation: which slice an event belongs to, and which slices a window is made of.

Panes cut at every common divisor of range and slide, pairs at begins and ends of windows, Cutty
at begins only (Shein & Chrysanthis; Carbone et al., "Cutty"). All three are edge classes, and one
numbering serves them: `slices_of` for one window or for any set of windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from weft.kernels.compiled import unlocked
from weft.kernels.grouping.edges import TABLE_EDGES, PeriodTable, marks_per_period
from weft.kernels.parallel import read_only
from weft.window.edges import EdgeClass, Slicing, edge_classes, primitive_classes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.window.periodic import PeriodicWindow

Int64s = npt.NDArray[np.int64]
_FAR = 2**62


class Slices(Protocol):
    """Disjoint intervals that cover all time, each with an int64 ordinal that grows with time."""

    def slice_of(self, times_us: npt.ArrayLike) -> Int64s:
        """Return the ordinal of the slice that holds each instant."""
        ...

    def bounds(self, ordinals: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return the first instant of each slice and the first one after it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EdgeHorizon:
    """Slices of a period too long to enumerate; the ordinal of a slice is its first instant.

    The last edge before an instant is the latest of the last edges of all classes, so nothing is
    generated and nothing is remembered.

    >>> slices = EdgeHorizon.of([(0, 3), (2, 3)])
    >>> slices.slice_of(np.array([-2, -1, 0, 4])).tolist()
    [-3, -1, 0, 3]
    >>> [bounds.tolist() for bounds in slices.bounds(np.array([-1, 0]))]
    [[-1, 0], [0, 2]]
    """

    residues_us: Int64s
    moduli_us: Int64s

    @classmethod
    def of(cls, classes: Iterable[EdgeClass]) -> EdgeHorizon:
        """Take the classes without those that add no edge."""
        chosen = primitive_classes(classes)
        return cls(
            np.array([residue for residue, _ in chosen], np.int64),
            np.array([modulus for _, modulus in chosen], np.int64),
        )

    def slice_of(self, times_us: npt.ArrayLike) -> Int64s:
        """Return the first instant of the slice that holds each instant."""
        return self._around(np.ascontiguousarray(times_us, np.int64))[0]

    def bounds(self, ordinals: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return the first instant of each slice and the first one after it."""
        return self._around(np.ascontiguousarray(ordinals, np.int64))

    def _around(self, times: Int64s) -> tuple[Int64s, Int64s]:
        starts, ends = np.empty(times.size, np.int64), np.empty(times.size, np.int64)
        _neighbours(times, self.residues_us, self.moduli_us, starts, ends)
        return starts, ends


@unlocked
def _neighbours(
    times: Int64s, residues: Int64s, moduli: Int64s, starts: Int64s, ends: Int64s
) -> None:
    start, end = np.int64(0), np.int64(0)
    for i in range(times.size):
        if not start <= times[i] < end:
            start = times[i] - (times[i] - residues[0]) % moduli[0]
            end = start + moduli[0]
            for c in range(1, residues.size):
                edge = times[i] - (times[i] - residues[c]) % moduli[c]
                start = max(start, edge)
                end = min(end, edge + moduli[c])
        starts[i], ends[i] = start, end


def slices_of_classes(classes: Iterable[EdgeClass]) -> PeriodTable | EdgeHorizon:
    """Number the slices by a period table, or by their instants where a period is too long.

    >>> type(slices_of_classes([(0, 60), (0, 90)])).__name__
    'PeriodTable'
    >>> type(slices_of_classes([(0, 86399), (0, 86400), (0, 86353)])).__name__
    'EdgeHorizon'
    """
    chosen = primitive_classes(classes)
    if marks_per_period(chosen) <= TABLE_EDGES:
        return PeriodTable.of(chosen)
    return EdgeHorizon.of(chosen)


def slices_of(
    windows: Iterable[PeriodicWindow], slicing: Slicing = "pairs"
) -> PeriodTable | EdgeHorizon:
    """Slice time for a set of windows.

    Windows of 5 every 3 and of 14 every 8 repeat together every 24:

    >>> from weft.window import PeriodicWindow
    >>> both = [PeriodicWindow(5, 3), PeriodicWindow(14, 8)]
    >>> [slices_of(both, s).edges_us.size for s in ("pairs", "begins")]
    [18, 10]
    """
    return slices_of_classes(edge_classes(windows, slicing))


class WindowRanges(NamedTuple):
    """The instances of one window over sorted partials: one entry per (key, instance)."""

    window_starts_us: Int64s
    starts: Int64s  # rows of the partials, [start, end); `keys[starts]` are the keys
    ends: Int64s


def window_ranges(
    window: PeriodicWindow, keys: npt.NDArray[np.integer], slice_starts_us: Int64s
) -> WindowRanges:
    """Find the partials of every instance that has any, ordered by key and time.

    Partials must be sorted by (key, slice start), and the window's begins and ends must be edges
    of the slicing (pairs or panes). Starts and ends of the answer never go back, so that
    `aggregate_ranges` takes its linear way.

    >>> from weft.window import PeriodicWindow
    >>> ranges = window_ranges(PeriodicWindow(4, 2), np.array([7, 7, 8]), np.array([0, 2, 100]))
    >>> [column.tolist() for column in ranges]
    [[-2, 0, 2, 98, 100], [0, 0, 1, 2, 2], [1, 2, 2, 3, 3]]
    """
    shape = np.array([(window.range_us, window.slide_us, window.offset_us)], np.int64)
    return WindowRanges(*instances_within(keys, slice_starts_us, read_only(shape))[1:])


def instances_within(
    keys: npt.NDArray[np.integer],
    slice_starts_us: Int64s,
    shapes: Int64s,
    from_us: int | None = None,
    to_us: int | None = None,
    most: int | None = None,
) -> list[Int64s]:
    """Do as `window_ranges` for windows of several shapes, and instances that end in `(from, to]`.

    Rows of `shapes` are range, slide and offset. The first column of the answer is the row of the
    window. Who knows how many instances there are at most spares counting them.
    """
    bounds = (-_FAR if from_us is None else from_us, _FAR if to_us is None else to_us)
    if most is None:
        nothing = [np.empty(0, np.int64) for _ in range(4)]
        most = _find(keys, slice_starts_us, shapes, *bounds, *nothing)
    found = [np.empty(most, np.int64) for _ in range(4)]
    count = _find(keys, slice_starts_us, shapes, *bounds, *found)
    # A view keeps all of its array, and the ranges of thousands of windows are kept.
    few = 2 * count < most
    return [column[:count].copy() if few else column[:count] for column in found]


@unlocked
def _find(
    keys: npt.NDArray[np.integer],
    times: Int64s,
    shapes: Int64s,
    from_us: int,
    to_us: int,
    windows: Int64s,
    window_starts: Int64s,
    starts: Int64s,
    ends: Int64s,
) -> int:
    """Write the instances, or only count them when the arrays are empty."""
    found = 0
    for window in range(shapes.shape[0]):
        size, slide, offset = shapes[window]
        least = (from_us - offset - size) // slide + 1
        row = 0
        while row < keys.size:
            key, ahead = keys[row], row
            number = max((times[row] - offset - size) // slide + 1, least)
            while True:
                begin = offset + number * slide
                while row < keys.size and keys[row] == key and times[row] < begin:
                    row += 1
                if row == keys.size or keys[row] != key:
                    break
                if times[row] >= begin + size:
                    number = (times[row] - offset - size) // slide + 1
                    continue
                if begin + size > to_us:
                    while row < keys.size and keys[row] == key:
                        row += 1
                    break
                ahead = max(ahead, row)
                while ahead < keys.size and keys[ahead] == key and times[ahead] < begin + size:
                    ahead += 1
                if starts.size:
                    windows[found], window_starts[found] = window, begin
                    starts[found], ends[found] = row, ahead
                found += 1
                number += 1
                if size <= slide:  # no other instance has these slices
                    row = ahead
    return found
