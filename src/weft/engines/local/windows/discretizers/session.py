"""Sessions: runs of a key's events without a pause longer than the gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft.engines.local.windows.discretizers.base import Discretizer, Found, SortedEvents

if TYPE_CHECKING:
    from weft.window import SessionWindow


@dataclass(slots=True)
class Sessions(Discretizer):
    """Cuts where a pause is longer than the gap.

    An event exactly one gap after the last still belongs to the session, so a session is closed
    only when the watermark has passed that instant.
    """

    window: SessionWindow

    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the sessions that no event can join any more."""
        keys, times, lasts = events.keys, events.times_us, events.lasts_us
        cut = np.ones(keys.size, np.bool_)
        cut[1:] = (keys[1:] != keys[:-1]) | (times[1:] - lasts[:-1] > self.window.gap_us)
        first = np.flatnonzero(cut)
        stop = np.append(first[1:], keys.size) if keys.size else first
        ends = lasts[stop - 1] + self.window.gap_us
        closed = np.ones(first.size, np.bool_) if watermark_us is None else ends < watermark_us
        keep = np.repeat(~closed, stop - first)
        first, stop = first[closed], stop[closed]
        return Found(first, stop, times[first], ends[closed], keep, keep & cut)
