"""van Herk / Gil-Werman: every window of one width at once, in 3 - 4/w combines per answer.

Cut the values into blocks of w. A window that begins inside a block is a suffix of that block and
a prefix of the next; both are running aggregates. Needs an associative combine and keeps order.

    values   6 1 5 | 2 8 3 | 7 4      w = 3, max
    prefix   6 6 6 | 2 8 8 | 7 7
    suffix   6 5 5 | 8 8 3 | 7 4      answers  6 5 8 8 8 7

Ranges of rows are answered likewise, blocks as wide as the longest. One that neither crosses nor
touches the bounds of its block is folded by itself, so this is for ranges of nearly one length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weft.errors import InternalError
from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compiled import unlocked

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

Int64s = npt.NDArray[np.int64]


def slide(values: Any, width: int, operation: Operation) -> Columns:
    """Aggregate every run of `width` neighbours; one answer per full window, oldest first.

    >>> from weft.kernels.operations import MAX_INT64
    >>> slide([6, 1, 5, 2, 8, 3, 7, 4], 3, MAX_INT64).tolist()
    [6, 5, 8, 8, 8, 7]
    """
    if width < 1:
        raise InternalError(f"a window of {width} partials")
    columns = operation.as_columns(values)
    out = operation.columns(max(length(columns) - width + 1, 0))
    if length(out):
        _slide(operation.algebra, columns, width, operation.columns(width), out)
    return out


@unlocked
def _slide(op: Any, values: Columns, width: int, suffix: Columns, out: Columns) -> None:
    answers = length(out)
    prefix = load(values, 0)
    for i in range(1, width):
        prefix = op.combine(prefix, load(values, i))
    store(out, 0, prefix)
    for block in range(0, answers - 1, width):
        # The window that begins with the block is the block's whole prefix, known already: the
        # suffix of the first value is never needed.
        if width > 1:
            older = load(values, block + width - 1)
            store(suffix, width - 1, older)
            for i in range(width - 2, 0, -1):
                older = op.combine(load(values, block + i), older)
                store(suffix, i, older)
        prefix = load(values, block + width)
        for i in range(1, min(width, answers - block)):
            if i > 1:
                prefix = op.combine(prefix, load(values, block + width + i - 1))
            store(out, block + i, op.combine(load(suffix, i), prefix))
        if block + width < answers:
            if width > 1:
                prefix = op.combine(prefix, load(values, block + 2 * width - 1))
            store(out, block + width, prefix)


def blocks_within(columns: Columns, starts: Int64s, ends: Int64s, operation: Operation) -> Columns:
    """Aggregate `[start, end)` for each pair; no value outside all ranges is read.

    >>> from weft.kernels.operations import MAX_INT64
    >>> values = np.array([6, 1, 5, 2, 8, 3, 7, 4])
    >>> blocks_within(values, np.array([0, 1, 5, 3]), np.array([3, 4, 8, 4]), MAX_INT64).tolist()
    [6, 5, 7, 2]
    """
    out = operation.columns(starts.size)
    width = int(np.max(ends - starts, initial=0))
    if width > 0:
        lows, highs, _ = _bounds(starts, ends, width)
        scratch = (operation.columns(length(columns)), operation.columns(length(columns)))
        run = getattr(_answer, "py_func", _answer) if operation.dtypes == ("object",) else _answer
        run(operation.algebra, columns, starts, ends, width, lows, highs, *scratch, out)
    return out


def combines_within(starts: Int64s, ends: Int64s) -> int:
    """Count the combines that `blocks_within` takes: 3 - 4/w an answer, but for the ends.

    >>> combines_within(np.arange(9), np.arange(9) + 3), 9 * (3 - 4 / 3)
    (16, 15.0)
    """
    width = int(np.max(ends - starts, initial=0))
    return int(_bounds(starts, ends, width)[2]) if width > 0 else 0


@unlocked
def _bounds(starts: Int64s, ends: Int64s, width: int) -> tuple[Int64s, Int64s, int]:
    """Find how far ranges reach back and forth from the bound each crosses; count combines."""
    blocks = 2
    for i in range(ends.size):
        blocks = max(blocks, ends[i] // width + 2)
    lows, highs = np.empty(blocks, np.int64), np.empty(blocks, np.int64)
    for block in range(blocks):
        lows[block], highs[block] = block * width, block * width
    combines = 0
    for i in range(starts.size):
        start, end = starts[i], ends[i]
        bound = -(-start // width) * width  # the first one that is not before the range
        if start >= end:
            continue
        if end < bound:
            combines += end - start - 1
            continue
        lows[bound // width] = min(lows[bound // width], start)
        highs[bound // width] = max(highs[bound // width], end)
        combines += 1 if start < bound < end else 0
    for block in range(blocks):
        combines += max(block * width - lows[block] - 1, 0)
        combines += max(highs[block] - block * width - 1, 0)
    return lows, highs, combines


@unlocked
def _answer(
    op: Any,
    values: Columns,
    starts: Int64s,
    ends: Int64s,
    width: int,
    lows: Int64s,
    highs: Int64s,
    suffixes: Columns,
    prefixes: Columns,
    out: Columns,
) -> None:
    for block in range(lows.size):
        bound = block * width
        if lows[block] < bound:
            running = load(values, bound - 1)
            store(suffixes, bound - 1, running)
            for i in range(bound - 2, lows[block] - 1, -1):
                running = op.combine(load(values, i), running)
                store(suffixes, i, running)
        if bound < highs[block]:
            running = load(values, bound)
            store(prefixes, bound, running)
            for i in range(bound + 1, highs[block]):
                running = op.combine(running, load(values, i))
                store(prefixes, i, running)
    for i in range(starts.size):
        start, end = starts[i], ends[i]
        bound = -(-start // width) * width
        if start >= end:
            continue
        if end < bound:
            total = load(values, start)
            for row in range(start + 1, end):
                total = op.combine(total, load(values, row))
            store(out, i, total)
        elif start == bound:
            store(out, i, load(prefixes, end - 1))
        elif end == bound:
            store(out, i, load(suffixes, start))
        else:
            store(out, i, op.combine(load(suffixes, start), load(prefixes, end - 1)))
