"""All window kinds as one closed type; a `match` that forgets one fails the type check."""

from __future__ import annotations

from weft.window.kinds import (
    CalendarWindow,
    CountingWindow,
    CumulatingWindow,
    MeasuredWindow,
    PunctuatedWindow,
    SessionWindow,
)
from weft.window.periodic import PeriodicWindow
from weft.window.user import UserWindow

Window = (
    PeriodicWindow
    | SessionWindow
    | CountingWindow
    | CumulatingWindow
    | CalendarWindow
    | PunctuatedWindow
    | MeasuredWindow
    | UserWindow
)
# Instances known from the clock alone, without looking at an event.
TimedWindow = PeriodicWindow | CumulatingWindow | CalendarWindow
