"""The one entry for aggregates of index ranges: by the technique that is named, or by a choice.

A plan names the technique of ranges that overlap. Where rows are only brought together, such as
equal slices of several batches, the technique follows from laws and from order:

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

from weft.errors import DataError, InternalError, UnsupportedError
from weft.kernels import algebra
from weft.kernels.columns import Columns, length, load, store
from weft.kernels.compensated import COMPENSATED_SUM, CompensatedSum, rounded
from weft.kernels.compiled import unlocked
from weft.kernels.incremental.ranges import ranges_by
from weft.kernels.ranges.disjoint_sparse_table import DisjointSparseTable
from weft.kernels.ranges.prefix_sums import IntegerSums, InvertiblePrefixes, RebasedSums
from weft.kernels.ranges.sliding import slide_within
from weft.kernels.ranges.sparse_table import SparseTable
from weft.kernels.ranges.van_herk import blocks_within
from weft.techniques import TECHNIQUES

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
    technique: str | None = None,
) -> Columns:
    """Aggregate the partials `[start, end)` for each pair of bounds.

    `technique` is one that answers whole arrays, or any that slides; None leaves the choice here.

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
        return _run(ranges, columns, starts, ends, operation, technique)
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
    ranges: Survey,
    columns: Columns,
    starts: Int64s,
    ends: Int64s,
    operation: Operation,
    technique: str | None,
) -> Columns:
    if technique in TECHNIQUES:
        TECHNIQUES[technique].check(operation.laws, operation.name)
    match technique or choose(ranges, operation):
        case "one_by_one":
            out = operation.columns(starts.size)
            _one_by_one(operation.algebra, columns, starts, ends, out)
            return out
        case "fan_out":
            return _fan_out(columns, starts, ends, operation)
        case "prefix_sums" if isinstance(operation.algebra, algebra.SumInt64):
            return IntegerSums.of(columns).query(starts, ends)
        case "prefix_sums":
            return InvertiblePrefixes.of(columns, operation).query(starts, ends)
        case "sliding_ranges" if not ranges.sliding:
            order = np.lexsort((ends, starts))
            if not survey(starts[order], ends[order]).sliding:
                raise UnsupportedError(
                    "technique sliding_ranges cannot answer ranges inside each other",
                    hint="use disjoint_sparse_table",
                )
            moved = _run(
                ranges._replace(sliding=True),
                columns,
                starts[order],
                ends[order],
                operation,
                technique,
            )
            return _back(moved, order)
        case "sliding_ranges":
            scratch = operation.columns(ranges.longest)
            return slide_within(columns, starts, ends, scratch, operation)
        case "van_herk":
            return blocks_within(columns, starts, ends, operation)
        case "rebased_sums":
            return RebasedSums.of(columns).query(starts, ends)
        case "sparse_table":
            return SparseTable.of(columns, operation).query(starts, ends)
        case "disjoint_sparse_table":
            return DisjointSparseTable.of(columns, operation).query(starts, ends)
        case sliding:
            return ranges_by(sliding, columns, starts, ends, operation)[0]


def _back(columns: Columns, order: Any) -> Columns:
    """Put answers back where they were asked for."""
    if isinstance(columns, tuple):
        return tuple(_back(column, order) for column in columns)
    out = np.empty_like(columns)
    out[order] = columns
    return out


def _fan_out(columns: Columns, starts: Int64s, ends: Int64s, operation: Operation) -> Columns:
    """Copy every partial to all ranges that hold it, then fold the copies."""
    counts = np.maximum(ends - starts, 0)
    stops = np.cumsum(counts)
    rows = np.arange(int(counts.sum())) + np.repeat(starts - (stops - counts), counts)
    spread = tuple(c[rows] for c in columns) if isinstance(columns, tuple) else columns[rows]
    out = operation.columns(starts.size)
    _one_by_one(operation.algebra, spread, stops - counts, stops, out)
    return out


@unlocked
def _one_by_one(op: Any, columns: Columns, starts: Int64s, ends: Int64s, out: Columns) -> None:
    for i in range(starts.size):
        total = load(out, i)
        for row in range(starts[i], ends[i]):
            total = op.combine(total, load(columns, row))
        store(out, i, total)
