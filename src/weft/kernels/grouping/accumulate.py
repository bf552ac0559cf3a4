"""Accumulate rows into groups: one tight loop per kind of partial over (group, value).

Accumulators have one slot more than there are groups: rows that do not count, such as NULLs, are
sent there by their group number, which spares every loop a test and a second compilation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels import algebra
from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compensated import CompensatedSum
from weft.kernels.compiled import unlocked
from weft.kernels.operations import COUNT, Operation
from weft.kernels.parallel import over_chunks
from weft.kernels.ranges.prefix_sums import join_halves, largest_magnitude

Int64s = npt.NDArray[np.int64]
Groups = npt.NDArray[np.int32]


class RunningMoments(NamedTuple):
    """Add values one by one to (count, mean, sum of squared deviations), as Welford does."""

    identity: tuple[int, float, float] = (0, 0.0, 0.0)

    def extend(op, a: tuple[int, float, float], b: float) -> tuple[int, float, float]:
        """Add one value."""
        count = a[0] + 1
        shift = b - a[1]
        mean = a[1] + shift / count if count > 1 else b
        return count, mean, a[2] + shift * (b - mean)


@unlocked
def _combine_rows(op: Any, groups: Groups, rows: Columns, totals: Columns) -> None:
    for i in range(groups.size):
        store(totals, groups[i], op.combine(load(totals, groups[i]), load(rows, i)))


@unlocked
def _select_rows(op: Any, groups: Groups, rows: npt.NDArray[Any], totals: Any) -> None:
    """Combine where that keeps one of the two, mostly the one that is there: few need a write."""
    for i in range(groups.size):
        group = np.uint32(groups[i])
        chosen = op.combine(totals[group], rows[i])
        if chosen != totals[group]:
            totals[group] = chosen


@unlocked
def _extend_rows(op: Any, groups: Groups, values: npt.NDArray[Any], totals: Columns) -> None:
    for i in range(groups.size):
        store(totals, groups[i], op.extend(load(totals, groups[i]), values[i]))


@unlocked
def _count_rows(groups: Groups, totals: Int64s) -> None:
    for i in range(groups.size):
        totals[groups[i]] += 1


@unlocked
def _join(op: Any, others: Columns, totals: Columns) -> None:
    for i in range(length(totals)):
        store(totals, i, op.combine(load(totals, i), load(others, i)))


def _part(columns: Columns, start: int, stop: int) -> Columns:
    if _is_scalar(columns):
        return columns[start:stop]
    return tuple(column[start:stop] for column in columns)


def _is_scalar(columns: Columns) -> bool:
    return not isinstance(columns, tuple)


def _threads_worth(groups: Groups, size: int, threads: int) -> int:
    """Allow as many threads as have at least as many rows as accumulators to join afterwards."""
    return max(1, min(threads, groups.size // (size + 1)))


def count_rows(groups: Groups, size: int, threads: int = 1) -> Int64s:
    """Count the rows of each group, and in the spare slot those of none.

    >>> count_rows(np.array([0, 2, 0, 3], np.int32), 3).tolist()
    [2, 0, 1, 1]
    """

    def work(start: int, stop: int) -> Int64s:
        totals = np.zeros(size + 1, np.int64)
        _count_rows(groups[start:stop], totals)
        return totals

    parts = over_chunks(work, groups.size, _threads_worth(groups, size, threads))
    return parts[0] if len(parts) == 1 else np.sum(parts, axis=0)


def combine_rows(
    operation: Operation, groups: Groups, rows: Columns, size: int, threads: int = 1
) -> Columns:
    """Combine rows that are partials already; an integer sum beyond 64 bits is refused.

    >>> from weft.kernels.operations import MIN_INT64
    >>> combine_rows(MIN_INT64, np.array([0, 1, 0], np.int32), np.array([5, 7, 4]), 2)[:2].tolist()
    [4, 7]
    """
    if isinstance(operation.algebra, algebra.SumInt64):
        return _sum_integers(groups, rows, size, threads)

    fold = _select_rows if operation.laws.selective and _is_scalar(rows) else _combine_rows

    def work(start: int, stop: int) -> Columns:
        totals = operation.columns(size + 1)
        fold(operation.algebra, groups[start:stop], _part(rows, start, stop), totals)
        return totals

    return _joined(operation, work, groups, size, threads)


def extend_rows(
    operation: Operation, groups: Groups, values: npt.NDArray[Any], size: int, threads: int = 1
) -> Columns:
    """Add raw values to compensated sums or to moments.

    >>> from weft.kernels.operations import MOMENTS
    >>> groups = np.zeros(3, np.int32)
    >>> [c[0].item() for c in extend_rows(MOMENTS, groups, np.array([1.0, 2.0, 3.0]), 1)]
    [3, 2.0, 2.0]
    """
    compensated = isinstance(operation.algebra, CompensatedSum)
    adding: Any = operation.algebra if compensated else RunningMoments()

    def work(start: int, stop: int) -> Columns:
        totals = operation.columns(size + 1)
        _extend_rows(adding, groups[start:stop], values[start:stop], totals)
        return totals

    return _joined(operation, work, groups, size, threads)


def _joined(operation: Operation, work: Any, groups: Groups, size: int, threads: int) -> Columns:
    parts = over_chunks(work, groups.size, _threads_worth(groups, size, threads))
    for other in parts[1:]:
        _join(operation.algebra, other, parts[0])
    return parts[0]


def _sum_integers(groups: Groups, values: Int64s, size: int, threads: int) -> Int64s:
    """Add exactly; in halves, which cannot overflow, only where a plain sum could."""
    if largest_magnitude(values) * values.size < 2**63:
        plain: Int64s = combine_rows(COUNT, groups, values, size, threads)
        return plain
    high = combine_rows(COUNT, groups, values >> 32, size, threads)
    low = combine_rows(COUNT, groups, values & (2**32 - 1), size, threads)
    high[size] = low[size] = 0  # rows of no group must not be able to refuse the others
    return join_halves(high, low)
