"""Frames of SQL that end at their row, `RANGE|ROWS BETWEEN ... PRECEDING AND ...`, as windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from weft.errors import QueryError
from weft.time import DAY
from weft.window.trailing import AnchoredWindow, Trailing, TrailingRows

Order = Literal["instant", "local instant", "day", "number"]  # what a frame's ORDER BY holds


@dataclass(frozen=True, slots=True)
class Distance:
    """How far before the current row a frame begins or ends: microseconds, or a number."""

    value: int
    unit: Literal["number", "interval"]


HERE = Distance(0, "number")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that ends at the current row or before it."""

    kind: Literal["RANGE", "ROWS"]
    first: Distance
    last: Distance

    def window(self, order: Order, zone: str) -> AnchoredWindow:
        """Return the window that this frame is over rows in the order of some values.

        >>> hour = Distance(3_600_000_000, "interval")
        >>> str(Frame("RANGE", hour, HERE).window("instant", "UTC"))
        'TRAIL 1h [t-1h, t]'
        >>> str(Frame("ROWS", Distance(6, "number"), Distance(1, "number")).window("day", "UTC"))
        'ROWS 6 up to 1 rows before t'
        """
        if self.kind == "ROWS":
            if "interval" in (self.first.unit, self.last.unit):
                raise _odd("ROWS are counted in numbers")
            if self.first.value < self.last.value:
                raise _odd("a frame that ends before it begins is empty")
            return TrailingRows(self.first.value - self.last.value + 1, lag=self.last.value)
        first, last = (_counted(distance, order) for distance in (self.first, self.last))
        # Days are counted in the session's zone, where they differ in length.
        if order == "instant" and first >= DAY and not is_utc(zone):
            raise _odd(f"days of the zone {zone} differ in length")
        if first <= last:
            raise _odd("a frame of a single instant holds rows of one time only")
        return Trailing(first - last, "both", lag_us=last)


def _counted(distance: Distance, order: Order) -> int:
    if order == "number" or distance == HERE:
        if distance.unit == "interval":
            raise _odd("an interval cannot be before a number")
        return distance.value
    if order == "day":
        days = distance.value * DAY if distance.unit == "number" else distance.value
        if days % DAY:
            raise _odd("a part of a day cannot be before a date")
        return days
    if distance.unit == "number":
        raise _odd("a number cannot be before an instant")
    return distance.value


def is_utc(zone: str) -> bool:
    """Tell whether every day of a zone is 24 hours from midnight to midnight in UTC."""
    return zone.casefold() in ("utc", "gmt", "z", "etc/utc", "+00:00")


def _odd(message: str) -> QueryError:
    return QueryError(message, hint="write RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW")
