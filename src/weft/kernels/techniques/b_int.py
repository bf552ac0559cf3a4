"""B-Int: aggregates of the finished dyadic intervals only, so an update is nearly free.

With n = 2**k: 1 - 1/n combines per update on average, k - 1 + 1/n per answer, evict free; 2n
partials; needs an associative combine, keeps order, answers any range. Better than FlatFAT when
there are more updates than answers. Arasu, Widom, "Resource sharing in continuous sliding-window
aggregates" (VLDB 2004).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.columns import Columns, Partial, get, mask, put
from weft.kernels.compiled import kernel
from weft.kernels.techniques import slides

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

FRONT, END = 0, 1  # in `at`, absolute positions


class State(NamedTuple):
    levels: Columns  # [key, cell]; level l is a ring of N / 2**l cells from 2N - 2N / 2**l on
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    cells = 2 * slides.power_of_two(capacity)
    return State(operation.columns(keys, cells), np.zeros((keys, 2), np.int64))


@kernel
def _cell(cells: int, level: int, position: int) -> int:
    """Find the interval of 2**level values that begins at `position`."""
    ring = cells >> (level + 1)
    return cells - (cells >> level) + ((position >> level) & (ring - 1))


def capacity(state: State) -> int:
    return mask(state.levels) // 2 + 1


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    levels, cells = state.levels, mask(state.levels) + 1
    position = state.at[key, END]
    put(levels, key, _cell(cells, 0, position), value)
    state.at[key, END] = position + 1
    # Every interval that ends here is finished: its two halves are.
    level, span = 1, 2
    while span <= cells // 2 and (position + 1) & (span - 1) == 0:
        start = position + 1 - span
        older = get(levels, key, _cell(cells, level - 1, start))
        newer = get(levels, key, _cell(cells, level - 1, start + span // 2))
        put(levels, key, _cell(cells, level, start), op.combine(older, newer))
        level += 1
        span *= 2


@kernel
def query_range(op: Any, state: State, key: int, first: int, stop: int) -> Partial:
    levels, cells = state.levels, mask(state.levels) + 1
    position, end = state.at[key, FRONT] + first, state.at[key, FRONT] + stop
    answer = op.identity
    while position < end:
        level, span = 0, 1
        while position & (2 * span - 1) == 0 and position + 2 * span <= end and 4 * span <= cells:
            level += 1
            span *= 2
        answer = op.combine(answer, get(levels, key, _cell(cells, level, position)))
        position += span
    return answer


size, query_last, query, slide_one, slide, slide_ranges = slides.compiled_for(
    __name__, "size", "query_last", "query", "slide_one", "slide", "slide_ranges"
)
evict, bulk_evict = slides.evict, slides.bulk_evict
