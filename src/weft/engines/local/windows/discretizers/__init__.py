"""Windows that events delimit: which of a key's events, in time order, make up each instance.

One kind a file, one interface (`base.Discretizer`) for batch and stream.
"""

from __future__ import annotations

from typing import assert_never

from weft.engines.local.windows.discretizers.base import Discretizer, Found, SortedEvents
from weft.engines.local.windows.discretizers.counting import Counting
from weft.engines.local.windows.discretizers.measured import Measured
from weft.engines.local.windows.discretizers.punctuated import Punctuated
from weft.engines.local.windows.discretizers.session import Sessions
from weft.engines.local.windows.discretizers.user import UserDefined
from weft.errors import InternalError
from weft.window import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    MeasuredWindow,
    PeriodicWindow,
    PunctuatedWindow,
    SessionWindow,
    UserWindow,
    Window,
)

__all__ = ["Discretizer", "Found", "SortedEvents", "discretizer_of"]


def discretizer_of(window: Window) -> Discretizer:
    """Return a fresh discretizer of a window that events delimit."""
    match window:
        case SessionWindow():
            return Sessions(window)
        case CountingWindow():
            return Counting(window)
        case PunctuatedWindow():
            return Punctuated(window)
        case MeasuredWindow():
            return Measured(window)
        case UserWindow():
            return UserDefined(window)
        case PeriodicWindow() | CumulatingWindow() | CalendarWindow():
            raise InternalError(f"{window} is delimited by the clock, not by events")
        case _:
            assert_never(window)
