"""FiBA: a B-tree with a finger at each end, for values that arrive out of order.

O(log d) combines per insert, d places from the nearer end: about 12 per slide in order, with arity
2 to 4; O(n) partials; needs an associative combine, keeps the order of time, answers any range of
time. Tangwongsan, Hirzel, Schneider, "Optimal and general out-of-order sliding-window aggregation"
(VLDB 2019). All keys share one pool of nodes. Each node keeps one aggregate; which one depends on
where it stands, so that a change near an end stays near that end:

    up           its whole subtree
    left spine   itself and its children but the first, then its parent's aggregate
    right spine  its parent's aggregate, then itself and its children but the last
    root         itself and its children but the first and the last
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft.kernels.columns import Columns, Partial, get, put
from weft.kernels.compiled import kernel
from weft.kernels.techniques import slides

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

from weft.kernels.techniques.fiba_nodes import (
    AGGREGATE,
    CHILDREN,
    ENTRIES,
    FREE,
    HALF,
    LEFT,
    LEFT_FINGER,
    NONE,
    PARENT,
    RIGHT,
    RIGHT_FINGER,
    ROOT,
    SIDE,
    SIZE,
    TIMES,
    TOP,
    UP,
    WIDTH,
    State,
    drop_first,
    is_leaf,
    last_child,
    merge,
    move_entries,
    open_entry,
    place,
    search,
    take,
)


def new(operation: Operation, capacity: int, keys: int = 1) -> State:
    """Allocate empty trees for up to `capacity` partials each."""
    nodes = keys * (capacity + 1)
    state = State(
        np.zeros((nodes, WIDTH), np.int64),
        operation.columns(nodes, AGGREGATE + 1),
        np.zeros((keys, 5), np.int64),
    )
    state.nodes[:, PARENT] = np.arange(1, nodes + 1)
    for key in range(keys):
        root = take(state, TOP)
        state.at[key, :SIZE] = root
    return state


def capacity(state: State) -> int:
    return len(state.nodes) // len(state.at) - 1


def resized(operation: Operation, state: State, capacity: int) -> State:
    """Copy the trees into a larger pool; its new nodes come first when one is needed."""
    larger = new(operation, capacity, len(state.at))
    used = len(state.nodes)
    larger.nodes[:used] = state.nodes
    larger.nodes[-1, PARENT] = state.at[0, FREE]
    for source, target in zip(_tuple(state.partials), _tuple(larger.partials), strict=True):
        target[:used] = source
    larger.at[:] = state.at
    larger.at[0, FREE] = used
    return larger


def _tuple(columns: Columns) -> tuple[Columns, ...]:
    return columns if isinstance(columns, tuple) else (columns,)


@kernel
def _aggregate(state: State, node: int) -> Partial:
    return get(state.partials, node, AGGREGATE)


@kernel
def _between(op: Any, state: State, node: int, first: int, stop: int) -> Partial:
    """Combine the entries `first` up to `stop` of a node and the children between them."""
    answer = op.identity
    for i in range(first, stop):
        if i > first and not is_leaf(state, node):
            answer = op.combine(answer, _aggregate(state, state.nodes[node, CHILDREN + i]))
        answer = op.combine(answer, get(state.partials, node, i))
    return answer


@kernel
def _recompute(op: Any, state: State, node: int) -> None:
    entries, side = state.nodes[node, ENTRIES], state.nodes[node, SIDE]
    parent, answer = state.nodes[node, PARENT], _between(op, state, node, 0, entries)
    if not is_leaf(state, node):
        if side in (UP, RIGHT):
            answer = op.combine(_aggregate(state, state.nodes[node, CHILDREN]), answer)
        if side in (UP, LEFT):
            answer = op.combine(answer, _aggregate(state, state.nodes[node, CHILDREN + entries]))
    if side in (LEFT, RIGHT) and state.nodes[parent, SIDE] != TOP:
        older, newer = answer, _aggregate(state, parent)
        if side == RIGHT:
            older, newer = newer, older
        answer = op.combine(older, newer)
    put(state.partials, node, AGGREGATE, answer)


@kernel
def _repair(op: Any, state: State, node: int, left: bool, right: bool) -> None:
    """Renew what depends on `node`: up to a spine or the root, then down the spines touched."""
    _recompute(op, state, node)
    while state.nodes[node, SIDE] == UP:
        node = state.nodes[node, PARENT]
        _recompute(op, state, node)
    top = state.nodes[node, SIDE]
    for side in (LEFT, RIGHT):
        touched = left if side == LEFT else right
        below = node if top == side or (top == TOP and touched) else NONE
        while below != NONE and not is_leaf(state, below):
            below = state.nodes[below, CHILDREN] if side == LEFT else last_child(state, below)
            _recompute(op, state, below)


@kernel
def size(state: State, key: int) -> int:
    """Count the distinct times held."""
    return int(state.at[key, SIZE])


@kernel
def oldest(state: State, key: int) -> int:
    """Read the oldest time; the window must not be empty."""
    return int(state.nodes[state.at[key, LEFT_FINGER], TIMES])


@kernel
def newest(state: State, key: int) -> int:
    """Read the newest time; the window must not be empty."""
    finger = state.at[key, RIGHT_FINGER]
    return int(state.nodes[finger, TIMES + state.nodes[finger, ENTRIES] - 1])


@kernel
def query(op: Any, state: State, key: int) -> Partial:
    """Combine the whole window: two combines, whatever it holds."""
    root = state.at[key, ROOT]
    answer = _aggregate(state, root)
    if not is_leaf(state, root):
        answer = op.combine(_aggregate(state, state.at[key, LEFT_FINGER]), answer)
        answer = op.combine(answer, _aggregate(state, state.at[key, RIGHT_FINGER]))
    return answer


@kernel
def insert_at(op: Any, state: State, key: int, time: int, value: Partial) -> None:
    """Add a value anywhere in time; a second value for a time is combined behind the first."""
    node = search(state, key, time)
    i = place(state, node, time)
    if i < state.nodes[node, ENTRIES] and state.nodes[node, TIMES + i] == time:
        value = op.combine(get(state.partials, node, i), value)
    else:
        open_entry(state, node, i)
        state.nodes[node, TIMES + i] = time
        state.at[key, SIZE] += 1
    put(state.partials, node, i, value)
    left, right = False, False
    while state.nodes[node, ENTRIES] == 2 * HALF:
        side = state.nodes[node, SIDE]
        left = left or side in (LEFT, TOP)
        right = right or side in (RIGHT, TOP)
        node = _split(op, state, key, node)
    _repair(op, state, node, left, right)


@kernel
def insert(op: Any, state: State, key: int, value: Partial) -> None:
    """Add a value one unit of time after the newest."""
    time = 0
    if state.at[key, SIZE] > 0:
        time = newest(state, key) + 1
    insert_at(op, state, key, time, value)


@kernel
def _split(op: Any, state: State, key: int, node: int) -> int:
    """Move the upper HALF of a full node into a new one to its right; return the parent."""
    side = state.nodes[node, SIDE]
    if side == TOP:
        root = take(state, TOP)
        state.nodes[root, CHILDREN] = node
        state.nodes[node, PARENT] = root
        state.at[key, ROOT] = root
        state.nodes[node, SIDE] = LEFT
        sibling = take(state, RIGHT)
    elif side == RIGHT:
        state.nodes[node, SIDE] = UP
        sibling = take(state, RIGHT)
    else:
        sibling = take(state, UP)
    move_entries(state, node, HALF + 1, sibling)
    if state.at[key, RIGHT_FINGER] == node:
        state.at[key, RIGHT_FINGER] = sibling
    parent = state.nodes[node, PARENT]
    i = place(state, parent, state.nodes[node, TIMES + HALF])
    open_entry(state, parent, i)
    state.nodes[parent, TIMES + i] = state.nodes[node, TIMES + HALF]
    put(state.partials, parent, i, get(state.partials, node, HALF))
    state.nodes[node, ENTRIES] = HALF
    state.nodes[parent, CHILDREN + i + 1] = sibling
    state.nodes[sibling, PARENT] = parent
    for half_node in (node, sibling):
        if state.nodes[half_node, SIDE] == UP:
            _recompute(op, state, half_node)
    return int(parent)


@kernel
def evict(op: Any, state: State, key: int) -> None:
    """Remove the oldest time."""
    node = state.at[key, LEFT_FINGER]
    drop_first(state, node, 0)
    state.at[key, SIZE] -= 1
    right = False
    while state.nodes[node, SIDE] != TOP and state.nodes[node, ENTRIES] + 1 < HALF:
        parent = state.nodes[node, PARENT]
        sibling = state.nodes[parent, CHILDREN + 1]
        right = right or state.nodes[sibling, SIDE] == RIGHT
        # The separator comes down in either case.
        entries = state.nodes[node, ENTRIES]
        state.nodes[node, TIMES + entries] = state.nodes[parent, TIMES]
        put(state.partials, node, entries, get(state.partials, parent, 0))
        state.nodes[node, ENTRIES] = entries + 1
        if state.nodes[sibling, ENTRIES] + 1 <= HALF:
            node = merge(state, key, node, sibling, parent)
        else:
            _borrow(op, state, node, sibling, parent)
            node = parent
    _repair(op, state, node, True, right)


@kernel
def _borrow(op: Any, state: State, node: int, sibling: int, parent: int) -> None:
    """Move the right sibling's first entry up and its first child over."""
    state.nodes[parent, TIMES] = state.nodes[sibling, TIMES]
    put(state.partials, parent, 0, get(state.partials, sibling, 0))
    if not is_leaf(state, node):
        child = state.nodes[sibling, CHILDREN]
        state.nodes[node, CHILDREN + state.nodes[node, ENTRIES]] = child
        state.nodes[child, PARENT] = node
    drop_first(state, sibling, 0)
    if state.nodes[sibling, SIDE] == UP:
        _recompute(op, state, sibling)


@kernel
def bulk_evict(op: Any, state: State, key: int, count: int) -> None:
    """Remove the oldest `count` times."""
    for _ in range(count):
        evict(op, state, key)


@kernel
def evict_before(op: Any, state: State, key: int, time: int) -> None:
    """Remove every time older than `time`."""
    while state.at[key, SIZE] > 0 and oldest(state, key) < time:
        evict(op, state, key)


@kernel
def query_range(op: Any, state: State, key: int, first: int, stop: int) -> Partial:
    """Combine the values of the times from `first` up to, not with, `stop`."""
    if first >= stop:
        return op.identity
    node = state.at[key, ROOT]
    start, end = place(state, node, first), place(state, node, stop)
    while start == end and not is_leaf(state, node):
        node = state.nodes[node, CHILDREN + start]
        start, end = place(state, node, first), place(state, node, stop)
    answer = _between(op, state, node, start, end)
    if start < end and not is_leaf(state, node):
        older = _from(op, state, state.nodes[node, CHILDREN + start], first)
        answer = op.combine(older, answer)
        answer = op.combine(answer, _upto(op, state, state.nodes[node, CHILDREN + end], stop))
    return answer


@kernel
def query_last(op: Any, state: State, key: int, count: int) -> Partial:
    """Combine the newest `count` units of time, of values that were inserted one after another."""
    if state.at[key, SIZE] == 0:
        return op.identity
    stop = newest(state, key) + 1
    return query_range(op, state, key, stop - count, stop)


@kernel
def _from(op: Any, state: State, node: int, first: int) -> Partial:
    """Combine what a subtree holds from `first` on."""
    answer = op.identity
    while node != NONE:
        i, entries = place(state, node, first), state.nodes[node, ENTRIES]
        below = state.nodes[node, CHILDREN + i] if not is_leaf(state, node) else NONE
        if i < entries:
            if below != NONE:
                answer = op.combine(_aggregate(state, last_child(state, node)), answer)
            answer = op.combine(_between(op, state, node, i, entries), answer)
        node = below
    return answer


@kernel
def _upto(op: Any, state: State, node: int, stop: int) -> Partial:
    """Combine what a subtree holds before `stop`."""
    answer = op.identity
    while node != NONE:
        i = place(state, node, stop)
        below = state.nodes[node, CHILDREN + i] if not is_leaf(state, node) else NONE
        if i > 0:
            if below != NONE:
                answer = op.combine(answer, _aggregate(state, state.nodes[node, CHILDREN]))
            answer = op.combine(answer, _between(op, state, node, 0, i))
        node = below
    return answer


slide_one, slide = slides.compiled_for(__name__, "slide_one", "slide")
