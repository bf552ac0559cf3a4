"""FlatFAT: a complete binary tree of aggregates in one array, its leaves used as a ring.

With n = 2**k leaves: k combines per update, k - 1 + 1/n per ordered answer on average, none when
the operation commutes (the root); 2n partials; needs an associative combine, answers any range,
grows and shrinks. Tangwongsan et al., "General incremental sliding-window aggregation" (VLDB 2015).
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

FRONT, END, COMMUTES = 0, 1, 2  # in `at`; leaf of position p is leaves + p % leaves


class State(NamedTuple):
    tree: Columns  # [key, node]; node 1 is the root, the upper half are the leaves
    at: npt.NDArray[np.int64]  # [key, 3]


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    at = np.zeros((keys, 3), np.int64)
    at[:, COMMUTES] = operation.laws.commutative
    return State(operation.columns(keys, 2 * slides.power_of_two(capacity)), at)


def resized(operation: Operation, state: State, capacity: int) -> State:
    """Copy the windows into trees of another capacity, which must hold what they hold."""
    larger = new(operation, capacity, len(state.at))
    _copy(operation.algebra, state, larger)
    return larger


@kernel
def _copy(op: Any, state: State, target: State) -> None:
    leaves, target_leaves = (mask(state.tree) + 1) // 2, (mask(target.tree) + 1) // 2
    for key in range(len(state.at)):
        held = state.at[key, END] - state.at[key, FRONT]
        for i in range(held):
            leaf = leaves + ((state.at[key, FRONT] + i) & (leaves - 1))
            put(target.tree, key, target_leaves + i, get(state.tree, key, leaf))
        for node in range(target_leaves - 1, 0, -1):
            _update(op, target, key, node)
        target.at[key, END] = held


@kernel
def _update(op: Any, state: State, key: int, node: int) -> None:
    left, right = get(state.tree, key, 2 * node), get(state.tree, key, 2 * node + 1)
    put(state.tree, key, node, op.combine(left, right))


@kernel
def _set_leaf(op: Any, state: State, key: int, position: int, value: Partial) -> None:
    leaves = (mask(state.tree) + 1) // 2
    node = leaves + (position & (leaves - 1))
    put(state.tree, key, node, value)
    node //= 2
    while node >= 1:
        _update(op, state, key, node)
        node //= 2


def capacity(state: State) -> int:
    return mask(state.tree) // 2 + 1


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    _set_leaf(op, state, key, state.at[key, END], value)
    state.at[key, END] += 1


@kernel
def evict(op: Any, state: State, key: int) -> None:
    _set_leaf(op, state, key, state.at[key, FRONT], op.identity)
    state.at[key, FRONT] += 1


@kernel
def replace(op: Any, state: State, key: int, value: Partial) -> None:
    """Evict and insert at once: one path, not two, when the ring of leaves is full."""
    if state.at[key, END] - state.at[key, FRONT] < (mask(state.tree) + 1) // 2:
        evict(op, state, key)
        insert(op, state, key, value)
        return
    _set_leaf(op, state, key, state.at[key, END], value)
    state.at[key, FRONT] += 1
    state.at[key, END] += 1


@kernel
def _leaves(op: Any, state: State, key: int, first: int, stop: int) -> Partial:
    """Combine the leaves `first` up to `stop`, which do not wrap, in their order."""
    leaves = (mask(state.tree) + 1) // 2
    left, right = leaves + first, leaves + stop
    older, newer = op.identity, op.identity
    while left < right:
        if left & 1:
            older = op.combine(older, get(state.tree, key, left))
            left += 1
        if right & 1:
            right -= 1
            newer = op.combine(get(state.tree, key, right), newer)
        left >>= 1
        right >>= 1
    return op.combine(older, newer)


@kernel
def query_range(op: Any, state: State, key: int, first: int, stop: int) -> Partial:
    if first >= stop:
        return op.identity
    leaves = (mask(state.tree) + 1) // 2
    start = (state.at[key, FRONT] + first) & (leaves - 1)
    end = start + stop - first
    if end <= leaves:
        return _leaves(op, state, key, start, end)
    older = _leaves(op, state, key, start, leaves)
    return op.combine(older, _leaves(op, state, key, 0, end - leaves))


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    if state.at[key, COMMUTES]:
        return get(state.tree, key, 1)
    return query_range(op, state, key, 0, state.at[key, END] - state.at[key, FRONT])


@kernel
def slide_one(op: Any, state: State, key: int, value: Partial, n: int) -> Partial:
    """Insert one value, evict first if n are held, and answer."""
    held = state.at[key, END] - state.at[key, FRONT]
    if held >= n:
        replace(op, state, key, value)
    else:
        insert(op, state, key, value)
    return query(op, state, key)


size, query_last, slide, slide_ranges = slides.compiled_for(
    __name__, "size", "query_last", "slide", "slide_ranges"
)
