"""FlatFIT: each slot remembers how far its aggregate reaches; an answer shortens the paths it took.

Combines per slide 3(n - 1)/(n + 1) on average and n - 1 on one slide in n + 1; 2n partials and a
stack; needs an associative combine, keeps order, answers any range that ends with the newest
partial. Shein, Chrysanthis, Labrinidis, "FlatFIT" (SSDBM 2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.columns import Columns, Partial, get, length, load, mask, put, store
from weft.kernels.compiled import kernel
from weft.kernels.techniques.ring import power_of_two

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

FRONT, END = 0, 1  # in `at`, absolute positions


class State(NamedTuple):
    """The arrays of the windows of all keys; the first axis is the key."""

    jumps: Columns  # [key, slot]; the combine of position p up to `beyond[p]`
    beyond: npt.NDArray[np.int64]  # [key, slot]
    path: npt.NDArray[np.int64]  # [key, slot]; a stack, empty between two calls
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    """Allocate an empty window for up to `capacity` partials for each key."""
    slots = power_of_two(capacity)
    return State(
        operation.columns(keys, slots),
        np.zeros((keys, slots), np.int64),
        np.zeros((keys, slots), np.int64),
        np.zeros((keys, 2), np.int64),
    )


def capacity(state: State) -> int:
    """Count the partials that fit for each key."""
    return mask(state.jumps) + 1


@kernel
def size(state: State, key: int) -> int:
    """Count the partials in the window of `key`."""
    return int(state.at[key, END] - state.at[key, FRONT])


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    """Add the newest partial."""
    position = state.at[key, END]
    put(state.jumps, key, position & mask(state.jumps), value)
    put(state.beyond, key, position & mask(state.jumps), position + 1)
    state.at[key, END] = position + 1


@kernel
def evict(op: Any, state: State, key: int) -> None:
    """Remove the oldest partial."""
    state.at[key, FRONT] += 1


@kernel
def bulk_evict(op: Any, state: State, key: int, count: int) -> None:
    """Remove the oldest `count` partials."""
    state.at[key, FRONT] += count


@kernel
def query_last(op: Any, state: State, key: int, count: int) -> Partial:
    """Combine the newest `count` partials, or all when there are fewer."""
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
    """Combine the whole window, oldest first."""
    return query_last(op, state, key, state.at[key, END] - state.at[key, FRONT])


@kernel
def slide_one(op: Any, state: State, key: int, value: Partial, n: int) -> Partial:
    """Insert one value, evict first if n are held, and answer."""
    if state.at[key, END] - state.at[key, FRONT] >= n:
        evict(op, state, key)
    insert(op, state, key, value)
    return query(op, state, key)


@kernel
def slide(op: Any, state: State, key: int, values: Columns, n: int, out: Columns) -> None:
    """Store in `out[i]` the combine of the last n values up to `values[i]`."""
    for i in range(length(values)):
        store(out, i, slide_one(op, state, key, load(values, i), n))


@kernel
def slide_ranges(
    op: Any, state: State, key: int, values: Columns, counts: npt.NDArray[np.int64], out: Columns
) -> None:
    """Answer several ranges after each value; `counts` descend, so the first is the longest."""
    place = 0
    for i in range(length(values)):
        if state.at[key, END] - state.at[key, FRONT] >= counts[0]:
            evict(op, state, key)
        insert(op, state, key, load(values, i))
        for count in counts:
            store(out, place, query_last(op, state, key, count))
            place += 1
