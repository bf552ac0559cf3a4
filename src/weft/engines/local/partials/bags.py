"""Bags: multisets of values per row, for distinct counts, percentiles and sketches.

A row is a run of (item, count); an item is a place in the list of all values. Ranges are kept as
they are until somebody reads them: a count or a rank over sliding ranges costs every item twice,
however much the ranges overlap, and only a bag that feeds another window is written out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.engines.local.partials import bag_kernels
from weft.engines.local.values.coding import Coding, Listed, united

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.engines.local.partials.columns import Rows
    from weft.engines.local.values.arrow import Array
    from weft.kernels.partials import Bools, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Bags:
    """Multisets in rows, or in ranges of such rows."""

    offsets: Int64s  # where the items of each row begin, and the end
    items: Int64s
    counts: Int64s
    size: int  # items are below this
    coding: Coding | None  # what items stand for; None where they are codes themselves
    ranges: tuple[Int64s, Int64s] | None = None

    @classmethod
    def of_values(
        cls, items: Int64s, valid: Bools | None, size: int, coding: Coding | None
    ) -> Bags:
        """Make one bag per event: its item, or nothing.

        >>> bags = Bags.of_values(np.array([1, 0, 1]), None, 2, None)
        >>> bags.over_ranges(np.array([0]), np.array([3])).distinct_counts().tolist()
        [2]
        """
        if valid is None:
            offsets = np.arange(items.size + 1, dtype=np.int64)
        else:
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(valid, dtype=np.int64)])
            items = items[valid]
        return cls(offsets, items, np.ones(items.size, np.int64), size, coding)

    def __len__(self) -> int:
        return self.offsets.size - 1 if self.ranges is None else self.ranges[0].size

    @property
    def nbytes(self) -> int:
        """The memory of items and counts, and of the list of values."""
        values: int = self.coding.values.nbytes if isinstance(self.coding, Listed) else 0
        return self.offsets.nbytes + self.items.nbytes + self.counts.nbytes + values

    def take(self, rows: Rows) -> Bags:
        """Select rows; of ranges, nothing is copied but their bounds."""
        starts, ends = self.bounds()
        if self.ranges is not None:
            return self._over((starts[rows], ends[rows]))
        firsts = self.offsets[starts[rows]]
        lengths = self.offsets[ends[rows]] - firsts
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(firsts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Bags(offsets, self.items[places], self.counts[places], self.size, self.coding)

    def over_ranges(self, starts: Int64s, ends: Int64s, technique: str | None = None) -> Bags:
        """Remember the ranges."""
        rows = self.settled()
        return rows._over((starts, ends))

    def _over(self, ranges: tuple[Int64s, Int64s]) -> Bags:
        return Bags(self.offsets, self.items, self.counts, self.size, self.coding, ranges)

    def bounds(self) -> tuple[Int64s, Int64s]:
        """Return the ranges; without any, each row is one."""
        if self.ranges is not None:
            return self.ranges
        rows = np.arange(len(self), dtype=np.int64)
        return rows, rows + 1

    def settled(self) -> Bags:
        """Write the ranges out as rows of their own, equal items put together."""
        if self.ranges is None:
            return self
        starts, ends = self.ranges
        rows = (self.offsets, self.items)
        sizes = bag_kernels.merged_sizes(*rows, starts, ends, self.size)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        items, counts = (np.empty(int(offsets[-1]), np.int64) for _ in range(2))
        places = np.full(self.size, -1, np.int64)
        bag_kernels.merge_rows(*rows, self.counts, starts, ends, places, offsets, items, counts)
        return Bags(offsets, items, counts, self.size, self.coding)

    def joined(self, others: Sequence[Bags]) -> Bags:
        """Bring the lists of values together, then the rows."""
        parts = [part.settled() for part in (self, *others)]
        items, coding, size = [part.items for part in parts], self.coding, self.size
        coded = [(part.items, part.coding) for part in parts if part.coding is not None]
        if coded:
            items, coding = united(coded)
            size = len(coding.values) if isinstance(coding, Listed) else size
        ends = np.cumsum([0, *(part.items.size for part in parts)])
        offsets = [p.offsets[:-1] + at for p, at in zip(parts, ends[:-1], strict=True)]
        return Bags(
            np.concatenate([*offsets, ends[-1:]]),
            np.concatenate(items),
            np.concatenate([part.counts for part in parts]),
            size,
            coding,
        )

    def latest(self, keys: npt.NDArray[np.integer], behind: Bools) -> Bags:
        """Keep, of the rows behind, only the latest appearance of each item of each key.

        Rows are sorted by (key, time). For sets alone: whoever reads an earlier row reads the
        latest one too.

        >>> bags = Bags.of_values(np.array([1, 0, 1, 1]), None, 2, None)
        >>> kept = bags.latest(np.zeros(4, np.int32), np.array([True, True, True, False]))
        >>> kept.offsets.tolist(), kept.items.tolist()
        ([0, 0, 1, 2, 3], [0, 1, 1])
        """
        latest = np.empty(self.items.size, np.bool_)
        seen = np.full(max(self.size, 1), -1, np.int64)
        bag_kernels.mark_latest(self.offsets, self.items, keys, behind, seen, latest)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(latest)])
        kept = (before[self.offsets], self.items[latest], self.counts[latest])
        return Bags(*kept, self.size, self.coding)._trimmed()

    def _trimmed(self) -> Bags:
        """Forget values that no row has, once they are most of the list."""
        if not isinstance(self.coding, Listed):
            return self
        used = np.zeros(self.size, np.bool_)
        used[self.items] = True
        places = np.flatnonzero(used)
        if 2 * places.size >= self.size:
            return self
        items = (np.cumsum(used) - 1)[self.items]
        values = self.coding.values.take(pa.array(places))
        return Bags(self.offsets, items, self.counts, places.size, Listed(values))

    def values(self) -> Array:
        """Return the value of each item of the rows, whose ranges are written out."""
        assert isinstance(self.coding, Listed)
        return self.coding.values.take(pa.array(self.items))

    def distinct_counts(self) -> Int64s:
        """Count the distinct items of each row."""
        rows = (self.offsets, self.items, self.counts)
        return bag_kernels.distinct_counts(*rows, *self.bounds(), max(self.size, 1))

    def at_share(self, share: float) -> tuple[Int64s, Int64s, npt.NDArray[np.float64]]:
        """Return the items below and above rank `share * (n - 1)`, -1 where there are none.

        >>> bags = Bags.of_values(np.array([2, 0, 1]), None, 3, None)
        >>> [a.tolist() for a in bags.over_ranges(np.array([0]), np.array([3])).at_share(0.75)]
        [[1], [2], [0.5]]
        """
        starts, ends = self.bounds()
        low, high = np.full(starts.size, -1, np.int64), np.full(starts.size, -1, np.int64)
        rests = np.zeros(starts.size)
        tree = np.zeros((1 << max(self.size, 1).bit_length()) + 1, np.int64)
        rows = (self.offsets, self.items, self.counts)
        bag_kernels.items_at_ranks(*rows, starts, ends, tree, share, low, high, rests)
        return low, high, rests

    def register_histograms(self, registers: int) -> npt.NDArray[np.int32]:
        """Count for each row how many registers have each greatest rank."""
        starts, ends = self.bounds()
        out = np.empty((starts.size, bag_kernels.RANKS), np.int32)
        rows = (self.offsets, self.items, self.counts)
        bag_kernels.register_histograms(*rows, starts, ends, registers, out)
        return out
