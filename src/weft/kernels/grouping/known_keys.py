"""Slicing of a batch whose keys are all known: one pass from events to partials.

Neither codes nor group numbers are written down. In a stream, where every batch is cold memory,
that is twice as fast as one pass for each of them. What is not foreseen here, such as a new key, is
found out on the way and left to `slice_events`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.compiled import unlocked
from weft.kernels.grouping.dense import Box

if TYPE_CHECKING:
    from weft.kernels.grouping.batches import Column
    from weft.kernels.grouping.edges import PeriodTable
    from weft.kernels.operations import Operation

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class KnownKeys(NamedTuple):
    """Integer keys, and the codes of integers from `least` on; -1 where there is none."""

    values: npt.NDArray[np.integer]
    least: int
    table: npt.NDArray[np.int32]
    codes: int  # how many there are


class Folded(NamedTuple):
    """One row per (key, slice) that has events, sorted by both."""

    keys: Int64s
    starts_us: Int64s
    totals: npt.NDArray[Any]


def fold_known(
    keys: KnownKeys,
    times_us: Int64s,
    bounds_us: tuple[int, int],
    slices: PeriodTable,
    column: Column,
    operation: Operation,
) -> Folded | None:
    """Aggregate a column without NULLs into slices of one width; None if a key has no code.

    The operation has one field and can tell what beats what. `bounds_us` holds all times.

    >>> from weft.kernels.grouping.edges import PeriodTable
    >>> from weft.kernels.grouping.batches import Column
    >>> from weft.kernels.operations import MIN_INT64
    >>> keys = KnownKeys(np.array([7, 8, 7]), 7, np.array([1, 0], np.int32), 2)
    >>> asked = (np.array([0, 4, 6]), (0, 6), PeriodTable.of([(0, 5)]), Column.of([3, 8, 2]))
    >>> [column.tolist() for column in fold_known(keys, *asked, MIN_INT64)]
    [[0, 1, 1], [0, 0, 5], [8, 3, 2]]
    >>> fold_known(keys._replace(least=8), *asked, MIN_INT64) is None
    True
    """
    width, edge = slices.period_us, int(slices.edges_us[0])
    first, last = ((time - edge) // width for time in bounds_us)
    box = Box(0, first, keys.codes + 1, last - first + 1)  # keys without a code are the last one
    if not box.affordable(times_us.size):
        return None
    totals, used = operation.columns(box.size), np.zeros(box.size, np.bool_)
    origin = edge + first * width
    values, least, table, count = keys
    shape = (count, box.slices, origin, width)
    _fold(operation.algebra, values, least, table, times_us, column.values, shape, totals, used)
    found = Folded(
        np.empty(box.size, np.int64), np.empty(box.size, np.int64), np.empty_like(totals)
    )
    rows = _gather(shape, totals, used, *found)
    if rows < 0:
        return None
    return Folded(*(each[:rows] for each in found))


@unlocked
def _fold(
    op: Any,
    keys: npt.NDArray[np.integer],
    least: int,
    table: npt.NDArray[np.int32],
    times: Int64s,
    rows: npt.NDArray[Any],
    shape: tuple[int, int, int, int],
    totals: npt.NDArray[Any],
    used: Bools,
) -> None:
    # Slices are found as `_number_even` does. Keys are looked up without a branch: those without a
    # code share one that is beyond all others. Mostly the total of earlier rows wins, which leaves
    # nothing to write; the identity never does, so that a row before must have marked the group.
    spare, slices, origin, width = shape
    reciprocal = 1.0 / width
    number, start = np.int64(0), np.int64(origin)
    size = np.uint64(table.size)
    for i in range(keys.size):
        if np.uint64(times[i] - start) >= np.uint64(width):
            since = times[i] - origin
            number = np.int64(since * reciprocal)
            rest = since - number * width
            if rest < 0:
                number -= 1
            elif rest >= width:
                number += 1
            start = origin + number * width
        place = np.uint64(np.int64(keys[i]) - least)
        code = np.int64(table[place]) if place < size else np.int64(-1)
        group = np.uint64((code if code >= 0 else spare) * slices + number)
        if not op.beats(totals[group], rows[i]):
            used[group] = True
            chosen = op.combine(totals[group], rows[i])
            if chosen != totals[group]:  # of 0.0 and -0.0 the first, as elsewhere
                totals[group] = chosen


@unlocked
def _gather(
    shape: tuple[int, int, int, int],
    totals: npt.NDArray[Any],
    used: Bools,
    keys: Int64s,
    starts_us: Int64s,
    values: npt.NDArray[Any],
) -> int:
    """Write the groups that occur and count them; -1 if a key without a code does."""
    count, slices, origin, width = shape
    for number in range(slices):
        if used[np.uint64(count * slices + number)]:
            return -1
    found = 0
    for key in range(count):
        for number in range(slices):
            group = np.uint64(key * slices + number)
            if used[group]:
                keys[found], starts_us[found] = key, origin + number * width
                values[found] = totals[group]
                found += 1
    return found
