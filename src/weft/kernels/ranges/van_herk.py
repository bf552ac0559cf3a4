"""van Herk / Gil-Werman: every window of a fixed width at once, in 3 - 4/w combines per answer.

Cut the values into blocks of w. A window that begins inside a block is a suffix of that block and
a prefix of the next; both are running aggregates. Needs an associative combine and keeps order.

    values   6 1 5 | 2 8 3 | 7 4      w = 3, max
    prefix   6 6 6 | 2 8 8 | 7 7
    suffix   6 5 5 | 8 8 3 | 7 4      answers  6 5 8 8 8 7
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.errors import InternalError
from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compiled import unlocked

if TYPE_CHECKING:
    from weft.kernels.operations import Operation


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
