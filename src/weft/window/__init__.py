"""The window kinds: what users write, as frozen values.

>>> str(tumbling("20 minutes")), str(hopping("1 hour", "5 minutes"))
('TUMBLE 20m', 'HOP 1h/5m')
"""

from __future__ import annotations

from weft.time import Duration, duration_us
from weft.window.any_window import TimedWindow, Window
from weft.window.edges import EdgeClass, Edges, Slicing, edge_classes, primitive_classes
from weft.window.kinds import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    LandmarkWindow,
    MeasuredWindow,
    PunctuatedWindow,
    SessionWindow,
)
from weft.window.periodic import PeriodicWindow
from weft.window.user import UserWindow


def tumbling(range: Duration, offset: Duration = 0) -> PeriodicWindow:
    """Windows of one range, side by side."""
    range_us = duration_us(range)
    return PeriodicWindow(range_us, range_us, duration_us(offset))


def hopping(range: Duration, slide: Duration, offset: Duration = 0) -> PeriodicWindow:
    """Windows of one range that begin every slide; the range need not be a multiple of it."""
    return PeriodicWindow(duration_us(range), duration_us(slide), duration_us(offset))


def session(gap: Duration) -> SessionWindow:
    """Runs of a key's events with no pause longer than the gap."""
    return SessionWindow(duration_us(gap))


def counting(rows: int, every: int | None = None) -> CountingWindow:
    """The last `rows` events of a key, after every `every` of them (by default, every `rows`)."""
    return CountingWindow(rows, rows if every is None else every)


def cumulating(range: Duration, step: Duration) -> CumulatingWindow:
    """Windows with a common start that grow by a step until they span the range."""
    return CumulatingWindow(duration_us(range), duration_us(step))


def calendar(unit: str, tz: str = "UTC") -> CalendarWindow:
    """Days, weeks, months, quarters or years of a time zone."""
    return CalendarWindow(unit, tz)


def punctuated(predicate_sql: str) -> PunctuatedWindow:
    """A window begins at each event of a key for which the SQL predicate holds."""
    return PunctuatedWindow(predicate_sql)


def measured(column: str, range: int | float, slide: int | float) -> MeasuredWindow:
    """Windows over a non-decreasing column instead of time."""
    return MeasuredWindow(column, range, slide)


__all__ = [
    "CalendarWindow", "CountingWindow", "CumulatingWindow", "EdgeClass", "Edges",
    "LandmarkWindow", "MeasuredWindow", "PeriodicWindow", "PunctuatedWindow", "SessionWindow",
    "Slicing", "TimedWindow", "UserWindow", "Window", "calendar", "counting", "cumulating",
    "edge_classes", "hopping", "measured", "primitive_classes", "punctuated", "session",
    "tumbling",
]  # fmt: skip
