"""DABA-lite: a constant number of combines on every slide, with one ring and two aggregates.

At most 6 combines on any slide, 4 - 6/n on average; n + 2 partials; needs an associative combine,
keeps order. The flip of TwoStacks is done in small steps, one at each insert and each evict.
Tangwongsan, Hirzel, Schneider, "In-order sliding-window aggregation in worst-case constant time"
(VLDB Journal 2021); see `docs/algorithms.md`. With PI(x, y) = combine of the values x .. y-1:

    front <= i < left        ring[i] = PI(i, back)
    left <= i < right        ring[i] = PI(i, right)
    right <= i < gathered    ring[i] = value i
    gathered <= i < back     ring[i] = PI(i, back),   middle = PI(right, back) while left < right
    back <= i < end          ring[i] = value i,       newest = combine of all of these
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

FRONT, LEFT, RIGHT, GATHERED, BACK, END = range(6)  # in `at`, absolute positions
MIDDLE, NEWEST = 0, 1  # in `sums`


class State(NamedTuple):
    ring: Columns  # [key, slot]
    sums: Columns  # [key, 2]
    at: npt.NDArray[np.int64]  # [key, 6]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    return State(
        operation.columns(keys, slides.power_of_two(capacity)),
        operation.columns(keys, 2),
        np.zeros((keys, 6), np.int64),
    )


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    put(state.ring, key, state.at[key, END] & mask(state.ring), value)
    put(state.sums, key, NEWEST, op.combine(get(state.sums, key, NEWEST), value))
    state.at[key, END] += 1
    _step(op, state, key)


@kernel
def evict(op: Any, state: State, key: int) -> None:
    state.at[key, FRONT] += 1
    _step(op, state, key)


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    front = op.identity
    if state.at[key, FRONT] != state.at[key, BACK]:
        front = get(state.ring, key, state.at[key, FRONT] & mask(state.ring))
    return op.combine(front, get(state.sums, key, NEWEST))


@kernel
def _step(op: Any, state: State, key: int) -> None:
    """Do one part of the flip; enough is done, in time, because every operation does one."""
    ring, sums, at, slots = state.ring, state.sums, state.at, mask(state.ring)
    if at[key, LEFT] == at[key, BACK]:
        at[key, LEFT] = at[key, FRONT]
        at[key, RIGHT] = at[key, BACK]
        at[key, GATHERED] = at[key, END]
        at[key, BACK] = at[key, END]
        put(sums, key, MIDDLE, get(sums, key, NEWEST))
        put(sums, key, NEWEST, op.identity)
    if at[key, FRONT] == at[key, BACK]:
        put(sums, key, MIDDLE, op.identity)
        put(sums, key, NEWEST, op.identity)
        return
    if at[key, GATHERED] != at[key, RIGHT]:
        newer = _finished(op, state, key)
        at[key, GATHERED] -= 1
        slot = at[key, GATHERED] & slots
        put(ring, key, slot, op.combine(get(ring, key, slot), newer))
    if at[key, LEFT] != at[key, RIGHT]:
        slot = at[key, LEFT] & slots
        put(ring, key, slot, op.combine(get(ring, key, slot), get(sums, key, MIDDLE)))
        at[key, LEFT] += 1
    else:
        at[key, LEFT] += 1
        at[key, RIGHT] += 1
        at[key, GATHERED] += 1
        # After the move, or the aggregate would still hold the value just passed.
        put(sums, key, MIDDLE, _finished(op, state, key))


@kernel
def _finished(op: Any, state: State, key: int) -> Partial:
    """Read the combine of the values gathered .. back-1."""
    finished = op.identity
    if state.at[key, GATHERED] != state.at[key, BACK]:
        finished = get(state.ring, key, state.at[key, GATHERED] & mask(state.ring))
    return finished


@kernel
def slide(op: Any, state: State, key: int, values: Columns, n: int, out: Columns) -> None:
    """Store in `out[i]` the combine of the last n values up to `values[i]`.

    While a window is full each slide takes two steps. A run of slides whose steps are all of the
    same kind goes through a loop without tests; the others go one by one.
    """
    at, total, i = state.at, length(values), 0
    while i < total:
        if at[key, END] - at[key, FRONT] == n:
            shrinking = min((at[key, RIGHT] - at[key, LEFT]) // 2, total - i)
            if shrinking > 0:
                _shrink(op, state, key, values, i, shrinking, out)
                i += shrinking
            shifting = min((at[key, BACK] - at[key, LEFT]) // 2, total - i)
            if at[key, LEFT] == at[key, RIGHT] and shifting > 0:
                _shift(op, state, key, values, i, shifting, out)
                i += shifting
        if i < total:
            store(out, i, slide_one(op, state, key, load(values, i), n))
            i += 1


@kernel
def _shrink(
    op: Any, state: State, key: int, values: Columns, i: int, count: int, out: Columns
) -> None:
    """Slide `count` times while both steps of each slide lengthen the two finished parts."""
    ring, at, slots = state.ring, state.at, mask(state.ring)
    front, left, gathered = at[key, FRONT], at[key, LEFT], at[key, GATHERED]
    end, middle = at[key, END], get(state.sums, key, MIDDLE)
    newest, newer = get(state.sums, key, NEWEST), _finished(op, state, key)
    for j in range(count):
        newer = op.combine(get(ring, key, (gathered - 1) & slots), newer)
        put(ring, key, (gathered - 1) & slots, newer)
        put(ring, key, left & slots, op.combine(get(ring, key, left & slots), middle))
        value = load(values, i + j)
        newest = op.combine(newest, value)
        put(ring, key, (end + j) & slots, value)
        gathered -= 2
        newer = op.combine(get(ring, key, gathered & slots), newer)
        put(ring, key, gathered & slots, newer)
        slot = (left + 1) & slots
        put(ring, key, slot, op.combine(get(ring, key, slot), middle))
        left += 2
        store(out, i + j, op.combine(get(ring, key, (front + j + 1) & slots), newest))
    put(state.sums, key, NEWEST, newest)
    at[key, FRONT] = front + count
    at[key, LEFT] = left
    at[key, GATHERED] = gathered
    at[key, END] = end + count


@kernel
def _shift(
    op: Any, state: State, key: int, values: Columns, i: int, count: int, out: Columns
) -> None:
    """Slide `count` times while both steps of each slide only move positions."""
    ring, at, slots = state.ring, state.at, mask(state.ring)
    front, end, newest = at[key, FRONT], at[key, END], get(state.sums, key, NEWEST)
    for j in range(count):
        value = load(values, i + j)
        newest = op.combine(newest, value)
        put(ring, key, (end + j) & slots, value)
        store(out, i + j, op.combine(get(ring, key, (front + j + 1) & slots), newest))
    put(state.sums, key, NEWEST, newest)
    at[key, FRONT] = front + count
    at[key, END] = end + count
    for pointer in (LEFT, RIGHT, GATHERED):
        at[key, pointer] += 2 * count
    put(state.sums, key, MIDDLE, _finished(op, state, key))


size, slide_one, slide_keyed = slides.compiled_for(__name__, "size", "slide_one", "slide_keyed")
capacity = slides.capacity
