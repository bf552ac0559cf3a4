"""Tuples arrive and expire, compiled: a loop over a batch, or over a window when plans change."""

from __future__ import annotations

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
    State,
)
from weft.engines.local.joins.continuous.updates import arrive, leave, update
from weft.kernels.compiled import borrowing

if TYPE_CHECKING:
    from weft.engines.local.joins.continuous.state import Int64s


def run(state: State, first: int, stop: int, until_us: int) -> None:
    """Let the tuples of slots `[first, stop)` arrive in order, each after what expires before it.

    At last everything expires that no window holds at `until_us`.
    """
    _run(state, first, stop, until_us, np.zeros((4, state.rules.shape[0]), np.int64))


@borrowing
def _run(state: State, first: int, stop: int, until_us: int, room: Int64s) -> None:
    """Run one step at a time, the oldest expiry or the next arrival."""
    tuples, windows, rules = state.tuples, state.windows, state.rules
    at, side, inputs = first, 0, rules.shape[0]
    now_us = tuples[first, TIME] if first < stop else until_us
    while True:
        slot, sign = windows[side, FIRST], -1
        if slot == NOTHING or now_us - tuples[slot, TIME] < rules[side, RANGE_US]:
            side += 1
            if side < inputs:
                continue
            side = 0
            if at == stop:
                break
            slot, sign = at, 1
            at += 1
            now_us = tuples[at, TIME] if at < stop else until_us
            arrive(state, slot)
        else:
            leave(state, slot)
        own = tuples[slot, SIDE]
        if rules[own, EARLY] == 1 or rules[own, TRACKED] == 1:
            update(state, slot, sign)
        if inputs == 2:
            probe(state, slot, sign)
        else:
            probe_all(state, slot, sign, room)


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
        update(state, slot, 1 if early else -1)
        slot = state.tuples[slot, NEXT_OF_SIDE]
