"""FlatFIT: each slot remembers how far its aggregate reaches; an answer shortens the paths it took.

Combines per slide 3(n - 1)/(n + 1) on average and n - 1 on one slide in n + 1; 2n partials and a
stack; needs an associative combine, keeps order, answers any range that ends with the newest
partial. Shein, Chrysanthis, Labrinidis, "FlatFIT" (SSDBM 2017).
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
    jumps: Columns  # [key, slot]; the combine of position p up to `beyond[p]`
    beyond: npt.NDArray[np.int64]  # [key, slot]
    path: npt.NDArray[np.int64]  # [key, slot]; a stack, empty between two calls
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    slots = slides.power_of_two(capacity)
    return State(
        operation.columns(keys, slots),
        np.zeros((keys, slots), np.int64),
        np.zeros((keys, slots), np.int64),
        np.zeros((keys, 2), np.int64),
    )


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    position = state.at[key, END]
    put(state.jumps, key, position & mask(state.jumps), value)
    put(state.beyond, key, position & mask(state.jumps), position + 1)
    state.at[key, END] = position + 1


@kernel
def query_last(op: Any, state: State, key: int, count: int) -> Partial:
    jumps, beyond, path, slots = state.jumps, state.beyond, state.path, mask(state.jumps)
    end = state.at[key, END]
    position = max(end - count, state.at[key, FRONT])
    if position == end:
        return op.identity
    # Stop at whatever reaches the end, not at the newest slot: an answer given since the last
    # insert has already stretched other slots past it.
    depth = 0
    while beyond[key, position & slots] != end:
        path[key, depth] = position & slots
        depth += 1
        position = beyond[key, position & slots]
    answer = get(jumps, key, position & slots)
    while depth > 0:
        depth -= 1
        slot = path[key, depth]
        answer = op.combine(get(jumps, key, slot), answer)
        put(jumps, key, slot, answer)
        beyond[key, slot] = end
    return answer


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    return query_last(op, state, key, state.at[key, END] - state.at[key, FRONT])


size, slide_one, slide, slide_ranges = slides.compiled_for(
    __name__, "size", "slide_one", "slide", "slide_ranges"
)
capacity, evict, bulk_evict = slides.capacity, slides.evict, slides.bulk_evict
