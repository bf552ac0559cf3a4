"""Slices that come in any order: into finger trees by their time, and out of them by range.

Other techniques take in a slice when it is final. A tree takes it in when it comes, behind what it
has of the same slice already, and pays for how far from the newest one that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.kernels.columns import Columns, load, store
from weft.kernels.compiled import kernel, unlocked
from weft.kernels.incremental.notes import room
from weft.kernels.incremental.slide import END, FRONT
from weft.kernels.techniques.fiba import evict, insert_at, query, query_range

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from weft.kernels.techniques.fiba_nodes import State

    Int64s = npt.NDArray[np.int64]


@kernel
def arrive(
    op: Any,
    state: State,
    new: Int64s,
    firsts_new: Int64s,
    stops_new: Int64s,
    values: Columns,
    taken: Int64s,
    begin: int,
) -> int:
    """Take in the slices `[first, stop)` of each key; `taken` counts those of a key."""
    for row in range(begin, taken.size):
        while firsts_new[row] + taken[row] < stops_new[row]:
            if not room(op):
                return row
            at = firsts_new[row] + taken[row]
            insert_at(op, state, row, new[at], load(values, at))
            taken[row] += 1
    return int(taken.size)


@unlocked
def keep_times(
    times: Int64s, at: Int64s, new: Int64s, firsts_new: Int64s, stops_new: Int64s
) -> None:
    """Put the times of slices that come in order among those that are there, each once."""
    slots = times.shape[1] - 1
    for row in range(at.shape[0]):
        for i in range(firsts_new[row], stops_new[row]):
            place = at[row, END]
            while place > at[row, FRONT] and times[row, (place - 1) & slots] > new[i]:
                place -= 1
            if place > at[row, FRONT] and times[row, (place - 1) & slots] == new[i]:
                continue
            for later in range(at[row, END], place, -1):
                times[row, later & slots] = times[row, (later - 1) & slots]
            times[row, place & slots] = new[i]
            at[row, END] += 1


@kernel
def answer(
    op: Any,
    state: State,
    rows: Int64s,
    starts_us: Int64s,
    ends_us: Int64s,
    whole: npt.NDArray[np.bool_],
    out: Columns,
    begin: int,
) -> int:
    """Combine what lies in each instance; `whole` are those that span all that a key holds."""
    for i in range(begin, rows.size):
        if not room(op):
            return i
        if whole[i]:
            store(out, i, query(op, state, rows[i]))
        else:
            store(out, i, query_range(op, state, rows[i], starts_us[i], ends_us[i]))
    return int(rows.size)


@kernel
def settle(op: Any, state: State, kept: Int64s, gone: Int64s, begin: int) -> int:
    """Let go of the oldest `kept` slices of each key; `gone` counts them."""
    for row in range(begin, kept.size):
        while gone[row] < kept[row]:
            if not room(op):
                return row
            evict(op, state, row)
            gone[row] += 1
    return int(kept.size)
