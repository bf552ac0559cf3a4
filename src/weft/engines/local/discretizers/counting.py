"""Counting windows: so many events of a key, after every so many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engines.local.discretizers.base import (
    Found,
    Int64s,
    SortedEvents,
    grown,
    places,
    spanning,
)

if TYPE_CHECKING:
    from weft.engines.local.arrow import Array
    from weft.engines.local.events import Timed
    from weft.window import CountingWindow


@dataclass(slots=True)
class Counting:
    """Counts the events of each key; an instance that never fills gives no row."""

    window: CountingWindow
    skip: Int64s = field(default_factory=lambda: np.empty(0, np.int64))  # events to the next begin

    def marks(self, events: Timed) -> dict[str, Array]:
        """Times are enough."""
        return {}

    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the instances that are full."""
        rows, every = self.window.rows, self.window.every
        starts, ends = events.runs()
        owners = events.keys[starts].astype(np.int64)
        skip = grown(self.skip, int(owners[-1]) + 1 if owners.size else 0)
        waiting = skip[owners]
        full = np.maximum((ends - starts - waiting - rows) // every + 1, 0)
        first = np.repeat(starts + waiting, full) + places(full) * every
        following = starts + waiting + full * every
        keep = np.arange(events.keys.size) >= np.repeat(following, ends - starts)
        skip[owners] = np.maximum(following - ends, 0)
        self.skip = skip
        return spanning(events, first, first + rows, keep)

    def start_amid(self) -> None:
        """Counting starts with the first event shown."""

    def snapshot(self) -> dict[str, Any]:
        """Return how many events each key skips."""
        return {"skip": self.skip.tolist()}

    def restore(self, kept: dict[str, Any]) -> None:
        """Take the numbers back."""
        self.skip = np.array(kept["skip"], np.int64)
