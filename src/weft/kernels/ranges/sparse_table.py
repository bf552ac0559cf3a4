"""Sparse table: any range of an idempotent operation with one combine.

Level k holds the aggregate of every run of 2**k neighbours. A range is covered by two such runs,
which may overlap: hence idempotent. N * log2(N) combines to build, one per answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weft.errors import UnsupportedError
from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compiled import unlocked

if TYPE_CHECKING:
    from weft.kernels.operations import Operation


@unlocked
def bit_length(number: int) -> int:
    """Count the bits of a number that is not negative, without a detour through floats.

    >>> [bit_length(n) for n in (0, 1, 2, 3, 4, 2**40)]
    [0, 1, 2, 2, 3, 41]
    """
    bits = 0
    for step in (32, 16, 8, 4, 2, 1):
        if number >> step:
            number >>= step
            bits += step
    return bits + (1 if number else 0)


@dataclass(frozen=True, slots=True, eq=False)
class SparseTable:
    """The aggregates of all runs of 2**k neighbours, level after level.

    >>> from weft.kernels.operations import MAX_INT64
    >>> table = SparseTable.of([6, 1, 5, 2, 8, 3, 7, 4], MAX_INT64)
    >>> table.query(np.array([0, 1, 5]), np.array([3, 8, 5])).tolist()
    [6, 8, -9223372036854775808]
    """

    operation: Operation
    cells: Columns
    level_at: npt.NDArray[np.int64]  # where each level begins in `cells`

    @classmethod
    def of(cls, values: Any, operation: Operation) -> SparseTable:
        """Build the table; refuse an operation for which an overlap would count twice."""
        if not operation.laws.idempotent:
            raise UnsupportedError(
                f"a sparse table cannot run {operation.name}: it needs an idempotent combine",
                hint="use a disjoint sparse table, or prefix sums",
            )
        columns = operation.as_columns(values)
        n = length(columns)
        sizes = [n - (1 << k) + 1 for k in range(n.bit_length())]
        level_at = np.cumsum([0, *sizes], dtype=np.int64)
        cells = operation.columns(int(level_at[-1]))
        _build(operation.algebra, columns, level_at, cells)
        return cls(operation, cells, level_at)

    def query(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Columns:
        """Aggregate the values `[start, end)` for each pair; an empty range is the identity."""
        out = self.operation.columns(starts.size)
        _query(self.operation.algebra, self.cells, self.level_at, starts, ends, out)
        return out


@unlocked
def _build(op: Any, values: Columns, level_at: npt.NDArray[np.int64], cells: Columns) -> None:
    for i in range(length(values)):
        store(cells, i, load(values, i))
    for level in range(1, level_at.size - 1):
        here, below, half = level_at[level], level_at[level - 1], 1 << (level - 1)
        for i in range(level_at[level + 1] - here):
            combined = op.combine(load(cells, below + i), load(cells, below + i + half))
            store(cells, here + i, combined)


@unlocked
def _query(
    op: Any,
    cells: Columns,
    level_at: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    out: Columns,
) -> None:
    for i in range(starts.size):
        size = ends[i] - starts[i]
        if size <= 0:
            continue
        level = bit_length(size) - 1
        first = level_at[level] + starts[i]
        last = level_at[level] + ends[i] - (1 << level)
        answer = load(cells, first)
        if last != first:
            answer = op.combine(answer, load(cells, last))
        store(out, i, answer)
