"""SlickDeque for invertible operations: one running aggregate per range, all ranges known up front.

Two combines per slide and range; n partials and one per range; needs an exact inverse. A prefix
ring answers the same from one running aggregate; this technique is kept for comparison. Shein,
Chrysanthis, Labrinidis, "SlickDeque" (EDBT 2018).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.columns import Columns, Partial, get, length, load, mask, put, store
from weft.kernels.compiled import kernel
from weft.kernels.techniques import slides

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

FRONT, END = 0, 1  # in `at`, absolute positions


class State(NamedTuple):
    ring: Columns  # [key, slot]
    running: Columns  # [key, range]
    counts: npt.NDArray[np.int64]  # [range], the partials that each range spans
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1, counts: tuple[int, ...] = ()) -> State:
    """Allocate empty windows; without `counts` there is one range, all that the window holds."""
    spans = np.array(counts or (capacity,), np.int64)
    return State(
        operation.columns(keys, slides.power_of_two(capacity)),
        operation.columns(keys, len(spans)),
        spans,
        np.zeros((keys, 2), np.int64),
    )


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    ring, slots, end = state.ring, mask(state.ring), state.at[key, END]
    held = end - state.at[key, FRONT]
    for q in range(len(state.counts)):
        running, count = get(state.running, key, q), state.counts[q]
        if held >= count:
            # Out before in: a sum may fit only when the old value has left.
            running = op.inverse(running, get(ring, key, (end - count) & slots))
        put(state.running, key, q, op.combine(running, value))
    put(ring, key, end & slots, value)
    state.at[key, END] = end + 1


@kernel
def evict(op: Any, state: State, key: int) -> None:
    front = state.at[key, FRONT]
    held = state.at[key, END] - front
    oldest = get(state.ring, key, front & mask(state.ring))
    for q in range(len(state.counts)):
        if held <= state.counts[q]:
            put(state.running, key, q, op.inverse(get(state.running, key, q), oldest))
    state.at[key, FRONT] = front + 1


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    """Read the first range."""
    return get(state.running, key, 0)


@kernel
def query_last(op: Any, state: State, key: int, count: int) -> Partial:
    """Read the range of `count` partials, which must be one of those given at the start."""
    for q in range(len(state.counts)):
        if state.counts[q] == count:
            return get(state.running, key, q)
    raise KeyError("no such range")


@kernel
def slide_ranges(
    op: Any, state: State, key: int, values: Columns, counts: npt.NDArray[np.int64], out: Columns
) -> None:
    """Answer, after each value, the ranges that the window was made for, in their order."""
    place = 0
    for i in range(length(values)):
        insert(op, state, key, load(values, i))
        # Nobody evicts: the longest range has taken its oldest value out already.
        state.at[key, FRONT] = max(state.at[key, FRONT], state.at[key, END] - counts[0])
        for q in range(len(counts)):
            store(out, place, get(state.running, key, q))
            place += 1


size, slide_one, slide = slides.compiled_for(__name__, "size", "slide_one", "slide")
capacity = slides.capacity
