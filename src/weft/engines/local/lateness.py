"""When windows close and events come too late, for windows that follow the clock.

An event older than the watermark still counts if every instance that holds it is open; otherwise
it counts nowhere, because an instance that was emitted never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import numpy as np

from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    from weft.engines.local.calendar import CalendarTable
    from weft.kernels.partials import Bools, Int64s
    from weft.window import TimedWindow


def closed_for(
    window: TimedWindow, calendar: CalendarTable | None, times_us: Int64s, watermark_us: int
) -> Bools:
    """Tell which instants lie in an instance that the watermark has closed.

    >>> closed_for(PeriodicWindow(4, 2), None, np.array([4, 5, 6]), 6).tolist()
    [True, True, False]
    """
    first_end = _ends(window, calendar, times_us, first=True)
    return first_end <= watermark_us


def needed_after(
    window: TimedWindow, calendar: CalendarTable | None, starts_us: Int64s, watermark_us: int
) -> Bools:
    """Tell which slices lie in an instance that is still open.

    >>> needed_after(PeriodicWindow(4, 2), None, np.array([2, 4]), 6).tolist()
    [False, True]
    """
    last_end = _ends(window, calendar, starts_us, first=False)
    return last_end > watermark_us


_NEVER = 2**63 - 1


def _ends(
    window: TimedWindow, calendar: CalendarTable | None, times: Int64s, *, first: bool
) -> Int64s:
    """Return the end of the first or last instance around each instant; where there is none, one
    that neither closes nor is needed."""
    match window:
        case PeriodicWindow():
            size, slide, offset = window.range_us, window.slide_us, window.offset_us
            if first:
                ends = (times - offset - size) // slide * slide + slide + offset + size
                return np.where(ends - size <= times, ends, _NEVER)
            ends = (times - offset) // slide * slide + offset + size
            return np.where(ends > times, ends, -_NEVER)
        case CumulatingWindow():
            size = window.step_us if first else window.range_us
            return times // size * size + size
        case CalendarWindow():
            assert calendar is not None
            return calendar.around(times)[1]
        case _:
            assert_never(window)


def closes_between(window: TimedWindow, from_us: int | None, to_us: int | None) -> bool:
    """Tell whether any instance may end in `(from, to]`; calendars are not looked up.

    >>> closes_between(PeriodicWindow(4, 2), 6, 7), closes_between(PeriodicWindow(4, 2), 6, 8)
    (False, True)
    """
    if from_us is None or to_us is None or isinstance(window, CalendarWindow):
        return True
    if isinstance(window, CumulatingWindow):
        return from_us // window.step_us < to_us // window.step_us
    ends = window.offset_us + window.range_us
    return (from_us - ends) // window.slide_us < (to_us - ends) // window.slide_us
