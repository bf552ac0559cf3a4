"""TwoStacks-lite: one ring whose older part holds suffix aggregates, and one running aggregate.

Combines per slide 3 - 3/n on average and n on the slide that flips; n + 1 partials; needs an
associative combine, keeps order. Tangwongsan, Hirzel, Schneider, "In-order sliding-window
aggregation in worst-case constant time" (VLDB Journal 2021); see `docs/algorithms.md`.

    front <= i < middle   ring[i] = combine of the values i .. middle-1
    middle <= i < end     ring[i] = value i,   back = combine of all of these
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

FRONT, MIDDLE, END = 0, 1, 2  # in `at`, absolute positions


class State(NamedTuple):
    ring: Columns  # [key, slot]
    back: Columns  # [key, 1]
    at: npt.NDArray[np.int64]  # [key, 3]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    return State(
        operation.columns(keys, slides.power_of_two(capacity)),
        operation.columns(keys, 1),
        np.zeros((keys, 3), np.int64),
    )


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    put(state.ring, key, state.at[key, END] & mask(state.ring), value)
    put(state.back, key, 0, op.combine(get(state.back, key, 0), value))
    state.at[key, END] += 1


@kernel
def evict(op: Any, state: State, key: int) -> None:
    if state.at[key, FRONT] == state.at[key, MIDDLE]:
        flip(op, state, key)
    state.at[key, FRONT] += 1


@kernel
def flip(op: Any, state: State, key: int) -> None:
    """Turn the whole window into front: every slot becomes a suffix aggregate."""
    ring, slots = state.ring, mask(state.ring)
    suffix = op.identity
    for position in range(state.at[key, END] - 1, state.at[key, FRONT] - 1, -1):
        suffix = op.combine(get(ring, key, position & slots), suffix)
        put(ring, key, position & slots, suffix)
    state.at[key, MIDDLE] = state.at[key, END]
    put(state.back, key, 0, op.identity)


@kernel
def bulk_evict(op: Any, state: State, key: int, count: int) -> None:
    """Drop the oldest `count`; values that leave before they are flipped are never combined."""
    state.at[key, FRONT] += count
    if state.at[key, FRONT] > state.at[key, MIDDLE]:
        flip(op, state, key)


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    front = op.identity
    if state.at[key, FRONT] < state.at[key, MIDDLE]:
        front = get(state.ring, key, state.at[key, FRONT] & mask(state.ring))
    return op.combine(front, get(state.back, key, 0))


@kernel
def slide(op: Any, state: State, key: int, values: Columns, n: int, out: Columns) -> None:
    """Store in `out[i]` the combine of the last n values up to `values[i]`."""
    at, total, i = state.at, length(values), 0
    while i < total and (at[key, END] - at[key, FRONT] < n or at[key, FRONT] < at[key, MIDDLE]):
        store(out, i, slide_one(op, state, key, load(values, i), n))
        i += 1
    if total - i >= n:
        i = _whole_cycles(op, state, key, values, i, n, out)
    while i < total:
        store(out, i, slide_one(op, state, key, load(values, i), n))
        i += 1


@kernel
def _whole_cycles(
    op: Any, state: State, key: int, values: Columns, i: int, n: int, out: Columns
) -> int:
    """Run whole cycles of n slides on the input itself, from a full window with no front.

    The suffixes that a cycle needs wait in the places of its own answers: slide j reads place
    j + 1 and then overwrites place j.
    """
    ring, slots, first = state.ring, mask(state.ring), state.at[key, FRONT]
    suffix = op.identity
    for j in range(n - 1, -1, -1):
        suffix = op.combine(get(ring, key, (first + j) & slots), suffix)
        store(out, i + j, suffix)
    while i + 2 * n <= length(values):
        _cycle_and_flip(op, values, i, n, out)
        i += n
    back = op.identity
    for j in range(i, i + n - 1):
        back = op.combine(back, load(values, j))
        store(out, j, op.combine(load(out, j + 1), back))
    i += n
    back = op.combine(back, load(values, i - 1))
    store(out, i - 1, back)
    for j in range(n):
        put(ring, key, (first + j) & slots, load(values, i - n + j))
    put(state.back, key, 0, back)
    return i


@kernel
def _cycle_and_flip(op: Any, values: Columns, i: int, n: int, out: Columns) -> None:
    """Answer n slides and flip for the next n; the two scans fill each other's waits."""
    back, suffix = op.identity, op.identity
    newest = i + n - 1
    for j in range(n - 1):
        back = op.combine(back, load(values, i + j))
        store(out, i + j, op.combine(load(out, i + j + 1), back))
        suffix = op.combine(load(values, newest - j), suffix)
        store(out, newest + n - j, suffix)
    store(out, newest, op.combine(back, load(values, newest)))
    store(out, i + n, op.combine(load(values, i), suffix))


size, slide_one, slide_keyed = slides.compiled_for(__name__, "size", "slide_one", "slide_keyed")
capacity = slides.capacity
