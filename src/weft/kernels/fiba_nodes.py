"""The nodes of the finger B-trees of FiBA: how they are found, filled, split and merged.

Nothing here combines anything; `fiba` keeps the aggregates. An entry is a time and its partial;
between two entries of an inner node hangs a child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from weft.kernels.columns import get, put
from weft.kernels.compiled import kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from weft.kernels.columns import Columns

ROOT, LEFT_FINGER, RIGHT_FINGER, SIZE = 0, 1, 2, 3  # in `at`
PARENT, ENTRIES, SIDE = 0, 1, 2  # in `nodes`
UP, LEFT, RIGHT, TOP = 0, 1, 2, 3  # values of SIDE
NONE = -1


class State(NamedTuple):
    """One pool of nodes for the trees of all keys."""

    times: npt.NDArray[np.int64]  # [node, entry]
    partials: Columns  # [node, entry]
    children: npt.NDArray[np.int64]  # [node, entry + 1]; NONE in a leaf
    aggregates: Columns  # [node, 1]
    nodes: npt.NDArray[np.int64]  # [node, 3]
    free: npt.NDArray[np.int64]  # [node + 1]; a stack, its height in the last place
    at: npt.NDArray[np.int64]  # [key, 4]


@kernel
def take(state: State, side: int) -> int:
    """Take a free node and make it an empty leaf."""
    height = len(state.free) - 1
    state.free[height] -= 1
    node = state.free[state.free[height]]
    state.nodes[node, PARENT] = NONE
    state.nodes[node, ENTRIES] = 0
    state.nodes[node, SIDE] = side
    state.children[node, 0] = NONE
    return int(node)


@kernel
def give_back(state: State, node: int) -> None:
    """Free a node."""
    height = len(state.free) - 1
    state.free[state.free[height]] = node
    state.free[height] += 1


@kernel
def is_leaf(state: State, node: int) -> bool:
    """Tell whether a node has no children."""
    return bool(state.children[node, 0] == NONE)


@kernel
def last_child(state: State, node: int) -> int:
    """Find the child behind the last entry."""
    return int(state.children[node, state.nodes[node, ENTRIES]])


@kernel
def place(state: State, node: int, time: int) -> int:
    """Find the first entry of a node that is not older than `time`."""
    i = 0
    while i < state.nodes[node, ENTRIES] and state.times[node, i] < time:
        i += 1
    return i


@kernel
def search(state: State, key: int, time: int) -> int:
    """Find the node that holds `time` or the leaf where it belongs, from the nearer finger."""
    node = state.at[key, ROOT]
    if not is_leaf(state, node):
        if time < state.times[node, 0]:
            node = state.at[key, LEFT_FINGER]
            while (
                state.nodes[node, SIDE] != TOP
                and time > state.times[node, state.nodes[node, ENTRIES] - 1]
            ):
                node = state.nodes[node, PARENT]
        elif time > state.times[node, state.nodes[node, ENTRIES] - 1]:
            node = state.at[key, RIGHT_FINGER]
            while state.nodes[node, SIDE] != TOP and time < state.times[node, 0]:
                node = state.nodes[node, PARENT]
    while not is_leaf(state, node):
        i = place(state, node, time)
        if i < state.nodes[node, ENTRIES] and state.times[node, i] == time:
            break
        node = state.children[node, i]
    return int(node)


@kernel
def open_entry(state: State, node: int, i: int) -> None:
    """Make room for entry `i` and for the child behind it."""
    for j in range(state.nodes[node, ENTRIES], i, -1):
        state.times[node, j] = state.times[node, j - 1]
        put(state.partials, node, j, get(state.partials, node, j - 1))
        state.children[node, j + 1] = state.children[node, j]
    state.nodes[node, ENTRIES] += 1


@kernel
def move_entries(state: State, source: int, first: int, target: int) -> None:
    """Append the entries from `first` on, and the children around them, to another node."""
    entries, place = state.nodes[source, ENTRIES], state.nodes[target, ENTRIES]
    if not is_leaf(state, source):
        for i in range(first, entries + 1):
            child = state.children[source, i]
            state.children[target, place + i - first] = child
            state.nodes[child, PARENT] = target
    for i in range(first, entries):
        state.times[target, place + i - first] = state.times[source, i]
        put(state.partials, target, place + i - first, get(state.partials, source, i))
    state.nodes[target, ENTRIES] = place + entries - first
    state.nodes[source, ENTRIES] = first


@kernel
def drop_first(state: State, node: int, child: int) -> None:
    """Remove the first entry of a node and one of its first two children, 0 or 1."""
    entries = state.nodes[node, ENTRIES]
    for i in range(1, entries):
        state.times[node, i - 1] = state.times[node, i]
        put(state.partials, node, i - 1, get(state.partials, node, i))
    if not is_leaf(state, node):
        for i in range(child, entries):
            state.children[node, i] = state.children[node, i + 1]
    state.nodes[node, ENTRIES] = entries - 1


@kernel
def merge(state: State, key: int, node: int, sibling: int, parent: int) -> int:
    """Take in all of the right sibling; return the node to go on with, which may be a new root."""
    if state.at[key, RIGHT_FINGER] == sibling:
        state.at[key, RIGHT_FINGER] = node
    move_entries(state, sibling, 0, node)
    drop_first(state, parent, 1)
    give_back(state, sibling)
    if state.nodes[parent, ENTRIES] > 0:
        return parent
    give_back(state, parent)
    state.nodes[node, SIDE] = TOP
    state.nodes[node, PARENT] = NONE
    state.at[key, ROOT] = node
    return node
