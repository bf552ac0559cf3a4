"""Prefix ring: keep the combine of the whole stream so far, at each place a range may begin.

One combine per partial and one inverse per answer, for any number of ranges; n + 1 partials; needs
an exact inverse, so integers and not floats: a prefix that once held 1e16 forgets every 0.1.
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

FRONT, END = 0, 1  # in `at`, absolute positions; prefix p covers the values 0 .. p-1


class State(NamedTuple):
    """The arrays of the windows of all keys; the first axis is the key."""

    prefixes: Columns  # [key, slot]
    at: npt.NDArray[np.int64]  # [key, 2]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    """Allocate an empty window for up to `capacity` partials for each key."""
    slots = power_of_two(capacity + 1)
    return State(operation.prefix_columns(keys, slots), np.zeros((keys, 2), np.int64))


def capacity(state: State) -> int:
    """Count the partials that fit for each key."""
    return mask(state.prefixes)


@kernel
def size(state: State, key: int) -> int:
    """Count the partials in the window of `key`."""
    return int(state.at[key, END] - state.at[key, FRONT])


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    """Add the newest partial."""
    prefixes, slots, end = state.prefixes, mask(state.prefixes), state.at[key, END]
    put(prefixes, key, (end + 1) & slots, op.extend(get(prefixes, key, end & slots), value))
    state.at[key, END] = end + 1


@kernel
def evict(op: Any, state: State, key: int) -> None:
    """Remove the oldest partial."""
    state.at[key, FRONT] += 1


@kernel
def bulk_evict(op: Any, state: State, key: int, count: int) -> None:
    """Remove the oldest `count` partials."""
    state.at[key, FRONT] += count


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    """Combine the whole window, oldest first."""
    return query_range(op, state, key, 0, state.at[key, END] - state.at[key, FRONT])


@kernel
def query_range(op: Any, state: State, key: int, first: int, stop: int) -> Partial:
    """Combine the partials `first` up to `stop`; 0 is the oldest."""
    prefixes, slots, front = state.prefixes, mask(state.prefixes), state.at[key, FRONT]
    newer = get(prefixes, key, (front + stop) & slots)
    return op.between(newer, get(prefixes, key, (front + first) & slots))


@kernel
def query_last(op: Any, state: State, key: int, count: int) -> Partial:
    """Combine the newest `count` partials, or all when there are fewer."""
    held = state.at[key, END] - state.at[key, FRONT]
    return query_range(op, state, key, max(held - count, 0), held)


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
