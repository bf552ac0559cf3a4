"""SlickDeque for selective operations: the partials that can still win, in order of age.

Less than 2 compares per slide on average (2 - 2/n on random input), n on the worst; the deque
holds H_n = 1 + 1/2 + ... + 1/n partials on random input; needs a selective combine. One walk
answers every range. Of equal partials the newest stays. Shein, Chrysanthis, Labrinidis,
"SlickDeque" (EDBT 2018).
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

FRONT, END, HEAD, TAIL = 0, 1, 2, 3  # in `at`; the deque lies at head .. tail-1


class State(NamedTuple):
    winners: Columns  # [key, slot]
    positions: npt.NDArray[np.int64]  # [key, slot], of each winner in the stream
    at: npt.NDArray[np.int64]  # [key, 4]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    slots = slides.power_of_two(capacity)
    return State(
        operation.columns(keys, slots),
        np.zeros((keys, slots), np.int64),
        np.zeros((keys, 4), np.int64),
    )


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    winners, slots = state.winners, mask(state.winners)
    head, tail = state.at[key, HEAD], state.at[key, TAIL]
    while tail > head and op.same(op.combine(get(winners, key, (tail - 1) & slots), value), value):
        tail -= 1
    put(winners, key, tail & slots, value)
    put(state.positions, key, tail & slots, state.at[key, END])
    state.at[key, TAIL] = tail + 1
    state.at[key, END] += 1


@kernel
def evict(op: Any, state: State, key: int) -> None:
    bulk_evict(op, state, key, 1)


@kernel
def bulk_evict(op: Any, state: State, key: int, count: int) -> None:
    front, slots = state.at[key, FRONT] + count, mask(state.winners)
    head, tail = state.at[key, HEAD], state.at[key, TAIL]
    while head < tail and get(state.positions, key, head & slots) < front:
        head += 1
    state.at[key, HEAD] = head
    state.at[key, FRONT] = front


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    best = op.identity
    if state.at[key, HEAD] < state.at[key, TAIL]:
        best = get(state.winners, key, state.at[key, HEAD] & mask(state.winners))
    return best


@kernel
def query_last(op: Any, state: State, key: int, count: int) -> Partial:
    slots, oldest = mask(state.winners), state.at[key, END] - count
    node, tail = state.at[key, HEAD], state.at[key, TAIL]
    while node < tail and get(state.positions, key, node & slots) < oldest:
        node += 1
    best = op.identity
    if node < tail:
        best = get(state.winners, key, node & slots)
    return best


@kernel
def slide_ranges(
    op: Any, state: State, key: int, values: Columns, counts: npt.NDArray[np.int64], out: Columns
) -> None:
    """Answer several ranges after each value in one walk; `counts` descend."""
    slots, place = mask(state.winners), 0
    for i in range(length(values)):
        if state.at[key, END] - state.at[key, FRONT] >= counts[0]:
            evict(op, state, key)
        insert(op, state, key, load(values, i))
        end, node = state.at[key, END], state.at[key, HEAD]
        for count in counts:
            while get(state.positions, key, node & slots) < end - count:
                node += 1
            store(out, place, get(state.winners, key, node & slots))
            place += 1


size, slide_one, slide, slide_keyed = slides.compiled_for(
    __name__, "size", "slide_one", "slide", "slide_keyed"
)
capacity = slides.capacity
