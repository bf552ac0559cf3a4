"""Aggregation set joins, compiled: a tuple finds the rows of the other inputs that match it.

A row is one of an early input's aggregation set, or a slot of a late one's window. By hashing only
rows of the same join value are looked at; a nested loop looks at all.
"""

from __future__ import annotations

import numpy as np

from weft.engines.local.joins.continuous.state import (
    EARLY,
    ERROR,
    FIRST,
    FIRST_ROW,
    FIRST_TUPLE,
    GROUP,
    LOST,
    MATCHES,
    NEXT_OF_SIDE,
    NEXT_OF_VALUE,
    NOTHING,
    PAIR,
    PROBES,
    SIDE,
    SIZE,
    STOP_ROW,
    TOTAL,
    VALUE,
    Int64s,
    State,
)
from weft.engines.local.joins.continuous.updates import add_real, clear_real, region_of
from weft.kernels.compiled import borrowing, merged

# Rows of the room that a walk needs, one column per input or step.
FOUND, SUM_OF_GROUPS, CHOSEN, WEIGHT = range(4)


@merged
def probe(state: State, slot: int, sign: int) -> None:
    """Apply a tuple and every row of the only other input that matches it to the result."""
    tuples, pairs, values, counters = state.tuples, state.pairs, state.values, state.counters
    side, pair = tuples[slot, SIDE], tuples[slot, PAIR]
    other, value, base = 1 - side, pairs[pair, VALUE], pairs[pair, GROUP]
    nested_loop = state.nested_loop[0]
    if state.rules[other, EARLY] == 1:
        region = region_of(value, nested_loop)
        start, stop = values[other, region, FIRST_ROW], values[other, region, STOP_ROW]
        counters[PROBES] += stop - start + 1
        if nested_loop:
            counters[MATCHES] += _apply_equal_rows(state, slot, sign, base, start, stop)
        else:
            counters[MATCHES] += stop - start
            _apply_rows(state, slot, sign, base, start, stop)
        return
    matches = 0
    probes = 1
    link = NEXT_OF_SIDE if nested_loop else NEXT_OF_VALUE
    row = state.windows[other, FIRST] if nested_loop else values[other, value, FIRST_TUPLE]
    while row != NOTHING:
        probes += 1
        own = tuples[row, PAIR]
        if not nested_loop or pairs[own, VALUE] == value:
            matches += 1
            _apply_tuple(state, slot, sign, base + pairs[own, GROUP], row)
        row = tuples[row, link]
    counters[PROBES] += probes
    counters[MATCHES] += matches


@merged
def _apply_tuple(state: State, slot: int, sign: int, group: int, other: int) -> None:
    """Apply a tuple with one of another input's window."""
    side = state.tuples[slot, SIDE]
    state.sizes[group] += sign
    for column in range(state.whole_side.size):
        at = slot if state.whole_side[column] == side else other
        state.result_whole[group, column] += sign * state.tuple_whole[at, column]
    for column in range(state.real_side.size):
        at = slot if state.real_side[column] == side else other
        added = sign * state.tuple_real[at, column]
        add_real(state.result_real, group, column, added, abs(added))
    if sign < 0 and state.sizes[group] == 0:
        clear_real(state.result_real, group)


@merged
def _apply_rows(state: State, slot: int, sign: int, base: int, start: int, stop: int) -> None:
    """Apply a tuple with matching rows of an aggregation set, column by column.

    Most of the time of an early plan goes here. Numbers without a sign spare every access the
    question whether it counts from the end.
    """
    rows, sizes, result_whole = state.rows, state.sizes, state.result_whole
    side = state.tuples[slot, SIDE]
    begin, end, first = np.uint64(start), np.uint64(stop), np.uint64(base)
    for row in range(begin, end):
        sizes[first + np.uint64(rows[row, GROUP])] += sign * rows[row, SIZE]
    for column in range(np.uint64(state.whole_side.size)):
        if state.whole_side[column] == side:
            whole = sign * state.tuple_whole[slot, column]
            for row in range(begin, end):
                group = first + np.uint64(rows[row, GROUP])
                result_whole[group, column] += whole * rows[row, SIZE]
        else:
            for row in range(begin, end):
                group = first + np.uint64(rows[row, GROUP])
                result_whole[group, column] += sign * state.row_whole[row, column]
    if state.real_side.size:
        _apply_reals(state, slot, sign, base, start, stop)


@borrowing
def _apply_equal_rows(state: State, slot: int, sign: int, base: int, start: int, stop: int) -> int:
    """Apply a tuple with those of some rows that have its join value; return how many have."""
    value, found = state.pairs[state.tuples[slot, PAIR], VALUE], 0
    for row in range(np.uint64(start), np.uint64(stop)):
        if state.rows[row, VALUE] == value:
            found += 1
            _apply_rows(state, slot, sign, base, int(row), int(row) + 1)
    return found


@merged
def _apply_reals(state: State, slot: int, sign: int, base: int, start: int, stop: int) -> None:
    """Add what a tuple and matching rows have of real sums; groups are empty by now or not."""
    rows, row_real = state.rows, state.row_real
    for column in range(state.real_side.size):
        for row in range(start, stop):
            if state.real_side[column] == state.tuples[slot, SIDE]:
                added = sign * rows[row, SIZE] * state.tuple_real[slot, column]
                off = abs(added)
            else:
                added = sign * (row_real[row, column, TOTAL] + row_real[row, column, LOST])
                off = row_real[row, column, ERROR]
            place = base + rows[row, GROUP]
            add_real(state.result_real, place, column, added, off)
            if state.sizes[place] == 0:
                clear_real(state.result_real, place)


@borrowing
def probe_all(state: State, slot: int, sign: int, room: Int64s) -> None:
    """Apply a tuple and every combination of matching rows of the other inputs to the result.

    A depth-first walk in the probe order. `room` has a row per input: the row found at each step,
    the group so far, the row chosen of each input, and how many tuples that stands for.
    """
    tuples, pairs, rows = state.tuples, state.pairs, state.rows
    rules, order = state.rules, state.order
    side, pair = tuples[slot, SIDE], tuples[slot, PAIR]
    value, steps = pairs[pair, VALUE], rules.shape[0] - 1
    room[CHOSEN, side], room[WEIGHT, side] = slot, 1
    room[SUM_OF_GROUPS, 0] = pairs[pair, GROUP]
    nested_loop = state.nested_loop[0] == 1
    step = 0
    room[FOUND, 0] = _sought(NOTHING, order[side, 0], value, nested_loop, state)
    while step >= 0:
        other, row = order[side, step], room[FOUND, step]
        if row == NOTHING:
            step -= 1
            if step >= 0:
                before = order[side, step]
                room[FOUND, step] = _sought(room[FOUND, step], before, value, nested_loop, state)
            continue
        early = rules[other, EARLY] == 1
        room[CHOSEN, other] = row
        room[WEIGHT, other] = rows[row, SIZE] if early else 1
        own = rows[row, GROUP] if early else pairs[tuples[row, PAIR], GROUP]
        group = room[SUM_OF_GROUPS, step] + own
        if step + 1 < steps:
            step += 1
            room[SUM_OF_GROUPS, step] = group
            room[FOUND, step] = _sought(NOTHING, order[side, step], value, nested_loop, state)
        else:
            _apply(side, group, sign, room, state)
            room[FOUND, step] = _sought(row, other, value, nested_loop, state)


@borrowing
def _sought(row: int, side: int, value: int, nested_loop: bool, state: State) -> int:
    """Return the row of an input after this one, or its first, that has a join value."""
    tuples, pairs, values, counters = state.tuples, state.pairs, state.values, state.counters
    if state.rules[side, EARLY] == 1:
        region = region_of(value, nested_loop)
        start = values[side, region, FIRST_ROW] if row == NOTHING else row + 1
        for after in range(start, values[side, region, STOP_ROW]):
            counters[PROBES] += 1
            if state.rows[after, VALUE] == value:
                return after
        return NOTHING
    if not nested_loop:
        counters[PROBES] += 1
        first = values[side, value, FIRST_TUPLE]
        return int(first if row == NOTHING else tuples[row, NEXT_OF_VALUE])
    row = state.windows[side, FIRST] if row == NOTHING else tuples[row, NEXT_OF_SIDE]
    while row != NOTHING and pairs[tuples[row, PAIR], VALUE] != value:
        counters[PROBES] += 1
        row = tuples[row, NEXT_OF_SIDE]
    return row


@borrowing
def _apply(side: int, group: int, sign: int, room: Int64s, state: State) -> None:
    """Add one combination of rows to its group, or take it out; an empty group is cleared.

    What an input contributes counts as often as all the others have tuples.
    """
    size = np.int64(1)
    for owner in range(room.shape[1]):
        size *= room[WEIGHT, owner]
    state.sizes[group] += sign * size
    for column in range(state.whole_side.size):
        owner = state.whole_side[column]
        early = state.rules[owner, EARLY] == 1 and owner != side
        own = state.row_whole if early else state.tuple_whole
        times = sign * (size // room[WEIGHT, owner])
        state.result_whole[group, column] += times * own[room[CHOSEN, owner], column]
    for column in range(state.real_side.size):
        owner = state.real_side[column]
        row, times = room[CHOSEN, owner], sign * (size // room[WEIGHT, owner])
        if state.rules[owner, EARLY] == 1 and owner != side:
            sums = state.row_real
            added = times * (sums[row, column, TOTAL] + sums[row, column, LOST])
            off = abs(times) * sums[row, column, ERROR]
        else:
            added = times * state.tuple_real[row, column]
            off = abs(added)
        add_real(state.result_real, group, column, added, off)
    state.counters[MATCHES] += 1
    if sign < 0 and state.sizes[group] == 0:
        clear_real(state.result_real, group)
