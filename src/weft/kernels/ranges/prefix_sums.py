"""Prefix sums: any range of an invertible operation as the difference of two prefixes.

Integers are exact: prefixes are kept in two halves that cannot overflow, so that only a range
whose own sum leaves 64 bits is refused. Float64 sums are no differences of far prefixes, because
one large value long ago would cost every later range its digits. They are re-based instead:
running sums restart every `BLOCK` values, forwards and backwards, and a range is the backward sum
of its first block, the whole blocks between, and the forward sum of its last. No value outside a
range ever touches its sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weft.errors import DataError, UnsupportedError
from weft.kernels.columns import Columns, length, load, only_read, store
from weft.kernels.compensated import COMPENSATED_SUM
from weft.kernels.compiled import unlocked
from weft.kernels.ranges.disjoint_sparse_table import DisjointSparseTable

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

BLOCK = 32  # a range inside one block is added value by value; 16 to 64 measured alike

Int64s = npt.NDArray[np.int64]
_HALF, _LOW = 32, 2**32 - 1


def largest_magnitude(values: Int64s) -> int:
    """Return the largest absolute value as an exact integer; 0 for no values.

    >>> largest_magnitude(np.array([3, -2**63]))
    9223372036854775808
    """
    return max(int(values.max()), -int(values.min()), 0) if values.size else 0


def join_halves(high: Int64s, low: Int64s) -> Int64s:
    """Put sums of high and low halves together; refuse a sum that leaves 64 bits.

    >>> join_halves(np.array([1]), np.array([2**32 + 5])).tolist()
    [8589934597]
    >>> join_halves(np.array([2**31]), np.array([-2**32])).tolist()
    [9223372032559808512]
    """
    carried = high + (low >> _HALF)
    beyond = (carried < -(2**31)) | (carried >= 2**31)
    if beyond.any():
        at = int(np.flatnonzero(beyond)[0])
        total = (int(high[at]) << _HALF) + int(low[at])
        raise DataError(
            f"an integer sum of {total} does not fit 64 bits",
            hint="sum a cast to double or decimal instead",
        )
    return (carried << _HALF) | (low & _LOW)


@dataclass(frozen=True, slots=True, eq=False)
class IntegerSums:
    """Prefix sums of int64 that answer every range exactly, or refuse it.

    >>> sums = IntegerSums.of(np.array([2**62, 2**62, -2**62, 7]))
    >>> sums.query(np.array([1, 0]), np.array([4, 1])).tolist()
    [7, 4611686018427387904]
    >>> sums.query(np.array([0]), np.array([2]))
    Traceback (most recent call last):
    weft.errors.DataError: an integer sum of 9223372036854775808 does not fit 64 bits
    hint: sum a cast to double or decimal instead
    """

    prefixes: tuple[Int64s, ...]  # one array, or the high and the low halves

    @classmethod
    def of(cls, values: Int64s) -> IntegerSums:
        """Sum up; in halves only when the plain prefixes could overflow."""
        if largest_magnitude(values) * values.size < 2**63:
            return cls((_prefixes(values),))
        return cls((_prefixes(values >> _HALF), _prefixes(values & _LOW)))

    def query(self, starts: Int64s, ends: Int64s) -> Int64s:
        """Sum the values `[start, end)` for each pair; an empty range is 0."""
        ends = np.maximum(starts, ends)
        differences = [prefix[ends] - prefix[starts] for prefix in self.prefixes]
        return join_halves(*differences) if len(differences) == 2 else differences[0]


def _prefixes(values: Int64s) -> Int64s:
    prefixes = np.zeros(values.size + 1, np.int64)
    np.cumsum(values, out=prefixes[1:])
    return prefixes


@dataclass(frozen=True, slots=True, eq=False)
class RebasedSums:
    """Sums of float64 pairs (sum, correction) over any range, from nothing but its own values.

    >>> values = np.array([0.5, 1e300, -0.25, 0.25, 8.0])
    >>> sums = RebasedSums.of((values, np.zeros(5)))
    >>> sums.query(np.array([2, 0]), np.array([5, 1]))[0].tolist()
    [8.0, 0.5]
    """

    values: Columns
    forward: Columns  # from the beginning of the block up to and including each value
    backward: Columns  # from each value up to the end of the block
    totals: DisjointSparseTable  # over whole blocks

    @classmethod
    def of(cls, pairs: Columns) -> RebasedSums:
        """Sum up, forwards and backwards in each block; two combines per value."""
        values = COMPENSATED_SUM.as_columns(pairs)
        n = length(values)
        forward, backward = COMPENSATED_SUM.columns(n), COMPENSATED_SUM.columns(n)
        _restart_in_blocks(COMPENSATED_SUM.algebra, values, forward, backward)
        totals = tuple(column[::BLOCK] for column in backward)
        return cls(values, forward, backward, DisjointSparseTable.of(totals, COMPENSATED_SUM))

    def query(self, starts: Int64s, ends: Int64s) -> Columns:
        """Sum the values `[start, end)` for each pair of bounds; an empty range is (0, 0)."""
        first, last = starts // BLOCK, (ends - 1) // BLOCK
        out = self.totals.query(np.minimum(first + 1, last), last)
        _add_ends(
            COMPENSATED_SUM.algebra, self.values, self.forward, self.backward, starts, ends, out
        )
        return out


@unlocked
def _restart_in_blocks(op: Any, values: Columns, forward: Columns, backward: Columns) -> None:
    n = length(values)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        total = load(values, begin)
        store(forward, begin, total)
        for i in range(begin + 1, end):
            total = op.combine(total, load(values, i))
            store(forward, i, total)
        total = load(values, end - 1)
        store(backward, end - 1, total)
        for i in range(end - 2, begin - 1, -1):
            total = op.combine(load(values, i), total)
            store(backward, i, total)


@unlocked
def _add_ends(
    op: Any,
    values: Columns,
    forward: Columns,
    backward: Columns,
    starts: Int64s,
    ends: Int64s,
    out: Columns,
) -> None:
    """Complete `out`, which holds the whole blocks strictly between the first and the last."""
    for i in range(starts.size):
        start, end = starts[i], ends[i]
        if start >= end:
            store(out, i, op.identity)
        elif start // BLOCK == (end - 1) // BLOCK:
            total = load(values, start)
            for j in range(start + 1, end):
                total = op.combine(total, load(values, j))
            store(out, i, total)
        else:
            ahead = op.combine(load(backward, start), load(out, i))
            store(out, i, op.combine(ahead, load(forward, end - 1)))


@dataclass(frozen=True, slots=True, eq=False)
class InvertiblePrefixes:
    """Prefixes of any invertible operation; a range is `between` of two of them.

    >>> from weft.kernels.operations import BIT_XOR
    >>> prefixes = InvertiblePrefixes.of([1, 3, 5], BIT_XOR)
    >>> prefixes.query(np.array([1, 2]), np.array([3, 2])).tolist()
    [6, 0]
    """

    operation: Operation
    prefixes: Columns

    @classmethod
    def of(cls, values: Any, operation: Operation) -> InvertiblePrefixes:
        """Combine up; refuse an operation that cannot take the older prefix out again."""
        if not operation.laws.invertible:
            raise UnsupportedError(
                f"prefixes cannot run {operation.name}: they need an invertible combine",
                hint="use sliding ranges or a disjoint sparse table",
            )
        columns = operation.as_columns(values)
        prefixes = operation.prefix_columns(length(columns) + 1)
        _extend(operation.prefix_algebra, only_read(columns), prefixes)
        return cls(operation, prefixes)

    def query(self, starts: Int64s, ends: Int64s) -> Columns:
        """Aggregate the values `[start, end)` for each pair; an empty range is the identity."""
        out = self.operation.columns(starts.size)
        _between(self.operation.prefix_algebra, self.prefixes, starts, ends, out)
        return out


@unlocked
def _extend(op: Any, values: Columns, prefixes: Columns) -> None:
    prefix = load(prefixes, 0)
    for i in range(length(values)):
        prefix = op.extend(prefix, load(values, i))
        store(prefixes, i + 1, prefix)


@unlocked
def _between(op: Any, prefixes: Columns, starts: Int64s, ends: Int64s, out: Columns) -> None:
    for i in range(starts.size):
        if starts[i] < ends[i]:
            store(out, i, op.between(load(prefixes, ends[i]), load(prefixes, starts[i])))
