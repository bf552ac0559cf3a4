"""Days, weeks, months of a time zone: the unit around each instant, looked up in a table.

The table holds the units of the days that have events, not of all time between them, so a clock
that jumps a century costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from weft.time import DAY

if TYPE_CHECKING:
    from weft.kernels.partials import Int64s
    from weft.window import CalendarWindow


@dataclass(slots=True)
class CalendarTable:
    """The units of a calendar window that were needed so far."""

    window: CalendarWindow
    starts_us: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    ends_us: Int64s = field(default_factory=lambda: np.empty(0, np.int64))

    def around(self, times_us: Int64s) -> tuple[Int64s, Int64s]:
        """Return the first instant of the unit around each time, and the first after it.

        >>> from weft.window import CalendarWindow
        >>> table = CalendarTable(CalendarWindow("day"))
        >>> [bounds.tolist() for bounds in table.around(np.array([-1, 5]))]
        [[-86400000000, 0], [0, 86400000000]]
        """
        found = self._find(times_us)
        unknown = self._outside(times_us, found)
        if unknown.any():
            self._learn(times_us[unknown])
            found = self._find(times_us)
        return self.starts_us[found], self.ends_us[found]

    def _find(self, times: Int64s) -> Int64s:
        return np.searchsorted(self.starts_us, times, side="right") - 1

    def _outside(self, times: Int64s, found: Int64s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        if not self.starts_us.size:
            return np.ones(times.size, np.bool_)
        return (found < 0) | (times >= self.ends_us[found])

    def _learn(self, times: Int64s) -> None:
        """Add the units around the distinct days of these times: few, however many the events."""
        known = set(zip(self.starts_us.tolist(), self.ends_us.tolist(), strict=True))
        first = np.minimum.reduceat if times.size else None
        days, where = np.unique(times // DAY, return_index=True)
        for day, at in zip(days.tolist(), where.tolist(), strict=True):
            time = max(day * DAY, -(2**62))
            (unit,) = self.window.instances(int(times[at]))
            known.add(unit)
            stop = (day + 1) * DAY
            edges = [unit]
            while edges[-1][1] < stop:
                (unit,) = self.window.instances(edges[-1][1])
                edges.append(unit)
            while edges[0][0] > time:
                (unit,) = self.window.instances(edges[0][0] - 1)
                edges.insert(0, unit)
            known.update(edges)
        assert first is not None
        units = np.array(sorted(known), np.int64)
        self.starts_us, self.ends_us = units[:, 0].copy(), units[:, 1].copy()
