"""Counting windows: so many events of a key, after every so many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.windows.discretizers.base import (
    Discretizer,
    Found,
    Int64s,
    SortedEvents,
    grown,
    ordinals_of_events,
    places,
    spanning,
)

if TYPE_CHECKING:
    from weft.window import CountingWindow


@dataclass(slots=True)
class Counting(Discretizer):
    """Counts the events of each key; an instance that never fills gives no row."""

    window: CountingWindow
    skip: Int64s = field(default_factory=lambda: np.empty(0, np.int64))  # events to the next begin

    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the instances that are full."""
        rows, every = self.window.rows, self.window.every
        starts, ends = events.runs()
        owners = events.keys[starts].astype(np.int64)
        skip = grown(self.skip, int(owners[-1]) + 1 if owners.size else 0)
        ordinals = ordinals_of_events(events)
        begin, end = ordinals[starts] + skip[owners], ordinals[ends]
        full = np.maximum((end - begin - rows) // every + 1, 0)
        first = np.repeat(begin, full) + places(full) * every
        following = begin + full * every
        after = ordinals[:-1] - np.repeat(following, ends - starts)
        skip[owners] = np.maximum(following - end, 0)
        self.skip = skip
        # Every begin and every end is the first event of a row.
        bounds = (np.searchsorted(ordinals, first), np.searchsorted(ordinals, first + rows))
        return spanning(events, *bounds, after >= 0, after % every == 0)

    def snapshot(self) -> dict[str, Any]:
        """Return how many events each key skips."""
        return {"skip": self.skip.tolist()}

    def restore(self, kept: dict[str, Any]) -> None:
        """Take the numbers back."""
        self.skip = np.array(kept["skip"], np.int64)
