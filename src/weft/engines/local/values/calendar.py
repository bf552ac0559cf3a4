"""Days, weeks, months of a time zone: the unit around each instant, looked up in a table.

The table holds the units of the days that have events, not of all time between them, so a clock
that jumps a century costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from weft.kernels.grouping.dense import bounds_of
from weft.time import DAY

if TYPE_CHECKING:
    from weft.kernels.partials import Bools, Int64s
    from weft.window import CalendarWindow

_DENSE_DAYS = 1 << 12  # so many units are walked through, events or not


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

    def _outside(self, times: Int64s, found: Int64s) -> Bools:
        if not self.starts_us.size:
            return np.ones(times.size, np.bool_)
        return (found < 0) | (times >= self.ends_us[found])

    def _learn(self, times: Int64s) -> None:
        """Add the units around these times, day by day of those that have any."""
        known = set(zip(self.starts_us.tolist(), self.ends_us.tolist(), strict=True))
        for low, high in _spans(times):
            (unit,) = self.window.instances(low)
            known.add(unit)
            while unit[1] <= high:
                (unit,) = self.window.instances(unit[1])
                known.add(unit)
        units = np.array(sorted(known), np.int64)
        self.starts_us, self.ends_us = units[:, 0].copy(), units[:, 1].copy()


def _spans(times: Int64s) -> list[tuple[int, int]]:
    """Cover the times by few spans: one if they lie close together, else one per day with any."""
    least, greatest = bounds_of(times)
    if greatest - least <= _DENSE_DAYS * DAY:
        return [(least, greatest)]
    ordered = np.sort(times)
    days = ordered // DAY
    firsts = np.flatnonzero(np.diff(days, prepend=days[0] - 1))
    lasts = np.append(firsts[1:], days.size) - 1
    return list(zip(ordered[firsts].tolist(), ordered[lasts].tolist(), strict=True))
