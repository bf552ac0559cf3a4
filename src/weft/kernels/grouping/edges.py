"""The edges of a set of classes at run time: a period table, a heap, or a blocked sieve.

An edge class (residue, modulus) stands for the instants `residue + m * modulus` for every integer
m. The slices of a set of classes are the intervals `[edge, next edge)`. A table serves when one
period of all classes is small; edges of a huge period are generated for the stretch of time that
is needed, by a heap where they are far apart and by a sieve where they are dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, lcm
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from weft.errors import InternalError
from weft.kernels.parallel import unlocked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weft.window.edges import EdgeClass

Int64s = npt.NDArray[np.int64]

TABLE_EDGES = 1 << 20  # the most edges a period table holds; 8 MB
TABLE_GRAINS = 1 << 22  # the most cells of its direct lookup; 16 MB
SIEVE_BLOCK = 1 << 18  # marks of one sieve block; they stay in the second-level cache


def primitive(classes: Iterable[EdgeClass]) -> tuple[EdgeClass, ...]:
    """Drop every class whose edges all belong to another one, and bring residues into range.

    >>> primitive([(0, 2), (0, 4), (6, 4), (1, 4), (5, 3)])
    ((0, 2), (2, 3), (1, 4))
    """
    kept: dict[int, set[int]] = {}
    for modulus, residue in sorted({(m, r % m) for r, m in classes if _positive(m)}):
        if not any(modulus % m == 0 and residue % m in residues for m, residues in kept.items()):
            kept.setdefault(modulus, set()).add(residue)
    if not kept:
        raise InternalError("no edge class to slice by")
    return tuple((residue, m) for m, residues in kept.items() for residue in sorted(residues))


def _positive(modulus: int) -> bool:
    if modulus <= 0:
        raise InternalError(f"an edge class with modulus {modulus}")
    return True


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
        chosen = primitive(classes)
        period = lcm(*(modulus for _, modulus in chosen))
        if marks_per_period(chosen) > TABLE_EDGES:
            raise InternalError(f"a period of {marks_per_period(chosen)} edges for a table")
        edges = np.unique(np.concatenate([np.arange(r, period, m) for r, m in chosen]))
        steps = np.diff(edges, append=edges[0] + period)
        if np.all(steps == steps[0]):
            period, edges = int(steps[0]), edges[:1]
        grain = gcd(period, int(np.gcd.reduce(edges - edges[0])))
        cells = period // grain if period // grain <= TABLE_GRAINS else 0
        lookup = np.searchsorted(edges - edges[0], np.arange(cells) * grain, side="right") - 1
        return cls(period, edges, grain, lookup.astype(np.int32))

    @property
    def width_us(self) -> int | None:
        """The width of all slices, if they have the same."""
        return self.period_us if self.edges_us.size == 1 else None

    def slice_of(self, times_us: npt.ArrayLike) -> Int64s:
        """Return the ordinal of the slice that holds each instant."""
        times = np.ascontiguousarray(times_us, np.int64)
        out = np.empty(times.size, np.int64)
        _number(times, self.period_us, self.edges_us, self.grain_us, self.slice_of_grain, out)
        return out

    def rank(self, times_us: npt.ArrayLike) -> Int64s:
        """Count the edges in `[0, time]`; of two ranks, the difference is a number of slices.

        >>> table = PeriodTable.of([(0, 4), (0, 6), (0, 10)])
        >>> (table.rank(np.array([12, 60])) - table.rank(np.array([0, 0]))).tolist()
        [5, 22]
        """
        return self.slice_of(times_us) + 1

    def bounds(self, ordinals: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return the first instant of each slice and the first one after it."""
        numbers = np.asarray(ordinals, np.int64)
        return self._edge(numbers), self._edge(numbers + 1)

    def edges_between(self, start_us: int, stop_us: int) -> Int64s:
        """List the edges in `[start, stop)`.

        >>> PeriodTable.of([(0, 3), (2, 3)]).edges_between(-3, 4).tolist()
        [-3, -1, 0, 2, 3]
        """
        first, last = self.slice_of(np.array([start_us - 1, stop_us - 1]))
        return self._edge(np.arange(first + 1, last + 1))

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


def heap_edges(classes: Iterable[EdgeClass], start_us: int, stop_us: int) -> Int64s:
    """List the edges in `[start, stop)` from a heap of next edges: log2(classes) steps a mark.

    >>> heap_edges([(0, 3), (2, 3)], -3, 4).tolist()
    [-3, -1, 0, 2, 3]
    """
    chosen = primitive(classes)
    moduli = np.array([modulus for _, modulus in chosen], np.int64)
    coming = np.array([start_us + (r - start_us) % m for r, m in chosen], np.int64)
    order = np.argsort(coming, kind="stable")  # a sorted array is a heap
    marks = sum(
        max(stop_us - int(c) + m - 1, 0) // m for c, (_, m) in zip(coming, chosen, strict=True)
    )
    out = np.empty(marks, np.int64)
    return out[: _pop_edges(coming[order], moduli[order], stop_us, out)]


@unlocked
def _pop_edges(coming: Int64s, moduli: Int64s, stop: int, out: Int64s) -> int:
    found, size = 0, coming.size
    while coming[0] < stop:
        edge, modulus = coming[0], moduli[0]
        if found == 0 or out[found - 1] != edge:
            out[found] = edge
            found += 1
        edge += modulus
        hole = 0
        while 2 * hole + 1 < size:
            child = 2 * hole + 1
            if child + 1 < size and coming[child + 1] < coming[child]:
                child += 1
            if coming[child] >= edge:
                break
            coming[hole], moduli[hole] = coming[child], moduli[child]
            hole = child
        coming[hole], moduli[hole] = edge, modulus
    return found


def sieve_edges(classes: Iterable[EdgeClass], start_us: int, stop_us: int) -> Int64s:
    """List the edges in `[start, stop)` by marking them block by block, as in a prime sieve.

    >>> sieve_edges([(0, 3), (2, 3)], -3, 4).tolist()
    [-3, -1, 0, 2, 3]
    """
    chosen = primitive(classes)
    origin, grain = chosen[0][0], common_grain(chosen)
    # In units of the grain and counted from one of the edges, every class has whole numbers.
    first, stop = -((origin - start_us) // grain), -((origin - stop_us) // grain)
    residues = np.array([(r - origin) // grain for r, _ in chosen], np.int64)
    moduli = np.array([m // grain for _, m in chosen], np.int64)
    marks = int(np.sum(np.maximum(stop - first, 0) // moduli + 1))
    out = np.empty(min(marks, max(stop - first, 0)), np.int64)
    return out[: _mark_edges(residues, moduli, first, stop, out)] * grain + origin


@unlocked
def _mark_edges(residues: Int64s, moduli: Int64s, first: int, stop: int, out: Int64s) -> int:
    found = 0
    marked = np.empty(SIEVE_BLOCK, np.bool_)
    for block in range(first, stop, SIEVE_BLOCK):
        size = min(SIEVE_BLOCK, stop - block)
        marked[:size] = False
        for c in range(residues.size):
            marked[(residues[c] - block) % moduli[c] : size : moduli[c]] = True
        for position in range(size):
            if marked[position]:
                out[found] = block + position
                found += 1
    return found


def common_grain(classes: Iterable[EdgeClass]) -> int:
    """Return the largest step such that all edges lie a whole number of steps apart.

    >>> common_grain([(1, 4), (3, 6)])
    2
    """
    chosen = tuple(classes)
    origin = chosen[0][0]
    return gcd(*(modulus for _, modulus in chosen), *(residue - origin for residue, _ in chosen))


def edges_between(classes: Iterable[EdgeClass], start_us: int, stop_us: int) -> Int64s:
    """List the edges in `[start, stop)` in whichever way is cheapest here.

    >>> edges_between([(0, 7919), (3, 104729), (1, 1299709)], 0, 16000).tolist()
    [0, 1, 3, 7919, 15838]
    """
    chosen = primitive(classes)
    if marks_per_period(chosen) <= TABLE_EDGES:
        return PeriodTable.of(chosen).edges_between(start_us, stop_us)
    marks = sum((stop_us - start_us) / modulus for _, modulus in chosen)
    # A mark costs the heap about 16 positions of a sieve.
    dense = (stop_us - start_us) / common_grain(chosen) <= 16 * marks
    return (sieve_edges if dense else heap_edges)(chosen, start_us, stop_us)
