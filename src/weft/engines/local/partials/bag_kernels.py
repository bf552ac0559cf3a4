"""Multisets over sliding ranges: how many distinct items, which item at a rank, which registers.

Items are small integers with counts, in rows; a range of rows is the sum of their multisets. Each
kernel keeps the counts of the current range, adds what enters and takes away what leaves, so that
ranges which only move on cost every item twice, whatever their overlap.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.compiled import unlocked

Int64s = npt.NDArray[np.int64]


@unlocked
def moves(at: int, until: int, start: int, end: int) -> bool:
    """Tell whether a range is reached from `[at, until)` by moving on, with something in common."""
    return at <= start < until <= end


@unlocked
def distinct_counts(
    offsets: Int64s, items: Int64s, counts: Int64s, starts: Int64s, ends: Int64s, size: int
) -> Int64s:
    """Count the distinct items of each range of rows; items are below `size`."""
    out = np.zeros(starts.size, np.int64)
    seen = np.zeros(size, np.int64)
    at, until, found = 0, 0, 0
    for i in range(starts.size):
        start, end = starts[i], ends[i]
        if not moves(at, until, start, end):
            for p in range(offsets[at], offsets[until]):
                seen[items[p]] = 0
            at, until, found = start, start, 0
        for p in range(offsets[until], offsets[end]):
            if seen[items[p]] == 0:
                found += 1
            seen[items[p]] += counts[p]
        for p in range(offsets[at], offsets[start]):
            seen[items[p]] -= counts[p]
            if seen[items[p]] == 0:
                found -= 1
        at, until = start, end
        out[i] = found
    return out


@unlocked
def mark_latest(
    offsets: Int64s,
    items: Int64s,
    keys: npt.NDArray[np.integer],
    behind: npt.NDArray[np.bool_],
    seen: Int64s,
    latest: npt.NDArray[np.bool_],
) -> None:
    """Mark, among the rows behind, each key's latest appearance of an item; all of other rows.

    Rows are sorted by (key, time). `seen` has a place per item and is below every key.
    """
    for row in range(keys.size - 1, -1, -1):
        for p in range(offsets[row], offsets[row + 1]):
            latest[p] = not behind[row] or seen[items[p]] != keys[row]
            if behind[row]:
                seen[items[p]] = keys[row]


@unlocked
def _add(tree: Int64s, item: int, count: int) -> None:
    """Add to a Fenwick tree of counts, whose size is a power of two plus one."""
    position = item + 1
    while position < tree.size:
        tree[position] += count
        position += position & -position


@unlocked
def _at_rank(tree: Int64s, rank: np.int64) -> int:
    """Return the item at a rank, from 0, in the order of items."""
    position, step = 0, tree.size - 1
    while step > 0:
        ahead = position + step
        if ahead < tree.size and tree[ahead] <= rank:
            rank -= tree[ahead]
            position = ahead
        step >>= 1
    return position


@unlocked
def items_at_ranks(
    offsets: Int64s,
    items: Int64s,
    counts: Int64s,
    starts: Int64s,
    ends: Int64s,
    tree: Int64s,
    share: float,
    low: Int64s,
    high: Int64s,
    rests: npt.NDArray[np.float64],
) -> None:
    """Find the items around rank `share * (n - 1)` of each range, and how far between them it is.

    `tree` is all zero, of a power of two plus one that is larger than every item. An empty range
    leaves -1.
    """
    at, until, total = 0, 0, np.int64(0)
    for i in range(starts.size):
        start, end = starts[i], ends[i]
        if not moves(at, until, start, end):
            for p in range(offsets[at], offsets[until]):
                _add(tree, items[p], -counts[p])
            at, until, total = start, start, np.int64(0)
        for p in range(offsets[until], offsets[end]):
            _add(tree, items[p], counts[p])
            total += counts[p]
        for p in range(offsets[at], offsets[start]):
            _add(tree, items[p], -counts[p])
            total -= counts[p]
        at, until = start, end
        if total == 0:
            low[i] = high[i] = -1
            continue
        place = share * (total - 1)
        below = np.int64(np.floor(place))
        low[i] = _at_rank(tree, below)
        above = np.int64(np.ceil(place))
        high[i] = low[i] if above == below else _at_rank(tree, above)
        rests[i] = place - below


RANKS = 64  # of a register: an item is register * RANKS + rank


@unlocked
def register_histograms(
    offsets: Int64s,
    items: Int64s,
    counts: Int64s,
    starts: Int64s,
    ends: Int64s,
    registers: int,
    out: npt.NDArray[np.int32],
) -> None:
    """Count for each range how many registers have each greatest rank; `out` is [range, rank]."""
    seen = np.zeros(registers * RANKS, np.int64)
    tops = np.zeros(registers, np.int64)
    histogram = np.zeros(RANKS, np.int64)
    histogram[0] = registers
    at, until = 0, 0
    for i in range(starts.size):
        start, end = starts[i], ends[i]
        if not moves(at, until, start, end):
            for p in range(offsets[at], offsets[until]):
                seen[items[p]] = 0
                register = items[p] // RANKS
                histogram[tops[register]] -= 1
                histogram[0] += 1
                tops[register] = 0
            at, until = start, start
        for p in range(offsets[until], offsets[end]):
            seen[items[p]] += counts[p]
            register, rank = items[p] // RANKS, items[p] % RANKS
            if rank > tops[register]:
                histogram[tops[register]] -= 1
                histogram[rank] += 1
                tops[register] = rank
        for p in range(offsets[at], offsets[start]):
            seen[items[p]] -= counts[p]
            register, rank = items[p] // RANKS, items[p] % RANKS
            if seen[items[p]] == 0 and rank == tops[register]:
                histogram[rank] -= 1
                while rank > 0 and seen[register * RANKS + rank] == 0:
                    rank -= 1
                histogram[rank] += 1
                tops[register] = rank
        at, until = start, end
        for rank in range(RANKS):
            out[i, rank] = histogram[rank]


@unlocked
def merged_sizes(offsets: Int64s, items: Int64s, starts: Int64s, ends: Int64s, size: int) -> Int64s:
    """Count the distinct items of each range without any memory of the range before."""
    out = np.zeros(starts.size, np.int64)
    last = np.full(size, -1, np.int64)
    for i in range(starts.size):
        for p in range(offsets[starts[i]], offsets[ends[i]]):
            if last[items[p]] != i:
                last[items[p]] = i
                out[i] += 1
    return out


@unlocked
def merge_rows(
    offsets: Int64s,
    items: Int64s,
    counts: Int64s,
    starts: Int64s,
    ends: Int64s,
    places: Int64s,
    new_offsets: Int64s,
    new_items: Int64s,
    new_counts: Int64s,
) -> None:
    """Write the multiset of each range, items ascending; `places` is scratch, all -1."""
    for i in range(starts.size):
        first = new_offsets[i]
        stop = first
        for p in range(offsets[starts[i]], offsets[ends[i]]):
            if places[items[p]] < first:
                places[items[p]] = stop
                new_items[stop] = items[p]
                new_counts[stop] = 0
                stop += 1
            new_counts[places[items[p]]] += counts[p]
        order = np.argsort(new_items[first:stop])
        new_items[first:stop] = new_items[first:stop][order]
        new_counts[first:stop] = new_counts[first:stop][order]
        for p in range(first, stop):
            places[new_items[p]] = -1


@unlocked
def quantile_buckets(values: npt.NDArray[np.float64], log_gamma: float, out: Int64s) -> None:
    """Place doubles in the buckets of `weft.aggregates.sketches`, as sign * 2**32 + exponent."""
    for i in range(values.size):
        value = values[i]
        if np.isnan(value):
            out[i] = 3 << 32
        elif np.isinf(value):
            out[i] = (2 << 32) if value > 0 else -(2 << 32)
        elif value == 0:
            out[i] = 0
        else:
            exponent = np.int64(np.ceil(np.log(abs(value)) / log_gamma))
            out[i] = (1 << 32) + exponent if value > 0 else -(1 << 32) - exponent


@unlocked
def text_hashes(
    offsets: npt.NDArray[np.integer], text: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint64]:
    """Hash texts with FNV-1a, 64 bits."""
    out = np.empty(offsets.size - 1, np.uint64)
    for i in range(out.size):
        h = np.uint64(0xCBF29CE484222325)
        for p in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(text[p])) * np.uint64(0x100000001B3)
        out[i] = h
    return out
