"""Which windows of a stream have closed: watermark and closing, in plain loops.

It knows all events that have come, and nothing of slices and state: every engine that closes
windows as time goes on is tested against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.engines.reference.instances import Event, Instance, instances_of
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    PeriodicWindow,
    SessionWindow,
    Window,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def watermark_of(latest_us: int, delay_us: int, unit_us: int = 1) -> int:
    """Return the watermark that an event allows, in whole units: Spark counts milliseconds.

    A delay that is no whole unit is rounded up, so that no event is late which it covers.

    >>> watermark_of(10_999, 1_500), watermark_of(10_999, 1_500, 1000)
    (9499, 8000)
    """
    return (latest_us // unit_us - -(-delay_us // unit_us)) * unit_us


def ended(window: Window, events: Sequence[Event], watermark_us: int | None) -> list[Instance]:
    """Return the instances of a key's events that no later event can change.

    Events are in the order of time, and none will come before the watermark.

    >>> events = [Event(t, {}) for t in (1, 2, 9)]
    >>> [len(ended(PeriodicWindow(5, 5), events, us)) for us in (4, 5, 10)]
    [0, 1, 2]
    >>> [len(ended(SessionWindow(3), events, us)) for us in (5, 6, 13)]
    [0, 1, 2]
    >>> [len(ended(CountingWindow(2, 2), events, us)) for us in (2, 3)]
    [0, 1]
    """
    if watermark_us is None:
        return []
    if isinstance(window, PeriodicWindow | CumulatingWindow | CalendarWindow):
        return [i for i in instances_of(window, events) if i.end_us <= watermark_us]
    if isinstance(window, SessionWindow):
        # An event one gap after the last one still belongs to the session.
        return [i for i in instances_of(window, events) if i.end_us < watermark_us]
    known = [event for event in events if event.time_us < watermark_us]
    found = instances_of(window, known)
    if isinstance(window, CountingWindow):
        return found
    # An event that is not in it any more has ended it.
    return [i for i in found if i.stop < len(known)]
