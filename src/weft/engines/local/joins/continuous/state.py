"""The state of a join that is kept tuple by tuple (Tran & Lee): windows, aggregation sets, result.

All inputs share one pool of tuples in the order of arrival and one numbering of pairs (join value,
group). An aggregation set has a row for each pair that has tuples at present, and those of one join
value lie side by side (of all of them, for nested loops), in a region with room for every pair that
has a number: a row that empties gives its place to the last of its region. Lists are links between
slots: the tuples of an input in time order, and the tuples of a join value. The result is a dense
array over the combinations of groups.

Numbers that are used together lie together, in few arrays: compiled functions pay for each array
that they are given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
NOTHING = -1
NOT_A_VALUE = -(2**63)  # NULL among the numbers of MIN and MAX

# Columns of `tuples`.
SIDE, TIME, PAIR, NEXT_OF_SIDE, NEXT_OF_VALUE = range(5)
# Columns of `pairs`: the join value, the share in the result's group, and the row if there is one.
# Rows repeat the first two, so that a probe reads nothing beside them.
VALUE, GROUP, ROW = range(3)
# More columns of `rows`: the pair, and how many tuples it has.
OWNER, SIZE = range(2, 4)
# Columns of `windows`, one row per input.
FIRST, LAST, TUPLES = range(3)
# Columns of `values`, for each input and join value.
FIRST_TUPLE, LAST_TUPLE, FIRST_ROW, STOP_ROW = range(4)
# Columns of `rules`, one row per input.
EARLY, TRACKED, RANGE_US = range(3)
# What `counters` counts.
PROBES, MATCHES, UPDATES = range(3)
# Parts of a real sum: the sum, what additions rounded off, and the magnitudes that were added.
TOTAL, LOST, ERROR = range(3)


class State(NamedTuple):
    """Everything that a step may read or change."""

    tuples: Int64s  # (slot, SIDE...)
    tuple_whole: Int64s  # (slot, column): what integer sums and counts add
    tuple_real: Doubles  # (slot, column): what sums of doubles add
    tuple_order: Int64s  # (slot, column): the numbers of MIN and MAX
    tuple_queue: Int64s  # (slot, column, 2): the next and the last that may become the extreme
    pairs: Int64s  # (pair, VALUE...)
    pair_queue: Int64s  # (pair, column, 2): first and last slot of its queue of extremes
    rows: Int64s  # (row, VALUE...): of the aggregation sets
    row_whole: Int64s
    row_real: Doubles  # (row, column, TOTAL...)
    windows: Int64s  # (input, FIRST...)
    values: Int64s  # (input, join value, FIRST_TUPLE...)
    sizes: Int64s  # (group): combinations of tuples
    result_whole: Int64s
    result_real: Doubles  # (group, column, TOTAL...)
    rules: Int64s  # (input, EARLY...)
    order: Int64s  # (input, step): which input its tuples probe next
    whole_side: Int64s  # the input that owns each column
    real_side: Int64s
    order_side: Int64s
    greatest: Int64s  # per column of MIN and MAX: 1 for MAX
    nested_loop: Int64s  # one element
    counters: Int64s


class Admitted(NamedTuple):
    """Tuples that have been written down and have not arrived yet."""

    first: int  # slot; they are those from there on
    in_order: bool  # none is older than what was there before
