"""TwoStacks: values and aggregates in two stacks, the older one turned round when it runs empty.

Combines per slide 3 - 3/n on average and n on the slide that flips; 2n partials; needs an
associative combine, keeps order. Unlike TwoStacks-lite it keeps the values. Both stacks lie in one
pair of rings, because what leaves the one enters the other at the same place:

    front <= i < middle   aggregates[i] = combine of the values i .. middle-1
    middle <= i < end     aggregates[i] = combine of the values middle .. i
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

FRONT, MIDDLE, END = 0, 1, 2  # in `at`, absolute positions


class State(NamedTuple):
    values: Columns  # [key, slot]
    aggregates: Columns  # [key, slot]
    at: npt.NDArray[np.int64]  # [key, 3]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    slots = slides.power_of_two(capacity)
    return State(
        operation.columns(keys, slots),
        operation.columns(keys, slots),
        np.zeros((keys, 3), np.int64),
    )


@kernel
def _back(op: Any, state: State, key: int) -> Partial:
    back = op.identity
    if state.at[key, MIDDLE] < state.at[key, END]:
        back = get(state.aggregates, key, (state.at[key, END] - 1) & mask(state.values))
    return back


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    slot = state.at[key, END] & mask(state.values)
    put(state.values, key, slot, value)
    put(state.aggregates, key, slot, op.combine(_back(op, state, key), value))
    state.at[key, END] += 1


@kernel
def _flip(op: Any, state: State, key: int) -> None:
    suffix = op.identity
    for position in range(state.at[key, END] - 1, state.at[key, FRONT] - 1, -1):
        slot = position & mask(state.values)
        suffix = op.combine(get(state.values, key, slot), suffix)
        put(state.aggregates, key, slot, suffix)
    state.at[key, MIDDLE] = state.at[key, END]


@kernel
def evict(op: Any, state: State, key: int) -> None:
    if state.at[key, FRONT] == state.at[key, MIDDLE]:
        _flip(op, state, key)
    state.at[key, FRONT] += 1


@kernel
def bulk_evict(op: Any, state: State, key: int, count: int) -> None:
    """Drop the oldest `count`; values that leave before they are flipped are never combined."""
    state.at[key, FRONT] += count
    if state.at[key, FRONT] > state.at[key, MIDDLE]:
        _flip(op, state, key)


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    front = op.identity
    if state.at[key, FRONT] < state.at[key, MIDDLE]:
        front = get(state.aggregates, key, state.at[key, FRONT] & mask(state.values))
    return op.combine(front, _back(op, state, key))


size, slide_one, slide = slides.compiled_for(__name__, "size", "slide_one", "slide")
capacity = slides.capacity
