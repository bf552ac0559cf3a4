"""TwoStacks-lite: one ring whose older part holds suffix aggregates, and one running aggregate.

Combines per slide 3 - 3/n on average and n on the slide that flips; n + 1 partials; needs an
associative combine, keeps order. Tangwongsan, Hirzel, Schneider, "In-order sliding-window
aggregation in worst-case constant time" (VLDB Journal 2021); see `docs/algorithms.md`.

    front <= i < middle   ring[i] = combine of the values i .. middle-1
    middle <= i < end     ring[i] = value i,   back = combine of all of these
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.columns import Columns, Partial, length, load, scratch, store
from weft.kernels.compiled import kernel
from weft.kernels.operations import Operation
from weft.kernels.ring import power_of_two

FRONT, MIDDLE, END = 0, 1, 2  # positions in `at`, absolute: slot = position & (slots - 1)


class State(NamedTuple):
    """The arrays of one window, or with a leading axis of many keys."""

    ring: Columns
    back: Columns
    at: npt.NDArray[np.int64]


def new(operation: Operation, capacity: int, *keys: int) -> State:
    """Allocate an empty window for up to `capacity` partials, for each key if there are any."""
    slots = power_of_two(capacity)
    return State(
        operation.columns(*keys, slots),
        operation.columns(*keys, 1),
        np.zeros((*keys, 3), np.int64),
    )


@kernel
def size(state: State) -> int:
    return state.at[END] - state.at[FRONT]


@kernel
def insert(op: Any, state: State, value: Partial) -> None:
    end = state.at[END]
    store(state.ring, end & (length(state.ring) - 1), value)
    store(state.back, 0, op.combine(load(state.back, 0), value))
    state.at[END] = end + 1


@kernel
def evict(op: Any, state: State) -> None:
    if state.at[FRONT] == state.at[MIDDLE]:
        _flip(op, state)
    state.at[FRONT] += 1


@kernel
def _flip(op: Any, state: State) -> None:
    mask = length(state.ring) - 1
    suffix = op.identity
    for position in range(state.at[END] - 1, state.at[FRONT] - 1, -1):
        suffix = op.combine(load(state.ring, position & mask), suffix)
        store(state.ring, position & mask, suffix)
    state.at[MIDDLE] = state.at[END]
    store(state.back, 0, op.identity)


@kernel
def query(op: Any, state: State) -> Partial:
    front = op.identity
    if state.at[FRONT] < state.at[MIDDLE]:
        front = load(state.ring, state.at[FRONT] & (length(state.ring) - 1))
    return op.combine(front, load(state.back, 0))


@kernel
def _slide_one(op: Any, state: State, values: Columns, i: int, n: int, out: Columns) -> None:
    if state.at[END] - state.at[FRONT] >= n:
        evict(op, state)
    insert(op, state, load(values, i))
    store(out, i, query(op, state))


@kernel
def slide(op: Any, state: State, values: Columns, n: int, out: Columns) -> None:
    total = length(values)
    i = 0
    while i < total and (state.at[END] - state.at[FRONT] < n or state.at[FRONT] < state.at[MIDDLE]):
        _slide_one(op, state, values, i, n, out)
        i += 1
    if total - i >= n:
        i = _whole_cycles(op, state, values, i, n, out)
    while i < total:
        _slide_one(op, state, values, i, n, out)
        i += 1


@kernel
def _whole_cycles(op: Any, state: State, values: Columns, i: int, n: int, out: Columns) -> int:
    """Run whole cycles of n slides on the input itself; the window is full, its front empty."""
    mask = length(state.ring) - 1
    front = scratch(values, n)
    for j in range(n):
        store(front, j, load(state.ring, (state.at[FRONT] + j) & mask))
    _suffixes(op, front, 0, n, front)
    back = op.identity
    while True:
        back = op.identity
        for j in range(n - 1):
            back = op.combine(back, load(values, i + j))
            store(out, i + j, op.combine(load(front, j + 1), back))
        i += n
        back = op.combine(back, load(values, i - 1))
        store(out, i - 1, back)
        if i + n > length(values):
            break
        _suffixes(op, values, i - n, n, front)
    for j in range(n):
        store(state.ring, j & mask, load(values, i - n + j))
    store(state.back, 0, back)
    state.at[FRONT] = 0
    state.at[MIDDLE] = 0
    state.at[END] = n
    return i


@kernel
def _suffixes(op: Any, values: Columns, start: int, n: int, front: Columns) -> None:
    suffix = op.identity
    for j in range(n - 1, -1, -1):
        suffix = op.combine(load(values, start + j), suffix)
        store(front, j, suffix)
