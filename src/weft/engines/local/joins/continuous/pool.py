"""Room for the state of a join kept tuple by tuple: arrays that grow and are thinned out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.cost.joins.tuples import SideLoad
from weft.engines.local.joins.continuous.state import (
    FIRST,
    FIRST_ROW,
    GROUP,
    LAST,
    NEXT_OF_SIDE,
    NOTHING,
    OWNER,
    PAIR,
    ROW,
    SIDE,
    STOP_ROW,
    VALUE,
    State,
)
from weft.engines.local.values.distinct import distinct
from weft.window import PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.cost.joins.tuples import Method
    from weft.engines.local.joins.continuous.columns import JoinColumns
    from weft.engines.local.joins.continuous.state import Int64s
    from weft.plan import Join

FOREVER_US = 2**63 - 1
_OF_TUPLES = ("tuples", "tuple_whole", "tuple_real", "tuple_order", "tuple_queue")
_OF_ROWS = ("rows", "row_whole", "row_real")
_OF_PAIRS = ("pairs", "pair_queue", *_OF_ROWS)  # a pair has at most one row
_OF_GROUPS = ("sizes", "result_whole", "result_real")
_LEAST_ROOM = 64
_SOME_DEAD = 1.25  # so many pairs have numbers for one that has tuples, before they are given back


def state_of(join: Join, columns: JoinColumns, method: Method) -> State:
    """Make the state of a join as its plan places it; inputs are probed as they are listed."""
    inputs = range(len(join.sides))
    rules = [
        (
            side.early,
            bool(columns.order),  # MIN and MAX are read off the sets of all inputs
            side.window.range_us if isinstance(side.window, PeriodicWindow) else FOREVER_US,
        )
        for side in join.sides
    ]
    order = [[other for other in inputs if other != side] for side in inputs]
    sides = [columns.sides(owners) for owners in (columns.whole, columns.real, columns.order)]
    return empty_state(
        np.array(rules, np.int64),
        np.array(order, np.int64),
        (sides[0], sides[1], sides[2]),
        np.array([p.kind == "max" for _, p in columns.order], np.int64),
        method == "nested loop",
    )


def empty_state(
    rules: Int64s,
    order: Int64s,
    sides: tuple[Int64s, Int64s, Int64s],
    greatest: Int64s,
    nested_loop: bool,
) -> State:
    """Make a state without room: the first batch asks for it."""
    inputs = rules.shape[0]
    whole, real, ordered = (side.size for side in sides)
    return State(
        np.zeros((0, 5), np.int64),
        np.zeros((0, whole), np.int64),
        np.zeros((0, real), np.float64),
        np.zeros((0, ordered), np.int64),
        np.zeros((0, ordered, 2), np.int64),
        np.zeros((0, 3), np.int64),
        np.zeros((0, ordered, 2), np.int64),
        np.zeros((0, 4), np.int64),
        np.zeros((0, whole), np.int64),
        np.zeros((0, real, 3), np.float64),
        np.array([[NOTHING, NOTHING, 0]] * inputs, np.int64),
        np.full((inputs, 0, 4), NOTHING, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, whole), np.int64),
        np.zeros((0, real, 3), np.float64),
        rules,
        order,
        *sides,
        greatest,
        np.array([int(nested_loop)]),
        np.zeros(3, np.int64),
    )


def emptied(state: State) -> State:
    """Return a state with the same rules and counters and nothing in it."""
    sides = (state.whole_side, state.real_side, state.order_side)
    empty = empty_state(state.rules, state.order, sides, state.greatest, False)
    return empty._replace(nested_loop=state.nested_loop, counters=state.counters)


def with_room(state: State, *, tuples: int = 0, pairs: int = 0, groups: int = 0) -> State:
    """Return a state with room for so many; more than asked for, so that it is rarely done."""
    changes: dict[str, Any] = {}
    for names, rows in ((_OF_TUPLES, tuples), (_OF_PAIRS, pairs), (_OF_GROUPS, groups)):
        held = getattr(state, names[0]).shape[0]
        if held >= rows:
            continue
        more = max(rows, 2 * held, _LEAST_ROOM) - held
        for name in names:
            array = getattr(state, name)
            fill = NOTHING if name.endswith("queue") else 0
            extra = np.full((more, *array.shape[1:]), fill, array.dtype)
            changes[name] = np.concatenate([array, extra])
    return state._replace(**changes)


def with_values(state: State, values: int) -> State:
    """Return a state with lists for at least so many join values."""
    held = state.values.shape[1]
    if held >= values:
        return state
    extra = np.full((state.values.shape[0], values - held, 4), NOTHING, np.int64)
    return state._replace(values=np.concatenate([state.values, extra], axis=1))


def with_pairs(
    state: State,
    used: int,
    pairs_of_side: list[Int64s],
    side: int,
    kept_pairs: Int64s,
    fresh: Int64s,
    values: Int64s,
) -> tuple[State, list[Int64s]]:
    """Number some pairs of an input that have no number yet, given their join values.

    Pairs are numbered by input and join value, and the numbers of those that share both are the
    region of their rows, so that all pairs may move. Those that no tuple in a window has lose their
    numbers once they are many, but for those that are to be kept; most come back, and would make
    all pairs move again.
    """
    slots = live_slots(state, used)
    alive = np.zeros(state.pairs.shape[0] + 1, np.bool_)  # one more: NOTHING is the last
    alive[state.tuples[slots, PAIR]] = True
    alive[kept_pairs] = True
    numbered = sum(int(np.count_nonzero(own >= 0)) for own in pairs_of_side)
    if numbered <= np.count_nonzero(alive) * _SOME_DEAD:
        alive[:] = True
    kept = [np.flatnonzero((own >= 0) & alive[own]) for own in pairs_of_side]
    pairs = [own[local] for own, local in zip(pairs_of_side, kept, strict=True)]
    held = [state.pairs[own, VALUE] for own in pairs]
    # A pair that is new has no place to come from; the first of the spare ones stands for it.
    count = sum(map(len, pairs)) + fresh.size
    state = with_room(state, pairs=count + 1)
    spare = state.pairs.shape[0] - 1
    state.pairs[spare, ROW], state.pair_queue[spare] = NOTHING, NOTHING
    kept[side] = np.concatenate([kept[side], fresh])
    pairs[side] = np.concatenate([pairs[side], np.full(fresh.size, spare)])
    held[side] = np.concatenate([held[side], values])
    sides = np.repeat(np.arange(len(pairs)), [len(own) for own in pairs])
    order = np.lexsort((np.concatenate(held), sides))
    before, numbers = np.concatenate(pairs)[order], np.concatenate(held)[order]
    moved = np.full(state.pairs.shape[0], NOTHING)
    moved[before] = np.arange(count)
    state.tuples[slots, PAIR] = moved[state.tuples[slots, PAIR]]
    state.pairs[:count], state.pair_queue[:count] = state.pairs[before], state.pair_queue[before]
    state.pairs[:count, VALUE] = numbers
    state.pair_queue[count:] = NOTHING
    ends = np.cumsum([0, *(len(own) for own in pairs)])
    for at, (start, stop) in enumerate(pairwise(ends.tolist())):
        every = np.arange(state.values.shape[1])
        if state.nested_loop[0]:
            every[:] = -1  # all rows are in one region
        state.values[at, :, FIRST_ROW] = start + np.searchsorted(numbers[start:stop], every)
    _move_rows(state, sides)
    places = np.empty(count, np.int64)
    places[order] = np.arange(count)
    found = []
    for at, local in enumerate(kept):
        size = max(pairs_of_side[at].size, int(local.max(initial=-1)) + 1)
        own = np.full(size, NOTHING)
        own[local] = places[ends[at] : ends[at + 1]]
        found.append(own)
    return state, found


def _move_rows(state: State, sides: Int64s) -> None:
    """Put the rows of aggregation sets to the front of their regions, which have moved.

    The inputs are those of all pairs, which know their rows as they were.
    """
    pairs = np.flatnonzero(state.pairs[: sides.size, ROW] != NOTHING)
    values = np.zeros(pairs.size, np.int64) if state.nested_loop[0] else state.pairs[pairs, VALUE]
    regions = sides[pairs] * state.values.shape[1] + values
    firsts = state.values[:, :, FIRST_ROW].ravel()
    rows = firsts[regions] + np.arange(pairs.size) - np.searchsorted(regions, regions)
    for name in _OF_ROWS:
        array = getattr(state, name)
        array[rows] = array[state.pairs[pairs, ROW]]
    state.rows[rows, OWNER], state.pairs[pairs, ROW] = pairs, rows
    sizes = np.bincount(regions, minlength=firsts.size)
    state.values[:, :, STOP_ROW] = (firsts + sizes).reshape(state.values.shape[:2])


def live_slots(state: State, used: int) -> Int64s:
    """List the slots of tuples that are still in a window, in the order of arrival."""
    alive = np.zeros(used, np.bool_)
    for side, first in enumerate(state.windows[:, FIRST].tolist()):
        if first != NOTHING:
            alive[first:] |= state.tuples[first:used, SIDE] == side
    return np.flatnonzero(alive)


def loads_of(state: State, used: int, rates: Sequence[float]) -> tuple[SideLoad, ...]:
    """Describe the inputs as they are now to the cost model, at these rates."""
    slots, loads = live_slots(state, used), []
    for side, rate in enumerate(rates):
        own = state.tuples[slots[state.tuples[slots, SIDE] == side], PAIR]
        groups = distinct(state.pairs[own, GROUP]).size
        values = distinct(state.pairs[own, VALUE]).size
        loads.append(SideLoad(rate, max(float(own.size), 1.0), max(groups, 1), max(values, 1)))
    return tuple(loads)


def thinned(state: State, used: int) -> tuple[State, int]:
    """Move the live tuples to the front of the pool; return how many there are."""
    kept = live_slots(state, used)
    places = np.full(used + 1, NOTHING, np.int64)  # one more: NOTHING is the last, and stays
    places[kept] = np.arange(kept.size)
    moved: dict[str, Any] = {}
    for name in _OF_TUPLES:
        array = getattr(state, name)
        array[: kept.size] = array[kept]
    state.tuples[: kept.size, NEXT_OF_SIDE:] = places[state.tuples[: kept.size, NEXT_OF_SIDE:]]
    state.tuple_queue[: kept.size] = places[state.tuple_queue[: kept.size]]
    state.windows[:, FIRST : LAST + 1] = places[state.windows[:, FIRST : LAST + 1]]
    state.values[:, :, :FIRST_ROW] = places[state.values[:, :, :FIRST_ROW]]
    moved["pair_queue"] = places[state.pair_queue]
    return state._replace(**moved), kept.size


def regrouped(state: State, sizes: Sequence[int], wider: Sequence[int], groups: int) -> State:
    """Move the groups of the result to their places under larger numbers of groups per input."""
    live = np.flatnonzero(state.sizes)
    places = np.zeros(live.size, np.int64)
    rest, stride = live, 1
    for size, more in zip(reversed(sizes), reversed(wider), strict=True):
        places += rest % size * stride
        rest, stride = rest // size, stride * more
    changes: dict[str, Any] = {}
    for name in _OF_GROUPS:
        array = getattr(state, name)
        changes[name] = np.zeros((groups, *array.shape[1:]), array.dtype)
        changes[name][places] = array[live]
    return state._replace(**changes)
