"""DABA: TwoStacks with the flip spread over all operations, so no slide is slow.

At most 8 combines on any slide, 5 - 8/n on average; 2n partials; needs an associative combine,
keeps order. Tangwongsan, Hirzel, Schneider, "Low-latency sliding-window aggregation in worst-case
constant time" (DEBS 2017). With PI(x, y) = combine of the values x .. y-1:

    front <= i < left        aggregates[i] = PI(i, back)
    left <= i < right        aggregates[i] = PI(i, right)
    right <= i < gathered    aggregates[i] = PI(right, i+1)
    gathered <= i < back     aggregates[i] = PI(i, back)
    back <= i < end          aggregates[i] = PI(back, i+1)
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

FRONT, LEFT, RIGHT, GATHERED, BACK, END = range(6)  # in `at`, absolute positions


class State(NamedTuple):
    values: Columns  # [key, slot]
    aggregates: Columns  # [key, slot]
    at: npt.NDArray[np.int64]  # [key, 6]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    slots = slides.power_of_two(capacity)
    return State(
        operation.columns(keys, slots),
        operation.columns(keys, slots),
        np.zeros((keys, 6), np.int64),
    )


@kernel
def _aggregate(op: Any, state: State, key: int, position: int, empty: bool) -> Partial:
    """Read the aggregate at `position`, or the identity when its part of the ring is `empty`."""
    aggregate = op.identity
    if not empty:
        aggregate = get(state.aggregates, key, position & mask(state.values))
    return aggregate


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    end = state.at[key, END]
    prefix = _aggregate(op, state, key, end - 1, state.at[key, BACK] == end)
    put(state.values, key, end & mask(state.values), value)
    put(state.aggregates, key, end & mask(state.values), op.combine(prefix, value))
    state.at[key, END] = end + 1
    _step(op, state, key)


@kernel
def evict(op: Any, state: State, key: int) -> None:
    state.at[key, FRONT] += 1
    _step(op, state, key)


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    front, back, end = state.at[key, FRONT], state.at[key, BACK], state.at[key, END]
    older = _aggregate(op, state, key, front, front == back)
    return op.combine(older, _aggregate(op, state, key, end - 1, back == end))


@kernel
def _step(op: Any, state: State, key: int) -> None:
    """Do one part of the flip; enough is done, in time, because every operation does one."""
    at, slots = state.at, mask(state.values)
    if at[key, LEFT] == at[key, BACK]:
        at[key, LEFT] = at[key, FRONT]
        at[key, RIGHT] = at[key, BACK]
        at[key, GATHERED] = at[key, END]
        at[key, BACK] = at[key, END]
    back = at[key, BACK]
    if at[key, FRONT] == back:
        return
    if at[key, GATHERED] != at[key, RIGHT]:
        newer = _aggregate(op, state, key, at[key, GATHERED], at[key, GATHERED] == back)
        at[key, GATHERED] -= 1
        slot = at[key, GATHERED] & slots
        put(state.aggregates, key, slot, op.combine(get(state.values, key, slot), newer))
    if at[key, LEFT] != at[key, RIGHT]:
        gathered = at[key, GATHERED]
        raw = _aggregate(op, state, key, gathered - 1, gathered == at[key, RIGHT])
        middle = op.combine(raw, _aggregate(op, state, key, gathered, gathered == back))
        slot = at[key, LEFT] & slots
        put(state.aggregates, key, slot, op.combine(get(state.aggregates, key, slot), middle))
        at[key, LEFT] += 1
    else:
        at[key, LEFT] += 1
        at[key, RIGHT] += 1
        at[key, GATHERED] += 1


size, slide_one, slide = slides.compiled_for(__name__, "size", "slide_one", "slide")
capacity = slides.capacity
