"""Ranges that slide: both bounds never move back, as those of one window over sorted slices.

TwoStacks over index ranges. The values between the oldest start and a middle are kept as suffixes
up to the middle, the values after it as one running aggregate; when the start passes the middle,
the middle moves to the end of the range. Every value is combined at most twice and every answer
costs one combine more, whatever the sizes of the ranges; values outside all ranges are not read.
Needs an associative combine, keeps order, and never combines a value from outside the range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.kernels.columns import Columns, length, load, only_read, store
from weft.kernels.compiled import unlocked

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from weft.kernels.operations import Operation


def slide_within(
    columns: Columns,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    suffixes: Columns,
    operation: Operation,
) -> Columns:
    """Aggregate `[start, end)` for each pair; starts and ends must both be non-decreasing.

    `suffixes` is scratch, as long as the longest range.

    >>> import numpy as np
    >>> from weft.kernels.operations import MAX_INT64
    >>> starts, ends, scratch = np.array([0, 1, 3]), np.array([3, 4, 6]), MAX_INT64.columns(3)
    >>> slide_within(np.array([6, 1, 5, 2, 8, 3]), starts, ends, scratch, MAX_INT64).tolist()
    [6, 5, 8]
    """
    out = operation.columns(starts.size)
    if length(suffixes):
        python = getattr(_slide, "py_func", _slide)
        run = python if operation.dtypes == ("object",) else _slide
        run(operation.algebra, only_read(columns), starts, ends, suffixes, out)
    return out


@unlocked
def _slide(
    op: Any,
    values: Columns,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    suffixes: Columns,
    out: Columns,
) -> None:
    origin, middle, read = 0, 0, 0  # suffixes[p - origin] is the aggregate of [p, middle)
    back = op.identity  # the aggregate of [middle, read)
    for i in range(starts.size):
        start, end = starts[i], ends[i]
        if start >= end:
            continue
        if start >= middle:
            suffix = load(values, end - 1)
            store(suffixes, end - 1 - start, suffix)
            for position in range(end - 2, start - 1, -1):
                suffix = op.combine(load(values, position), suffix)
                store(suffixes, position - start, suffix)
            origin, middle, read = start, end, end
            store(out, i, suffix)
            continue
        for position in range(read, end):
            value = load(values, position)
            back = op.combine(back, value) if position > middle else value
        read = end
        front = load(suffixes, start - origin)
        store(out, i, op.combine(front, back) if read > middle else front)
