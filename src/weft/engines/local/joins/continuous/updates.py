"""Aggregation set updates, compiled: a tuple enters or leaves its window and its input's set."""

from __future__ import annotations

from weft.engines.local.joins.continuous.state import (
    ERROR,
    FIRST,
    FIRST_TUPLE,
    GROUP,
    LAST,
    LAST_TUPLE,
    LOST,
    NEXT_OF_SIDE,
    NEXT_OF_VALUE,
    NOT_A_VALUE,
    NOTHING,
    OWNER,
    PAIR,
    ROW,
    SIDE,
    SIZE,
    STOP_ROW,
    TOTAL,
    TUPLES,
    UPDATES,
    VALUE,
    Doubles,
    State,
)
from weft.kernels.compiled import borrowing, merged


@merged
def arrive(state: State, slot: int) -> None:
    """Add a tuple to its window."""
    tuples, windows, values = state.tuples, state.windows, state.values
    side = tuples[slot, SIDE]
    value = state.pairs[tuples[slot, PAIR], VALUE]
    tuples[slot, NEXT_OF_SIDE] = NOTHING
    tuples[slot, NEXT_OF_VALUE] = NOTHING
    if windows[side, FIRST] == NOTHING:
        windows[side, FIRST] = slot
    else:
        tuples[windows[side, LAST], NEXT_OF_SIDE] = slot
    windows[side, LAST] = slot
    windows[side, TUPLES] += 1
    if values[side, value, FIRST_TUPLE] == NOTHING:
        values[side, value, FIRST_TUPLE] = slot
    else:
        tuples[values[side, value, LAST_TUPLE], NEXT_OF_VALUE] = slot
    values[side, value, LAST_TUPLE] = slot


@merged
def leave(state: State, slot: int) -> None:
    """Remove the oldest tuple of an input from its window; it is the oldest of its value too."""
    tuples, side = state.tuples, state.tuples[slot, SIDE]
    value = state.pairs[tuples[slot, PAIR], VALUE]
    state.windows[side, FIRST] = tuples[slot, NEXT_OF_SIDE]
    state.windows[side, TUPLES] -= 1
    state.values[side, value, FIRST_TUPLE] = tuples[slot, NEXT_OF_VALUE]


@merged
def update(state: State, slot: int, sign: int) -> None:
    """Apply a tuple to what is kept of its input: its aggregation set, and its extremes."""
    _update_sums(state, slot, sign)
    state.counters[UPDATES] += 1
    if state.order_side.size:
        _update_extremes(state, slot, sign)


@merged
def _update_sums(state: State, slot: int, sign: int) -> None:
    """Apply a tuple to the aggregation set of its input, which has rows for pairs with tuples."""
    side, pair = state.tuples[slot, SIDE], state.tuples[slot, PAIR]
    pairs, rows, values = state.pairs, state.rows, state.values
    row = pairs[pair, ROW]
    region = region_of(pairs[pair, VALUE], state.nested_loop[0])
    if row == NOTHING:
        row = values[side, region, STOP_ROW]
        values[side, region, STOP_ROW] += 1
        _begin(state, row, pair)
    rows[row, SIZE] += sign
    for column in range(state.tuple_whole.shape[1]):
        state.row_whole[row, column] += sign * state.tuple_whole[slot, column]
    for column in range(state.tuple_real.shape[1]):
        added = sign * state.tuple_real[slot, column]
        add_real(state.row_real, row, column, added, abs(added))
    if rows[row, SIZE] == 0:
        values[side, region, STOP_ROW] -= 1
        _close_gap(state, row, values[side, region, STOP_ROW])
        pairs[pair, ROW] = NOTHING


@merged
def region_of(value: int, nested_loop: int) -> int:
    """Return where the rows of a join value are listed; for nested loops, with all others."""
    return 0 if nested_loop else value


@merged
def _begin(state: State, row: int, pair: int) -> None:
    """Make a row for a pair that has had no tuples."""
    pairs, rows = state.pairs, state.rows
    pairs[pair, ROW] = row
    rows[row, VALUE] = pairs[pair, VALUE]
    rows[row, GROUP] = pairs[pair, GROUP]
    rows[row, OWNER] = pair
    rows[row, SIZE] = 0
    for column in range(state.row_whole.shape[1]):
        state.row_whole[row, column] = 0
    clear_real(state.row_real, row)


@merged
def _close_gap(state: State, row: int, last: int) -> None:
    """Let the last row of a region take the place of one that has no tuples any more."""
    rows, row_whole, row_real = state.rows, state.row_whole, state.row_real
    for column in range(rows.shape[1]):
        rows[row, column] = rows[last, column]
    for column in range(row_whole.shape[1]):
        row_whole[row, column] = row_whole[last, column]
    for column in range(row_real.shape[1]):
        for part in range(row_real.shape[2]):
            row_real[row, column, part] = row_real[last, column, part]
    state.pairs[rows[row, OWNER], ROW] = row


@borrowing
def add_real(sums: Doubles, row: int, column: int, added: float, error: float) -> None:
    """Add to a sum of doubles, and remember what the addition rounds off."""
    before = sums[row, column, TOTAL]
    total = before + added
    part = total - before
    sums[row, column, TOTAL] = total
    sums[row, column, LOST] += (before - (total - part)) + (added - part)
    sums[row, column, ERROR] += error


@borrowing
def clear_real(sums: Doubles, row: int) -> None:
    """Set the sums of a row without tuples to nothing, its rounding errors with them."""
    for column in range(sums.shape[1]):
        for part in range(sums.shape[2]):
            sums[row, column, part] = 0.0


@borrowing
def _update_extremes(state: State, slot: int, sign: int) -> None:
    """Keep the queues of tuples that are, or may become, the extreme of a pair.

    Tuples expire in the order of arrival, so one that is no better than a later one never counts.
    """
    tuple_order, tuple_queue, pair_queue = state.tuple_order, state.tuple_queue, state.pair_queue
    side, pair = state.tuples[slot, SIDE], state.tuples[slot, PAIR]
    for column in range(state.order_side.size):
        number = tuple_order[slot, column]
        if state.order_side[column] != side or number == NOT_A_VALUE:
            continue
        if sign < 0:
            if pair_queue[pair, column, 0] == slot:
                after = tuple_queue[slot, column, 0]
                pair_queue[pair, column, 0] = after
                if after == NOTHING:
                    pair_queue[pair, column, 1] = NOTHING
                else:
                    tuple_queue[after, column, 1] = NOTHING
            continue
        last = pair_queue[pair, column, 1]
        while last != NOTHING:
            held = tuple_order[last, column]
            if (held > number) if state.greatest[column] else (held < number):
                break
            last = tuple_queue[last, column, 1]
        tuple_queue[slot, column, 0] = NOTHING
        tuple_queue[slot, column, 1] = last
        if last == NOTHING:
            pair_queue[pair, column, 0] = slot
        else:
            tuple_queue[last, column, 0] = slot
        pair_queue[pair, column, 1] = slot
