"""MIN and MAX of a join that is kept tuple by tuple, composed when they are read.

Every pair (join value, group) knows its own extreme, because tuples expire in the order in which
they came. An extreme of the result is the extreme over the join values that all inputs have; to
keep that up to date under expiry would mean to keep the join itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.joins.continuous.state import GROUP, NOT_A_VALUE, NOTHING, ROW, VALUE
from weft.engines.local.joins.pairs import pairs_of_equals
from weft.engines.local.windows.flow import runs_of_equals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.joins.continuous.state import Int64s, State


def extremes_of(state: State, pairs_of_side: Sequence[Int64s], groups: Int64s) -> Int64s:
    """Return the numbers of MIN and MAX columns for groups of the result, in ascending order."""
    columns = state.order_side.size
    found = np.full((groups.size, columns), NOT_A_VALUE)
    if not columns or not groups.size:
        return found
    pairs = state.pairs
    live = [own[pairs[own, ROW] != NOTHING] for own in pairs_of_side]
    values, numbers = pairs[live[0], VALUE], pairs[live[0], GROUP]
    chosen = [live[0]]
    for own in live[1:]:
        before, after = pairs_of_equals(values, pairs[own, VALUE], 2**62)
        values, numbers = values[before], numbers[before] + pairs[own[after], GROUP]
        chosen = [rows[before] for rows in chosen] + [own[after]]
    order = np.argsort(numbers, kind="stable")
    starts, _ = runs_of_equals(numbers[order])
    for column in range(columns):
        rows = chosen[state.order_side[column]][order]
        slots = state.pair_queue[rows, column, 0]
        greatest = bool(state.greatest[column])
        worst = NOT_A_VALUE if greatest else 2**63 - 1
        held = np.where(slots == NOTHING, worst, state.tuple_order[slots, column])
        reduce = np.maximum if greatest else np.minimum
        best = reduce.reduceat(held, starts)
        some = np.maximum.reduceat((slots != NOTHING).astype(np.int64), starts) > 0
        found[:, column] = np.where(some, best, NOT_A_VALUE)
    return found
