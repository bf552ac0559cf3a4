"""Shared suffix scan: all ranges that end at the same edge, in one walk back from it.

The longest range costs its length minus one combines, and every shorter one is met on the way,
whatever their number. Needs an associative combine and keeps order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compiled import unlocked

if TYPE_CHECKING:
    from weft.kernels.operations import Operation


def suffixes(
    values: Any,
    ends: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    operation: Operation,
) -> Columns:
    """Aggregate the last `size` partials before each end, for every size: rows ends, columns sizes.

    A size that reaches back beyond the first partial takes what there is.

    >>> from weft.kernels.operations import SUM_INT64
    >>> values = [6, 1, 5, 2, 8, 3, 7, 4]
    >>> suffixes(values, np.array([4, 8]), np.array([4, 2, 8]), SUM_INT64).tolist()
    [[14, 7, 14], [22, 11, 36]]
    """
    columns = operation.as_columns(values)
    order = np.argsort(sizes, kind="stable")
    out = operation.columns(ends.size * sizes.size)
    _scan(operation.algebra, columns, ends, sizes[order], order, out)
    shape = (ends.size, sizes.size)
    return tuple(c.reshape(shape) for c in out) if isinstance(out, tuple) else out.reshape(shape)


@unlocked
def _scan(
    op: Any,
    values: Columns,
    ends: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    out: Columns,
) -> None:
    for e in range(ends.size):
        end, row = min(ends[e], length(values)), e * sizes.size
        if end <= 0:
            continue
        taken, suffix = 1, load(values, end - 1)
        for s in range(sizes.size):
            if sizes[s] <= 0:
                continue
            while taken < min(sizes[s], end):
                taken += 1
                suffix = op.combine(load(values, end - taken), suffix)
            store(out, row + order[s], suffix)
