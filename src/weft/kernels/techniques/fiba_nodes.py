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

HALF = 2  # children of a node: at least HALF, at most twice that; the root may have fewer
ROOT, LEFT_FINGER, RIGHT_FINGER, SIZE, FREE = range(5)  # in `at`; FREE counts for key 0 only
PARENT, ENTRIES, SIDE, TIMES, CHILDREN = 0, 1, 2, 3, 3 + 2 * HALF  # in `nodes`
WIDTH = CHILDREN + 2 * HALF + 1
AGGREGATE = 2 * HALF  # in `partials`, behind the entries
UP, LEFT, RIGHT, TOP = 0, 1, 2, 3  # values of SIDE
NONE = -1


class State(NamedTuple):
    """One pool of nodes for the trees of all keys; three arrays, because each call passes them."""

    nodes: npt.NDArray[np.int64]  # [node, WIDTH]; free nodes are linked through PARENT
    partials: Columns  # [node, AGGREGATE + 1]
    at: npt.NDArray[np.int64]  # [key, 5]


@kernel
def take(state: State, side: int) -> int:
    """Take a free node and make it an empty leaf."""
    node = state.at[0, FREE]
    state.at[0, FREE] = state.nodes[node, PARENT]
    state.nodes[node, PARENT] = NONE
    state.nodes[node, ENTRIES] = 0
    state.nodes[node, SIDE] = side
    state.nodes[node, CHILDREN] = NONE
    return int(node)


@kernel
def give_back(state: State, node: int) -> None:
    """Free a node."""
    state.nodes[node, PARENT] = state.at[0, FREE]
    state.at[0, FREE] = node


@kernel
def is_leaf(state: State, node: int) -> bool:
    """Tell whether a node has no children."""
    return bool(state.nodes[node, CHILDREN] == NONE)


@kernel
def last_child(state: State, node: int) -> int:
    """Find the child behind the last entry."""
    return int(state.nodes[node, CHILDREN + state.nodes[node, ENTRIES]])


@kernel
def place(state: State, node: int, time: int) -> int:
    """Find the first entry of a node that is not older than `time`."""
    i = 0
    while i < state.nodes[node, ENTRIES] and state.nodes[node, TIMES + i] < time:
        i += 1
    return i


@kernel
def search(state: State, key: int, time: int) -> int:
    """Find the node that holds `time` or the leaf where it belongs, from the nearer finger."""
    node = state.at[key, ROOT]
    if not is_leaf(state, node):
        if time < state.nodes[node, TIMES]:
            node = state.at[key, LEFT_FINGER]
            while (
                state.nodes[node, SIDE] != TOP
                and time > state.nodes[node, TIMES + state.nodes[node, ENTRIES] - 1]
            ):
                node = state.nodes[node, PARENT]
        elif time > state.nodes[node, TIMES + state.nodes[node, ENTRIES] - 1]:
            node = state.at[key, RIGHT_FINGER]
            while state.nodes[node, SIDE] != TOP and time < state.nodes[node, TIMES]:
                node = state.nodes[node, PARENT]
    while not is_leaf(state, node):
        i = place(state, node, time)
        if i < state.nodes[node, ENTRIES] and state.nodes[node, TIMES + i] == time:
            break
        node = state.nodes[node, CHILDREN + i]
    return int(node)


@kernel
def open_entry(state: State, node: int, i: int) -> None:
    """Make room for entry `i` and for the child behind it."""
    for j in range(state.nodes[node, ENTRIES], i, -1):
        state.nodes[node, TIMES + j] = state.nodes[node, TIMES + j - 1]
        put(state.partials, node, j, get(state.partials, node, j - 1))
        state.nodes[node, CHILDREN + j + 1] = state.nodes[node, CHILDREN + j]
    state.nodes[node, ENTRIES] += 1


@kernel
def move_entries(state: State, source: int, first: int, target: int) -> None:
    """Append the entries from `first` on, and the children around them, to another node."""
    entries, place = state.nodes[source, ENTRIES], state.nodes[target, ENTRIES]
    if not is_leaf(state, source):
        for i in range(first, entries + 1):
            child = state.nodes[source, CHILDREN + i]
            state.nodes[target, CHILDREN + place + i - first] = child
            state.nodes[child, PARENT] = target
    for i in range(first, entries):
        state.nodes[target, TIMES + place + i - first] = state.nodes[source, TIMES + i]
        put(state.partials, target, place + i - first, get(state.partials, source, i))
    state.nodes[target, ENTRIES] = place + entries - first
    state.nodes[source, ENTRIES] = first


@kernel
def drop_first(state: State, node: int, child: int) -> None:
    """Remove the first entry of a node and one of its first two children, 0 or 1."""
    entries = state.nodes[node, ENTRIES]
    for i in range(1, entries):
        state.nodes[node, TIMES + i - 1] = state.nodes[node, TIMES + i]
        put(state.partials, node, i - 1, get(state.partials, node, i))
    if not is_leaf(state, node):
        for i in range(child, entries):
            state.nodes[node, CHILDREN + i] = state.nodes[node, CHILDREN + i + 1]
    state.nodes[node, ENTRIES] = entries - 1


@kernel
def merge(state: State, key: int, node: int, sibling: int, parent: int) -> int:
    """Take in all of the right sibling; return the node to go on with, which may be a new root."""
    if state.at[key, RIGHT_FINGER] == sibling:
        state.at[key, RIGHT_FINGER] = node
    move_entries(state, sibling, 0, node)
    drop_first(state, parent, 1)
    give_back(state, sibling)
    if state.nodes[parent, ENTRIES] > 0 or state.nodes[parent, SIDE] != TOP:
        return parent
    give_back(state, parent)
    state.nodes[node, SIDE] = TOP
    state.nodes[node, PARENT] = NONE
    state.at[key, ROOT] = node
    return node
