"""The names SQL knows windows by."""

from __future__ import annotations

# Folded name -> spelling in messages. `Windows` and `Window` hold others.
WINDOW_FUNCTIONS = {
    name.casefold(): name
    for name in (
        "window",
        "session_window",
        "Windows",
        "TumblingWindow",
        "HoppingWindow",
        "SessionWindow",
        "CountingWindow",
        "CumulatingWindow",
        "CalendarWindow",
        "PunctuatedWindow",
        "MeasuredWindow",
        "SlidingWindow",
        "SnapshotWindow",
    )
}
