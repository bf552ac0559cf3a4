"""Slices that the watermark has passed, in pieces by time: new ones at the end, old ones gone.

Windows that a store keeps need them only when the store is made anew, so they are neither merged
nor sorted with those that come; every batch costs what it brings.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.partials.columns import concat
from weft.engines.local.windows.flow import Flow, merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from weft.plan import Node

ROWS = 1 << 8  # in a piece, at least, or all slices that begin at one time
_PIECES = 1 << 6  # of what comes at once, at most


@dataclass(slots=True, eq=False)
class SliceLog:
    """Pieces in the order of time, no two with the same slice."""

    pieces: list[Flow] = field(default_factory=list)
    lows: list[int] = field(default_factory=list)  # the first start of each piece
    highs: list[int] = field(default_factory=list)  # and the last

    @staticmethod
    def of(flows: Sequence[Flow]) -> SliceLog:
        """Make a log of flows that come one after the other in time."""
        lows, highs = ([int(end(one.starts_us)) for one in flows] for end in (np.min, np.max))
        return SliceLog([*flows], lows, highs)

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def saved(self) -> SliceLog:
        """Return the log as it is now; pieces are shared, never changed."""
        return SliceLog([*self.pieces], [*self.lows], [*self.highs])

    def add(self, flow: Flow) -> None:
        """Take in slices; usually they begin after those that are there.

        >>> log = SliceLog()
        >>> for starts in ([1, 2], [3], [1]):
        ...     log.add(Flow(np.arange(len(starts)), np.array(starts), None, {}))
        >>> [piece.starts_us.tolist() for piece in log.pieces], log.lows, log.highs
        ([[1, 3, 2]], [1], [3])
        """
        if not len(flow):
            return
        if self.highs and int(flow.starts_us.min()) <= self.highs[-1]:
            at = bisect_left(self.highs, int(flow.starts_us.min()))
            flow = merged([side_by_side(self.pieces[at:]), flow])
            self._cut(at)
        if self.pieces and len(self.pieces[-1]) < ROWS:
            flow = side_by_side([self.pieces[-1], flow])
            self._cut(len(self.pieces) - 1)
        order = np.argsort(flow.starts_us, kind="stable")
        starts = flow.starts_us[order]
        begin, rows = 0, max(ROWS, starts.size // _PIECES)
        while begin < starts.size:
            stop = int(np.searchsorted(starts, starts[min(begin + rows, starts.size) - 1], "right"))
            whole = begin == 0 and stop == starts.size
            self.pieces.append(flow if whole else flow.take(np.sort(order[begin:stop])))
            self.lows.append(int(starts[begin]))
            self.highs.append(int(starts[stop - 1]))
            begin = stop

    def _cut(self, at: int) -> None:
        del self.pieces[at:], self.lows[at:], self.highs[at:]

    def between(self, low_us: int, high_us: int) -> list[Flow]:
        """Return the pieces that may have slices which begin in `[low, high)`."""
        return self.pieces[bisect_left(self.highs, low_us) : bisect_left(self.lows, high_us)]

    def forget(self, oldest_us: int) -> None:
        """Drop the slices that begin before a time."""
        gone = bisect_left(self.highs, oldest_us)
        if gone:
            del self.pieces[:gone], self.lows[:gone], self.highs[:gone]
        if self.lows and self.lows[0] < oldest_us:
            kept = self.pieces[0].take(np.flatnonzero(self.pieces[0].starts_us >= oldest_us))
            self.pieces[0], self.lows[0] = kept, int(kept.starts_us.min())


def side_by_side(flows: Sequence[Flow]) -> Flow:
    """Bring together flows of which no two have the same slice."""
    if len(flows) == 1:
        return flows[0]
    keys = np.concatenate([flow.keys for flow in flows])
    starts_us = np.concatenate([flow.starts_us for flow in flows])
    partials = {p: concat([f.partials[p] for f in flows]) for p in flows[0].partials}
    order = _by_key(keys) if _follow(flows) else np.lexsort((starts_us, keys))
    return Flow(keys, starts_us, None, partials).take(order)


def _follow(flows: Sequence[Flow]) -> bool:
    """Tell whether flows come one after the other in time."""
    bounds = [(f.starts_us.min(), f.starts_us.max()) for f in flows if len(f)]
    return all(before[1] <= after[0] for before, after in pairwise(bounds))


def _by_key(keys: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the order by keys; rows of one stay as they are. Those of 16 bits are only counted.

    >>> _by_key(np.array([1, 0, 1], np.int32)).tolist()
    [1, 0, 2]
    """
    narrow = keys.astype(np.uint16) if keys.max(initial=0) < 1 << 16 else keys
    return np.argsort(narrow, kind="stable")


class KeptSlices(Mapping["Node", Flow]):
    """All slices that are held, base by base; those of the past join only if somebody asks."""

    def __init__(self, runs: Mapping[Node, list[Flow]], past: Mapping[Node, SliceLog]) -> None:
        self._runs, self._past = runs, past
        self._whole: dict[Node, Flow] = {}

    def __getitem__(self, node: Node) -> Flow:
        if node not in self._whole:
            (recent,) = self._runs[node]
            log = self._past.get(node)
            pieces = [] if log is None else log.pieces
            self._whole[node] = merged([side_by_side(pieces), recent]) if pieces else recent
        return self._whole[node]

    def __contains__(self, node: object) -> bool:
        return node in self._runs

    def __iter__(self) -> Iterator[Node]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)
