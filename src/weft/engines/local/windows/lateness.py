"""When windows close and events come too late, for windows that follow the clock.

An event older than the watermark still counts if every instance that holds it is open; otherwise
it counts nowhere, because an instance that was emitted never changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

import numpy as np

from weft.engines.local.windows.instances import shapes_of
from weft.errors import InternalError
from weft.kernels.compiled import unlocked
from weft.window import CalendarWindow, CumulatingWindow, PeriodicWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from weft.engines.local.values.calendar import CalendarTable
    from weft.kernels.partials import Bools, Int64s
    from weft.window import TimedWindow, Window

_NEVER = 2**63 - 1


def closed_for(
    window: TimedWindow, calendar: CalendarTable | None, times_us: Int64s, watermark_us: int
) -> Bools:
    """Tell which instants lie in an instance that the watermark has closed.

    >>> closed_for(PeriodicWindow(4, 2), None, np.array([4, 5, 6]), 6).tolist()
    [True, True, False]
    """
    return _first_ends(window, calendar, times_us) <= watermark_us


class Readers(NamedTuple):
    """Windows that read the same slices, sorted out once for all the times they are asked about."""

    periodic: Int64s | None  # their shapes
    others: tuple[Window, ...]

    @classmethod
    def of(cls, windows: Iterable[Window]) -> Readers:
        """Tell periodic windows from others."""
        known = tuple(windows)
        periodic = tuple(window for window in known if isinstance(window, PeriodicWindow))
        others = tuple(window for window in known if not isinstance(window, PeriodicWindow))
        return cls(shapes_of(periodic).sizes_us if periodic else None, others)


def oldest_open(
    readers: Readers, calendars: Mapping[CalendarWindow, CalendarTable], us: int
) -> int:
    """Return the start of the oldest instance of any of these windows that is open at a time.

    Slices before it can be forgotten.

    >>> oldest_open(Readers.of([PeriodicWindow(4, 2), PeriodicWindow(9, 9)]), {}, 10)
    8
    >>> oldest_open(Readers.of([CumulatingWindow(6, 2)]), {}, 10)
    6
    """
    oldest = [_oldest_aligned(window, calendars, us) for window in readers.others]
    if readers.periodic is not None:
        oldest.append(_oldest(readers.periodic, us))
    return min(oldest)


def _oldest_aligned(
    window: Window, calendars: Mapping[CalendarWindow, CalendarTable], us: int
) -> int:
    match window:
        case CumulatingWindow():
            return us // window.range_us * window.range_us
        case CalendarWindow():
            return int(calendars[window].around(np.array([us]))[0][0])
        case _:
            raise InternalError(f"{window} keeps no slices")


@unlocked
def _oldest(shapes: Int64s, us: int) -> int:
    oldest = np.int64(_NEVER)
    for i in range(shapes.shape[0]):
        size, slide, offset = shapes[i]
        oldest = min(oldest, offset + ((us - offset - size) // slide + 1) * slide)
    return int(oldest)


def first_start(window: Window, calendar: CalendarTable | None, from_us: int) -> int:
    """Return the start of the first instance that begins at a time or after it.

    >>> first_start(PeriodicWindow(4, 2, 1), None, 6), first_start(PeriodicWindow(4, 2), None, 6)
    (7, 6)
    """
    match window:
        case PeriodicWindow():
            return from_us + (window.offset_us - from_us) % window.slide_us
        case CumulatingWindow():
            return from_us + -from_us % window.range_us
        case CalendarWindow():
            assert calendar is not None
            start, end = calendar.around(np.array([from_us]))
            return from_us if start[0] == from_us else int(end[0])
        case _:
            raise InternalError(f"{window} begins with an event")


def _first_ends(window: TimedWindow, calendar: CalendarTable | None, times: Int64s) -> Int64s:
    """Return the end of the first instance around each instant; a far one where there is none."""
    match window:
        case PeriodicWindow():
            size, slide, offset = window.range_us, window.slide_us, window.offset_us
            ends = (times - offset - size) // slide * slide + slide + offset + size
            return np.where(ends - size <= times, ends, _NEVER)
        case CumulatingWindow():
            return times // window.step_us * window.step_us + window.step_us
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
