"""Runs of shared slicing over records, as Carbone et al., "Cutty" compare them.

All techniques but the naive one differ in two things only: where records are cut into slices, and
whether the store of slices is a ring that is folded (lazy) or a tree (eager). A window begins at a
cut, and it ends at a record: at a cut too, or with the slice that is still growing.

    cutty        cuts at begins             eager or lazy store
    pairs        cuts at begins and ends    lazy store
    pairs+       cuts at begins and ends    eager store
    record       every record is a slice    eager store
    naive        each window folds its own records
"""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numba import njit

from weft.kernels.operations import COUNT, counting
from weft.kernels.registry import IMPLEMENTATIONS, technique

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Int64s = npt.NDArray[np.int64]

Cuts = Literal["begins", "begins and ends", "records"]
LIFT, UPDATE, MERGE = 0, 1, 2


class Windows(NamedTuple):
    """The windows of all queries in the order of their ends: records `[begin, end)`."""

    begins: Int64s
    ends: Int64s
    buffered: int  # records that all queries keep, if each keeps its own

    @classmethod
    def of(cls, begins: Int64s, ends: Int64s, buffered: int) -> Windows:
        """Bring windows into the order of their ends."""
        order = np.lexsort((begins, ends))
        return cls(begins[order], ends[order], buffered)


class Technique(NamedTuple):
    """A way to run the windows: where it cuts, and the store of slices it keeps."""

    cuts: Cuts
    store: Literal["naive", "flat_fat"]


TECHNIQUES = {
    "cutty": Technique("begins", "flat_fat"),
    "cutty, lazy": Technique("begins", "naive"),
    "pairs+": Technique("begins and ends", "flat_fat"),
    "pairs": Technique("begins and ends", "naive"),
    "record": Technique("records", "flat_fat"),
}
NAIVE = "naive"


class Counts(NamedTuple):
    """What a run did: reduce calls by their cause, partials stored at once, seconds, answers."""

    lift: int  # records into the slice that grows
    update: int  # slices into the store, and out of it
    merge: int  # slices into windows
    stored: int
    seconds: float
    answers: Int64s


class _Prepared(NamedTuple):
    cuts: Int64s
    firsts: Int64s  # the ordinal of the slice each window begins with
    needed: Int64s  # after each window, the oldest slice that a later one begins with
    most: int  # slices stored at once


def _prepare(windows: Windows, records: int, cuts_at: Cuts) -> _Prepared:
    match cuts_at:
        case "begins":
            cuts = np.unique(windows.begins)
        case "begins and ends":
            both = np.concatenate([windows.begins, windows.ends])
            cuts = np.unique(both[both < records])
        case "records":
            cuts = np.arange(records)
    firsts = np.searchsorted(cuts, windows.begins)
    oldest = np.minimum.accumulate(firsts[::-1])[::-1]
    needed = np.append(oldest[1:], cuts.size)
    held = np.searchsorted(cuts, windows.ends, side="right") - oldest
    return _Prepared(cuts, firsts, needed, int(held.max()))


@cache
def _loop(store: str) -> Callable[..., None]:
    module = IMPLEMENTATIONS[store]
    insert, evict, query_range = module.insert, module.evict, module.query_range

    @njit
    def loop(
        op: Any,
        state: Any,
        values: Int64s,
        cuts: Int64s,
        firsts: Int64s,
        ends: Int64s,
        needed: Int64s,
        calls: Int64s,
        counts: Int64s,
        out: Int64s,
    ) -> None:
        partial, cut, window, front = op.identity, 0, 0, 0
        for i in range(values.size + 1):
            before = calls[0]
            if cut < cuts.size and cuts[cut] == i:
                if cut:
                    insert(op, state, 0, partial)
                partial = op.identity
                cut += 1
            counts[UPDATE] += calls[0] - before
            while window < ends.size and ends[window] == i:
                before = calls[0]
                whole = query_range(op, state, 0, firsts[window] - front, cut - 1 - front)
                out[window] = op.combine(whole, partial)
                counts[MERGE] += calls[0] - before
                before = calls[0]
                while front < min(needed[window], cut - 1):
                    evict(op, state, 0)
                    front += 1
                counts[UPDATE] += calls[0] - before
                window += 1
            if i < values.size and cut:
                before = calls[0]
                partial = op.combine(partial, values[i])
                counts[LIFT] += calls[0] - before

    compiled: Callable[..., None] = loop
    return compiled


@njit
def _fold_each(op: Any, values: Int64s, begins: Int64s, ends: Int64s, out: Int64s) -> None:
    for window in range(begins.size):
        total = op.identity
        for i in range(begins[window], ends[window]):
            total = op.combine(total, values[i])
        out[window] = total


def run(name: str, values: Int64s, windows: Windows) -> Counts:
    """Run a technique twice: once with combines counted, once timed."""
    counted, calls = counting(COUNT)
    out = np.empty(windows.ends.size, np.int64)
    if name == NAIVE:
        _fold_each(counted.algebra, values, windows.begins, windows.ends, out)
        seconds = _seconds(
            lambda: _fold_each(COUNT.algebra, values, windows.begins, windows.ends, out)
        )
        return Counts(0, 0, int(calls[0]), windows.buffered, seconds, out)
    cuts_at, store = TECHNIQUES[name]
    ready = _prepare(windows, values.size, cuts_at)
    counts = np.zeros(3, np.int64)

    def once(operation: Any, calls: Int64s, counts: Int64s) -> None:
        state = technique(store, operation).new(ready.most + 1)
        given = (values, ready.cuts, ready.firsts, windows.ends, ready.needed)
        _loop(store)(operation.algebra, state, *given, calls, counts, out)

    once(counted, calls, counts)
    seconds = _seconds(lambda: once(COUNT, np.zeros(1, np.int64), np.zeros(3, np.int64)))
    # A tree has a cell for every pair of cells below it.
    stored = ready.most * (2 if store == "flat_fat" else 1)
    lift, update, merge = counts.tolist()
    return Counts(lift, update, merge, stored, seconds, out)


def _seconds(call: Callable[[], None]) -> float:
    """Time a call that was made before, so that it is compiled; the less of two."""
    call()
    took = []
    for _ in range(2):
        start = perf_counter()
        call()
        took.append(perf_counter() - start)
    return min(took)


def sums_of(values: Int64s, windows: Windows) -> Int64s:
    """Answer all windows from prefix sums."""
    prefixes = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    sums: Int64s = prefixes[windows.ends] - prefixes[windows.begins]
    return sums


def periodic_windows(queries: int, records: int, scale: int) -> Windows:
    """Draw counting windows: ranges of 20,000 to 80,000 and slides of 1,000 to 20,000, in tens.

    `scale` divides all of them. Windows that begin before the first record are left out.
    """
    rng = np.random.default_rng(queries)
    ranges = rng.integers(2_000, 8_001, queries) * 10 // scale
    slides = rng.integers(100, 2_001, queries) * 10 // scale
    begins = [np.arange(0, records - r + 1, s) for r, s in zip(ranges, slides, strict=True)]
    ends = [b + r for b, r in zip(begins, ranges, strict=True)]
    return Windows.of(np.concatenate(begins), np.concatenate(ends), int(ranges.sum()))


def session_windows(queries: int, records: int, scale: int) -> Windows:
    """Draw sessions: a sensor turns after a random number of records, its mean its own.

    Means are spread evenly by order of magnitude, from 200 to 20,000 records.
    """
    rng = np.random.default_rng(queries)
    begins, ends, buffered = [], [], 0
    for mean in 200 * 100 ** rng.random(queries) / scale:
        turns = np.cumsum(rng.geometric(1 / mean, int(2 * records / mean) + 50))
        cuts = np.concatenate([np.zeros(1, np.int64), turns[turns < records], [records]])
        begins.append(cuts[:-1])
        ends.append(cuts[1:])
        buffered += int(np.diff(cuts).max())
    return Windows.of(np.concatenate(begins), np.concatenate(ends), buffered)
