"""Punctuated windows: one begins at each event for which a predicate holds, and ends the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from weft.engines.local.values.arrow import pc
from weft.engines.local.windows.discretizers.base import Discretizer, Found, SortedEvents, spanning
from weft.errors import DataError

if TYPE_CHECKING:
    from weft.engines.local.values.arrow import Array
    from weft.engines.local.windows.events import Timed
    from weft.window import PunctuatedWindow


@dataclass(slots=True)
class Punctuated(Discretizer):
    """Cuts at the events that begin a window; events before the first are in none."""

    window: PunctuatedWindow

    @property
    def _mark(self) -> str:
        return f"holds {self.window.predicate}"

    def marks(self, events: Timed) -> dict[str, Array]:
        """Evaluate the predicate; NULL does not hold."""
        holds = events.argument(self.window.predicate)
        if pa.types.is_null(holds.type):
            holds = holds.cast(pa.bool_())
        if not pa.types.is_boolean(holds.type):
            raise DataError(
                f"the predicate {self.window.predicate} is not true or false",
                hint="compare it with a value",
            )
        return {self._mark: pc.fill_null(holds, False)}

    def find(self, events: SortedEvents, watermark_us: int | None) -> Found:
        """Return the windows whose successor has begun; without a watermark, all."""
        begins = events.marks[self._mark].to_numpy(zero_copy_only=False)
        starts, ends = events.runs()
        first = np.flatnonzero(begins)
        own = np.searchsorted(starts, first, side="right") - 1
        stop = ends[own]
        followed = np.zeros(first.size, np.bool_)
        followed[:-1] = own[1:] == own[:-1]
        stop[:-1] = np.where(followed[:-1], first[1:], stop[:-1])
        closed = followed if watermark_us is not None else np.ones(first.size, np.bool_)
        opened = np.full(starts.size, events.keys.size, np.int64)
        opened[own[~closed]] = first[~closed]
        keep = np.arange(events.keys.size) >= np.repeat(opened, ends - starts)
        return spanning(events, first[closed], stop[closed], keep, begins)
