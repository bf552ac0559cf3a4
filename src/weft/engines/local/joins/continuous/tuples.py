"""Tuples arrive and expire, compiled: a loop over a batch, or over a window when plans change."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.joins.continuous.probe import probe, probe_all
from weft.engines.local.joins.continuous.state import (
    EARLY,
    FIRST,
    NEXT_OF_SIDE,
    NOTHING,
    RANGE_US,
    SIDE,
    TIME,
    TRACKED,
    UPDATES,
    State,
)
from weft.engines.local.joins.continuous.updates import arrive, leave, update_extremes, update_sums
from weft.kernels.compiled import borrowing

if TYPE_CHECKING:
    from weft.engines.local.joins.continuous.state import Doubles, Int64s


def run(state: State, first: int, stop: int, until_us: int) -> None:
    """Let the tuples of slots `[first, stop)` arrive in order, each after what expires before it.

    At last everything expires that no window holds at `until_us`.
    """
    if state.rules.shape[0] == 2:
        _run_two(first, stop, until_us, *_TWO(state))
    else:
        room = np.zeros((4, state.rules.shape[0]), np.int64)
        _run_all(state, first, stop, until_us, room)


_TWO = attrgetter(
    *("tuples", "tuple_whole", "tuple_real", "tuple_order", "tuple_queue", "pairs", "pair_queue"),
    *("rows", "row_whole", "row_real", "windows", "values", "sizes", "result_whole"),
    *("result_real", "rules", "whole_side", "real_side", "order_side", "greatest", "nested_loop"),
    "counters",
)


@borrowing
def _run_two(
    first: int,
    stop: int,
    until_us: int,
    tuples: Int64s,
    tuple_whole: Int64s,
    tuple_real: Doubles,
    tuple_order: Int64s,
    tuple_queue: Int64s,
    pairs: Int64s,
    pair_queue: Int64s,
    rows: Int64s,
    row_whole: Int64s,
    row_real: Doubles,
    windows: Int64s,
    values: Int64s,
    sizes: Int64s,
    result_whole: Int64s,
    result_real: Doubles,
    rules: Int64s,
    whole_side: Int64s,
    real_side: Int64s,
    order_side: Int64s,
    greatest: Int64s,
    nested_loop: Int64s,
    counters: Int64s,
) -> None:
    """Run with two inputs: one step at a time, the oldest expiry or the next arrival."""
    at, side = first, 0
    now_us = tuples[first, TIME] if first < stop else until_us
    while True:
        slot, sign = windows[side, FIRST], -1
        if slot == NOTHING or now_us - tuples[slot, TIME] < rules[side, RANGE_US]:
            if side == 0:
                side = 1
                continue
            side = 0
            if at == stop:
                break
            slot, sign = at, 1
            at += 1
            now_us = tuples[at, TIME] if at < stop else until_us
            arrive(slot, tuples, pairs, windows, values)
        else:
            leave(slot, tuples, pairs, windows, values)
        own = tuples[slot, SIDE]
        if rules[own, EARLY] == 1 or rules[own, TRACKED] == 1:
            update_sums(
                slot,
                sign,
                tuples,
                tuple_whole,
                tuple_real,
                pairs,
                rows,
                row_whole,
                row_real,
                values,
                nested_loop[0],
            )
            counters[UPDATES] += 1
            if order_side.size:
                update_extremes(
                    slot, sign, tuples, tuple_order, tuple_queue, pair_queue, order_side, greatest
                )
        probe(
            slot,
            sign,
            tuples,
            tuple_whole,
            tuple_real,
            pairs,
            rows,
            row_whole,
            row_real,
            windows,
            values,
            sizes,
            result_whole,
            result_real,
            rules,
            whole_side,
            real_side,
            nested_loop[0],
            counters,
        )


@borrowing
def _run_all(state: State, first: int, stop: int, until_us: int, room: Int64s) -> None:
    """Run with any number of inputs."""
    tuples, windows, rules = state.tuples, state.windows, state.rules
    for slot in range(first, stop + 1):
        now_us = tuples[slot, TIME] if slot < stop else until_us
        for side in range(rules.shape[0]):
            oldest = windows[side, FIRST]
            while oldest != NOTHING and now_us - tuples[oldest, TIME] >= rules[side, RANGE_US]:
                after = tuples[oldest, NEXT_OF_SIDE]
                leave(oldest, tuples, state.pairs, windows, state.values)
                if rules[side, EARLY] == 1 or rules[side, TRACKED] == 1:
                    _update(state, oldest, -1)
                probe_all(oldest, -1, state, room)
                oldest = after
        if slot < stop:
            arrive(slot, tuples, state.pairs, windows, state.values)
            own = tuples[slot, SIDE]
            if rules[own, EARLY] == 1 or rules[own, TRACKED] == 1:
                _update(state, slot, 1)
            probe_all(slot, 1, state, room)


@borrowing
def _update(state: State, slot: int, sign: int) -> None:
    update_sums(
        slot,
        sign,
        state.tuples,
        state.tuple_whole,
        state.tuple_real,
        state.pairs,
        state.rows,
        state.row_whole,
        state.row_real,
        state.values,
        state.nested_loop[0],
    )
    state.counters[UPDATES] += 1
    if state.order_side.size:
        update_extremes(
            slot,
            sign,
            state.tuples,
            state.tuple_order,
            state.tuple_queue,
            state.pair_queue,
            state.order_side,
            state.greatest,
        )


@borrowing
def place(state: State, side: int, early: int) -> None:
    """Aggregate an input early from now on, or no more; the result stays as it is.

    The set is built from the tuples of the window, which are kept in any case; one update each.
    """
    rules = state.rules
    if rules[side, EARLY] == early:
        return
    rules[side, EARLY] = early
    if rules[side, TRACKED] == 1:
        return  # its rows are kept for MIN and MAX
    slot = state.windows[side, FIRST]
    while slot != NOTHING:
        _update(state, slot, 1 if early else -1)
        slot = state.tuples[slot, NEXT_OF_SIDE]
