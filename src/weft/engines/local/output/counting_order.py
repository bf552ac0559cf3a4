"""Rows of periodic windows put in the order of results by counting, with no sort and no index.

The instances of one window come key by key. How many keys each instance has tells where its rows
begin in the result, and going through the keys in their order tells the place of every row. Rows
are then written where they belong, and what is the same for all rows of an instance is repeated.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.values.arrow import of_numbers, pc
from weft.kernels.arrow_columns import values_of
from weft.kernels.compiled import unlocked
from weft.kernels.parallel import over_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.output.closed import Closed
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Int64s

Int32s = npt.NDArray[np.int32]
Codes = npt.NDArray[np.integer]
MOST_BUCKETS = 4  # for each row
_MOST_ROWS = 2**31 - 1
_NUMBERS = np.dtype(np.int64)  # as which values are written to their places


class Counted(NamedTuple):
    """The instances of one window that have rows: their common length, and how many rows each."""

    first_end_us: int
    grain_us: int  # of which all distances between ends are multiples
    range_us: int
    rows: Int64s  # by the distance from the first end, in grains


class Placement(NamedTuple):
    """Where the rows of several windows go, and what the runs of one instance are made of."""

    targets: list[Int32s]  # of each window's rows
    places: Int64s  # of the window of each run, in its query
    starts_us: Int64s
    ends_us: Int64s
    stops: Int32s  # where each run stops

    @property
    def rows(self) -> int:
        """The number of rows of all windows."""
        return int(self.stops[-1])

    def repeated(self, of_runs: Array) -> Array:
        """Spread what there is one of for each run over its rows."""
        ends: Array = pa.array(self.stops)
        return pc.run_end_decode(pa.RunEndEncodedArray.from_arrays(ends, of_runs))

    def written(self, parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """Write the values of each window's rows where they belong."""
        out = np.empty(self.rows, parts[0].dtype)
        pairs = zip(parts, self.targets, strict=True)
        over_parts(lambda pair: _write(*pair, out), pairs, self.rows)
        return out

    def order(self) -> Int64s:
        """Return the rows in order, for values that cannot be written one by one."""
        sizes = [targets.size for targets in self.targets]
        stops = np.cumsum(sizes).tolist()
        pairs = zip(sizes, stops, strict=True)
        order: Int64s = self.written([np.arange(stop - size, stop) for size, stop in pairs])
        return order

    def in_order(self, parts: Sequence[Array]) -> Array | None:
        """Put numbers of 64 bits in order, none of them NULL; None where they are something else.

        >>> placement = Placement([np.array([1, 0], np.int32)], *[np.array([0])] * 3, np.array([2]))
        >>> placement.in_order([pa.array([2.5, 1.5])]).to_pylist()
        [1.5, 2.5]
        >>> placement.in_order([pa.array(["b", "a"])])
        """
        (type, *others) = {part.type for part in parts}
        if others or not pa.types.is_primitive(type) or type.bit_width != 8 * _NUMBERS.itemsize:
            return None
        if any(part.null_count for part in parts):
            return None
        return of_numbers(self.written([values_of(part, _NUMBERS) for part in parts]), type)


def placed(closed: Sequence[Closed], ranks: Int64s) -> Placement | None:
    """Find the places of rows; None unless each part is one periodic window's, key by key.

    `ranks` has the place of each key's code in the order of keys.
    """
    rows = sum(part.keys.size for part in closed)
    windows = np.array([part.places[0] for part in closed])
    if rows > _MOST_ROWS or np.unique(windows).size < windows.size:
        return None
    counted = over_parts(_counted, closed, rows)
    instances = [one for one in counted if one is not None]
    if len(instances) < len(closed):
        return None
    held = [np.flatnonzero(one.rows) for one in instances]
    ends_us = np.concatenate(
        [
            one.first_end_us + steps * one.grain_us
            for one, steps in zip(instances, held, strict=True)
        ]
    )
    lengths = np.array([one.range_us for one in instances])
    counts = np.concatenate([one.rows[steps] for one, steps in zip(instances, held, strict=True)])
    own = np.repeat(np.arange(len(closed)), [steps.size for steps in held])
    order = np.lexsort((windows[own], ends_us))
    stops = np.cumsum(counts[order])
    begins = np.empty_like(stops)
    begins[order] = stops - counts[order]
    by_rank = np.empty(ranks.size, np.int64)
    by_rank[ranks] = np.arange(ranks.size)

    def aimed(at: int) -> Int32s:
        one, part = instances[at], closed[at]
        next_row = np.zeros(one.rows.size, np.int64)
        next_row[held[at]] = begins[own == at]
        targets = np.empty(part.keys.size, np.int32)
        _aim(part.keys, part.ends_us, one.first_end_us, one.grain_us, by_rank, next_row, targets)
        return targets

    targets = over_parts(aimed, range(len(closed)), rows)
    ends_us, own = ends_us[order], own[order]
    return Placement(targets, windows[own], ends_us - lengths[own], ends_us, stops.astype(np.int32))


def _counted(part: Closed) -> Counted | None:
    """Count the rows of each instance, if the rows are those of one periodic window."""
    first, last, grain = _survey(part.keys, part.places, part.starts_us, part.ends_us)
    if grain == 0 or (last - first) // grain >= MOST_BUCKETS * part.keys.size:
        return None
    rows = np.zeros((last - first) // grain + 1, np.int64)
    _count(part.ends_us, first, grain, rows)
    return Counted(first, grain, int(part.ends_us[0] - part.starts_us[0]), rows)


@unlocked
def _survey(
    keys: Codes, places: Int64s, starts_us: Int64s, ends_us: Int64s
) -> tuple[int, int, int]:
    """Return the first and last end, and what all distances of ends are multiples of.

    That is 0 where the rows do not come key by key, or are of several windows or lengths.
    """
    first, last, length = ends_us[0], ends_us[0], ends_us[0] - starts_us[0]
    grain, step = np.int64(0), np.int64(0)
    for i in range(1, keys.size):
        same_key = keys[i] == keys[i - 1]
        if keys[i] < keys[i - 1] or (same_key and ends_us[i] <= ends_us[i - 1]):
            return 0, 0, 0
        if places[i] != places[0] or ends_us[i] - starts_us[i] != length:
            return 0, 0, 0
        first, last = min(first, ends_us[i]), max(last, ends_us[i])
        distance = abs(ends_us[i] - ends_us[i - 1])
        if distance != step:  # mostly the same few distances, whose divisor is known
            step = distance
            grain = np.int64(gcd(distance, grain))
    return int(first), int(last), max(int(grain), 1)


@unlocked
def _count(ends_us: Int64s, first: int, grain: int, rows: Int64s) -> None:
    """Count the rows of each end."""
    before, at = ends_us[0], (ends_us[0] - first) // grain
    for i in range(ends_us.size):
        distance = ends_us[i] - before
        # The next end follows mostly; then there is nothing to divide.
        at = at + 1 if distance == grain else (ends_us[i] - first) // grain
        before = ends_us[i]
        rows[at] += 1


@unlocked
def _aim(
    keys: Codes,
    ends_us: Int64s,
    first: int,
    grain: int,
    by_rank: Int64s,
    next_row: Int64s,
    targets: Int32s,
) -> None:
    """Give each row the next place of its instance, going through the keys in their order."""
    begins = np.full(by_rank.size, -1, np.int64)
    for i in range(keys.size - 1, -1, -1):
        begins[keys[i]] = i
    for rank in range(by_rank.size):
        key = by_rank[rank]
        i = begins[key]
        if i < 0:
            continue
        at, before = (ends_us[i] - first) // grain, ends_us[i]
        while i < keys.size and keys[i] == key:
            at = at + 1 if ends_us[i] - before == grain else (ends_us[i] - first) // grain
            before = ends_us[i]
            targets[i] = next_row[at]
            next_row[at] += 1
            i += 1


@unlocked
def _write(values: npt.NDArray[Any], targets: Int32s, out: npt.NDArray[Any]) -> None:
    for i in range(values.size):
        out[targets[i]] = values[i]
