"""Partials in motion: rows sorted by (key, start), from events to slices and from runs to one.

A flow is what a Slice or a Roll of the plan gives: for every key and slice (or instance) that has
events, one row of partials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weft.engines.local.partials.bags import Bags
from weft.engines.local.partials.columns import Held, concat
from weft.engines.local.partials.lift import lift
from weft.kernels.compiled import unlocked
from weft.kernels.grouping.batches import Bounds, Request, slice_events
from weft.kernels.grouping.dense import bounds_of
from weft.kernels.grouping.edges import PeriodTable
from weft.kernels.grouping.known_keys import fold_known
from weft.kernels.incremental.ranges import ranges_by
from weft.kernels.operations import COUNT, MAX_INT64
from weft.kernels.partials import Partials, operation_of
from weft.kernels.ranges.van_herk import combines_within
from weft.techniques import INCREMENTAL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from weft.aggregates import Partial
    from weft.engines.local.windows.events import Events, Timed
    from weft.kernels.grouping.known_keys import Folded, KnownKeys
    from weft.kernels.grouping.slices import Slices
    from weft.kernels.partials import Int64s

Keyed = npt.NDArray[np.integer]
_IN_ONE_PASS = ("min", "max", "bool_and", "bool_or")
_NAMES = {"f": "float64", "i": "int64"}
_MOST_IN_ONE_PASS = 2  # partials, each with a pass of its own; for more, numbering groups pays


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Rows of partials, sorted by (key, start); slices have no ends, instances do."""

    keys: Keyed
    starts_us: Int64s
    ends_us: Int64s | None
    partials: Mapping[Partial, Held]
    combined: int = 0  # rows that were combined with another to get here

    def __len__(self) -> int:
        return self.keys.size

    @property
    def nbytes(self) -> int:
        """The memory of keys, times and partials."""
        held = sum(partials.nbytes for partials in self.partials.values())
        return self.keys.nbytes + self.starts_us.nbytes + held

    def take(self, rows: npt.NDArray[Any]) -> Flow:
        """Select rows."""
        ends = None if self.ends_us is None else self.ends_us[rows]
        partials = {p: held.take(rows) for p, held in self.partials.items()}
        return Flow(self.keys[rows], self.starts_us[rows], ends, partials, self.combined)

    def only(self, wanted: Collection[Partial]) -> Flow:
        """Leave out the partials that nobody wants."""
        return replace(self, partials={p: h for p, h in self.partials.items() if p in wanted})

    @property
    def sets(self) -> dict[Partial, Bags]:
        """The partials that are sets of values: how often one appears does not matter."""
        return {
            partial: held
            for partial, held in self.partials.items()
            if isinstance(held, Bags) and partial.laws().idempotent
        }

    def with_latest_only(self, before_us: int) -> Flow:
        """Keep of sets, in slices before a time, only each value's latest appearance.

        Instances that are open at that time and read an earlier slice read the latest one too, so
        many nested windows need one entry per value and not one per slice (Patroumpas & Sellis,
        "Subsuming Multiple Sliding Windows for Shared Stream Computation").
        """
        behind = self.starts_us < before_us
        thinned = {p: bags.latest(self.keys, behind) for p, bags in self.sets.items()}
        return Flow(self.keys, self.starts_us, self.ends_us, {**self.partials, **thinned})

    def over_ranges(
        self,
        starts: Int64s,
        ends: Int64s,
        starts_us: Int64s,
        ends_us: Int64s | None,
        wanted: Sequence[Partial],
        technique: str | None = None,
    ) -> Flow:
        """Combine neighbouring rows of one key into rows with these bounds.

        Overlapping ones are put together by the technique that is named.
        """
        if technique is None and _are_single(starts, ends, len(self)):
            return Flow(self.keys, starts_us, ends_us, {p: self.partials[p] for p in wanted})
        partials = {p: self.partials[p].over_ranges(starts, ends, technique) for p in wanted}
        combined = combines_of(starts, ends, technique)
        return Flow(self.keys[starts], starts_us, ends_us, partials, combined)


def _are_single(starts: Int64s, ends: Int64s, rows: int) -> bool:
    """Tell whether the ranges are all rows, each by itself, as those of a tumbling window are."""
    if starts.size != rows or not rows or starts[0] or ends[-1] != rows:
        return False
    return bool(np.array_equal(ends, starts + 1) and np.array_equal(starts[1:], ends[:-1]))


def runs_of_equals(*columns: npt.NDArray[Any]) -> tuple[Int64s, Int64s]:
    """Find the runs of neighbouring rows that are equal in all columns.

    >>> [bounds.tolist() for bounds in runs_of_equals(np.array([1, 1, 2]), np.array([0, 0, 0]))]
    [[0, 2], [2, 3]]
    """
    rows = columns[0].size
    if not rows:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    differs = np.zeros(rows - 1, np.bool_)
    for column in columns:
        differs |= column[1:] != column[:-1]
    starts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(differs) + 1])
    return starts, np.append(starts[1:], rows)


def combines_of(starts: Int64s, ends: Int64s, technique: str | None = None) -> int:
    """Count the combines that answer ranges of rows, by a technique, or the fewest.

    >>> combines_of(np.array([0, 1]), np.array([3, 3]))
    3
    >>> combines_of(np.arange(900), np.arange(900) + 100)
    2898
    """
    if not starts.size:
        return 0
    if technique in INCREMENTAL:
        ones = np.ones(int(ends.max()), np.int64)
        counted = MAX_INT64 if technique == "slick_deque" else COUNT
        return ranges_by(technique, ones, starts, ends, counted)[1]
    one_by_one, first, last = _sizes(starts, ends)
    span, longest = last - first, int((ends - starts).max())
    match technique:
        case "one_by_one" | "fan_out":
            return one_by_one
        case "van_herk":
            return combines_within(starts, ends)
        case "prefix_sums":
            return span + starts.size
        case "sparse_table" | "disjoint_sparse_table":
            return span * max(longest - 1, 0).bit_length() + starts.size
        case _:
            return min(one_by_one, 2 * span + starts.size)


@unlocked
def _sizes(starts: Int64s, ends: Int64s) -> tuple[int, int, int]:
    combines, first, last = np.int64(0), starts[0], ends[0]
    for i in range(starts.size):
        combines += ends[i] - starts[i] - 1
        first, last = min(first, starts[i]), max(last, ends[i])
    return int(combines), int(first), int(last)


def slice_batch(events: Events, slices: Slices, partials: Sequence[Partial], threads: int) -> Flow:
    """Fold a batch of events into one row per (key, slice), for all partials together."""
    lifted = {p: lift(p, events.timed.arguments(p), events.times_us) for p in partials}
    requests = [request for one in lifted.values() for request in one.requests]
    times, keys = events.times_us, events.keys
    asked = requests or [Request("count_rows")]
    bounds = (
        None
        if not len(events)
        else Bounds(events.key_bounds or bounds_of(keys), events.timed.bounds_us)
    )
    batch = slice_events(times, keys, slices, asked, bounds=bounds, threads=threads)
    found: dict[Partial, Held] = {}
    at = 0
    by_rows = {p: one.rows for p, one in lifted.items() if one.rows is not None}
    order, starts, ends = _grouped(events, slices) if by_rows else (None, None, None)
    for partial, one in lifted.items():
        if one.rows is None:
            found[partial] = one.finish(batch.partials[at : at + len(one.requests)])
            at += len(one.requests)
        else:
            assert order is not None
            assert starts is not None
            assert ends is not None
            found[partial] = one.rows.take(order).over_ranges(starts, ends).settled()
    return Flow(batch.keys, slices.bounds(batch.ordinals)[0], None, found)


def slice_known(
    timed: Timed, keys: KnownKeys, slices: Slices, partials: Sequence[Partial]
) -> Flow | None:
    """Do as `slice_batch` in one pass over events whose keys have codes; None where it cannot."""
    if (
        len(partials) > _MOST_IN_ONE_PASS
        or any(partial.kind not in _IN_ONE_PASS for partial in partials)
        or not isinstance(slices, PeriodTable)
        or slices.width_us is None
    ):
        return None
    found: dict[Partial, Held] = {}
    rows: Folded | None = None
    for partial in partials:
        lifted = lift(partial, timed.arguments(partial), timed.times_us)
        (request,) = lifted.requests
        column = request.counted
        if column is None or column.valid is not None:
            return None
        operation = operation_of(request.kind, _NAMES[column.values.dtype.kind])
        rows = fold_known(keys, timed.times_us, timed.bounds_us, slices, column, operation)
        if rows is None:
            return None
        found[partial] = lifted.finish((Partials(request.kind, operation, rows.totals),))
    return None if rows is None else Flow(rows.keys, rows.starts_us, None, found)


def _grouped(events: Events, slices: Slices) -> tuple[npt.NDArray[np.intp], Int64s, Int64s]:
    """Order events by (key, time), ties by arrival, and find the runs that are slices."""
    order = np.lexsort((events.times_us, events.keys))
    ordinals = slices.slice_of(events.times_us)
    return order, *runs_of_equals(events.keys[order], ordinals[order])


def merged(runs: Sequence[Flow]) -> Flow:
    """Bring runs of slices together: equal (key, slice) rows become one, older runs first.

    >>> empty = Flow(np.array([1]), np.array([5]), None, {})
    >>> both = merged([empty, Flow(np.array([0, 1]), np.array([5, 5]), None, {})])
    >>> both.keys.tolist(), both.starts_us.tolist()
    ([0, 1], [5, 5])
    """
    runs = [run for run in runs if len(run)] or runs[:1]
    while len(runs) > 1:  # neighbours together: a row is merged a logarithmic number of times
        pairs = [runs[at : at + 2] for at in range(0, len(runs), 2)]
        runs = [_merged_pair(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return runs[0]


def _merged_pair(older: Flow, newer: Flow) -> Flow:
    order = np.empty(len(older) + len(newer), np.int64)
    starts = np.empty(order.size + 1, np.int64)
    groups = _interleave(older.keys, older.starts_us, newer.keys, newer.starts_us, order, starts)
    firsts = starts[:groups]
    partials: dict[Partial, Held] = {}
    for partial, held in older.partials.items():
        rows = concat([held, newer.partials[partial]]).take(order)
        if groups < order.size:
            rows = rows.over_ranges(firsts, starts[1 : groups + 1]).settled()
        partials[partial] = rows
    chosen = order[firsts]
    keys = np.concatenate([older.keys, newer.keys])[chosen]
    return Flow(keys, np.concatenate([older.starts_us, newer.starts_us])[chosen], None, partials)


@unlocked
def _interleave(
    keys: Keyed, times: Int64s, new_keys: Keyed, new_times: Int64s, order: Int64s, starts: Int64s
) -> int:
    """Order the rows of two sorted runs, the first one's first where equal; count the groups.

    Writes where in `order` each group of equal rows starts, and after the last one where it ends.
    """
    groups, a, b = 0, 0, 0
    key, time = keys[0], times[0]
    for row in range(order.size):
        older = b == new_keys.size or (
            a < keys.size
            and (keys[a] < new_keys[b] or (keys[a] == new_keys[b] and times[a] <= new_times[b]))
        )
        if older:
            next_key, next_time = keys[a], times[a]
            order[row] = a
            a += 1
        else:
            next_key, next_time = new_keys[b], new_times[b]
            order[row] = keys.size + b
            b += 1
        if row == 0 or next_key != key or next_time != time:
            starts[groups] = row
            groups += 1
            key, time = next_key, next_time
    starts[groups] = order.size
    return groups


def compacted(runs: Sequence[Flow]) -> list[Flow]:
    """Merge the newest runs as long as they are not much shorter than the ones before them.

    Few runs stay, and a row is merged a logarithmic number of times until its window closes.

    >>> rows = [Flow(np.array([at]), np.array([5]), None, {}) for at in range(6)]
    >>> kept: list[Flow] = []
    >>> for row in rows:
    ...     kept = compacted([*kept, row])
    >>> [len(run) for run in kept]
    [5, 1]
    """
    kept = list(runs)
    while len(kept) > 1 and len(kept[-2]) <= 2 * len(kept[-1]):
        newest = kept.pop()
        kept[-1] = merged([kept[-1], newest])
    return kept
