"""Disjoint sparse table: any range of any associative operation with one combine.

Level k cuts the values into blocks of 2**k and keeps, on the left of each block's middle, the
suffixes up to the middle, and on its right the prefixes from it. The highest bit in which the two
ends of a range differ names the level whose middle lies between them.

    letters a..k, range c..g: positions 2 and 6 differ in bit 3, so level 3, middle 4: cd + efg
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compiled import unlocked
from weft.kernels.ranges.sparse_table import bit_length

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from weft.kernels.operations import Operation


@dataclass(frozen=True, slots=True, eq=False)
class DisjointSparseTable:
    """Prefixes and suffixes around the middles of all blocks, level after level.

    >>> import numpy as np
    >>> from weft.kernels.operations import SUM_INT64
    >>> table = DisjointSparseTable.of([6, 1, 5, 2, 8, 3, 7, 4], SUM_INT64)
    >>> table.query(np.array([0, 1, 5]), np.array([3, 8, 5])).tolist()
    [12, 30, 0]
    """

    operation: Operation
    cells: Columns
    size: int

    @classmethod
    def of(cls, values: Any, operation: Operation) -> DisjointSparseTable:
        """Build the table: about N * (log2(N) - 1) combines and N * log2(N) cells."""
        columns = operation.as_columns(values)
        n = length(columns)
        levels = max((n - 1).bit_length(), 1)
        cells = operation.columns(levels * n)
        _build(operation.algebra, columns, levels, cells)
        return cls(operation, cells, n)

    def query(self, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> Columns:
        """Aggregate the values `[start, end)` for each pair; an empty range is the identity."""
        out = self.operation.columns(starts.size)
        _query(self.operation.algebra, self.cells, self.size, starts, ends, out)
        return out


@unlocked
def _build(op: Any, values: Columns, levels: int, cells: Columns) -> None:
    n = length(values)
    for i in range(n):
        store(cells, i, load(values, i))  # around the middle of two, each side is one value
    for level in range(2, levels + 1):
        row, half = (level - 1) * n, 1 << (level - 1)
        for middle in range(half, n + half, 2 * half):
            if middle <= n:
                suffix = load(values, middle - 1)
                store(cells, row + middle - 1, suffix)
                for i in range(middle - 2, middle - half - 1, -1):
                    suffix = op.combine(load(values, i), suffix)
                    store(cells, row + i, suffix)
            if middle < n:
                prefix = load(values, middle)
                store(cells, row + middle, prefix)
                for i in range(middle + 1, min(middle + half, n)):
                    prefix = op.combine(prefix, load(values, i))
                    store(cells, row + i, prefix)


@unlocked
def _query(
    op: Any,
    cells: Columns,
    size: int,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    out: Columns,
) -> None:
    for i in range(starts.size):
        first, last = starts[i], ends[i] - 1
        if first > last:
            continue
        if first == last:
            store(out, i, load(cells, first))
        else:
            row = (bit_length(first ^ last) - 1) * size
            store(out, i, op.combine(load(cells, row + first), load(cells, row + last)))
