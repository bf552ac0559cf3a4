"""Naive re-evaluation: keep the partials, combine all of them for each answer.

Combines per slide n - 1; n partials; needs an associative combine, keeps order, answers any range.
The baseline that every other technique is measured against.
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
    ring: Columns  # [key, slot]
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    return State(
        operation.columns(keys, slides.power_of_two(capacity)), np.zeros((keys, 2), np.int64)
    )


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    put(state.ring, key, state.at[key, END] & mask(state.ring), value)
    state.at[key, END] += 1


@kernel
def query_range(op: Any, state: State, key: int, first: int, stop: int) -> Partial:
    ring, slots, front = state.ring, mask(state.ring), state.at[key, FRONT]
    answer = op.identity
    for position in range(front + first, front + stop):
        answer = op.combine(answer, get(ring, key, position & slots))
    return answer


size, query, query_last, slide_one, slide, slide_ranges = slides.compiled_for(
    __name__, "size", "query", "query_last", "slide_one", "slide", "slide_ranges"
)
capacity, evict, bulk_evict = slides.capacity, slides.evict, slides.bulk_evict
