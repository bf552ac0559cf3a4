"""The one entry for aggregates of index ranges: the technique follows from laws and from order.

ranges                 operation                technique              combines
few values in all      selective                one by one             1 a value and answer
any                    invertible, integer sum  prefix sums            1 a value, 1 an answer
both bounds only grow  every other              sliding ranges         2 a value, 1 an answer
any                    float sum                re-based sums          2 a value, 3 an answer
any                    idempotent               sparse table           log2(N) a value, 1
any                    every other              disjoint sparse table  log2(N) a value, 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.errors import DataError, InternalError
from weft.kernels import algebra
from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compensated import COMPENSATED_SUM, CompensatedSum, rounded
from weft.kernels.compiled import unlocked
from weft.kernels.ranges.disjoint_sparse_table import DisjointSparseTable
from weft.kernels.ranges.prefix_sums import IntegerSums, InvertiblePrefixes, RebasedSums
from weft.kernels.ranges.sliding import slide_within
from weft.kernels.ranges.sparse_table import SparseTable

if TYPE_CHECKING:
    from weft.kernels.operations import Operation

Int64s = npt.NDArray[np.int64]
RangeTechnique = Literal[
    "one_by_one", "prefix_sums", "sliding_ranges", "rebased_sums", "sparse_table",
    "disjoint_sparse_table",
]  # fmt: skip
FEW_VALUES = 1 << 12  # combined before a table could be set up


def aggregate_ranges(
    values: Any,
    starts: Int64s,
    ends: Int64s,
    operation: Operation,
    technique: RangeTechnique | None = None,
) -> Columns:
    """Aggregate the partials `[start, end)` for each pair of bounds.

    `technique` is run as it is told; without it the ranges and the operation decide.
    An empty range is the identity. Float sums are compensated: within 1e-9 of the exact sum of
    the range, whatever values lie outside it. An integer sum beyond 64 bits is refused.

    >>> from weft.kernels.operations import MIN_FLOAT64, SUM_FLOAT64
    >>> starts, ends = np.array([0, 1, 2]), np.array([2, 3, 4])
    >>> aggregate_ranges([4.0, 1e16, 0.5, 0.25], starts, ends, SUM_FLOAT64).tolist()
    [1.0000000000000004e+16, 1e+16, 0.75]
    >>> aggregate_ranges([4.0, 2.0, 3.0, 1.0], starts, ends, MIN_FLOAT64).tolist()
    [2.0, 2.0, 1.0]
    """
    columns = operation.as_columns(values)
    if isinstance(operation.algebra, algebra.SumFloat64):
        pairs = (columns, np.zeros_like(columns))
        return rounded(*aggregate_ranges(pairs, starts, ends, COMPENSATED_SUM, technique))
    starts = np.ascontiguousarray(starts, np.int64)
    ends = np.ascontiguousarray(ends, np.int64)
    ranges = survey(starts, ends)
    if ranges.longest == 0:
        return operation.columns(starts.size)
    if ranges.first < 0 or ranges.last > length(columns):
        raise InternalError(f"a range lies outside the {length(columns)} partials")
    try:
        chosen = technique or choose(ranges, operation)
        return _run(chosen, ranges, columns, starts, ends, operation)
    except OverflowError:
        raise DataError(
            f"{operation.name} of a range does not fit 64 bits",
            hint="sum a cast to double or decimal instead",
        ) from None


class Survey(NamedTuple):
    """What the choice depends on: the bounds_of of all ranges, and whether they only move on."""

    first: int
    last: int
    longest: int
    sliding: bool
    values: int  # of all ranges together


def survey(starts: Int64s, ends: Int64s) -> Survey:
    """Look at every range once; empty ones count for the order alone.

    >>> survey(np.array([0, 1]), np.array([5, 4]))
    Survey(first=0, last=5, longest=5, sliding=False, values=8)
    """
    return Survey(*_survey(starts, ends))


@unlocked
def _survey(starts: Int64s, ends: Int64s) -> tuple[int, int, int, bool, int]:
    first, last, longest, sliding = np.int64(2**62), np.int64(0), np.int64(0), True
    values = np.int64(0)
    for i in range(starts.size):
        if starts[i] < ends[i]:
            first, last = min(first, starts[i]), max(last, ends[i])
            longest = max(longest, ends[i] - starts[i])
            values += ends[i] - starts[i]
        if i and (starts[i] < starts[i - 1] or ends[i] < ends[i - 1]):
            sliding = False
    return int(first), int(last), int(longest), sliding, int(values)


def choose(ranges: Survey, operation: Operation) -> RangeTechnique:
    """Name the technique that these ranges and this operation's laws call for.

    >>> from weft.kernels.operations import COUNT, MIN_INT64, MOMENTS
    >>> sliding, jumping = (Survey(0, 9999, 5, sliding=s, values=9999) for s in (True, False))
    >>> choose(jumping, COUNT), choose(sliding, MOMENTS)
    ('prefix_sums', 'sliding_ranges')
    >>> choose(jumping, MIN_INT64), choose(jumping, MOMENTS)
    ('sparse_table', 'disjoint_sparse_table')
    >>> choose(jumping._replace(values=20), MIN_INT64)
    'one_by_one'
    """
    if operation.laws.selective and ranges.values <= FEW_VALUES:
        return "one_by_one"
    if operation.laws.invertible:
        return "prefix_sums"
    if ranges.sliding:
        return "sliding_ranges"
    if isinstance(operation.algebra, CompensatedSum):
        return "rebased_sums"
    return "sparse_table" if operation.laws.idempotent else "disjoint_sparse_table"


def _run(
    technique: RangeTechnique,
    ranges: Survey,
    columns: Columns,
    starts: Int64s,
    ends: Int64s,
    operation: Operation,
) -> Columns:
    match technique:
        case "one_by_one":
            out = operation.columns(starts.size)
            _one_by_one(operation.algebra, columns, starts, ends, out)
            return out
        case "prefix_sums" if isinstance(operation.algebra, algebra.SumInt64):
            return IntegerSums.of(columns).query(starts, ends)
        case "prefix_sums":
            return InvertiblePrefixes.of(columns, operation).query(starts, ends)
        case "sliding_ranges":
            scratch = operation.columns(ranges.longest)
            return slide_within(columns, starts, ends, scratch, operation)
        case "rebased_sums":
            return RebasedSums.of(columns).query(starts, ends)
        case "sparse_table":
            return SparseTable.of(columns, operation).query(starts, ends)
        case "disjoint_sparse_table":
            return DisjointSparseTable.of(columns, operation).query(starts, ends)


@unlocked
def _one_by_one(op: Any, columns: Columns, starts: Int64s, ends: Int64s, out: Columns) -> None:
    for i in range(starts.size):
        total = load(out, i)
        for row in range(starts[i], ends[i]):
            total = op.combine(total, load(columns, row))
        store(out, i, total)
