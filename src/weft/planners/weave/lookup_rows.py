"""The lookup costs of FlatFAT for rows of trees, at whatever edge rate a union would have.

Lookup costs depend on the edge rate of the tree, so no single number per tree will do. For few
groups each row keeps its ranges; for many, a table over the logarithm of the rate, which adds up
under union. The table is for searching: a plan that was found is costed from its ranges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from weft.cost.lookups import RangeProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from weft.cost.lookups import LookupCost

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

_MOST_PROFILED = 64
_POINTS_PER_OCTAVE = 32


class LookupRows(Protocol):
    """Rows of trees that know their lookup costs."""

    def totals(self, rates: Floats) -> Floats:
        """Return the lookup cost of every row, each at its rate."""

    def joined(self, row: int, others: Self, rows: Indices, rates: Floats) -> Floats:
        """Return the lookup cost of this row united with each of the other's rows."""

    def assign(self, row: int, other: Self, other_row: int) -> None:
        """Replace one row by a row of the other."""

    def unite(self, parts: Sequence[Sequence[int]]) -> Self:
        """Return new rows, each the union of some of these."""

    def unite_all_but_one(self, part: Sequence[int]) -> Self:
        """Return as many new rows, each the union of all the given ones but one."""


def lookup_rows(profiles: list[RangeProfile], cost: LookupCost, rates: Floats) -> LookupRows:
    """Keep these profiles, or tabulate them where they are many."""
    if len(profiles) <= _MOST_PROFILED:
        return ProfileRows(profiles, cost)
    return TableRows.of_profiles(profiles, cost, float(rates.min()), float(rates.sum()))


class ProfileRows:
    """Rows with all their ranges; exact."""

    def __init__(self, profiles: list[RangeProfile], cost: LookupCost) -> None:
        self._profiles, self._cost = profiles, cost

    def totals(self, rates: Floats) -> Floats:
        """Return the lookup cost of every row, each at its rate."""
        return np.array(
            [
                float(profile.total(rates[i : i + 1], self._cost)[0])
                for i, profile in enumerate(self._profiles)
            ]
        )

    def joined(self, row: int, others: ProfileRows, rows: Indices, rates: Floats) -> Floats:
        """Return the lookup cost of this row united with each of the other's rows."""
        chosen = ProfileRows([others._profiles[i] for i in rows.tolist()], self._cost)
        return self._profiles[row].total(rates, self._cost) + chosen.totals(rates)

    def assign(self, row: int, other: ProfileRows, other_row: int) -> None:
        """Replace one row by a row of the other."""
        self._profiles[row] = other._profiles[other_row]

    def unite(self, parts: Sequence[Sequence[int]]) -> ProfileRows:
        """Return new rows, each the union of some of these."""
        united = [RangeProfile.union([self._profiles[i] for i in part]) for part in parts]
        return ProfileRows(united, self._cost)

    def unite_all_but_one(self, part: Sequence[int]) -> ProfileRows:
        """Return as many new rows, each the union of all the given ones but one."""
        return self.unite([[i for i in part if i != gone] for gone in part])


class TableRows:
    """Rows tabulated at 32 rates per octave, linear in between.

    >>> import numpy as np
    >>> from weft.cost.lookups import flat_fat_lookup
    >>> profiles = [RangeProfile.of(np.array([40.0 * n]), np.ones(1)) for n in range(1, 9)]
    >>> rows = TableRows.of_profiles(profiles, flat_fat_lookup(), 1 / 8, 1.0)
    >>> rates = np.full(8, 0.3)
    >>> exact = ProfileRows(profiles, flat_fat_lookup()).totals(rates)
    >>> bool((abs(rows.totals(rates) - exact) < 0.01 * exact).all())
    True
    """

    def __init__(self, table: Floats, octave: float) -> None:
        self._table, self._octave = table, octave

    @classmethod
    def of_profiles(
        cls, profiles: Sequence[RangeProfile], cost: LookupCost, slowest: float, fastest: float
    ) -> TableRows:
        """Tabulate between two edge rates."""
        octave = float(np.log2(slowest))
        points = int(np.ceil((np.log2(fastest) - octave) * _POINTS_PER_OCTAVE)) + 2
        rates = 2.0 ** (octave + np.arange(points) / _POINTS_PER_OCTAVE)
        return cls(np.array([profile.total(rates, cost) for profile in profiles]), octave)

    def totals(self, rates: Floats) -> Floats:
        """Return the lookup cost of every row, each at its rate."""
        return self._at(np.arange(len(self._table)), *self._cells(rates))

    def joined(self, row: int, others: TableRows, rows: Indices, rates: Floats) -> Floats:
        """Return the lookup cost of this row united with each of the other's rows."""
        cells = self._cells(rates)
        return self._at(np.full(len(rows), row), *cells) + others._at(rows, *cells)

    def assign(self, row: int, other: TableRows, other_row: int) -> None:
        """Replace one row by a row of the other."""
        self._table[row] = other._table[other_row]

    def unite(self, parts: Sequence[Sequence[int]]) -> TableRows:
        """Return new rows, each the union of some of these."""
        table = np.array([self._table[list(part)].sum(axis=0) for part in parts])
        return TableRows(table, self._octave)

    def unite_all_but_one(self, part: Sequence[int]) -> TableRows:
        """Return as many new rows, each the union of all the given ones but one."""
        own = self._table[list(part)]
        return TableRows(own.sum(axis=0) - own, self._octave)

    def _cells(self, rates: Floats) -> tuple[Indices, Floats]:
        place = (np.log2(rates) - self._octave) * _POINTS_PER_OCTAVE
        cells = np.clip(place.astype(np.intp), 0, self._table.shape[1] - 2)
        return cells, place - cells

    def _at(self, rows: Indices, cells: Indices, shares: Floats) -> Floats:
        low, high = self._table[rows, cells], self._table[rows, cells + 1]
        at: Floats = low + (high - low) * shares
        return at
