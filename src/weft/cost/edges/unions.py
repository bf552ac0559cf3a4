"""Edge rates of unions of edge sets, one against many at a time: what a search for trees asks.

Both kinds keep one row per edge set and answer `join_rates` for all candidate partners in one
pass over arrays. `AtomUnions` is exact and needs few distinct intersections; `BitUnions` marks
positions, exactly when one period fits the horizon.
"""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from weft.cost.edges.all_but_one import all_but_one
from weft.cost.edges.rates import intersect_classes, scale_classes
from weft.window import primitive_classes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weft.window import EdgeClass

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

_HORIZON, _HORIZON_OF_MANY = 1 << 17, 1 << 16
_MANY_ROWS = 256
_MOST_BITS = 1 << 31  # 256 MiB for all rows together
_SLIDES_PER_HORIZON = 32  # fewer edges of the longest slide than this estimate nothing
_FEW_ATOMS = 256
_MOST_ATOMS = 2048
_BLOCK_WORDS = 1 << 15  # 256 KiB of words: a block and its popcounts stay in the cache


class EdgeUnions(Protocol):
    """Rows of edge sets with their edge rates."""

    exact: bool
    rates: Floats

    def join_rates(self, row: int, others: Self, rows: Indices) -> Floats:
        """Return the edge rate of this row united with each of the other's rows."""

    def assign(self, row: int, other: Self, other_row: int) -> None:
        """Replace one row by a row of the other."""

    def unite(self, parts: Sequence[Sequence[int]]) -> Self:
        """Return new rows, each the union of some of these."""

    def unite_all_but_one(self, part: Sequence[int]) -> Self:
        """Return as many new rows, each the union of all the given ones but one."""


def edge_unions(groups: Sequence[Sequence[EdgeClass]]) -> EdgeUnions:
    """Choose how to keep these edge sets: by intersections when they are few, else by bits.

    Where neither is possible (many unrelated slides, some of more than a million units) only
    edges of classes inside one another are taken to coincide, and `exact` is false.

    >>> import numpy as np
    >>> sets = edge_unions([[(0, 4)], [(0, 6)], [(0, 10)]])
    >>> (sets.join_rates(0, sets, np.array([1, 2])) * 60).round().tolist()
    [20.0, 18.0]
    >>> (sets.unite([[0, 1], [0, 1, 2]]).rates * 60).round().tolist(), sets.exact
    ([20.0, 22.0], True)
    """
    flat = [edge_class for group in groups for edge_class in group]
    scaled, unit, _ = scale_classes(flat)
    remaining = iter(scaled)
    rows = [primitive_classes([next(remaining) for _ in group]) for group in groups]
    distinct = sorted({edge_class for row in rows for edge_class in row}, key=_by_modulus)
    most = min(max(_FEW_ATOMS, 2 * len(distinct)), _MOST_ATOMS)
    atoms = _intersections(distinct, most)
    if atoms is not None:
        return AtomUnions.of_classes(rows, atoms, unit, exact=True)
    shortest = _HORIZON if len(rows) <= _MANY_ROWS else _HORIZON_OF_MANY
    horizon = max(shortest, _SLIDES_PER_HORIZON * distinct[-1][1])
    if horizon * len(rows) <= _MOST_BITS:
        return BitUnions.of_classes(rows, unit, horizon)
    return AtomUnions.of_classes(rows, distinct, unit, exact=False)


def _by_modulus(edge_class: EdgeClass) -> tuple[int, int]:
    return edge_class[1], edge_class[0]


def _intersections(classes: Sequence[EdgeClass], most: int) -> list[EdgeClass] | None:
    """Close the classes under intersection, by ascending modulus; None past `most` of them."""
    closed: set[EdgeClass] = set()
    for edge_class in classes:
        if edge_class in closed:
            continue
        met = {intersect_classes(other, edge_class) for other in closed}
        closed |= {common for common in met if common is not None}
        closed.add(edge_class)
        if len(closed) > most:
            return None
    return sorted(closed, key=_by_modulus)


class AtomUnions:
    """Edge sets as unions of atoms: the positions that lie in exactly the same classes.

    For slides that divide one number the atoms are its divisors, weighted by Euler's phi.
    """

    def __init__(self, marks: NDArray[np.bool_], weights: Floats, exact: bool) -> None:
        self.exact = exact
        self._marks = marks
        self._weights = weights
        self._weighted = marks * weights
        self.rates = self._weighted.sum(axis=1)

    @classmethod
    def of_classes(
        cls, rows: Sequence[Sequence[EdgeClass]], atoms: Sequence[EdgeClass], unit: int, exact: bool
    ) -> AtomUnions:
        """Mark for each row the atoms inside its classes."""
        inside = _inside_of(atoms)
        period = lcm(*(modulus for _, modulus in atoms))
        counts = [period // modulus for _, modulus in atoms]
        # An atom is its intersection without all finer ones; the finest come first.
        for i in range(len(atoms) - 1, -1, -1):
            finer = sum(counts[j] for j in inside[i] if j != i)
            counts[i] = max(counts[i] - finer, 0)
        index = {atom: i for i, atom in enumerate(atoms)}
        marks = np.zeros((len(rows), len(atoms)), dtype=np.bool_)
        for number, row in enumerate(rows):
            for edge_class in row:
                marks[number, inside[index[edge_class]]] = True
        return cls(marks, np.array([count / (period * unit) for count in counts]), exact)

    def join_rates(self, row: int, others: AtomUnions, rows: Indices) -> Floats:
        """Return the edge rate of this row united with each of the other's rows."""
        missing = (~self._marks[row]).astype(float)
        rates: Floats = self.rates[row] + others._weighted[rows] @ missing
        return rates

    def assign(self, row: int, other: AtomUnions, other_row: int) -> None:
        """Replace one row by a row of the other."""
        self._marks[row] = other._marks[other_row]
        self._weighted[row] = other._weighted[other_row]
        self.rates[row] = other.rates[other_row]

    def unite(self, parts: Sequence[Sequence[int]]) -> AtomUnions:
        """Return new rows, each the union of some of these."""
        return AtomUnions(
            np.array([self._marks[list(part)].any(axis=0) for part in parts]),
            self._weights,
            self.exact,
        )

    def unite_all_but_one(self, part: Sequence[int]) -> AtomUnions:
        """Return as many new rows, each the union of all the given ones but one."""
        rest = all_but_one(self._marks[list(part)], np.logical_or)
        return AtomUnions(rest, self._weights, self.exact)


def _inside_of(atoms: Sequence[EdgeClass]) -> list[list[int]]:
    """For each class, the positions in the list of the classes that lie inside it."""
    if atoms[-1][1] >= 1 << 62:
        return [
            [j for j, (b, n) in enumerate(atoms) if n % m == 0 and (b - a) % m == 0]
            for a, m in atoms
        ]
    residues, moduli = np.array(atoms, dtype=np.int64).T
    return [
        np.flatnonzero((moduli % m == 0) & ((residues - a) % m == 0)).tolist() for a, m in atoms
    ]


class BitUnions:
    """Edge sets as packed bits over one period, or over the horizon where that is too long.

    Over the horizon the rates are estimates, for all rows alike: of 8 slides in 20..1000 within
    0.5 % at 2**17.
    """

    def __init__(self, words: NDArray[np.uint64], length: int, unit: int, exact: bool) -> None:
        self._words = words
        self._per_mark = 1.0 / (length * unit)
        self._length, self._unit, self.exact = length, unit, exact
        self.rates = np.bitwise_count(words).sum(axis=1, dtype=np.int64) * self._per_mark

    @classmethod
    def of_classes(cls, rows: Sequence[Sequence[EdgeClass]], unit: int, horizon: int) -> BitUnions:
        """Mark the positions of each row's classes."""
        period = lcm(*(modulus for row in rows for _, modulus in row))
        length = period if period <= horizon else horizon
        words = np.zeros((len(rows), -(-length // 64)), dtype=np.uint64)
        marks = np.zeros(words.shape[1] * 64, dtype=np.bool_)
        for number, row in enumerate(rows):
            marks[:] = False
            for residue, modulus in row:
                marks[residue:length:modulus] = True
            words[number] = np.packbits(marks).view(np.uint64)
        return cls(words, length, unit, exact=period == length)

    def join_rates(self, row: int, others: BitUnions, rows: Indices) -> Floats:
        """Return the edge rate of this row united with each of the other's rows."""
        mine = self._words[row]
        marks = np.empty(len(rows))
        block = max(1, _BLOCK_WORDS // len(mine))
        united = np.empty((block, len(mine)), dtype=np.uint64)
        counted = np.empty((block, len(mine)), dtype=np.uint8)
        for start in range(0, len(rows), block):
            chosen = rows[start : start + block]
            part, counts = united[: len(chosen)], counted[: len(chosen)]
            np.bitwise_or(others._words[chosen], mine, out=part)
            np.bitwise_count(part, out=counts)
            marks[start : start + block] = counts.sum(axis=1, dtype=np.uint32)
        return marks * self._per_mark

    def assign(self, row: int, other: BitUnions, other_row: int) -> None:
        """Replace one row by a row of the other."""
        self._words[row] = other._words[other_row]
        self.rates[row] = other.rates[other_row]

    def unite(self, parts: Sequence[Sequence[int]]) -> BitUnions:
        """Return new rows, each the union of some of these."""
        words = np.array([np.bitwise_or.reduce(self._words[list(part)]) for part in parts])
        return BitUnions(words, self._length, self._unit, self.exact)

    def unite_all_but_one(self, part: Sequence[int]) -> BitUnions:
        """Return as many new rows, each the union of all the given ones but one."""
        rest = all_but_one(self._words[list(part)], np.bitwise_or)
        return BitUnions(rest, self._length, self._unit, self.exact)
