"""Slicing of a batch: events in, one partial per (key, slice) out, for all aggregates at once.

The rows are numbered by group once; then each kind of partial is one tight loop over (group,
value). Numbers are positions where keys x slices is small, and hashed otherwise. Every answer is
sorted by (key, slice).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.errors import DataError, InternalError
from weft.kernels.grouping.accumulate import Groups, combine_rows, count_rows, extend_rows
from weft.kernels.grouping.dense import Box, bounds_of, groups_of_ordinals, groups_of_times
from weft.kernels.grouping.edges import PeriodTable
from weft.kernels.grouping.hashed import groups_of_pairs
from weft.kernels.parallel import read_only
from weft.kernels.partials import (
    COUNTED,
    OF_DOUBLES,
    Bools,
    Int64s,
    KernelKind,
    Partials,
    from_itself,
    operation_of,
    pairs_alone,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.kernels.columns import Columns
    from weft.kernels.grouping.slices import Slices

MOST_ROWS = 1 << 29  # group numbers, of which there may be four times as many, are int32


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Values of one column and which of them are not NULL; None when all are.

    >>> Column.of(np.array([True, False])).values.tolist()
    [1, 0]
    """

    values: npt.NDArray[Any]
    valid: Bools | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", read_only(self.values))

    @classmethod
    def of(cls, values: npt.ArrayLike, valid: npt.ArrayLike | None = None) -> Column:
        """Widen integers and booleans to int64 and floats to float64."""
        given = np.asarray(values)
        if given.dtype.kind in "bi" or (given.dtype.kind == "u" and given.dtype.itemsize < 8):
            wide = np.ascontiguousarray(given, np.int64)
        elif given.dtype.kind == "f":
            wide = np.ascontiguousarray(given, np.float64)
        else:
            raise DataError(
                f"a column of {given.dtype} cannot be aggregated as numbers",
                hint="cast it to int64 or float64",
            )
        flags = None if valid is None else np.ascontiguousarray(valid, np.bool_)
        return cls(wide, None if flags is None or flags.all() else flags)

    def take(self, rows: npt.NDArray[Any]) -> Column:
        """Select rows."""
        return Column(self.values[rows], None if self.valid is None else self.valid[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A partial to compute: a kind, its value column, and for min_by and max_by what to order by.

    Of pairs, `by` is the other column, and what is NULL in either is in both.

    min_by and max_by carry an integer from the chosen event: the value, which must have no NULL,
    or the row number when no value is given. It also decides between events of equal `by` and
    time.
    """

    kind: KernelKind
    value: Column | None = None
    by: Column | None = None

    @property
    def counted(self) -> Column | None:
        """The column whose NULLs are skipped; None for kinds that take every row."""
        return self.by if self.kind in ("min_by", "max_by") else self.value

    def __post_init__(self) -> None:
        if (self.kind == "count_rows") != (self.counted is None):
            raise InternalError(f"a request for {self.kind} has not the columns it takes")
        carried = self.value if self.by is not None and self.counted is self.by else None
        if carried is not None and (carried.valid is not None or carried.values.dtype != np.int64):
            raise InternalError(f"{self.kind} carries int64 without NULLs")


class Bounds(NamedTuple):
    """Bounds that hold all keys, and all times, of a batch: least and greatest."""

    keys: tuple[int, int]
    times: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class SlicedBatch:
    """One row per (key, slice) that has events, sorted by both; partials in the order asked."""

    keys: Int64s
    ordinals: Int64s
    partials: tuple[Partials, ...]
    dropped: int = 0  # events without a time


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The group of every row, and for the groups in order: number, key and slice."""

    groups: Groups
    size: int  # numbers go up to here; `size` itself is the spare group
    numbers: npt.NDArray[np.intp]
    keys: Int64s
    ordinals: Int64s
    threads: int
    _without_nulls: dict[int, Groups] = field(default_factory=dict)
    _counts: dict[int, Int64s] = field(default_factory=dict)

    def groups_for(self, valid: Bools | None) -> Groups:
        """Send the rows that are NULL to the spare group; one pass per column, not per kind."""
        if valid is None:
            return self.groups
        if id(valid) not in self._without_nulls:
            self._without_nulls[id(valid)] = np.where(valid, self.groups, np.int32(self.size))
        return self._without_nulls[id(valid)]

    def counts_for(self, valid: Bools | None) -> Int64s:
        """Count the rows of each group, in order, that are not NULL; once per column."""
        if id(valid) not in self._counts:
            counts = count_rows(self.groups_for(valid), self.size, self.threads)
            self._counts[id(valid)] = counts[self.numbers]
        return self._counts[id(valid)]


def slice_events(
    times_us: Int64s,
    keys: npt.NDArray[np.integer],
    slices: Slices,
    requests: Sequence[Request],
    *,
    times_valid: Bools | None = None,
    bounds: Bounds | None = None,
    threads: int = 1,
) -> SlicedBatch:
    """Aggregate events into one partial per (key, slice), for all requests together.

    Who knows the `bounds` of keys and times already saves two passes over them.

    >>> times, keys = np.array([0, 4, 5, 9]), np.array([1, 0, 1, 1], np.int32)
    >>> values = Column.of(np.array([3.0, 8.0, 2.0, 7.0]), [True, True, False, True])
    >>> batch = slice_events(times, keys, PeriodTable.of([(0, 5)]),
    ...                      [Request("count_rows"), Request("min", values)])
    >>> batch.keys.tolist(), batch.ordinals.tolist()
    ([0, 1, 1], [0, 0, 1])
    >>> [partials.columns.tolist() for partials in batch.partials]
    [[1, 1, 2], [8.0, 3.0, 7.0]]
    """
    if times_us.size > MOST_ROWS:
        raise InternalError(f"a batch of {times_us.size} rows; at most {MOST_ROWS} fit")
    dropped = 0
    if times_valid is not None and not times_valid.all():
        kept = np.flatnonzero(times_valid)
        dropped = times_us.size - kept.size
        times_us, keys = times_us[kept], keys[kept]
        requests = [_kept(request, kept) for request in requests]
    times_us = read_only(times_us)
    grouping = _group_events(times_us, keys, slices, bounds, threads)
    partials = tuple(_aggregate(request, grouping, times_us) for request in requests)
    return SlicedBatch(grouping.keys, grouping.ordinals, partials, dropped)


def _kept(request: Request, rows: npt.NDArray[np.intp]) -> Request:
    value = None if request.value is None else request.value.take(rows)
    by = None if request.by is None else request.by.take(rows)
    return Request(request.kind, value, by)


def _group_events(
    times: Int64s,
    keys: npt.NDArray[np.integer],
    slices: Slices,
    bounds: Bounds | None,
    threads: int,
) -> Grouping:
    if times.size == 0 or not isinstance(slices, PeriodTable) or slices.width_us is None:
        return _group_pairs(keys, slices.slice_of(times), threads)
    width, edge = slices.width_us, int(slices.edges_us[0])
    known = bounds or Bounds(bounds_of(keys), bounds_of(times))
    first, last = ((time - edge) // width for time in known.times)
    box = Box.around(known.keys, (first, last))
    if not box.affordable(keys.size):
        return _group_pairs(keys, slices.slice_of(times), threads)
    numbered = groups_of_times(keys, times, box, edge + first * width, width, threads)
    return _grouping_in(box, *numbered, threads)


def _group_pairs(keys: npt.NDArray[np.integer], ordinals: Int64s, threads: int) -> Grouping:
    if keys.size:
        box = Box.around(bounds_of(keys), bounds_of(ordinals))
        if box.affordable(keys.size):
            return _grouping_in(box, *groups_of_ordinals(keys, ordinals, box, threads), threads)
    groups, group_keys, group_ordinals = groups_of_pairs(keys, ordinals)
    order = _sorted_pairs(group_keys, group_ordinals)
    return Grouping(groups, order.size, order, group_keys[order], group_ordinals[order], threads)


def _grouping_in(box: Box, groups: Groups, used: Bools, threads: int) -> Grouping:
    numbers = np.flatnonzero(used)
    keys, ordinals = np.divmod(numbers, box.slices)
    return Grouping(
        groups, box.size, numbers, keys + box.first_key, ordinals + box.first_slice, threads
    )


def _sorted_pairs(keys: Int64s, ordinals: Int64s) -> npt.NDArray[np.intp]:
    """Order by (key, slice); as one integer, which sorts several times faster, if it fits."""
    if keys.size == 0:
        return np.empty(0, np.intp)
    box = Box.around(bounds_of(keys), bounds_of(ordinals))
    if box.size >= 2**63:
        return np.lexsort((ordinals, keys))
    return np.argsort((keys - box.first_key) * box.slices + (ordinals - box.first_slice))


def _aggregate(request: Request, grouping: Grouping, times: Int64s) -> Partials:
    column, size, threads = request.counted, grouping.size, grouping.threads
    valid = None if column is None else column.valid
    groups = grouping.groups_for(valid)
    if column is None or request.kind == "count":
        counts = grouping.counts_for(valid)
        return Partials(request.kind, operation_of(request.kind, "int64"), counts)
    values = column.values
    if request.kind in OF_DOUBLES:
        values = values.astype(np.float64, copy=False)
    operation = operation_of(request.kind, values.dtype.name)
    if request.kind == "moments" or (request.kind == "sum" and values.dtype.kind == "f"):
        totals = extend_rows(operation, groups, values, size, threads)
    else:
        rows = _rows_of(request, values, times)
        totals = combine_rows(operation, groups, rows, size, threads)
    return _finish(request.kind, operation, totals, grouping, valid)


def _rows_of(request: Request, values: npt.NDArray[Any], times: Int64s) -> Columns:
    """Lift values to partials, as columns."""
    match request.kind:
        case "first" | "last":
            return times, values
        case "min_by" | "max_by":
            carried = request.value.values if request.value else np.arange(times.size)
            return values, times, carried
        case "comoments":
            assert request.by is not None
            others = request.by.values.astype(np.float64, copy=False)
            return pairs_alone(values, others)
        case "shape_moments":
            off = from_itself(values)
            return np.ones(values.size, np.int64), values, off, off, off
        case _:
            return values


def _finish(
    kind: KernelKind,
    operation: Any,
    totals: Columns,
    grouping: Grouping,
    valid: Bools | None,
) -> Partials:
    partials = Partials(kind, operation, totals).take(grouping.numbers)
    if valid is None or kind in COUNTED:
        return partials
    some = grouping.counts_for(valid) > 0
    return partials if some.all() else replace(partials, present=some)
