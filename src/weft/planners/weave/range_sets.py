"""Sets of window ranges as rows, and the sizes of their unions.

Only a range that occurs in several groups makes the size of a union less than the sum of the
sizes, so only those get a bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.cost.edges.all_but_one import all_but_one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Integers = NDArray[np.int64]

_BLOCK_WORDS = 1 << 15


class RangeSets:
    """One set of ranges per row: bits for the shared ranges, a number for all others."""

    def __init__(self, words: NDArray[np.uint64], alone: Floats) -> None:
        self._words, self._alone = words, alone
        self.sizes: Floats = alone + np.bitwise_count(words).sum(axis=1, dtype=np.int64)

    @classmethod
    def of_runs(cls, ranges: Integers, starts: Integers) -> RangeSets:
        """Read the sets from consecutive runs of ranges.

        >>> import numpy as np
        >>> sets = RangeSets.of_runs(np.array([6, 8, 8, 8, 12]), np.array([0, 3]))
        >>> sets.sizes.tolist(), sets.join_sizes(0, sets, np.array([1])).tolist()
        ([2.0, 2.0], [3.0])
        """
        rows = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(ranges)))
        values, ids = np.unique(ranges, return_inverse=True)
        rows, ids = np.divmod(np.unique(rows * len(values) + ids), len(values))
        shared = np.bincount(ids, minlength=len(values)) > 1
        bit_of = np.cumsum(shared) - 1
        width = max(int(shared.sum()), 1) // 64 + 1
        words = np.zeros((len(starts), width), dtype=np.uint64)
        bits = np.zeros(width * 64, dtype=np.bool_)
        alone = np.zeros(len(starts))
        ends = np.searchsorted(rows, np.arange(len(starts)), side="right")
        for row, own in enumerate(np.split(ids, ends[:-1])):
            bits[:] = False
            bits[bit_of[own[shared[own]]]] = True
            words[row] = np.packbits(bits).view(np.uint64)
            alone[row] = np.count_nonzero(~shared[own])
        return cls(words, alone)

    def join_sizes(self, row: int, others: RangeSets, rows: Indices) -> Floats:
        """Return the size of this row united with each of the other's rows."""
        mine = self._words[row]
        block = max(1, _BLOCK_WORDS // len(mine))
        common = np.concatenate(
            [
                np.bitwise_count(others._words[rows[start : start + block]] & mine).sum(
                    axis=1, dtype=np.uint32
                )
                for start in range(0, len(rows), block)
            ]
        )
        sizes: Floats = self.sizes[row] + others.sizes[rows] - common
        return sizes

    def assign(self, row: int, other: RangeSets, other_row: int) -> None:
        """Replace one row by a row of the other."""
        self._words[row] = other._words[other_row]
        self._alone[row] = other._alone[other_row]
        self.sizes[row] = other.sizes[other_row]

    def unite(self, parts: Sequence[Sequence[int]]) -> RangeSets:
        """Return new rows, each the union of some of these."""
        return RangeSets(
            np.array([np.bitwise_or.reduce(self._words[list(part)]) for part in parts]),
            np.array([self._alone[list(part)].sum() for part in parts]),
        )

    def unite_all_but_one(self, part: Sequence[int]) -> RangeSets:
        """Return as many new rows, each the union of all the given ones but one."""
        alone = self._alone[list(part)]
        return RangeSets(all_but_one(self._words[list(part)], np.bitwise_or), alone.sum() - alone)
