"""Any technique that slides, over the ranges of one array of partials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.errors import UnsupportedError
from weft.kernels.columns import Columns, only_read
from weft.kernels.incremental import slide
from weft.kernels.operations import counting
from weft.kernels.registry import technique
from weft.kernels.techniques.slides import power_of_two
from weft.techniques import ONE_RANGE

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft.kernels.incremental.notes import Shelf
    from weft.kernels.operations import Operation

    Int64s = npt.NDArray[np.int64]


def ranges_by(
    name: str,
    values: Columns,
    starts: Int64s,
    ends: Int64s,
    operation: Operation,
    shelf: Shelf | None = None,
) -> tuple[Columns, int]:
    """Answer `[start, end)` for each pair of bounds; return also how many combines it took.

    Objects are given as their places on a shelf, and so are the answers.

    >>> from weft.kernels.operations import COUNT
    >>> answers, combines = ranges_by(
    ...     "daba_lite", np.array([1, 2, 3, 4]), np.array([0, 1, 2]), np.array([2, 3, 4]), COUNT
    ... )
    >>> answers.tolist(), combines
    ([3, 5, 7], 3)
    """
    counted, calls = counting(operation) if shelf is None else (operation, shelf.calls)
    kernel = technique(name, counted)
    order = np.lexsort((starts, ends))
    firsts, stops = starts[order], np.maximum(ends, starts)[order]
    evicted = np.minimum.accumulate(firsts[::-1])[::-1]
    if name in ONE_RANGE and bool(np.any(evicted != firsts)):
        raise UnsupportedError(
            f"technique {name} cannot answer ranges inside each other",
            hint="use one that answers several ranges, such as flat_fit",
        )
    most = int(np.max(stops - evicted, initial=1))
    state = kernel.new(max(most, 1), counts=())
    nothing, rows = np.zeros(1, np.int64), np.zeros(order.size, np.int64)
    stays = nothing[:0]  # of no key: no event comes after the last range
    progress = np.full((1, 2), int(evicted[0]) if order.size else 0, np.int64)
    out = operation.columns(order.size)
    evicted = np.ascontiguousarray(evicted)
    read = only_read(values)
    new = (nothing, nothing, nothing, read)
    asked = (state, *new, rows, firsts, stops, evicted, stays, progress, out)
    if shelf is None:
        slide.answer_and_settle(kernel.algebra, *asked, 0)
    else:
        shelf.run(slide.answer_and_settle, rows.size, power_of_two(most), *asked)
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    answers = tuple(c[back] for c in out) if isinstance(out, tuple) else out[back]
    return answers, int(calls[0])
